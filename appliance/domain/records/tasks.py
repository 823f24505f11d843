"""HSM tasks, and who is alive to do them."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Protocol

from appliance.domain.ids import TaskId
from appliance.domain.vocab import TaskKind, TaskState


@dataclass(frozen=True, slots=True)
class TaskClaim:
    """A task in the hands of one worker."""

    id: TaskId
    kind: TaskKind
    input: dict[str, object]
    fence: int


@dataclass(frozen=True, slots=True)
class TaskStatus:
    """How a task stands."""

    state: TaskState
    output: dict[str, object]
    reason: str


@dataclass(frozen=True, slots=True)
class WorkerStatus:
    """What a worker last said of itself."""

    slot: str
    """`signing/<host>/<n>` or `chores/<host>/<n>`."""
    process: str
    """Id of the process start."""
    at: datetime
    hsm: str
    """`ready`, `unavailable`, `pin`, or `none` for a worker without HSM."""
    reason: str


class TaskRecords(Protocol):
    """HSM tasks."""

    async def add(
        self, task: TaskId, kind: TaskKind, given: dict[str, object], at: datetime
    ) -> None:
        """Record a task, waiting."""
        ...

    async def status(self, task: TaskId) -> TaskStatus | None:
        """How a task stands."""
        ...

    async def any_open(self, kind: TaskKind) -> bool:
        """Whether a task of that kind waits or runs."""
        ...

    async def any_claimable(self, at: datetime, attempts: int) -> bool:
        """Whether `claim_next` would find one now; changes nothing."""
        ...

    async def claim_next(
        self, owner: str, at: datetime, lease: timedelta, attempts: int
    ) -> TaskClaim | None:
        """Take the oldest task that nobody has in hand."""
        ...

    async def renew(self, claim: TaskClaim, until: datetime) -> bool:
        """Prolong the lease; False when another claim came since."""
        ...

    async def release_of(self, owner_prefix: str, at: datetime) -> int:
        """End the leases of a dead process; how many there were."""
        ...

    async def close(
        self,
        claim: TaskClaim,
        then: TaskState,
        output: dict[str, object] | None = None,
        reason: str = "",
    ) -> bool:
        """End a task; False when another claim came since."""
        ...

    async def give_up(
        self, at: datetime, attempts: int, reason: str
    ) -> list[TaskClaim]:
        """End the tasks that nobody holds and nobody may claim any more.

        Args:
            at: now; leases that ended by then hold nothing.
            attempts: claims that a task may have had.
            reason: why, for whoever waits.

        Returns:
            Their last claims, which are fenced off from here on.
        """
        ...


class WorkerRecords(Protocol):
    """Who is alive."""

    async def beat(self, status: WorkerStatus) -> None:
        """Say that a worker is alive and how its HSM is."""
        ...

    async def alive(self, since: datetime) -> list[WorkerStatus]:
        """Workers that said so after `since`."""
        ...
