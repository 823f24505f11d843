"""Idempotency keys by age, for they are deleted by it."""

from alembic import op

revision = "0014"
down_revision = "0013"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_index("ix_idempotency_created", "idempotency", ["created"])
