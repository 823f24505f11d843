"""Documents as they came in and as they were signed, and their upkeep."""

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

# Removed, its integrator's documents open no more, whoever has the files.
document_key = Table(
    "document_key",
    metadata,
    Column("integrator", Id, ForeignKey("integrator.id"), primary_key=True),
    Column("key_sealed", LargeBinary, nullable=False),
    Column("created", Instant, nullable=False),
)

document = Table(
    "document",
    metadata,
    Column("id", Id, primary_key=True),
    Column("integrator", Id, ForeignKey("integrator.id"), nullable=False),
    Column("sha256", String(64), nullable=False),
    Column("size_bytes", BigInteger, nullable=False),
    Column("inspection", JsonText, nullable=False),
    # When it came in, the last time that it did.
    Column("created", Instant, nullable=False),
    UniqueConstraint("integrator", "sha256"),
    Index("ix_document_created", "created"),
)

# What copies were first made of. Versions before 0006 read it alone.
document_repair = Table(
    "document_repair",
    metadata,
    # The repaired copy, which it is forgotten with.
    Column(
        "document",
        Id,
        ForeignKey("document.id", ondelete="CASCADE"),
        primary_key=True,
    ),
    Column("integrator", Id, ForeignKey("integrator.id"), nullable=False),
    # Of the damaged file, which is kept beside the copy.
    Column("sha256", String(64), nullable=False),
    Column("damage", JsonText, nullable=False),
    Index("ix_document_repair_integrator_sha256", "integrator", "sha256"),
)

# Damaged files beside their repaired copies. Which of them a document came as, or that
# it came as it is, is said by each row that refers to the document.
document_original = Table(
    "document_original",
    metadata,
    # The repaired copy, which it is forgotten with.
    Column(
        "document",
        Id,
        ForeignKey("document.id", ondelete="CASCADE"),
        primary_key=True,
    ),
    # Of the damaged file.
    Column("sha256", String(64), primary_key=True),
    Column("integrator", Id, ForeignKey("integrator.id"), nullable=False),
    Column("damage", JsonText, nullable=False),
    Index("ix_document_original_integrator_sha256", "integrator", "sha256"),
)

# What an integrator's backend uploaded, to be named in requests and sessions.
uploaded_document = Table(
    "uploaded_document",
    metadata,
    Column("id", Id, primary_key=True),
    Column("integrator", Id, ForeignKey("integrator.id"), nullable=False),
    Column("document", Id, ForeignKey("document.id"), nullable=False),
    Column("name", Text, nullable=False),
    # Of the file as it came: of a damaged one both it and its repaired copy are kept.
    Column("size_bytes", BigInteger, nullable=False),
    Column("api_key", String(12), ForeignKey("api_key.id"), nullable=False),
    Column("created", Instant, nullable=False),
    Column("until", Instant, nullable=False),
    # Of the damaged file whose copy it came as; "" as it is. Empty in rows of versions
    # before 0006: what the document first came as.
    Column("original_sha256", String(64)),
    # Whether a copy could be made; empty in rows of versions before 0006.
    Column("repairs", Boolean),
    Index("ix_uploaded_document_until", "until"),
    Index("ix_uploaded_document_document", "document"),
    Index("ix_uploaded_document_integrator_created", "integrator", "created"),
)

# Files on their way in or out: of a call that is not over, or that nothing needs any
# more. A row is there before its file is, and until it is gone or recorded otherwise.
passing_document = Table(
    "passing_document",
    metadata,
    # What keeps it: no other row has this id.
    Column("call", Id, primary_key=True),
    Column("sha256", String(64), primary_key=True),
    Column("integrator", Id, ForeignKey("integrator.id"), nullable=False),
    Column("size_bytes", BigInteger, nullable=False),
    # The call is over and has no need of it.
    Column("leaves", Boolean, nullable=False),
    # When the call began, or it was tried last to remove the file.
    Column("since", Instant, nullable=False),
    Index("ix_passing_document_integrator_sha256", "integrator", "sha256"),
    Index("ix_passing_document_since", "since"),
)

signed_document = Table(
    "signed_document",
    metadata,
    Column("request", Serial, ForeignKey("signature_request.id"), primary_key=True),
    # From 1; each one begins with the bytes of the one before it.
    Column("version", Integer, primary_key=True, autoincrement=False),
    Column("integrator", Id, ForeignKey("integrator.id"), nullable=False),
    Column("sha256", String(64), nullable=False),
    Column("size_bytes", BigInteger, nullable=False),
    Column("level", String(8), nullable=False),
    Column("made", Instant, nullable=False),
    Index("ix_signed_document_integrator_sha256", "integrator", "sha256"),
)

# What published documents still need by themselves: a level, or a newer timestamp.
level_upkeep = Table(
    "level_upkeep",
    metadata,
    Column("id", Id, primary_key=True),
    Column(
        "request",
        Serial,
        ForeignKey("signature_request.id"),
        nullable=False,
        unique=True,
    ),
    Column("integrator", Id, ForeignKey("integrator.id"), nullable=False),
    Column("wanted", String(8), nullable=False),
    Column("tsa", JsonText),
    Column("outside", Boolean, nullable=False, server_default=false()),
    Column("due", Instant, nullable=False),
    # When it fell due, once a try has failed; `due` is then the next try.
    Column("since", Instant),
    Column("tries", Integer, nullable=False),
    Column("reason", Text, nullable=False),
    Column("created", Instant, nullable=False),
    Column("lease_owner", Text),
    Column("lease_until", Instant),
    Column("fence", Integer, nullable=False),
    Index("ix_level_upkeep_due", "due"),
    Index("ix_level_upkeep_since", "since"),
)
