"""For whom an HSM task is, and how many of theirs it comes after."""

import sqlalchemy as sa
from alembic import op

revision = "0021"
down_revision = "0020"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column(
        "hsm_task",
        sa.Column("share", sa.String(32), nullable=False, server_default=""),
    )
    op.add_column(
        "hsm_task",
        sa.Column("turn", sa.Integer(), nullable=False, server_default="0"),
    )
    op.create_index("ix_hsm_task_share_state", "hsm_task", ["share", "state"])
