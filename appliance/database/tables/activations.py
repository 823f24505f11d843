"""Authorised signatures: what was sealed, for which worker, and how far it is."""

from sqlalchemy import (
    BigInteger,
    Boolean,
    Column,
    ForeignKey,
    Index,
    Integer,
    LargeBinary,
    String,
    Table,
    Text,
    UniqueConstraint,
    false,
)

from appliance.database.tables.base import Id, Serial, metadata
from appliance.database.types import Instant, JsonText

activation = Table(
    "activation",
    metadata,
    Column("id", Id, primary_key=True),
    Column("person", Id, ForeignKey("person.id"), nullable=False),
    Column("credential", Id, ForeignKey("credential.id"), nullable=False),
    Column("state", String(16), nullable=False),
    Column("factors", JsonText, nullable=False),
    Column("created", Instant, nullable=False),
    Column("claim_by", Instant, nullable=False),
    Column("key_until", Instant),
    Column("finish_until", Instant),
    Column("lease_owner", Text),
    Column("lease_until", Instant),
    Column("fence", Integer, nullable=False),
    # The fence of the claim under which an item last came to a result.
    Column("progress", Integer, nullable=False, server_default="0"),
    # What is left to be done of it needs a network, which signing workers lack.
    Column("outside", Boolean, nullable=False, server_default=false()),
    Column("reason", Text, nullable=False),
    # The installation's signature profile by the settings of the front; empty in rows
    # of versions before 0007.
    Column("profile", JsonText),
    Index("ix_activation_state_lease_until", "state", "lease_until"),
)

activation_item = Table(
    "activation_item",
    metadata,
    Column("activation", Id, ForeignKey("activation.id"), primary_key=True),
    Column("seq", Integer, primary_key=True),
    Column("request", Serial, ForeignKey("signature_request.id"), nullable=False),
    Column("document_sha256", String(64), nullable=False),
    Column("params", JsonText, nullable=False),
    Column("params_sha256", String(64), nullable=False),
    Column("state", String(16), nullable=False),
    Column("reason", Text, nullable=False),
    Column("increment", LargeBinary),
    Column("contents_at", Integer),
    Column("contents_length", Integer),
    Column("signed_attributes", LargeBinary),
    Column("signature", LargeBinary),
    # None: a plain stamp, or none.
    Column("stamp", JsonText),
    Column("code", String(26)),
    Index("ix_activation_item_code", "code", unique=True),
    Index("ix_activation_item_request", "request"),
)

activation_seal = Table(
    "activation_seal",
    metadata,
    Column("activation", Id, ForeignKey("activation.id"), primary_key=True),
    Column("host", String(255), primary_key=True),
    Column("epoch", BigInteger, nullable=False),
    Column("sealed", LargeBinary, nullable=False),
)

activation_key = Table(
    "activation_key",
    metadata,
    Column("host", String(255), primary_key=True),
    Column("epoch", BigInteger, primary_key=True, autoincrement=False),
    Column("public", LargeBinary, nullable=False),
    Column("identity", String(64), nullable=False),
    Column("signature", LargeBinary, nullable=False),
    Column("made", Instant, nullable=False),
    # Of the host's own key. None: of format 1, or by the version before.
    Column("host_signature", LargeBinary),
)

intent = Table(
    "intent",
    metadata,
    Column("id", Id, primary_key=True),
    Column("activation", Id, ForeignKey("activation.id"), nullable=False),
    Column("item", Integer, nullable=False),
    Column("attempt", Integer, nullable=False),
    Column("digest", String(128), nullable=False),
    Column("state", String(16), nullable=False),
    Column("at", Instant, nullable=False),
    Column("closed", Instant),
    UniqueConstraint("activation", "item", "attempt"),
    Index("ix_intent_activation_state", "activation", "state"),
)
