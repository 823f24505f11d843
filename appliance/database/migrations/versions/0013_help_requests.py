"""People who cannot sign ask an officer for help.

Without a row nobody asked. The version before offers no way to ask.
"""

import sqlalchemy as sa
from alembic import op

revision = "0013"
down_revision = "0012"
# The version before neither reads nor writes what is new.
oldest_reader = "0001"

_INSTANT = sa.DateTime(timezone=True)


def upgrade() -> None:
    """Add a table with at most one row for each person."""
    op.create_table(
        "help_request",
        sa.Column(
            "person",
            sa.String(36),
            sa.ForeignKey("person.id"),
            primary_key=True,
        ),
        sa.Column("id", sa.String(36), nullable=False),
        sa.Column("topic", sa.String(16), nullable=False),
        sa.Column("integrator", sa.String(36), sa.ForeignKey("integrator.id")),
        sa.Column("proven", sa.Boolean, nullable=False),
        sa.Column("code_index", sa.String(64), nullable=False, unique=True),
        sa.Column("asked", _INSTANT, nullable=False),
        sa.Column("counted", sa.Integer, nullable=False),
        sa.Column("since", _INSTANT, nullable=False),
        sa.Column("ended", _INSTANT),
        sa.Column("outcome", sa.String(16)),
    )
    op.create_index("ix_help_request_ended_asked", "help_request", ["ended", "asked"])


def downgrade() -> None:
    """Take it away."""
    op.drop_table("help_request")
