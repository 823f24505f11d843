"""Which session a renewed one went on as, so that a repeat finds it."""

import sqlalchemy as sa
from alembic import op

revision = "0015"
down_revision = "0014"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("embed_session", sa.Column("successor", sa.String(36)))
