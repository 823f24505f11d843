"""What the internal CA issued and published, and what is trusted beside it."""

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
    UniqueConstraint,
)

from appliance.database.tables.base import Id, metadata
from appliance.database.types import Instant

certificate = Table(
    "certificate",
    metadata,
    # Hexadecimal: a serial number has up to 20 octets.
    Column("serial", String(40), primary_key=True),
    Column("kind", String(16), nullable=False),
    Column("issuer", String(40), nullable=False),
    Column("credential", Id, ForeignKey("credential.id")),
    Column("der", LargeBinary, nullable=False),
    Column("not_before", Instant, nullable=False),
    Column("not_after", Instant, nullable=False),
    Column("state", String(16), nullable=False),
    Column("revoked_at", Instant),
    Column("reason", String(24)),
    # The task by which it is being revoked.
    Column("task", Id),
    Column("issued", Instant, nullable=False),
    Index("ix_certificate_credential", "credential"),
    Index("ix_certificate_issuer_state", "issuer", "state"),
    Index("ix_certificate_issued", "issued"),
    Index("ix_certificate_not_after", "not_after"),
    Index("ix_certificate_kind_not_after", "kind", "not_after"),
)

crl = Table(
    "crl",
    metadata,
    Column("issuer", String(40), primary_key=True),
    Column("number", BigInteger, nullable=False),
    Column("der", LargeBinary, nullable=False),
    Column("this_update", Instant, nullable=False),
    Column("next_update", Instant, nullable=False),
)

ocsp_response = Table(
    "ocsp_response",
    metadata,
    Column("serial", String(40), ForeignKey("certificate.serial"), primary_key=True),
    Column("state", String(16), nullable=False),
    Column("der", LargeBinary, nullable=False),
    Column("this_update", Instant, nullable=False),
    Column("next_update", Instant, nullable=False),
    Index("ix_ocsp_response_next_update", "next_update"),
)

trust_anchor = Table(
    "trust_anchor",
    metadata,
    Column("id", Id, primary_key=True),
    Column("certificate", LargeBinary, nullable=False),
    Column("sha256", String(64), nullable=False),
    Column("purpose", String(16), nullable=False),
    Column("not_after", Instant, nullable=False),
    Column("added", Instant, nullable=False),
    UniqueConstraint("sha256", "purpose"),
)

# What outside CAs said: OCSP answers, lists, and what was found revoked.
outside_status = Table(
    "outside_status",
    metadata,
    Column("kind", String(8), primary_key=True),
    Column("subject", String(64), primary_key=True),
    Column("der", LargeBinary, nullable=False),
    Column("this_update", Instant, nullable=False),
    Column("next_update", Instant, nullable=False),
    # Of what was found revoked: since when, and why.
    Column("revoked_at", Instant),
    Column("reason", Text, nullable=False, server_default=""),
    Index("ix_outside_status_next_update", "next_update"),
)

# The tightest warning that was given of an end; a later end begins anew.
expiry_notice = Table(
    "expiry_notice",
    metadata,
    Column("kind", String(16), primary_key=True),
    Column("subject", String(64), primary_key=True),
    Column("not_after", Instant, nullable=False),
    Column("days", Integer, nullable=False),
    Column("at", Instant, nullable=False),
)
