"""HSM tasks, and who is alive to do them."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime

from appliance.domain.ids import PersonId, TaskId
from appliance.domain.signing.activation import Seal
from appliance.domain.vocab import TaskKind, TaskState


@dataclass(frozen=True, slots=True)
class TaskClaim:
    """A task in the hands of one worker."""

    id: TaskId
    kind: TaskKind
    input: dict[str, object]
    fence: int
    seal: Seal | None = field(repr=False, default=None)
    """What this host may open, of a task that carries an unlock key."""


@dataclass(frozen=True, slots=True)
class EndedTask:
    """A task that is over, for whoever looks what it left."""

    id: TaskId
    fence: int
    """How often it was claimed."""
    person: PersonId | None


@dataclass(frozen=True, slots=True)
class TaskStatus:
    """How a task stands."""

    state: TaskState
    output: dict[str, object]
    reason: str


@dataclass(frozen=True, slots=True)
class AskedTask:
    """A task about a person: what was asked for, and how it stands."""

    given: Mapping[str, object]
    state: TaskState
    reason: str
    """Why it failed: a code, or a phrase for operators; empty for any other."""
    created: datetime

    @property
    def is_open(self) -> bool:
        """Whether it waits or runs."""
        return self.state in {TaskState.WAITING, TaskState.RUNNING}

    @property
    def has_failed(self) -> bool:
        """Whether it ended without what was asked for."""
        return self.state is TaskState.FAILED


@dataclass(frozen=True, slots=True)
class WorkerStatus:
    """What a worker last said of itself."""

    slot: str
    """`<role>/<host>/<n>`, such as `signing/a/1` or `api/a/1`."""
    process: str
    """Id of the process start."""
    at: datetime
    hsm: str
    """`ready`, `unavailable`, `pin`, `left` by an HSM that serves another restore of
    the record, or `none` for a worker without HSM."""
    reason: str
    activation_format: int | None = None
    """Newest format of activations that the process knows; None: the first alone, as
    every process of the version before. The store records this version's."""


def slot_host(slot: str) -> str:
    """The host in a worker's slot, `<kind>/<host>/<n>`; the slot itself if none."""
    parts = slot.split("/")
    return parts[1] if len(parts) > 1 else slot
