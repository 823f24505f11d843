"""The tables of release 0.1.0.

They stand here as they were then: what later code makes of `appliance.storage.tables`
comes in migrations of its own. Types that code gives a meaning (`Instant`,
`JsonText`) are what the database sees of them.
"""

from functools import partial

from alembic import op
from sqlalchemy import (
    BigInteger,
    Boolean,
    Column,
    DateTime,
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
from sqlalchemy.schema import SchemaItem

revision = "0001"
down_revision = None
oldest_reader = "0001"

_INSTANT = DateTime(timezone=True)
# SQLite numbers rows by itself only for a column that is exactly INTEGER.
_SERIAL = BigInteger().with_variant(Integer(), "sqlite")
_required = partial(Column, nullable=False)
_tables = MetaData(
    naming_convention={
        "uq": "uq_%(table_name)s_%(column_0_N_name)s",
        "fk": "fk_%(table_name)s_%(column_0_N_name)s",
        "pk": "pk_%(table_name)s",
    }
)


def _table(name: str, *parts: SchemaItem) -> None:
    Table(name, _tables, *parts)


def upgrade() -> None:
    """Make them in an empty database."""
    _tables.create_all(op.get_bind(), checkfirst=False)


def downgrade() -> None:
    """Drop them, and all that is in them."""
    _tables.drop_all(op.get_bind(), checkfirst=False)


_table(
    "activation_key",
    Column("host", String(255), primary_key=True),
    Column("epoch", BigInteger, primary_key=True, autoincrement=False),
    _required("public", LargeBinary),
    _required("identity", String(64)),
    _required("signature", LargeBinary),
    _required("made", _INSTANT),
)
_table(
    "audit_writer",
    Column("id", String(36), primary_key=True),
    _required("role", String(40)),
    _required("started", _INSTANT),
    _required("n", BigInteger),
    _required("hash", String(64)),
)
_table(
    "console_user",
    Column("id", String(36), primary_key=True),
    _required("name", String(40), unique=True),
    _required("phc", Text),
    _required("totp_sealed", LargeBinary),
    _required("last_step", BigInteger),
    _required("created", _INSTANT),
    Column("disabled", _INSTANT),
    Column("last_login", _INSTANT),
)
_table(
    "crl",
    Column("issuer", String(40), primary_key=True),
    _required("number", BigInteger),
    _required("der", LargeBinary),
    _required("this_update", _INSTANT),
    _required("next_update", _INSTANT),
)
_table(
    "expiry_notice",
    Column("kind", String(16), primary_key=True),
    Column("subject", String(64), primary_key=True),
    _required("not_after", _INSTANT),
    _required("days", Integer),
    _required("at", _INSTANT),
)
_table(
    "idempotency",
    Column("scope", String(64), primary_key=True),
    Column("key", String(128), primary_key=True),
    _required("fingerprint", String(64)),
    _required("created", _INSTANT),
    Index("ix_idempotency_created", "created"),
)
_table(
    "integrator",
    Column("id", String(36), primary_key=True),
    _required("code", String(40), unique=True),
    _required("name", Text),
    _required("created", _INSTANT),
    _required("delivery_limit_bytes", BigInteger, server_default="8000000"),
    _required("may_vouch", Boolean, server_default=false()),
    Column("level", String(8)),
    Column("timestamp_policy", String(16)),
    Column("digest", String(8)),
    Column("tsa", Text),
    Column("event_prefix", String(32)),
    Column("disabled", _INSTANT),
)
_table(
    "jwt_key",
    Column("kid", String(64), primary_key=True),
    _required("private_sealed", LargeBinary),
    _required("public", Text),
    _required("valid_from", _INSTANT),
    _required("valid_until", _INSTANT),
)
_table(
    "known_address",
    Column("known_index", String(64), primary_key=True),
    _required("at", _INSTANT),
    Index("ix_known_address_at", "at"),
)
_table(
    "logo",
    Column("sha256", String(64), primary_key=True),
    _required("width", Integer),
    _required("height", Integer),
    _required("deflated", LargeBinary),
    _required("added", _INSTANT),
)
_table(
    "outside_status",
    Column("kind", String(8), primary_key=True),
    Column("subject", String(64), primary_key=True),
    _required("der", LargeBinary),
    _required("this_update", _INSTANT),
    _required("next_update", _INSTANT),
    Column("revoked_at", _INSTANT),
    _required("reason", Text, server_default=""),
    Index("ix_outside_status_next_update", "next_update"),
)
_table(
    "person",
    Column("id", String(36), primary_key=True),
    _required("cuil", String(11), unique=True),
    _required("name", Text),
    _required("email_sealed", LargeBinary),
    _required("email_index", String(64), unique=True),
    _required("locale", String(5)),
    _required("state", String(16)),
    _required("vouched_by", String(16)),
    _required("created", _INSTANT),
    Column("signed_out", _INSTANT),
)
_table(
    "trust_anchor",
    Column("id", String(36), primary_key=True),
    _required("certificate", LargeBinary),
    _required("sha256", String(64)),
    _required("purpose", String(16)),
    _required("not_after", _INSTANT),
    _required("added", _INSTANT),
    UniqueConstraint("sha256", "purpose"),
)
_table(
    "worker_status",
    Column("slot", String(160), primary_key=True),
    _required("process", String(36)),
    _required("at", _INSTANT),
    _required("hsm", String(16)),
    _required("reason", Text),
)
_table(
    "api_key",
    Column("id", String(12), primary_key=True),
    _required("integrator", String(36), ForeignKey("integrator.id")),
    _required("label", Text),
    _required("key_index", String(64), unique=True),
    _required("hint", String(20)),
    _required("created", _INSTANT),
    Column("expires", _INSTANT),
    Column("ends", _INSTANT),
    Column("last_used", _INSTANT),
    Column("revoked", _INSTANT),
    Column("flagged", _INSTANT),
    Column("flag_reason", String(16)),
    Index("ix_api_key_integrator_created", "integrator", "created"),
)
_table(
    "audit_event",
    Column("writer", String(36), ForeignKey("audit_writer.id"), primary_key=True),
    Column("n", BigInteger, primary_key=True),
    _required("prev", String(64)),
    _required("hash", String(64)),
    _required("at", _INSTANT),
    _required("event", String(40)),
    _required("actor", Text),
    Column("integrator", String(36)),
    Column("request", _SERIAL),
    Column("activation", String(36)),
    Column("attempt", Integer),
    _required("detail", Text),
    Index("ix_audit_event_at", "at"),
    Index("ix_audit_event_request", "request"),
)
_table(
    "blocked_origin",
    Column("integrator", String(36), ForeignKey("integrator.id"), primary_key=True),
    Column("origin", String(270), primary_key=True),
    _required("first", _INSTANT),
    _required("last", _INSTANT),
    _required("count", BigInteger),
)
_table(
    "console_session",
    Column("token_index", String(64), primary_key=True),
    _required("user", String(36), ForeignKey("console_user.id")),
    _required("created", _INSTANT),
    _required("until", _INSTANT),
    Index("ix_console_session_until", "until"),
)
_table(
    "credential",
    Column("id", String(36), primary_key=True),
    _required("person", String(36), ForeignKey("person.id")),
    _required("key_mode", String(16)),
    _required("algorithm", String(16)),
    _required("key_version", Integer),
    _required("key_token", String(16)),
    Column("cka_id", LargeBinary),
    Column("master", Integer),
    Column("blob_w", LargeBinary),
    Column("method_w", String(32)),
    Column("method_k", String(32)),
    _required("outer", LargeBinary),
    _required("spki", LargeBinary),
    _required("spki_sha256", String(64), unique=True),
    _required("certificate", LargeBinary),
    _required("chain", LargeBinary),
    _required("not_before", _INSTANT),
    _required("not_after", _INSTANT),
    _required("vouched_by", String(16)),
    _required("state", String(16)),
    _required("created", _INSTANT),
    Index("ix_credential_person_state", "person", "state"),
    Index("ix_credential_state_not_after", "state", "not_after"),
)
_table(
    "document",
    Column("id", String(36), primary_key=True),
    _required("integrator", String(36), ForeignKey("integrator.id")),
    _required("sha256", String(64)),
    _required("size_bytes", BigInteger),
    _required("inspection", Text),
    _required("created", _INSTANT),
    UniqueConstraint("integrator", "sha256"),
    Index("ix_document_created", "created"),
)
_table(
    "document_key",
    Column("integrator", String(36), ForeignKey("integrator.id"), primary_key=True),
    _required("key_sealed", LargeBinary),
    _required("created", _INSTANT),
)
_table(
    "embed_session_document",
    Column("session", String(36), primary_key=True),
    Column("sha256", String(64), primary_key=True),
    _required("integrator", String(36), ForeignKey("integrator.id")),
    _required("size_bytes", BigInteger),
    _required("brought", _INSTANT),
    Index("ix_embed_session_document_brought", "brought"),
    Index("ix_embed_session_document_integrator_sha256", "integrator", "sha256"),
)
_table(
    "enrolment",
    Column("id", String(36), primary_key=True),
    _required("code_index", String(64), unique=True),
    _required("person", String(36), ForeignKey("person.id")),
    _required("totp_sealed", LargeBinary),
    _required("created", _INSTANT),
    _required("until", _INSTANT),
    Column("used", _INSTANT),
    Index("ix_enrolment_person", "person"),
)
_table(
    "hsm_task",
    Column("id", String(36), primary_key=True),
    _required("kind", String(24)),
    Column("person", String(36), ForeignKey("person.id")),
    _required("input", Text),
    _required("state", String(16)),
    _required("created", _INSTANT),
    Column("lease_owner", Text),
    Column("lease_until", _INSTANT),
    _required("fence", Integer),
    Column("output", Text),
    _required("reason", Text),
    Column("swept", _INSTANT),
    _required("share", String(32), server_default=""),
    _required("turn", Integer, server_default="0"),
    Index("ix_hsm_task_person_state", "person", "state"),
    Index("ix_hsm_task_share_state", "share", "state"),
    Index("ix_hsm_task_state_lease_until", "state", "lease_until"),
)
_table(
    "integrator_domain",
    Column("id", String(36), primary_key=True),
    _required("integrator", String(36), ForeignKey("integrator.id")),
    _required("origin", String(270)),
    _required("created", _INSTANT),
    Column("seen", _INSTANT),
    UniqueConstraint("integrator", "origin"),
)
_table(
    "login_attempt",
    Column("id", String(36), primary_key=True),
    _required("at", _INSTANT),
    _required("address", String(64)),
    _required("account_index", String(64)),
    _required("kind", String(16)),
    Column("person", String(36), ForeignKey("person.id")),
    _required("outcome", String(16)),
    Column("token_index", String(64), unique=True),
    Column("until", _INSTANT),
    Column("net_56", String(64)),
    Column("net_48", String(64)),
    _required("scope", String(36), server_default=""),
    Index("ix_login_attempt_account_index_at", "account_index", "at"),
    Index("ix_login_attempt_address_at", "address", "at"),
    Index("ix_login_attempt_net_48_at", "net_48", "at"),
    Index("ix_login_attempt_net_56_at", "net_56", "at"),
)
_table(
    "login_secret",
    Column("person", String(36), ForeignKey("person.id"), primary_key=True),
    _required("phc", Text),
    _required("totp_sealed", LargeBinary),
    _required("last_step", BigInteger),
)
_table(
    "logo_use",
    Column("scope", String(36), primary_key=True),
    _required("logo", String(64), ForeignKey("logo.sha256")),
    _required("since", _INSTANT),
)
_table(
    "revocation_pin",
    Column("person", String(36), ForeignKey("person.id"), primary_key=True),
    _required("phc", Text),
    _required("made", _INSTANT),
)
_table(
    "signing_batch",
    Column("id", String(36), primary_key=True),
    _required("person", String(36), ForeignKey("person.id")),
    _required("requests", Text),
    _required("params", Text),
    _required("refused", Text),
    _required("asked", _INSTANT),
    Index("ix_signing_batch_asked", "asked"),
)
_table(
    "signing_process",
    Column("id", String(36), primary_key=True),
    _required("integrator", String(36), ForeignKey("integrator.id")),
    _required("created", _INSTANT),
)
_table(
    "signing_secret",
    Column("person", String(36), ForeignKey("person.id"), primary_key=True),
    _required("salt", LargeBinary),
    _required("argon2", Text),
    _required("pepper_version", Integer),
    _required("verifier_sha256", String(64)),
    _required("counted", Integer),
    Column("locked_at", _INSTANT),
)
_table(
    "activation",
    Column("id", String(36), primary_key=True),
    _required("person", String(36), ForeignKey("person.id")),
    _required("credential", String(36), ForeignKey("credential.id")),
    _required("state", String(16)),
    _required("factors", Text),
    _required("created", _INSTANT),
    _required("claim_by", _INSTANT),
    Column("key_until", _INSTANT),
    Column("finish_until", _INSTANT),
    Column("lease_owner", Text),
    Column("lease_until", _INSTANT),
    _required("fence", Integer),
    _required("progress", Integer, server_default="0"),
    _required("outside", Boolean, server_default=false()),
    _required("reason", Text),
    Index("ix_activation_state_lease_until", "state", "lease_until"),
)
_table(
    "certificate",
    Column("serial", String(40), primary_key=True),
    _required("kind", String(16)),
    _required("issuer", String(40)),
    Column("credential", String(36), ForeignKey("credential.id")),
    _required("der", LargeBinary),
    _required("not_before", _INSTANT),
    _required("not_after", _INSTANT),
    _required("state", String(16)),
    Column("revoked_at", _INSTANT),
    Column("reason", String(24)),
    Column("task", String(36)),
    _required("issued", _INSTANT),
    Index("ix_certificate_credential", "credential"),
    Index("ix_certificate_issued", "issued"),
    Index("ix_certificate_issuer_state", "issuer", "state"),
    Index("ix_certificate_not_after", "not_after"),
)
_table(
    "document_repair",
    Column(
        "document",
        String(36),
        ForeignKey("document.id", ondelete="CASCADE"),
        primary_key=True,
    ),
    _required("integrator", String(36), ForeignKey("integrator.id")),
    _required("sha256", String(64)),
    _required("damage", Text),
    Index("ix_document_repair_integrator_sha256", "integrator", "sha256"),
)
_table(
    "former_certificate",
    Column("id", String(36), primary_key=True),
    _required("credential", String(36), ForeignKey("credential.id")),
    _required("certificate", LargeBinary),
    _required("chain", LargeBinary),
    _required("not_before", _INSTANT),
    _required("not_after", _INSTANT),
    _required("replaced", _INSTANT),
    Index("ix_former_certificate_credential", "credential"),
)
_table(
    "signature_request",
    Column("id", _SERIAL, primary_key=True, autoincrement=True),
    _required("process", String(36), ForeignKey("signing_process.id")),
    _required("seq", Integer),
    _required("person", String(36), ForeignKey("person.id")),
    _required("integrator", String(36), ForeignKey("integrator.id")),
    _required("document", String(36), ForeignKey("document.id")),
    _required("name", Text),
    _required("state", String(16)),
    _required("reason", Text),
    _required("origin", String(16)),
    _required("created", _INSTANT),
    Column("expires", _INSTANT),
    Column("params_sha256", String(64)),
    Column("activation", String(36)),
    Column("level", String(8)),
    Column("wished_level", String(8)),
    Column("timestamp_policy", String(16)),
    Column("digest", String(8)),
    Column("tsa", Text),
    UniqueConstraint("process", "seq"),
    Index("ix_signature_request_person_state", "person", "state"),
    Index("ix_signature_request_state_expires", "state", "expires"),
)
_table(
    "task_seal",
    Column("task", String(36), ForeignKey("hsm_task.id"), primary_key=True),
    Column("host", String(255), primary_key=True),
    _required("epoch", BigInteger),
    _required("sealed", LargeBinary),
)
_table(
    "activation_item",
    Column("activation", String(36), ForeignKey("activation.id"), primary_key=True),
    Column("seq", Integer, primary_key=True),
    _required("request", _SERIAL, ForeignKey("signature_request.id")),
    _required("document_sha256", String(64)),
    _required("params", Text),
    _required("params_sha256", String(64)),
    _required("state", String(16)),
    _required("reason", Text),
    Column("increment", LargeBinary),
    Column("contents_at", Integer),
    Column("contents_length", Integer),
    Column("signed_attributes", LargeBinary),
    Column("signature", LargeBinary),
    Column("stamp", Text),
    Column("code", String(26)),
    Index("ix_activation_item_code", "code", unique=True),
)
_table(
    "activation_seal",
    Column("activation", String(36), ForeignKey("activation.id"), primary_key=True),
    Column("host", String(255), primary_key=True),
    _required("epoch", BigInteger),
    _required("sealed", LargeBinary),
)
_table(
    "attempt_slot",
    Column("id", String(36), primary_key=True),
    _required("person", String(36), ForeignKey("person.id")),
    Column("request", _SERIAL, ForeignKey("signature_request.id")),
    Column("verifier_sha256", String(64)),
    _required("at", _INSTANT),
    _required("outcome", String(16)),
    Index("ix_attempt_slot_person_at", "person", "at"),
)
_table(
    "download_link",
    Column("key_index", String(64), primary_key=True),
    _required("request", _SERIAL, ForeignKey("signature_request.id")),
    _required("until", _INSTANT),
    Index("ix_download_link_until", "until"),
)
_table(
    "embed_session",
    Column("id", String(36), primary_key=True),
    _required("public_id", String(24), unique=True),
    _required("token_index", String(64), unique=True),
    Column("bearer_index", String(64), unique=True),
    _required("integrator", String(36), ForeignKey("integrator.id")),
    _required("api_key", String(12), ForeignKey("api_key.id")),
    _required("state", String(16)),
    _required("issued", _INSTANT),
    _required("until", _INSTANT),
    Column("nonce", Text),
    Column("idem_key", Text),
    Column("init_sha256", String(64)),
    Column("person", String(36), ForeignKey("person.id")),
    Column("otp_at", _INSTANT),
    Column("document", String(36), ForeignKey("document.id")),
    Column("document_name", Text),
    Column("request", _SERIAL, ForeignKey("signature_request.id")),
    Column("completed", Text),
    _required("documents", Integer, server_default="0"),
    _required("host_document", Boolean, server_default=false()),
    Column("successor", String(36)),
    _required("codes", Integer, server_default="0"),
    Index("ix_embed_session_api_key_state", "api_key", "state"),
    Index("ix_embed_session_person_state", "person", "state"),
    Index("ix_embed_session_until", "until"),
)
_table(
    "intent",
    Column("id", String(36), primary_key=True),
    _required("activation", String(36), ForeignKey("activation.id")),
    _required("item", Integer),
    _required("attempt", Integer),
    _required("digest", String(128)),
    _required("state", String(16)),
    _required("at", _INSTANT),
    Column("closed", _INSTANT),
    UniqueConstraint("activation", "item", "attempt"),
    Index("ix_intent_activation_state", "activation", "state"),
)
_table(
    "level_upkeep",
    Column("id", String(36), primary_key=True),
    _required("request", _SERIAL, ForeignKey("signature_request.id"), unique=True),
    _required("integrator", String(36), ForeignKey("integrator.id")),
    _required("wanted", String(8)),
    Column("tsa", Text),
    _required("outside", Boolean, server_default=false()),
    _required("due", _INSTANT),
    Column("since", _INSTANT),
    _required("tries", Integer),
    _required("reason", Text),
    _required("created", _INSTANT),
    Column("lease_owner", Text),
    Column("lease_until", _INSTANT),
    _required("fence", Integer),
    Index("ix_level_upkeep_due", "due"),
    Index("ix_level_upkeep_since", "since"),
)
_table(
    "ocsp_response",
    Column("serial", String(40), ForeignKey("certificate.serial"), primary_key=True),
    _required("state", String(16)),
    _required("der", LargeBinary),
    _required("this_update", _INSTANT),
    _required("next_update", _INSTANT),
    Index("ix_ocsp_response_next_update", "next_update"),
)
_table(
    "signed_document",
    Column("request", _SERIAL, ForeignKey("signature_request.id"), primary_key=True),
    Column("version", Integer, primary_key=True, autoincrement=False),
    _required("integrator", String(36), ForeignKey("integrator.id")),
    _required("sha256", String(64)),
    _required("size_bytes", BigInteger),
    _required("level", String(8)),
    _required("made", _INSTANT),
)
_table("table_compatibility", Column("oldest_reader", String(32), primary_key=True))
