"""Integrators' webhooks: where they want to be told, what is sent, and each try."""

from sqlalchemy import (
    BigInteger,
    Column,
    ForeignKey,
    Index,
    Integer,
    LargeBinary,
    String,
    Table,
    Text,
    text,
)

from appliance.database.tables.base import Id, Serial, metadata
from appliance.database.types import Instant, JsonText

# Rows stay when an endpoint is removed, for what was sent to it.
webhook_endpoint = Table(
    "webhook_endpoint",
    metadata,
    Column("id", Id, primary_key=True),
    Column("integrator", Id, ForeignKey("integrator.id"), nullable=False),
    Column("url", Text, nullable=False),
    Column("label", Text, nullable=False),
    # Types of events that it wants; an empty list: all.
    Column("events", JsonText, nullable=False),
    Column("secret_sealed", LargeBinary, nullable=False),
    # The one before, which signs as well until then.
    Column("former_secret_sealed", LargeBinary),
    Column("former_until", Instant),
    Column("created", Instant, nullable=False),
    Column("disabled", Instant),
    Column("disabled_reason", String(40)),
    # Since when no try has succeeded.
    Column("failing_since", Instant),
    Column("removed", Instant),
    Index("ix_webhook_endpoint_integrator", "integrator"),
)

webhook_message = Table(
    "webhook_message",
    metadata,
    # The header `webhook-id`, the same in all tries.
    Column("id", Id, primary_key=True),
    Column("endpoint", Id, ForeignKey("webhook_endpoint.id"), nullable=False),
    # Null: of nothing that happened, but a trial.
    Column("event", Serial, ForeignKey("integrator_event.id")),
    Column("kind", String(64), nullable=False),
    Column("request", Serial, ForeignKey("signature_request.id")),
    # As it is signed and sent, byte for byte.
    Column("body", Text, nullable=False),
    Column("created", Instant, nullable=False),
    Column("state", String(16), nullable=False),
    Column("tries", Integer, nullable=False),
    Column("due", Instant, nullable=False),
    Column("lease_owner", Text),
    Column("lease_until", Instant),
    Column("fence", BigInteger, nullable=False),
    # Those about one request are sent in the order of what happened.
    Index("ix_webhook_message_endpoint_request_event", "endpoint", "request", "event"),
    Index("ix_webhook_message_endpoint_created", "endpoint", "created"),
    Index(
        "ix_webhook_message_pending",
        "due",
        sqlite_where=text("state = 'pending'"),
        postgresql_where=text("state = 'pending'"),
    ),
)

webhook_attempt = Table(
    "webhook_attempt",
    metadata,
    Column("id", Serial, primary_key=True, autoincrement=True),
    Column("message", Id, ForeignKey("webhook_message.id"), nullable=False),
    Column("at", Instant, nullable=False),
    # Of its answer, if there was one.
    Column("status", Integer),
    # A code; null: it was delivered.
    Column("failure", String(40)),
    Column("took_ms", Integer, nullable=False),
    # Its beginning, printable.
    Column("answer", Text, nullable=False),
    Index("ix_webhook_attempt_message_id", "message", "id"),
    sqlite_autoincrement=True,
)
