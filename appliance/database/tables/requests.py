"""What is to be signed by whom, alone or in a batch."""

from sqlalchemy import (
    BigInteger,
    Boolean,
    Column,
    ForeignKey,
    Index,
    Integer,
    String,
    Table,
    Text,
    UniqueConstraint,
    text,
)

from appliance.database.tables.base import Id, Serial, metadata
from appliance.database.types import Instant, JsonText

signing_process = Table(
    "signing_process",
    metadata,
    Column("id", Id, primary_key=True),
    Column("integrator", Id, ForeignKey("integrator.id"), nullable=False),
    Column("created", Instant, nullable=False),
    # Of those that an integrator's backend asked for: by which key, and what it said.
    Column("api_key", String(12)),
    Column("reference", String(128)),
    # The same, where no other process of the integrator may have it.
    Column("unique_reference", String(128)),
    Column("metadata", JsonText),
    Column("language", String(8)),
    Column("message", Text),
    # The failed process in whose place it was asked for, which has one such at most.
    Column("replaces", Id),
    Index("ix_signing_process_reference", "reference"),
    Index("ix_signing_process_replaces", "replaces", unique=True),
    Index(
        "ix_signing_process_integrator_unique_reference",
        "integrator",
        "unique_reference",
        unique=True,
    ),
)

# Documents that an integrator's backend asked one person to sign at once.
request_batch = Table(
    "request_batch",
    metadata,
    Column("id", Id, primary_key=True),
    Column("integrator", Id, ForeignKey("integrator.id"), nullable=False),
    Column("created", Instant, nullable=False),
    Column("api_key", String(12), nullable=False),
    Column("reference", String(128)),
    # The same, where no other batch of the integrator may have it.
    Column("unique_reference", String(128)),
    Column("metadata", JsonText),
    Column("language", String(8)),
    Column("message", Text),
    # Who signs, and how the integrator named them.
    Column("person", Id),
    Column("named_by", String(8)),
    # Empty: its requests were made with it, by a version that knew no other way.
    Column("state", String(16)),
    # Documents, and how many of them were examined.
    Column("total", Integer),
    Column("examined", Integer),
    # Of a refused one: what is wrong, as many as are told.
    Column("faults", JsonText),
    # Why it was taken back before it was ready.
    Column("reason", Text),
    # When it was refused, or taken back before it was ready.
    Column("ended", Instant),
    # Documents that the signer opens before signing; empty: all.
    Column("openings", String(8)),
    Index(
        "ix_request_batch_ended",
        "ended",
        sqlite_where=text("ended IS NOT NULL"),
        postgresql_where=text("ended IS NOT NULL"),
    ),
    Index("ix_request_batch_integrator_created", "integrator", "created"),
    Index("ix_request_batch_reference", "reference"),
    Index(
        "ix_request_batch_integrator_unique_reference",
        "integrator",
        "unique_reference",
        unique=True,
    ),
)

# What is still to be done for a batch before its requests can be made; gone then.
batch_preparation = Table(
    "batch_preparation",
    metadata,
    # The batch. Files that came with it are `passing_document` rows of that call.
    Column("id", Id, ForeignKey("request_batch.id"), primary_key=True),
    Column("integrator", Id, ForeignKey("integrator.id"), nullable=False),
    Column("created", Instant, nullable=False),
    # Who asked for it, as the audit names them.
    Column("actor", Text, nullable=False),
    Column("expires", Instant),
    Column("level", String(8)),
    # Free again where the batch comes to nothing.
    Column("idempotency_key", String(128)),
    # Claims since a document was examined last.
    Column("tries", Integer, nullable=False),
    Column("lease_owner", Text),
    Column("lease_until", Instant),
    Column("fence", BigInteger, nullable=False),
)

# The documents of a batch that is being prepared.
batch_document = Table(
    "batch_document",
    metadata,
    Column("batch", Id, ForeignKey("request_batch.id"), primary_key=True),
    # From 0, in the order in which they are signed.
    Column("place", Integer, primary_key=True, autoincrement=False),
    Column("integrator", Id, ForeignKey("integrator.id"), nullable=False),
    # Of the file that came with the batch; empty for what was uploaded before.
    Column("sha256", String(64)),
    Column("size_bytes", BigInteger, nullable=False),
    # What is to be signed: known from the start for an upload, else once examined.
    Column("document", Id, ForeignKey("document.id")),
    # Of the damaged file whose copy it came as; "" as it is. Empty in rows of versions
    # before 0006: what the document first came as.
    Column("original_sha256", String(64)),
    Column("name", Text, nullable=False),
    # The field that brought it, and its part of a multipart body: faults name them.
    Column("field", String(16), nullable=False),
    Column("part", Text),
    Column("reference", String(128)),
    Column("unique_reference", String(128)),
    Column("metadata", JsonText),
    # Look and place as they were asked for, and as they were found.
    Column("repairs", Boolean, nullable=False),
    Column("wished", JsonText),
    Column("preset", JsonText),
    Column("settled", Boolean, nullable=False),
    Column("fault", JsonText),
    Index("ix_batch_document_integrator_sha256", "integrator", "sha256"),
    Index("ix_batch_document_document", "document"),
    Index(
        "ix_batch_document_integrator_unique_reference",
        "integrator",
        "unique_reference",
        unique=True,
    ),
)

