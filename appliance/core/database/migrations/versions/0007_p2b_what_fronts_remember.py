"""Requests remember the document that their signer last fetched.

Without a row nothing is known, and the request is signed as the version before signs it.
"""

import sqlalchemy as sa
from alembic import op

revision = "0007"
down_revision = "0006"
# The version before neither reads nor writes what is new.
oldest_reader = "0001"

_SERIAL = sa.BigInteger().with_variant(sa.Integer(), "sqlite")


def upgrade() -> None:
    """Add a table with at most one row for each request."""
    op.create_table(
        "shown_document",
        sa.Column(
            "request",
            _SERIAL,
            sa.ForeignKey("signature_request.id", ondelete="CASCADE"),
            primary_key=True,
            autoincrement=False,
        ),
        sa.Column("sha256", sa.String(64), nullable=False),
        sa.Column("drawn", sa.Boolean, nullable=False),
    )


def downgrade() -> None:
    """Take it away."""
    op.drop_table("shown_document")
