"""Console sessions remember when their administrator last gave a code.

Without a value, no code is known, and what cannot be undone asks for one.
"""

import sqlalchemy as sa
from alembic import op

revision = "0012"
down_revision = "0011"
# The version before neither reads nor writes what is new.
oldest_reader = "0001"


def upgrade() -> None:
    """Add an empty column."""
    op.add_column("console_session", sa.Column("proven", sa.DateTime(timezone=True)))


def downgrade() -> None:
    """Take it away."""
    with op.batch_alter_table("console_session") as altered:
        altered.drop_column("proven")
