"""The audit's chains, one a writer."""

from sqlalchemy import (
    BigInteger,
    Column,
    ForeignKey,
    Index,
    Integer,
    String,
    Table,
    Text,
)

from appliance.database.tables.base import Id, Serial, metadata
from appliance.database.types import Instant, JsonText

audit_writer = Table(
    "audit_writer",
    metadata,
    Column("id", Id, primary_key=True),
    Column("role", String(40), nullable=False),
    Column("started", Instant, nullable=False),
    Column("n", BigInteger, nullable=False),
    Column("hash", String(64), nullable=False),
    # User of the database that began the chain, noted by PostgreSQL itself
    # (DEFAULT current_user). None on SQLite.
    Column("db_user", String(63)),
    Index("ix_audit_writer_started_id", "started", "id"),
)

audit_event = Table(
    "audit_event",
    metadata,
    Column("writer", Id, ForeignKey("audit_writer.id"), primary_key=True),
    Column("n", BigInteger, primary_key=True),
    Column("prev", String(64), nullable=False),
    Column("hash", String(64), nullable=False),
    Column("at", Instant, nullable=False),
    Column("event", String(40), nullable=False),
    Column("actor", Text, nullable=False),
    Column("integrator", Id),
    Column("request", Serial),
    Column("activation", Id),
    Column("attempt", Integer),
    Column("detail", JsonText, nullable=False),
    Index("ix_audit_event_request", "request"),
    Index("ix_audit_event_at", "at"),
    # Pages of the console, newest first.
    Index("ix_audit_event_event_at", "event", "at"),
    Index("ix_audit_event_actor_at", "actor", "at"),
    Index("ix_audit_event_integrator_at", "integrator", "at"),
)