signature_request = Table(
    "signature_request",
    metadata,
    Column("id", Serial, primary_key=True, autoincrement=True),
    Column("process", Id, ForeignKey("signing_process.id"), nullable=False),
    Column("seq", Integer, nullable=False),
    Column("person", Id, ForeignKey("person.id"), nullable=False),
    Column("integrator", Id, ForeignKey("integrator.id"), nullable=False),
    Column("document", Id, ForeignKey("document.id"), nullable=False),
    Column("name", Text, nullable=False),
    Column("state", String(16), nullable=False),
    Column("reason", Text, nullable=False),
    Column("origin", String(16), nullable=False),
    Column("created", Instant, nullable=False),
    Column("expires", Instant),
    Column("params_sha256", String(64)),
    Column("activation", Id),
    # The level reached; beside it what was wished for at its making.
    Column("level", String(8)),
    Column("wished_level", String(8)),
    Column("timestamp_policy", String(16)),
    Column("digest", String(8)),
    Column("tsa", JsonText),
    # Look and place of the signature, as whoever asked for it wants them.
    Column("preset", JsonText),
    # How an integrator's backend named the signer.
    Column("named_by", String(8)),
    # The batch that it was asked for with; the order there is that of the numbers.
    Column("batch", Id),
    # When its signer had read it in a session for its batch.
    Column("seen", Instant),
    # Those of a process with the same one sign in any order; empty: in that of `seq`.
    Column("turn", Integer),
    # Of the damaged file whose copy it came as; "" as it is. Empty in rows of versions
    # before 0006: what the document first came as.
    Column("original_sha256", String(64)),
    UniqueConstraint("process", "seq"),
    Index("ix_signature_request_person_state", "person", "state"),
    Index("ix_signature_request_state_expires", "state", "expires"),
    Index("ix_signature_request_document", "document"),
    # Lists, newest first.
    Index("ix_signature_request_person_id", "person", "id"),
    Index("ix_signature_request_integrator_id", "integrator", "id"),
    Index("ix_signature_request_integrator_state_id", "integrator", "state", "id"),
    Index("ix_signature_request_created", "created"),
    Index(
        "ix_signature_request_batch_state",
        "batch",
        "state",
        sqlite_where=text("batch IS NOT NULL"),
        postgresql_where=text("batch IS NOT NULL"),
    ),
    Index(
        "ix_signature_request_turn_state_id",
        "state",
        "id",
        sqlite_where=text("turn IS NOT NULL"),
        postgresql_where=text("turn IS NOT NULL"),
    ),
    # A number once given is never given again, deleted rows or not.
    sqlite_autoincrement=True,
)

# The document of a request as its signer last fetched it; kept where others who sign
# give the request another one.
shown_document = Table(
    "shown_document",
    metadata,
    Column(
        "request",
        Serial,
        ForeignKey("signature_request.id", ondelete="CASCADE"),
        primary_key=True,
        autoincrement=False,
    ),
    Column("sha256", String(64), nullable=False),
    # True: its file or a page of it. False: a list or an answer named it.
    Column("drawn", Boolean, nullable=False),
)

# What an integrator may know of what happened: written with the audit's rows.
integrator_event = Table(
    "integrator_event",
    metadata,
    Column("id", Serial, primary_key=True, autoincrement=True),
    Column("integrator", Id, ForeignKey("integrator.id"), nullable=False),
    Column("request", Serial, ForeignKey("signature_request.id")),
    Column("event", String(40), nullable=False),
    Column("at", Instant, nullable=False),
    Column("detail", JsonText, nullable=False),
    # True until chores have made of it what is sent; an index of such rows alone.
    Column("pending", Boolean),
    Index("ix_integrator_event_request_id", "request", "id"),
    Index("ix_integrator_event_integrator_id", "integrator", "id"),
    Index(
        "ix_integrator_event_pending",
        "id",
        # As SQLAlchemy writes the condition: SQLite compares the words.
        sqlite_where=text("pending = 1"),
        postgresql_where=text("pending"),
    ),
    sqlite_autoincrement=True,
)

signing_batch = Table(
    "signing_batch",
    metadata,
    Column("id", Id, primary_key=True),
    Column("person", Id, ForeignKey("person.id"), nullable=False),
    Column("requests", JsonText, nullable=False),
    Column("params", JsonText, nullable=False),
    Column("refused", JsonText, nullable=False),
    Column("asked", Instant, nullable=False),
    Index("ix_signing_batch_asked", "asked"),
)

idempotency = Table(
    "idempotency",
    metadata,
    Column("scope", String(64), primary_key=True),
    Column("key", String(128), primary_key=True),
    Column("fingerprint", String(64), nullable=False),
    Column("created", Instant, nullable=False),
    Index("ix_idempotency_created", "created"),
)
