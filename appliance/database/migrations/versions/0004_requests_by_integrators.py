"""What integrators do by themselves: requests, vouches, webhooks; and mail.

On PostgreSQL the indexes of a table that has rows are left to `rubrica migrate`, as
in 0003.
"""

from functools import partial

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"
# The version before knows none of it and leaves it as it is.
oldest_reader = "0001"

_INSTANT = sa.DateTime(timezone=True)
# SQLite numbers rows by itself only for a column that is exactly INTEGER.
_SERIAL = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
_required = partial(sa.Column, nullable=False)
_COLUMNS = {
    "api_key": (
        ("scopes", sa.Text),
        ("networks", sa.Text),
        ("expiry_told", sa.Integer),
    ),
    "signing_process": (
        ("api_key", sa.String(12)),
        ("reference", sa.String(128)),
        ("unique_reference", sa.String(128)),
        ("metadata", sa.Text),
        ("language", sa.String(8)),
        ("message", sa.Text),
    ),
    "embed_session": (
        ("wanted", _SERIAL),
        ("batch", sa.String(36)),
        ("fault", sa.String(16)),
        ("expiry_told", sa.Boolean),
    ),
    "signature_request": (
        ("preset", sa.Text),
        ("named_by", sa.String(8)),
        ("batch", sa.String(36)),
        ("turn", sa.Integer),
        ("seen", _INSTANT),
    ),
    "integrator": (
        ("mails_signers", sa.Boolean),
        ("reminder_days", sa.Text),
        ("sign_url", sa.Text),
    ),
}
_INDEXES = (
    ("signing_process", ("reference",), False),
    ("signature_request", ("integrator", "state", "id"), False),
    ("signing_process", ("integrator", "unique_reference"), True),
)

