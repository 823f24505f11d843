"""What sessions of the frame have brought, so that it can be limited and removed."""

import sqlalchemy as sa
from alembic import op

from appliance.storage.types import Instant

revision = "0020"
down_revision = "0019"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "embed_session_document",
        sa.Column("session", sa.String(36), nullable=False),
        sa.Column("sha256", sa.String(64), nullable=False),
        sa.Column("integrator", sa.String(36), nullable=False),
        sa.Column("size_bytes", sa.BigInteger, nullable=False),
        sa.Column("brought", Instant(timezone=True), nullable=False),
        sa.ForeignKeyConstraint(
            ["integrator"],
            ["integrator.id"],
            name=op.f("fk_embed_session_document_integrator"),
        ),
        sa.PrimaryKeyConstraint(
            "session", "sha256", name=op.f("pk_embed_session_document")
        ),
    )
    for columns in (["integrator", "sha256"], ["brought"]):
        name = f"ix_embed_session_document_{'_'.join(columns)}"
        op.create_index(name, "embed_session_document", columns)
