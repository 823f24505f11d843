"""Administrators who are shut out, and when each last signed in."""

import sqlalchemy as sa
from alembic import op

from appliance.storage.types import Instant

revision = "0016"
down_revision = "0015"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("console_user", sa.Column("disabled", Instant()))
    op.add_column("console_user", sa.Column("last_login", Instant()))
