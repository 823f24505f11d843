"""Workers, and the HSM tasks that they are asked to do."""

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
)

from appliance.database.tables.base import Id, metadata
from appliance.database.types import Instant, JsonText

hsm_task = Table(
    "hsm_task",
    metadata,
    Column("id", Id, primary_key=True),
    Column("kind", String(24), nullable=False),
    Column("person", Id, ForeignKey("person.id")),
    Column("input", JsonText, nullable=False),
    Column("state", String(16), nullable=False),
    Column("created", Instant, nullable=False),
    Column("lease_owner", Text),
    Column("lease_until", Instant),
    Column("fence", Integer, nullable=False),
    Column("output", JsonText),
    Column("reason", Text, nullable=False),
    # When 0.1.0 looked for what its killed tries left on the token; of no more use.
    Column("swept", Instant),
    # Whose share of the HSM it counts in (a hash), and how many of theirs were open
    # when it came: tasks are taken by turns. Defaults are for rows of earlier versions.
    Column("share", String(32), nullable=False, server_default=""),
    Column("turn", Integer, nullable=False, server_default="0"),
    Index("ix_hsm_task_state_lease_until", "state", "lease_until"),
    Index("ix_hsm_task_share_state", "share", "state"),
    Index("ix_hsm_task_person_state", "person", "state"),
    Index("ix_hsm_task_kind_swept_created", "kind", "swept", "created"),
)

task_seal = Table(
    "task_seal",
    metadata,
    Column("task", Id, ForeignKey("hsm_task.id"), primary_key=True),
    Column("host", String(255), primary_key=True),
    Column("epoch", BigInteger, nullable=False),
    Column("sealed", LargeBinary, nullable=False),
)

worker_status = Table(
    "worker_status",
    metadata,
    Column("slot", String(160), primary_key=True),
    Column("process", Id, nullable=False),
    Column("at", Instant, nullable=False),
    Column("hsm", String(16), nullable=False),
    Column("reason", Text, nullable=False),
    # Newest format of activations that the process knows. None: the version before.
    Column("activation_format", Integer),
)
