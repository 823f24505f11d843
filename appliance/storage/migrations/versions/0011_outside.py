"""TSAs and CAs outside: who stamps, what they said, and who finishes."""

import sqlalchemy as sa
from alembic import op

from appliance.storage.types import Instant, JsonText

revision = "0011"
down_revision = "0010"
branch_labels = None
depends_on = None


def upgrade() -> None:
    for table in ("integrator", "signature_request"):
        op.add_column(table, sa.Column("tsa", JsonText(), nullable=True))
    op.add_column("level_upkeep", sa.Column("tsa", JsonText(), nullable=True))
    for table in ("activation", "level_upkeep"):
        op.add_column(
            table,
            sa.Column(
                "outside", sa.Boolean(), nullable=False, server_default=sa.false()
            ),
        )
    op.create_table(
        "outside_status",
        sa.Column("kind", sa.String(8), nullable=False),
        sa.Column("subject", sa.String(64), nullable=False),
        sa.Column("der", sa.LargeBinary(), nullable=False),
        sa.Column("this_update", Instant(timezone=True), nullable=False),
        sa.Column("next_update", Instant(timezone=True), nullable=False),
        sa.PrimaryKeyConstraint("kind", "subject", name=op.f("pk_outside_status")),
    )
    op.create_index(
        "ix_outside_status_next_update", "outside_status", ["next_update"]
    )
