"""Requests remember the document that their signer last fetched, and counts their clearing.

Without a row of the first, nothing is known, and the request is signed as the version
before signs it. Without a value of the second, nobody proves who cleared a count.
"""

import sqlalchemy as sa
from alembic import op

revision = "0011"
down_revision = "0010"
# The version before neither reads nor writes what is new.
oldest_reader = "0001"

_SERIAL = sa.BigInteger().with_variant(sa.Integer(), "sqlite")


def upgrade() -> None:
    """Add a table with at most one row for each request, and an empty column."""
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
    op.add_column("signing_secret", sa.Column("cleared", sa.Text))


def downgrade() -> None:
    """Take them away."""
    with op.batch_alter_table("signing_secret") as altered:
        altered.drop_column("cleared")
    op.drop_table("shown_document")
