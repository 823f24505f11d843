"""A process says which failed one it was asked for in the place of.

Without a value it replaces none.
"""

import sqlalchemy as sa
from alembic import op

revision = "0015"
down_revision = "0014"
# The version before writes no value, and asks again as often as it is told to.
oldest_reader = "0001"


def upgrade() -> None:
    """Add an empty column; two processes never have the same value."""
    op.add_column("signing_process", sa.Column("replaces", sa.String(36)))
    op.create_index(
        "ix_signing_process_replaces", "signing_process", ["replaces"], unique=True
    )


def downgrade() -> None:
    """Take it away."""
    op.drop_index("ix_signing_process_replaces", "signing_process")
    # In a batch SQLite makes the table anew, and requests refer to the one that is there.
    op.drop_column("signing_process", "replaces")
