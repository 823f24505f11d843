"""Indexes by which lists, claims and sweeps cost the same however much there is.

On PostgreSQL those of tables that have rows are left to `rubrica migrate`, which makes
them afterwards, one by one, while the roles go on writing.
"""

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"
# The version before does without them.
oldest_reader = "0001"

INDEXES = (
    ("activation_item", ("request",)),
    ("attempt_slot", ("at",)),
    ("audit_event", ("event", "at")),
    ("audit_event", ("actor", "at")),
    ("audit_event", ("integrator", "at")),
    ("audit_writer", ("started", "id")),
    ("certificate", ("kind", "not_after")),
    ("embed_session", ("document",)),
    ("embed_session", ("integrator", "state")),
    ("hsm_task", ("kind", "swept", "created")),
    ("login_attempt", ("at",)),
    ("login_attempt", ("kind", "at")),
    ("login_attempt", ("person",)),
    ("person", ("created", "id")),
    ("person", ("state", "created", "id")),
    ("signature_request", ("created",)),
    ("signature_request", ("document",)),
    ("signature_request", ("person", "id")),
    ("signature_request", ("integrator", "id")),
    ("signed_document", ("integrator", "sha256")),
    ("signing_secret", ("locked_at",)),
)


def _name(table: str, columns: tuple[str, ...]) -> str:
    return "_".join(("ix", table, *columns))


def _is_left(table: str) -> bool:
    """Whether making an index now would keep writers waiting."""
    connection = op.get_bind()
    if connection.dialect.name != "postgresql":
        return False
    first = sa.select(sa.literal(1)).select_from(sa.table(table)).limit(1)
    return connection.scalar(first) is not None


def upgrade() -> None:
    """Make them."""
    for table, columns in INDEXES:
        if not _is_left(table):
            op.create_index(_name(table, columns), table, list(columns))


def downgrade() -> None:
    """Take them away."""
    for table, columns in INDEXES:
        op.drop_index(_name(table, columns), table, if_exists=True)
