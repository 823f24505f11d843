"""A batch says which of its documents the signer has to open before signing.

Without a value all have to be opened, as the version before demands.
"""

import sqlalchemy as sa
from alembic import op

revision = "0014"
down_revision = "0013"
# The version before demands that all are opened, whatever the column says.
oldest_reader = "0001"


def upgrade() -> None:
    """Add an empty column."""
    op.add_column("request_batch", sa.Column("openings", sa.String(8)))


def downgrade() -> None:
    """Take it away."""
    with op.batch_alter_table("request_batch") as altered:
        altered.drop_column("openings")
