"""Levels of signatures: wishes, versions of signed documents, their upkeep."""

import sqlalchemy as sa
from alembic import op

from appliance.storage.types import Instant

revision = "0010"
down_revision = "0009"
branch_labels = None
depends_on = None

_WISHES = (("timestamp_policy", 16), ("digest", 8))


def upgrade() -> None:
    op.add_column("integrator", sa.Column("level", sa.String(8), nullable=True))
    op.add_column(
        "signature_request", sa.Column("wished_level", sa.String(8), nullable=True)
    )
    for table in ("integrator", "signature_request"):
        for name, length in _WISHES:
            op.add_column(table, sa.Column(name, sa.String(length), nullable=True))
    # Nothing refers to it, so that SQLite may copy it.
    op.rename_table("signed_document", "signed_document_1")
    if op.get_bind().dialect.name == "postgresql":
        for kind in ("pk_signed_document", "fk_signed_document_request",
                     "fk_signed_document_integrator"):
            op.execute(
                f"ALTER TABLE signed_document_1 RENAME CONSTRAINT {kind} TO {kind}_1"
            )
    op.create_table(
        "signed_document",
        sa.Column(
            "request", sa.BigInteger().with_variant(sa.Integer(), "sqlite"),
            nullable=False,
        ),
        sa.Column("version", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("integrator", sa.String(36), nullable=False),
        sa.Column("sha256", sa.String(64), nullable=False),
        sa.Column("size_bytes", sa.BigInteger(), nullable=False),
        sa.Column("level", sa.String(8), nullable=False),
        sa.Column("made", Instant(timezone=True), nullable=False),
        sa.ForeignKeyConstraint(
            ["request"], ["signature_request.id"],
            name=op.f("fk_signed_document_request"),
        ),
        sa.ForeignKeyConstraint(
            ["integrator"], ["integrator.id"],
            name=op.f("fk_signed_document_integrator"),
        ),
        sa.PrimaryKeyConstraint("request", "version", name=op.f("pk_signed_document")),
    )
    op.execute(
        "INSERT INTO signed_document"
        " (request, version, integrator, sha256, size_bytes, level, made)"
        " SELECT request, 1, integrator, sha256, size_bytes, level, made"
        " FROM signed_document_1"
    )
    op.drop_table("signed_document_1")
    op.create_table(
        "level_upkeep",
        sa.Column("id", sa.String(36), nullable=False),
        sa.Column(
            "request", sa.BigInteger().with_variant(sa.Integer(), "sqlite"),
            nullable=False,
        ),
        sa.Column("integrator", sa.String(36), nullable=False),
        sa.Column("wanted", sa.String(8), nullable=False),
        sa.Column("due", Instant(timezone=True), nullable=False),
        sa.Column("tries", sa.Integer(), nullable=False),
        sa.Column("reason", sa.Text(), nullable=False),
        sa.Column("created", Instant(timezone=True), nullable=False),
        sa.Column("lease_owner", sa.Text(), nullable=True),
        sa.Column("lease_until", Instant(timezone=True), nullable=True),
        sa.Column("fence", sa.Integer(), nullable=False),
        sa.ForeignKeyConstraint(
            ["request"], ["signature_request.id"],
            name=op.f("fk_level_upkeep_request"),
        ),
        sa.ForeignKeyConstraint(
            ["integrator"], ["integrator.id"], name=op.f("fk_level_upkeep_integrator")
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_level_upkeep")),
        sa.UniqueConstraint("request", name=op.f("uq_level_upkeep_request")),
    )
    op.create_index("ix_level_upkeep_due", "level_upkeep", ["due"])
