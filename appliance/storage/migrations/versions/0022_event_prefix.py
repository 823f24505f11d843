"""The prefix of an integrator's messages, where it is not the installation's."""

import sqlalchemy as sa
from alembic import op

revision = "0022"
down_revision = "0021"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("integrator", sa.Column("event_prefix", sa.String(32)))
