"""${message}"""

import sqlalchemy as sa
from alembic import op

import appliance.database.types

revision = ${repr(up_revision)}
down_revision = ${repr(down_revision)}
# The oldest table version that code must know to use these tables (docs/database.md).
oldest_reader = ${repr(up_revision)}
branch_labels = None
depends_on = None


def upgrade() -> None:
    ${upgrades if upgrades else "pass"}


def downgrade() -> None:
    ${downgrades if downgrades else "pass"}
