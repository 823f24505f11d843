"""People, what proves them, and their tries to do so."""

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
)

from appliance.database.tables.base import Id, Serial, metadata
from appliance.database.types import Instant, JsonText

person = Table(
    "person",
    metadata,
    Column("id", Id, primary_key=True),
    Column("cuil", String(11), nullable=False, unique=True),
    Column("name", Text, nullable=False),
    Column("email_sealed", LargeBinary, nullable=False),
    Column("email_index", String(64), nullable=False, unique=True),
    Column("locale", String(5), nullable=False),
    Column("state", String(16), nullable=False),
    Column("vouched_by", String(16), nullable=False),
    Column("created", Instant, nullable=False),
    # What they had proven until then counts no more.
    Column("signed_out", Instant),
    Index("ix_person_created_id", "created", "id"),
    Index("ix_person_state_created_id", "state", "created", "id"),
)

enrolment = Table(
    "enrolment",
    metadata,
    Column("id", Id, primary_key=True),
    Column("code_index", String(64), nullable=False, unique=True),
    Column("person", Id, ForeignKey("person.id"), nullable=False),
    Column("totp_sealed", LargeBinary, nullable=False),
    Column("created", Instant, nullable=False),
    Column("until", Instant, nullable=False),
    Column("used", Instant),
    Index("ix_enrolment_person", "person"),
)

# For whom an integrator's backend answered: how it knew who they are, and who checked.
person_vouch = Table(
    "person_vouch",
    metadata,
    Column("id", Id, primary_key=True),
    Column("person", Id, ForeignKey("person.id"), nullable=False),
    Column("integrator", Id, ForeignKey("integrator.id"), nullable=False),
    Column("api_key", String(12), ForeignKey("api_key.id"), nullable=False),
    Column("method", Text, nullable=False),
    Column("vouched_by", Text, nullable=False),
    Column("checked", Instant, nullable=False),
    Column("created", Instant, nullable=False),
    Index("ix_person_vouch_person_integrator", "person", "integrator"),
)

# What a person asked an officer for who cannot sign. One row a person: whoever asks
# again uses it again, so that strangers cannot fill the table.
# Of each person one with a proof and one without, so that neither changes the other.
help_request = Table(
    "help_request",
    metadata,
    Column("person", Id, ForeignKey("person.id"), primary_key=True),
    # Another one each time that it is opened, or its topic changes.
    Column("id", Id, nullable=False),
    Column("topic", String(16), nullable=False),
    # The integrator in whose frame it was asked; null: on the public page.
    Column("integrator", Id, ForeignKey("integrator.id")),
    # Whether a right code came before it.
    Column("proven", Boolean, primary_key=True),
    # HMAC of the code of the link by which the person withdraws it.
    Column("code_index", String(64), nullable=False, unique=True),
    Column("asked", Instant, nullable=False),
    # How often it was opened since a time.
    Column("counted", Integer, nullable=False),
    Column("since", Instant, nullable=False),
    Column("ended", Instant),
    # How it ended; null while it is open.
    Column("outcome", String(16)),
    Index("ix_help_request_ended_asked", "ended", "asked"),
)

# People that an integrator's backend made up to try things; it may read their secrets.
test_signer = Table(
    "test_signer",
    metadata,
    Column("person", Id, ForeignKey("person.id"), primary_key=True),
    Column("integrator", Id, ForeignKey("integrator.id"), nullable=False),
    Column("password_sealed", LargeBinary, nullable=False),
    Column("sign_password_sealed", LargeBinary, nullable=False),
    Column("created", Instant, nullable=False),
    Column("removed", Instant),
    Index("ix_test_signer_integrator_created", "integrator", "created"),
)

login_secret = Table(
    "login_secret",
    metadata,
    Column("person", Id, ForeignKey("person.id"), primary_key=True),
    # A PHC string is right for a login password: no key is derived from it.
    Column("phc", Text, nullable=False),
    Column("totp_sealed", LargeBinary, nullable=False),
    Column("last_step", BigInteger, nullable=False),
)

login_attempt = Table(
    "login_attempt",
    metadata,
    Column("id", Id, primary_key=True),
    Column("at", Instant, nullable=False),
    Column("address", String(64), nullable=False),
    Column("account_index", String(64), nullable=False),
    Column("kind", String(16), nullable=False),
    Column("person", Id, ForeignKey("person.id")),
    Column("outcome", String(16), nullable=False),
    # HMAC of the login token while the code is still to come.
    Column("token_index", String(64), unique=True),
    Column("until", Instant),
    # Of an IPv6 address the networks around its /64.
    Column("net_56", String(64)),
    Column("net_48", String(64)),
    # Within the account: the integrator of a code in a frame. The default is for
    # rows of earlier versions.
    Column("scope", String(36), nullable=False, server_default=""),
    Index("ix_login_attempt_net_56_at", "net_56", "at"),
    Index("ix_login_attempt_net_48_at", "net_48", "at"),
    Index("ix_login_attempt_address_at", "address", "at"),
    Index("ix_login_attempt_account_index_at", "account_index", "at"),
    Index("ix_login_attempt_at", "at"),
    Index("ix_login_attempt_kind_at", "kind", "at"),
    Index("ix_login_attempt_person", "person"),
)

known_address = Table(
    "known_address",
    metadata,
    # HMAC of the account and the address from which it was proven.
    Column("known_index", String(64), primary_key=True),
    Column("at", Instant, nullable=False),
    Index("ix_known_address_at", "at"),
)

signing_secret = Table(
    "signing_secret",
    metadata,
    Column("person", Id, ForeignKey("person.id"), primary_key=True),
    Column("salt", LargeBinary, nullable=False),
    Column("argon2", JsonText, nullable=False),
    Column("pepper_version", Integer, nullable=False),
    Column("verifier_sha256", String(64), nullable=False),
    Column("counted", Integer, nullable=False),
    Column("locked_at", Instant),
    # Keyed proof of when `counted` was last set to nothing, and by whom it may be.
    # Empty: never, or by a version before 0007.
    Column("cleared", Text),
    Index("ix_signing_secret_locked_at", "locked_at"),
)

attempt_slot = Table(
    "attempt_slot",
    metadata,
    Column("id", Id, primary_key=True),
    Column("person", Id, ForeignKey("person.id"), nullable=False),
    # None where the password is asked for something else than a signature.
    Column("request", Serial, ForeignKey("signature_request.id")),
    Column("verifier_sha256", String(64)),
    Column("at", Instant, nullable=False),
    Column("outcome", String(16), nullable=False),
    Index("ix_attempt_slot_person_at", "person", "at"),
    Index("ix_attempt_slot_at", "at"),
)

revocation_pin = Table(
    "revocation_pin",
    metadata,
    Column("person", Id, ForeignKey("person.id"), primary_key=True),
    # A PHC string is right: no key is derived from a PIN.
    Column("phc", Text, nullable=False),
    Column("made", Instant, nullable=False),
)
