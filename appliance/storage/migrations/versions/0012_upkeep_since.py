"""Since when a document's upkeep is due, however often it was put off."""

import sqlalchemy as sa
from alembic import op

from appliance.storage.types import Instant

revision = "0012"
down_revision = "0011"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("level_upkeep", sa.Column("since", Instant(timezone=True)))
    op.create_index("ix_level_upkeep_since", "level_upkeep", ["since"])
