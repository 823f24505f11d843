"""Sessions of the frame and of the console, links, and keys of bearer tokens."""

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
    false,
)

from appliance.database.tables.base import Id, Serial, metadata
from appliance.database.types import Instant, JsonText

embed_session = Table(
    "embed_session",
    metadata,
    Column("id", Id, primary_key=True),
    Column("public_id", String(24), nullable=False, unique=True),
    # HMAC of the token, and of the bearer that holds now.
    Column("token_index", String(64), nullable=False, unique=True),
    Column("bearer_index", String(64), unique=True),
    Column("integrator", Id, ForeignKey("integrator.id"), nullable=False),
    Column("api_key", String(12), ForeignKey("api_key.id"), nullable=False),
    Column("state", String(16), nullable=False),
    Column("issued", Instant, nullable=False),
    Column("until", Instant, nullable=False),
    Column("nonce", Text),
    Column("idem_key", Text),
    Column("init_sha256", String(64)),
    Column("person", Id, ForeignKey("person.id")),
    Column("otp_at", Instant),
    Column("document", Id, ForeignKey("document.id")),
    Column("document_name", Text),
    Column("request", Serial, ForeignKey("signature_request.id")),
    Column("completed", JsonText),
    # How many it has brought; the default is for rows of earlier versions.
    Column("documents", Integer, nullable=False, server_default="0"),
    # Whether the host has sent one of them, or one that was refused.
    Column("host_document", Boolean, nullable=False, server_default=false()),
    # The session that a renewal went on with: no foreign key, for the older of two
    # is forgotten first.
    Column("successor", Id),
    # The request that it was opened for: the signer picks none, and brings no
    # document. No foreign key, which SQLite cannot add to a table that is there.
    Column("wanted", Serial),
    # The batch that it was opened for: all of it is signed, and nothing else.
    Column("batch", Id),
    # What is to go wrong in it, for tests.
    Column("fault", String(16)),
    # True once its integrator was told that its time is over.
    Column("expiry_told", Boolean),
    # Codes that it has tried.
    Column("codes", Integer, nullable=False, server_default="0"),
    # Of the damaged file whose copy it came as; "" as it is. Empty in rows of versions
    # before 0006: what the document first came as.
    Column("original_sha256", String(64)),
    Index("ix_embed_session_api_key_state", "api_key", "state"),
    Index("ix_embed_session_person_state", "person", "state"),
    Index("ix_embed_session_until", "until"),
    Index("ix_embed_session_document", "document"),
    Index("ix_embed_session_integrator_state", "integrator", "state"),
)

console_user = Table(
    "console_user",
    metadata,
    Column("id", Id, primary_key=True),
    Column("name", String(40), nullable=False, unique=True),
    Column("phc", Text, nullable=False),
    Column("totp_sealed", LargeBinary, nullable=False),
    Column("last_step", BigInteger, nullable=False),
    Column("created", Instant, nullable=False),
    Column("disabled", Instant),
    Column("last_login", Instant),
)

console_session = Table(
    "console_session",
    metadata,
    Column("token_index", String(64), primary_key=True),
    Column("user", Id, ForeignKey("console_user.id"), nullable=False),
    Column("created", Instant, nullable=False),
    Column("until", Instant, nullable=False),
    # When a code was last given in it. Empty: by a version before 0012.
    Column("proven", Instant),
    Index("ix_console_session_until", "until"),
)

download_link = Table(
    "download_link",
    metadata,
    Column("key_index", String(64), primary_key=True),
    Column("request", Serial, ForeignKey("signature_request.id"), nullable=False),
    Column("until", Instant, nullable=False),
    Index("ix_download_link_until", "until"),
)

jwt_key = Table(
    "jwt_key",
    metadata,
    Column("kid", String(64), primary_key=True),
    Column("private_sealed", LargeBinary, nullable=False),
    Column("public", JsonText, nullable=False),
    Column("valid_from", Instant, nullable=False),
    Column("valid_until", Instant, nullable=False),
)

embed_session_document = Table(
    "embed_session_document",
    metadata,
    # No foreign key: what it brought is removed after the session is forgotten.
    Column("session", Id, primary_key=True),
    Column("sha256", String(64), primary_key=True),
    Column("integrator", Id, ForeignKey("integrator.id"), nullable=False),
    Column("size_bytes", BigInteger, nullable=False),
    Column("brought", Instant, nullable=False),
    Index("ix_embed_session_document_integrator_sha256", "integrator", "sha256"),
    Index("ix_embed_session_document_brought", "brought"),
)
