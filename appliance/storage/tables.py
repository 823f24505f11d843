"""Every table of the record, in one place.

Words are those of design §2; states come from `appliance.domain.vocab`.
Migrations in `migrations/` build exactly this (a test compares them).
"""

from sqlalchemy import (
    BigInteger,
    Boolean,
    Column,
    ForeignKey,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    String,
    Table,
    Text,
    UniqueConstraint,
    false,
)

from appliance.domain.integration import DELIVERY_LIMIT_BYTES
from appliance.storage.types import Instant, JsonText

metadata = MetaData(
    naming_convention={
        "ix": "ix_%(table_name)s_%(column_0_N_name)s",
        "uq": "uq_%(table_name)s_%(column_0_N_name)s",
        "fk": "fk_%(table_name)s_%(column_0_N_name)s",
        "pk": "pk_%(table_name)s",
    }
)

_Id = String(36)
# SQLite numbers rows by itself only for a column that is exactly INTEGER.
_Serial = BigInteger().with_variant(Integer(), "sqlite")

integrator = Table(
    "integrator",
    metadata,
    Column("id", _Id, primary_key=True),
    Column("code", String(40), nullable=False, unique=True),
    Column("name", Text, nullable=False),
    Column("created", Instant, nullable=False),
    # Both have defaults in the database, for rows of the first version.
    Column(
        "delivery_limit_bytes",
        BigInteger,
        nullable=False,
        server_default=str(DELIVERY_LIMIT_BYTES),
    ),
    Column("may_vouch", Boolean, nullable=False, server_default=false()),
    # How its signatures are made, where it differs from the installation.
    Column("level", String(8)),
    Column("timestamp_policy", String(16)),
    Column("digest", String(8)),
)

api_key = Table(
    "api_key",
    metadata,
    Column("id", String(12), primary_key=True),
    Column("integrator", _Id, ForeignKey("integrator.id"), nullable=False),
    Column("label", Text, nullable=False),
    # HMAC of the whole key; the key itself is nowhere.
    Column("key_index", String(64), nullable=False, unique=True),
    Column("hint", String(20), nullable=False),
    Column("created", Instant, nullable=False),
    Column("expires", Instant),
    Column("ends", Instant),
    Column("last_used", Instant),
    Column("revoked", Instant),
    Column("flagged", Instant),
    Column("flag_reason", String(16)),
    Index("ix_api_key_integrator_created", "integrator", "created"),
)

integrator_domain = Table(
    "integrator_domain",
    metadata,
    Column("id", _Id, primary_key=True),
    Column("integrator", _Id, ForeignKey("integrator.id"), nullable=False),
    Column("origin", String(270), nullable=False),
    Column("created", Instant, nullable=False),
    Column("seen", Instant),
    UniqueConstraint("integrator", "origin"),
)

blocked_origin = Table(
    "blocked_origin",
    metadata,
    Column("integrator", _Id, ForeignKey("integrator.id"), primary_key=True),
    Column("origin", String(270), primary_key=True),
    Column("first", Instant, nullable=False),
    Column("last", Instant, nullable=False),
    Column("count", BigInteger, nullable=False),
)

person = Table(
    "person",
    metadata,
    Column("id", _Id, primary_key=True),
    Column("cuil", String(11), nullable=False, unique=True),
    Column("name", Text, nullable=False),
    Column("email_sealed", LargeBinary, nullable=False),
    Column("email_index", String(64), nullable=False, unique=True),
    Column("locale", String(5), nullable=False),
    Column("state", String(16), nullable=False),
    Column("vouched_by", String(16), nullable=False),
    Column("created", Instant, nullable=False),
)

login_secret = Table(
    "login_secret",
    metadata,
    Column("person", _Id, ForeignKey("person.id"), primary_key=True),
    # A PHC string is right for a login password: no key is derived from it.
    Column("phc", Text, nullable=False),
    Column("totp_sealed", LargeBinary, nullable=False),
    Column("last_step", BigInteger, nullable=False),
)

