"""An activation says by which signature profile its front resolved the signatures.

A row without it, of the version before, is signed as it was.
"""

import sqlalchemy as sa
from alembic import op

revision = "0010"
down_revision = "0009"
# The version before passes over it.
oldest_reader = "0001"


def upgrade() -> None:
    """Add a column that may be empty."""
    op.add_column("activation", sa.Column("profile", sa.Text))


def downgrade() -> None:
    """Take it away."""
    with op.batch_alter_table("activation") as altered:
        altered.drop_column("profile")
