"""Integrators that are disabled: none of their keys opens a session."""

import sqlalchemy as sa
from alembic import op

from appliance.storage.types import Instant

revision = "0023"
down_revision = "0022"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("integrator", sa.Column("disabled", Instant()))
