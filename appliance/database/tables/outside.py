"""Material that signing workers, which have no network, want of servers outside."""

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

from appliance.database.tables.base import Id, metadata
from appliance.database.types import Instant, JsonText

# One an activation, or an upkeep, that wants something: the id is theirs.
outside_job = Table(
    "outside_job",
    metadata,
    Column("id", Id, primary_key=True),
    Column("kind", String(16), nullable=False),
    Column("created", Instant, nullable=False),
    # When it is of no more use, and deleted.
    Column("until", Instant, nullable=False),
    Column("lease_owner", Text),
    Column("lease_until", Instant),
    Column("fence", Integer, nullable=False),
    # The fence of the claim under which something of it was last had.
    Column("progress", Integer, nullable=False),
    Index("ix_outside_job_until", "until"),
)

# A signing worker writes what it wants; a chores worker writes what came of it.
outside_material = Table(
    "outside_material",
    metadata,
    Column("job", Id, ForeignKey("outside_job.id"), primary_key=True),
    Column("key", String(64), primary_key=True),
    Column("kind", String(16), nullable=False),
    Column("subject", JsonText, nullable=False),
    Column("required", Boolean, nullable=False),
    Column("code", String(40), nullable=False),
    Column("nonce", BigInteger),
    Column("wanted_at", Instant, nullable=False),
    Column("state", String(16), nullable=False),
    Column("reason", Text, nullable=False),
    # Of a timestamp that was had: the TimeStampToken.
    Column("token", LargeBinary),
    # Of a document timestamp: all that it stamps and that no file has yet.
    Column("draft_base", String(64)),
    Column("draft", JsonText),
    Column("draft_appended", LargeBinary),
    Column("draft_increment", LargeBinary),
    Index("ix_outside_material_job_draft_base", "job", "draft_base"),
)