login_attempt = Table(
    "login_attempt",
    metadata,
    Column("id", _Id, primary_key=True),
    Column("at", Instant, nullable=False),
    Column("address", String(64), nullable=False),
    Column("account_index", String(64), nullable=False),
    Column("kind", String(16), nullable=False),
    Column("person", _Id, ForeignKey("person.id")),
    Column("outcome", String(16), nullable=False),
    # HMAC of the login token while the code is still to come.
    Column("token_index", String(64), unique=True),
    Column("until", Instant),
    Index("ix_login_attempt_address_at", "address", "at"),
    Index("ix_login_attempt_account_index_at", "account_index", "at"),
)

signing_secret = Table(
    "signing_secret",
    metadata,
    Column("person", _Id, ForeignKey("person.id"), primary_key=True),
    Column("salt", LargeBinary, nullable=False),
    Column("argon2", JsonText, nullable=False),
    Column("pepper_version", Integer, nullable=False),
    Column("verifier_sha256", String(64), nullable=False),
    Column("counted", Integer, nullable=False),
    Column("locked_at", Instant),
)

attempt_slot = Table(
    "attempt_slot",
    metadata,
    Column("id", _Id, primary_key=True),
    Column("person", _Id, ForeignKey("person.id"), nullable=False),
    # None where the password is asked for something else than a signature.
    Column("request", _Serial, ForeignKey("signature_request.id")),
    Column("verifier_sha256", String(64)),
    Column("at", Instant, nullable=False),
    Column("outcome", String(16), nullable=False),
    Index("ix_attempt_slot_person_at", "person", "at"),
)

credential = Table(
    "credential",
    metadata,
    Column("id", _Id, primary_key=True),
    Column("person", _Id, ForeignKey("person.id"), nullable=False),
    Column("key_mode", String(16), nullable=False),
    Column("algorithm", String(16), nullable=False),
    Column("key_version", Integer, nullable=False),
    Column("key_token", String(16), nullable=False),
    # The private half, resident: where it is on the token. Wrapped: blob_w here,
    # and what it unwraps locked into `outer` by the owner's password.
    Column("cka_id", LargeBinary),
    Column("master", Integer),
    Column("blob_w", LargeBinary),
    Column("method_w", String(32)),
    Column("method_k", String(32)),
    Column("outer", LargeBinary, nullable=False),
    Column("spki", LargeBinary, nullable=False),
    Column("spki_sha256", String(64), nullable=False, unique=True),
    Column("certificate", LargeBinary, nullable=False),
    Column("chain", LargeBinary, nullable=False),
    Column("not_before", Instant, nullable=False),
    Column("not_after", Instant, nullable=False),
    Column("vouched_by", String(16), nullable=False),
    Column("state", String(16), nullable=False),
    Column("created", Instant, nullable=False),
    Index("ix_credential_person_state", "person", "state"),
    Index("ix_credential_state_not_after", "state", "not_after"),
)

# What a credential had before an outside CA's certificate took its place.
former_certificate = Table(
    "former_certificate",
    metadata,
    Column("id", _Id, primary_key=True),
    Column("credential", _Id, ForeignKey("credential.id"), nullable=False),
    Column("certificate", LargeBinary, nullable=False),
    Column("chain", LargeBinary, nullable=False),
    Column("not_before", Instant, nullable=False),
    Column("not_after", Instant, nullable=False),
    Column("replaced", Instant, nullable=False),
    Index("ix_former_certificate_credential", "credential"),
)

revocation_pin = Table(
    "revocation_pin",
    metadata,
    Column("person", _Id, ForeignKey("person.id"), primary_key=True),
    # A PHC string is right: no key is derived from a PIN.
    Column("phc", Text, nullable=False),
    Column("made", Instant, nullable=False),
)

