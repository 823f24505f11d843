"""An activation key bears its host's own signature beside the identity's.

A row without it is of format 1, or of the version before, which also says nothing of
the newest format of activations that a process knows.
"""

import sqlalchemy as sa
from alembic import op

revision = "0009"
down_revision = "0008"
# The version before writes neither column, and reads neither.
oldest_reader = "0001"


def upgrade() -> None:
    """Add columns that may be empty."""
    op.add_column("activation_key", sa.Column("host_signature", sa.LargeBinary))
    op.add_column("worker_status", sa.Column("activation_format", sa.Integer))


def downgrade() -> None:
    """Take them away."""
    with op.batch_alter_table("worker_status") as altered:
        altered.drop_column("activation_format")
    with op.batch_alter_table("activation_key") as altered:
        altered.drop_column("host_signature")
