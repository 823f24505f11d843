"""Since when what a person has proven counts no more."""

import sqlalchemy as sa
from alembic import op

from appliance.storage.types import Instant

revision = "0018"
down_revision = "0017"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("person", sa.Column("signed_out", Instant(timezone=True)))
