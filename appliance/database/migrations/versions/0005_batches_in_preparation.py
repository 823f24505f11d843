"""Batches are answered before their documents are examined, and prepared by chores."""

from functools import partial

import sqlalchemy as sa
from alembic import op

revision = "0005"
down_revision = "0004"
# The version before knows no batches; it leaves them as they are.
oldest_reader = "0001"

_INSTANT = sa.DateTime(timezone=True)
_ENDED = "ix_request_batch_ended"
_COLUMNS = (
    ("person", sa.String(36)),
    ("named_by", sa.String(8)),
    ("state", sa.String(16)),
    ("total", sa.Integer),
    ("examined", sa.Integer),
    ("faults", sa.Text),
    ("reason", sa.Text),
    ("ended", _INSTANT),
)
_required = partial(sa.Column, nullable=False)


def upgrade() -> None:
    """Add columns that may be empty, and tables."""
    for name, kind in _COLUMNS:
        op.add_column("request_batch", sa.Column(name, kind))
    # No row has it yet: the index is made at once, however large the table is.
    op.create_index(
        _ENDED,
        "request_batch",
        ["ended"],
        sqlite_where=sa.text("ended IS NOT NULL"),
        postgresql_where=sa.text("ended IS NOT NULL"),
    )
    op.create_table(
        "batch_preparation",
        sa.Column(
            "id", sa.String(36), sa.ForeignKey("request_batch.id"), primary_key=True
        ),
        _required("integrator", sa.String(36), sa.ForeignKey("integrator.id")),
        _required("created", _INSTANT),
        _required("actor", sa.Text),
        sa.Column("expires", _INSTANT),
        sa.Column("level", sa.String(8)),
        sa.Column("idempotency_key", sa.String(128)),
        _required("tries", sa.Integer),
        sa.Column("lease_owner", sa.Text),
        sa.Column("lease_until", _INSTANT),
        _required("fence", sa.BigInteger),
    )
    op.create_table(
        "batch_document",
        sa.Column(
            "batch", sa.String(36), sa.ForeignKey("request_batch.id"), primary_key=True
        ),
        sa.Column("place", sa.Integer, primary_key=True, autoincrement=False),
        _required("integrator", sa.String(36), sa.ForeignKey("integrator.id")),
        sa.Column("sha256", sa.String(64)),
        _required("size_bytes", sa.BigInteger),
        sa.Column("document", sa.String(36), sa.ForeignKey("document.id")),
        _required("name", sa.Text),
        _required("field", sa.String(16)),
        sa.Column("part", sa.Text),
        sa.Column("reference", sa.String(128)),
        sa.Column("unique_reference", sa.String(128)),
        sa.Column("metadata", sa.Text),
        _required("repairs", sa.Boolean),
        sa.Column("wished", sa.Text),
        sa.Column("preset", sa.Text),
        _required("settled", sa.Boolean),
        sa.Column("fault", sa.Text),
        sa.Index("ix_batch_document_integrator_sha256", "integrator", "sha256"),
        sa.Index("ix_batch_document_document", "document"),
        sa.Index(
            "ix_batch_document_integrator_unique_reference",
            "integrator",
            "unique_reference",
            unique=True,
        ),
    )


def downgrade() -> None:
    """Take them away."""
    op.drop_table("batch_document")
    op.drop_table("batch_preparation")
    op.drop_index(_ENDED, "request_batch", if_exists=True)
    with op.batch_alter_table("request_batch") as altered:
        for name, _ in _COLUMNS:
            altered.drop_column(name)