trust_anchor = Table(
    "trust_anchor",
    metadata,
    Column("id", _Id, primary_key=True),
    Column("certificate", LargeBinary, nullable=False),
    Column("sha256", String(64), nullable=False),
    Column("purpose", String(16), nullable=False),
    Column("not_after", Instant, nullable=False),
    Column("added", Instant, nullable=False),
    UniqueConstraint("sha256", "purpose"),
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

certificate = Table(
    "certificate",
    metadata,
    # Hexadecimal: a serial number has up to 20 octets.
    Column("serial", String(40), primary_key=True),
    Column("kind", String(16), nullable=False),
    Column("issuer", String(40), nullable=False),
    Column("credential", _Id, ForeignKey("credential.id")),
    Column("der", LargeBinary, nullable=False),
    Column("not_before", Instant, nullable=False),
    Column("not_after", Instant, nullable=False),
    Column("state", String(16), nullable=False),
    Column("revoked_at", Instant),
    Column("reason", String(24)),
    # The task by which it is being revoked.
    Column("task", _Id),
    Column("issued", Instant, nullable=False),
    Index("ix_certificate_credential", "credential"),
    Index("ix_certificate_issuer_state", "issuer", "state"),
    Index("ix_certificate_issued", "issued"),
    Index("ix_certificate_not_after", "not_after"),
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

# Removed, its integrator's documents open no more, whoever has the files.
document_key = Table(
    "document_key",
    metadata,
    Column("integrator", _Id, ForeignKey("integrator.id"), primary_key=True),
    Column("key_sealed", LargeBinary, nullable=False),
    Column("created", Instant, nullable=False),
)

document = Table(
    "document",
    metadata,
    Column("id", _Id, primary_key=True),
    Column("integrator", _Id, ForeignKey("integrator.id"), nullable=False),
    Column("sha256", String(64), nullable=False),
    Column("size_bytes", BigInteger, nullable=False),
    Column("inspection", JsonText, nullable=False),
    # When it came in, the last time that it did.
    Column("created", Instant, nullable=False),
    UniqueConstraint("integrator", "sha256"),
    Index("ix_document_created", "created"),
)

document_repair = Table(
    "document_repair",
    metadata,
    # The repaired copy, which it is forgotten with.
    Column(
        "document",
        _Id,
        ForeignKey("document.id", ondelete="CASCADE"),
        primary_key=True,
    ),
    Column("integrator", _Id, ForeignKey("integrator.id"), nullable=False),
    # Of the damaged file, which is kept beside the copy.
    Column("sha256", String(64), nullable=False),
    Column("damage", JsonText, nullable=False),
    Index("ix_document_repair_integrator_sha256", "integrator", "sha256"),
)

signing_process = Table(
    "signing_process",
    metadata,
    Column("id", _Id, primary_key=True),
    Column("integrator", _Id, ForeignKey("integrator.id"), nullable=False),
    Column("created", Instant, nullable=False),
)

signature_request = Table(
    "signature_request",
    metadata,
    Column("id", _Serial, primary_key=True, autoincrement=True),
    Column("process", _Id, ForeignKey("signing_process.id"), nullable=False),
    Column("seq", Integer, nullable=False),
    Column("person", _Id, ForeignKey("person.id"), nullable=False),
    Column("integrator", _Id, ForeignKey("integrator.id"), nullable=False),
    Column("document", _Id, ForeignKey("document.id"), nullable=False),
    Column("name", Text, nullable=False),
    Column("state", String(16), nullable=False),
    Column("reason", Text, nullable=False),
    Column("origin", String(16), nullable=False),
    Column("created", Instant, nullable=False),
    Column("expires", Instant),
    Column("params_sha256", String(64)),
    Column("activation", _Id),
    # The level reached; beside it what was wished for at its making.
    Column("level", String(8)),
    Column("wished_level", String(8)),
    Column("timestamp_policy", String(16)),
    Column("digest", String(8)),
    UniqueConstraint("process", "seq"),
    Index("ix_signature_request_person_state", "person", "state"),
    Index("ix_signature_request_state_expires", "state", "expires"),
    # A number once given is never given again, deleted rows or not.
    sqlite_autoincrement=True,
)

activation = Table(
    "activation",
    metadata,
    Column("id", _Id, primary_key=True),
    Column("person", _Id, ForeignKey("person.id"), nullable=False),
    Column("credential", _Id, ForeignKey("credential.id"), nullable=False),
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
    Column("reason", Text, nullable=False),
    Index("ix_activation_state_lease_until", "state", "lease_until"),
)

signing_batch = Table(
    "signing_batch",
    metadata,
    Column("id", _Id, primary_key=True),
    Column("person", _Id, ForeignKey("person.id"), nullable=False),
    Column("requests", JsonText, nullable=False),
    Column("params", JsonText, nullable=False),
    Column("refused", JsonText, nullable=False),
    Column("asked", Instant, nullable=False),
    Index("ix_signing_batch_asked", "asked"),
)

activation_item = Table(
    "activation_item",
    metadata,
    Column("activation", _Id, ForeignKey("activation.id"), primary_key=True),
    Column("seq", Integer, primary_key=True),
    Column("request", _Serial, ForeignKey("signature_request.id"), nullable=False),
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
)

# Pictures that stamps show, or showed: those of signatures that are still to be made
# are found here, whatever took their place.
logo = Table(
    "logo",
    metadata,
    Column("sha256", String(64), primary_key=True),
    Column("width", Integer, nullable=False),
    Column("height", Integer, nullable=False),
    Column("deflated", LargeBinary, nullable=False),
    Column("added", Instant, nullable=False),
)

# Whose stamps show which; '' is the installation, for those that have none.
logo_use = Table(
    "logo_use",
    metadata,
    Column("scope", _Id, primary_key=True),
    Column("logo", String(64), ForeignKey("logo.sha256"), nullable=False),
    Column("since", Instant, nullable=False),
)

activation_seal = Table(
    "activation_seal",
    metadata,
    Column("activation", _Id, ForeignKey("activation.id"), primary_key=True),
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
)

intent = Table(
    "intent",
    metadata,
    Column("id", _Id, primary_key=True),
    Column("activation", _Id, ForeignKey("activation.id"), nullable=False),
    Column("item", Integer, nullable=False),
    Column("attempt", Integer, nullable=False),
    Column("digest", String(128), nullable=False),
    Column("state", String(16), nullable=False),
    Column("at", Instant, nullable=False),
    Column("closed", Instant),
    UniqueConstraint("activation", "item", "attempt"),
    Index("ix_intent_activation_state", "activation", "state"),
)

signed_document = Table(
    "signed_document",
    metadata,
    Column("request", _Serial, ForeignKey("signature_request.id"), primary_key=True),
    # From 1; each one begins with the bytes of the one before it.
    Column("version", Integer, primary_key=True, autoincrement=False),
    Column("integrator", _Id, ForeignKey("integrator.id"), nullable=False),
    Column("sha256", String(64), nullable=False),
    Column("size_bytes", BigInteger, nullable=False),
    Column("level", String(8), nullable=False),
    Column("made", Instant, nullable=False),
)

# What published documents still need by themselves: a level, or a newer timestamp.
level_upkeep = Table(
    "level_upkeep",
    metadata,
    Column("id", _Id, primary_key=True),
    Column(
        "request",
        _Serial,
        ForeignKey("signature_request.id"),
        nullable=False,
        unique=True,
    ),
    Column("integrator", _Id, ForeignKey("integrator.id"), nullable=False),
    Column("wanted", String(8), nullable=False),
    Column("due", Instant, nullable=False),
    Column("tries", Integer, nullable=False),
    Column("reason", Text, nullable=False),
    Column("created", Instant, nullable=False),
    Column("lease_owner", Text),
    Column("lease_until", Instant),
    Column("fence", Integer, nullable=False),
    Index("ix_level_upkeep_due", "due"),
)

download_link = Table(
    "download_link",
    metadata,
    Column("key_index", String(64), primary_key=True),
    Column("request", _Serial, ForeignKey("signature_request.id"), nullable=False),
    Column("until", Instant, nullable=False),
    Index("ix_download_link_until", "until"),
)

embed_session = Table(
    "embed_session",
    metadata,
    Column("id", _Id, primary_key=True),
    Column("public_id", String(24), nullable=False, unique=True),
    # HMAC of the token, and of the bearer that holds now.
    Column("token_index", String(64), nullable=False, unique=True),
    Column("bearer_index", String(64), unique=True),
    Column("integrator", _Id, ForeignKey("integrator.id"), nullable=False),
    Column("api_key", String(12), ForeignKey("api_key.id"), nullable=False),
    Column("state", String(16), nullable=False),
    Column("issued", Instant, nullable=False),
    Column("until", Instant, nullable=False),
    Column("nonce", Text),
    Column("idem_key", Text),
    Column("init_sha256", String(64)),
    Column("person", _Id, ForeignKey("person.id")),
    Column("otp_at", Instant),
    Column("document", _Id, ForeignKey("document.id")),
    Column("document_name", Text),
    Column("request", _Serial, ForeignKey("signature_request.id")),
    Column("completed", JsonText),
    # How many it has brought; the default is for rows of earlier versions.
    Column("documents", Integer, nullable=False, server_default="0"),
    Index("ix_embed_session_api_key_state", "api_key", "state"),
    Index("ix_embed_session_until", "until"),
)

enrolment = Table(
    "enrolment",
    metadata,
    Column("id", _Id, primary_key=True),
    Column("code_index", String(64), nullable=False, unique=True),
    Column("person", _Id, ForeignKey("person.id"), nullable=False),
    Column("totp_sealed", LargeBinary, nullable=False),
    Column("created", Instant, nullable=False),
    Column("until", Instant, nullable=False),
    Column("used", Instant),
    Index("ix_enrolment_person", "person"),
)

console_user = Table(
    "console_user",
    metadata,
    Column("id", _Id, primary_key=True),
    Column("name", String(40), nullable=False, unique=True),
    Column("phc", Text, nullable=False),
    Column("totp_sealed", LargeBinary, nullable=False),
    Column("last_step", BigInteger, nullable=False),
    Column("created", Instant, nullable=False),
)

console_session = Table(
    "console_session",
    metadata,
    Column("token_index", String(64), primary_key=True),
    Column("user", _Id, ForeignKey("console_user.id"), nullable=False),
    Column("created", Instant, nullable=False),
    Column("until", Instant, nullable=False),
    Index("ix_console_session_until", "until"),
)

idempotency = Table(
    "idempotency",
    metadata,
    Column("scope", String(64), primary_key=True),
    Column("key", String(128), primary_key=True),
    Column("fingerprint", String(64), nullable=False),
    Column("created", Instant, nullable=False),
)

hsm_task = Table(
    "hsm_task",
    metadata,
    Column("id", _Id, primary_key=True),
    Column("kind", String(24), nullable=False),
    Column("person", _Id, ForeignKey("person.id")),
    Column("input", JsonText, nullable=False),
    Column("state", String(16), nullable=False),
    Column("created", Instant, nullable=False),
    Column("lease_owner", Text),
    Column("lease_until", Instant),
    Column("fence", Integer, nullable=False),
    Column("output", JsonText),
    Column("reason", Text, nullable=False),
    # When what its killed tries may have left on the token was looked for.
    Column("swept", Instant),
    Index("ix_hsm_task_state_lease_until", "state", "lease_until"),
    Index("ix_hsm_task_person_state", "person", "state"),
)

task_seal = Table(
    "task_seal",
    metadata,
    Column("task", _Id, ForeignKey("hsm_task.id"), primary_key=True),
    Column("host", String(255), primary_key=True),
    Column("epoch", BigInteger, nullable=False),
    Column("sealed", LargeBinary, nullable=False),
)

worker_status = Table(
    "worker_status",
    metadata,
    Column("slot", String(160), primary_key=True),
    Column("process", _Id, nullable=False),
    Column("at", Instant, nullable=False),
    Column("hsm", String(16), nullable=False),
    Column("reason", Text, nullable=False),
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

audit_writer = Table(
    "audit_writer",
    metadata,
    Column("id", _Id, primary_key=True),
    Column("role", String(40), nullable=False),
    Column("started", Instant, nullable=False),
    Column("n", BigInteger, nullable=False),
    Column("hash", String(64), nullable=False),
)

audit_event = Table(
    "audit_event",
    metadata,
    Column("writer", _Id, ForeignKey("audit_writer.id"), primary_key=True),
    Column("n", BigInteger, primary_key=True),
    Column("prev", String(64), nullable=False),
    Column("hash", String(64), nullable=False),
    Column("at", Instant, nullable=False),
    Column("event", String(40), nullable=False),
    Column("actor", Text, nullable=False),
    Column("integrator", _Id),
    Column("request", _Serial),
    Column("activation", _Id),
    Column("attempt", Integer),
    Column("detail", JsonText, nullable=False),
    Index("ix_audit_event_request", "request"),
    Index("ix_audit_event_at", "at"),
)
