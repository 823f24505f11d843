"""Whether a session's host has sent a document: then the signer brings none."""

import sqlalchemy as sa
from alembic import op

revision = "0019"
down_revision = "0018"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column(
        "embed_session",
        sa.Column(
            "host_document", sa.Boolean(), nullable=False, server_default=sa.false()
        ),
    )