# Of the few rows that have a batch, or a turn.
_PARTIAL = (
    ("ix_signature_request_batch_state", ("batch", "state"), "batch IS NOT NULL"),
    ("ix_signature_request_turn_state_id", ("state", "id"), "turn IS NOT NULL"),
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
    """Add columns that may be empty, and tables."""
    for table, columns in _COLUMNS.items():
        for name, kind in columns:
            op.add_column(table, sa.Column(name, kind))
    for table, names, unique in _INDEXES:
        if not _is_left(table):
            op.create_index(_name(table, names), table, list(names), unique=unique)
    if not _is_left("signature_request"):
        for index, names, which in _PARTIAL:
            op.create_index(
                index,
                "signature_request",
                list(names),
                sqlite_where=sa.text(which),
                postgresql_where=sa.text(which),
            )
    op.create_table(
        "request_batch",
        sa.Column("id", sa.String(36), primary_key=True),
        _required("integrator", sa.String(36), sa.ForeignKey("integrator.id")),
        _required("created", _INSTANT),
        _required("api_key", sa.String(12)),
        sa.Column("reference", sa.String(128)),
        sa.Column("unique_reference", sa.String(128)),
        sa.Column("metadata", sa.Text),
        sa.Column("language", sa.String(8)),
        sa.Column("message", sa.Text),
        sa.Index("ix_request_batch_integrator_created", "integrator", "created"),
        sa.Index("ix_request_batch_reference", "reference"),
        sa.Index(
            "ix_request_batch_integrator_unique_reference",
            "integrator",
            "unique_reference",
            unique=True,
        ),
    )
    op.create_table(
        "uploaded_document",
        sa.Column("id", sa.String(36), primary_key=True),
        _required("integrator", sa.String(36), sa.ForeignKey("integrator.id")),
        _required("document", sa.String(36), sa.ForeignKey("document.id")),
        _required("name", sa.Text),
        _required("size_bytes", sa.BigInteger),
        _required("api_key", sa.String(12), sa.ForeignKey("api_key.id")),
        _required("created", _INSTANT),
        _required("until", _INSTANT),
        sa.Index("ix_uploaded_document_until", "until"),
        sa.Index("ix_uploaded_document_document", "document"),
        sa.Index("ix_uploaded_document_integrator_created", "integrator", "created"),
    )
    op.create_table(
        "passing_document",
        sa.Column("call", sa.String(36), primary_key=True),
        sa.Column("sha256", sa.String(64), primary_key=True),
        _required("integrator", sa.String(36), sa.ForeignKey("integrator.id")),
        _required("size_bytes", sa.BigInteger),
        _required("leaves", sa.Boolean),
        _required("since", _INSTANT),
        sa.Index("ix_passing_document_integrator_sha256", "integrator", "sha256"),
        sa.Index("ix_passing_document_since", "since"),
    )
    op.create_table(
        "integrator_event",
        sa.Column("id", _SERIAL, primary_key=True, autoincrement=True),
        _required("integrator", sa.String(36), sa.ForeignKey("integrator.id")),
        sa.Column("request", _SERIAL, sa.ForeignKey("signature_request.id")),
        _required("event", sa.String(40)),
        _required("at", _INSTANT),
        _required("detail", sa.Text),
        sa.Column("pending", sa.Boolean),
        sa.Index("ix_integrator_event_request_id", "request", "id"),
        sa.Index("ix_integrator_event_integrator_id", "integrator", "id"),
        sa.Index(
            "ix_integrator_event_pending",
            "id",
            sqlite_where=sa.text("pending = 1"),
            postgresql_where=sa.text("pending"),
        ),
        sqlite_autoincrement=True,
    )
    op.create_table(
        "person_vouch",
        sa.Column("id", sa.String(36), primary_key=True),
        _required("person", sa.String(36), sa.ForeignKey("person.id")),
        _required("integrator", sa.String(36), sa.ForeignKey("integrator.id")),
        _required("api_key", sa.String(12), sa.ForeignKey("api_key.id")),
        _required("method", sa.Text),
        _required("vouched_by", sa.Text),
        _required("checked", _INSTANT),
        _required("created", _INSTANT),
        sa.Index("ix_person_vouch_person_integrator", "person", "integrator"),
    )
    _create_webhooks()
    _create_mail()


def _create_webhooks() -> None:
    op.create_table(
        "webhook_endpoint",
        sa.Column("id", sa.String(36), primary_key=True),
        _required("integrator", sa.String(36), sa.ForeignKey("integrator.id")),
        _required("url", sa.Text),
        _required("label", sa.Text),
        _required("events", sa.Text),
        _required("secret_sealed", sa.LargeBinary),
        sa.Column("former_secret_sealed", sa.LargeBinary),
        sa.Column("former_until", _INSTANT),
        _required("created", _INSTANT),
        sa.Column("disabled", _INSTANT),
        sa.Column("disabled_reason", sa.String(40)),
        sa.Column("failing_since", _INSTANT),
        sa.Column("removed", _INSTANT),
        sa.Index("ix_webhook_endpoint_integrator", "integrator"),
    )
    op.create_table(
        "webhook_message",
        sa.Column("id", sa.String(36), primary_key=True),
        _required("endpoint", sa.String(36), sa.ForeignKey("webhook_endpoint.id")),
        sa.Column("event", _SERIAL, sa.ForeignKey("integrator_event.id")),
        _required("kind", sa.String(64)),
        sa.Column("request", _SERIAL, sa.ForeignKey("signature_request.id")),
        _required("body", sa.Text),
        _required("created", _INSTANT),
        _required("state", sa.String(16)),
        _required("tries", sa.Integer),
        _required("due", _INSTANT),
        sa.Column("lease_owner", sa.Text),
        sa.Column("lease_until", _INSTANT),
        _required("fence", sa.BigInteger),
        sa.Index(
            "ix_webhook_message_endpoint_request_event", "endpoint", "request", "event"
        ),
        sa.Index("ix_webhook_message_endpoint_created", "endpoint", "created"),
        sa.Index(
            "ix_webhook_message_pending",
            "due",
            sqlite_where=sa.text("state = 'pending'"),
            postgresql_where=sa.text("state = 'pending'"),
        ),
    )
    op.create_table(
        "webhook_attempt",
        sa.Column("id", _SERIAL, primary_key=True, autoincrement=True),
        _required("message", sa.String(36), sa.ForeignKey("webhook_message.id")),
        _required("at", _INSTANT),
        sa.Column("status", sa.Integer),
        sa.Column("failure", sa.String(40)),
        _required("took_ms", sa.Integer),
        _required("answer", sa.Text),
        sa.Index("ix_webhook_attempt_message_id", "message", "id"),
        sqlite_autoincrement=True,
    )


def _create_mail() -> None:
    op.create_table(
        "mail_message",
        sa.Column("id", sa.String(36), primary_key=True),
        sa.Column("integrator", sa.String(36), sa.ForeignKey("integrator.id")),
        _required("person", sa.String(36), sa.ForeignKey("person.id")),
        sa.Column("request", _SERIAL, sa.ForeignKey("signature_request.id")),
        _required("kind", sa.String(40)),
        _required("detail", sa.Text),
        sa.Column("link_sealed", sa.LargeBinary),
        _required("state", sa.String(16)),
        _required("answer", sa.Text),
        _required("tries", sa.Integer),
        _required("due", _INSTANT),
        _required("created", _INSTANT),
        sa.Column("ended", _INSTANT),
        sa.Column("lease_owner", sa.Text),
        sa.Column("lease_until", _INSTANT),
        _required("fence", sa.Integer),
        sa.Index("ix_mail_message_state_integrator_due", "state", "integrator", "due"),
        sa.Index("ix_mail_message_state_ended", "state", "ended"),
        sa.Index("ix_mail_message_ended", "ended"),
        sa.Index("ix_mail_message_request", "request"),
        sa.Index("ix_mail_message_person_created", "person", "created"),
    )
    op.create_table(
        "test_signer",
        sa.Column(
            "person", sa.String(36), sa.ForeignKey("person.id"), primary_key=True
        ),
        _required("integrator", sa.String(36), sa.ForeignKey("integrator.id")),
        _required("password_sealed", sa.LargeBinary),
        _required("sign_password_sealed", sa.LargeBinary),
        _required("created", _INSTANT),
        sa.Column("removed", _INSTANT),
        sa.Index("ix_test_signer_integrator_created", "integrator", "created"),
    )


def downgrade() -> None:
    """Take them away."""
    op.drop_table("test_signer")
    for table in ("webhook_attempt", "webhook_message", "webhook_endpoint"):
        op.drop_table(table)
    op.drop_table("mail_message")
    op.drop_table("person_vouch")
    op.drop_table("integrator_event")
    op.drop_table("passing_document")
    op.drop_table("uploaded_document")
    op.drop_table("request_batch")
    for index, _, _ in _PARTIAL:
        op.drop_index(index, "signature_request", if_exists=True)
    for table, names, _ in _INDEXES:
        op.drop_index(_name(table, names), table, if_exists=True)
    for table, columns in _COLUMNS.items():
        with op.batch_alter_table(table) as altered:
            for name, _ in columns:
                altered.drop_column(name)
