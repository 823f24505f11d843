"""Integrators, their API keys and origins, and the logos of their stamps."""

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

from appliance.database.tables.base import Id, metadata
from appliance.database.types import Instant, JsonText
from appliance.domain.integrators.integrators import DELIVERY_LIMIT_BYTES

integrator = Table(
    "integrator",
    metadata,
    Column("id", Id, primary_key=True),
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
    Column("tsa", JsonText),
    # Of its frames' messages; null: the setting.
    Column("event_prefix", String(32)),
    # Whether the appliance writes to its signers, after how many days again, and where
    # they sign; null: it does not, never, and its name says where.
    Column("mails_signers", Boolean),
    Column("reminder_days", JsonText),
    Column("sign_url", Text),
    Column("disabled", Instant),
)

api_key = Table(
    "api_key",
    metadata,
    Column("id", String(12), primary_key=True),
    Column("integrator", Id, ForeignKey("integrator.id"), nullable=False),
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
    # What it may do, and from where; null: open sessions, from anywhere.
    Column("scopes", JsonText),
    Column("networks", JsonText),
    # Days before its end of which it was told last.
    Column("expiry_told", Integer),
    Index("ix_api_key_integrator_created", "integrator", "created"),
)

integrator_domain = Table(
    "integrator_domain",
    metadata,
    Column("id", Id, primary_key=True),
    Column("integrator", Id, ForeignKey("integrator.id"), nullable=False),
    Column("origin", String(270), nullable=False),
    Column("created", Instant, nullable=False),
    Column("seen", Instant),
    UniqueConstraint("integrator", "origin"),
)

blocked_origin = Table(
    "blocked_origin",
    metadata,
    Column("integrator", Id, ForeignKey("integrator.id"), primary_key=True),
    Column("origin", String(270), primary_key=True),
    Column("first", Instant, nullable=False),
    Column("last", Instant, nullable=False),
    Column("count", BigInteger, nullable=False),
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
    Column("scope", Id, primary_key=True),
    Column("logo", String(64), ForeignKey("logo.sha256"), nullable=False),
    Column("since", Instant, nullable=False),
)
