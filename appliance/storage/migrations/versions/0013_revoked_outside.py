"""Since when, and why, an outside CA has revoked a certificate."""

import sqlalchemy as sa
from alembic import op

from appliance.storage.types import Instant

revision = "0013"
down_revision = "0012"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("outside_status", sa.Column("revoked_at", Instant(timezone=True)))
    op.add_column(
        "outside_status",
        sa.Column("reason", sa.Text(), nullable=False, server_default=""),
    )
