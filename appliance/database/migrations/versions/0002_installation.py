"""What belongs to the installation as a whole: the mark of its documents' folder."""

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"
# The version before marks no folder and asks for no mark.
oldest_reader = "0001"


def upgrade() -> None:
    """Make the table."""
    op.create_table(
        "installation",
        sa.Column("name", sa.String(32), primary_key=True),
        sa.Column("value", sa.Text, nullable=False),
    )


def downgrade() -> None:
    """Take it away."""
    op.drop_table("installation")
