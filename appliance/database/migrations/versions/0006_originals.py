"""Each request, upload, batch and session says by itself what its document came as.

A row without it, of the version before, goes by `document_repair` as it did. That table
gets no more rows of documents that are there already, so that none of these rows begins
to say something else.
"""

from functools import partial

import sqlalchemy as sa
from alembic import op

revision = "0006"
down_revision = "0005"
# The version before reads and writes `document_repair` alone.
oldest_reader = "0001"

_TABLES = ("uploaded_document", "batch_document", "signature_request", "embed_session")
_required = partial(sa.Column, nullable=False)


def upgrade() -> None:
    """Add columns that may be empty, and a table with what is known already."""
    for table in _TABLES:
        op.add_column(table, sa.Column("original_sha256", sa.String(64)))
    op.add_column("uploaded_document", sa.Column("repairs", sa.Boolean))
    op.create_table(
        "document_original",
        sa.Column(
            "document",
            sa.String(36),
            sa.ForeignKey("document.id", ondelete="CASCADE"),
            primary_key=True,
        ),
        sa.Column("sha256", sa.String(64), primary_key=True),
        _required("integrator", sa.String(36), sa.ForeignKey("integrator.id")),
        _required("damage", sa.Text),
        sa.Index("ix_document_original_integrator_sha256", "integrator", "sha256"),
    )
    op.execute(
        "INSERT INTO document_original (document, sha256, integrator, damage) "
        "SELECT document, sha256, integrator, damage FROM document_repair"
    )


def downgrade() -> None:
    """Take them away."""
    op.drop_table("document_original")
    for table in _TABLES:
        with op.batch_alter_table(table) as altered:
            altered.drop_column("original_sha256")
            if table == "uploaded_document":
                altered.drop_column("repairs")
