"""HSM tasks, and who is alive to do them."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Protocol

from appliance.domain.activation import ActivationKey, Seal
from appliance.domain.ids import PersonId, TaskId
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


class TaskRecords(Protocol):
    """HSM tasks."""

    async def add(
        self,
        task: TaskId,
        kind: TaskKind,
        given: dict[str, object],
        at: datetime,
        *,
        person: PersonId | None = None,
        seals: Sequence[Seal] = (),
    ) -> None:
        """Record a task, waiting.

        Args:
            task: its id.
            kind: what is to be done.
            given: what is needed to do it.
            at: now.
            person: whom it is about.
            seals: an unlock key that it needs, once for each host that may do it.
        """
        ...

    async def open_for(self, person: PersonId, kind: TaskKind) -> bool:
        """Whether a task of that kind about a person is not over yet."""
        ...

    async def seals(self, task: TaskId) -> list[Seal]:
        """What stands sealed for a task, by host."""
        ...

    async def status(self, task: TaskId) -> TaskStatus | None:
        """How a task stands."""
        ...

    async def any_open(
        self, kind: TaskKind, given: Mapping[str, object] | None = None
    ) -> bool:
        """Whether a task of that kind, with that input if any, waits or runs."""
        ...

    async def any_failed(self, kind: TaskKind, since: datetime) -> bool:
        """Whether a task of that kind, made since then, has failed."""
        ...

    async def any_claimable(
        self, host: str, at: datetime, attempts: int, kinds: Collection[TaskKind]
    ) -> bool:
        """Whether `claim_next` would find one now; changes nothing."""
        ...

    async def claim_next(
        self,
        owner: str,
        host: str,
        at: datetime,
        lease: timedelta,
        attempts: int,
        kinds: Collection[TaskKind],
    ) -> TaskClaim | None:
        """Take the oldest task of some kinds that nobody has in hand.

        Args:
            owner: of the claim.
            host: one that carries an unlock key must be sealed to it.
            at: now.
            lease: how long the claim holds.
            attempts: claims that a task may have had.
            kinds: which can be done now.
        """
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
        """End a task and erase its seals; False when another claim came since."""
        ...

    async def expire(
        self, at: datetime, before: datetime, reason: str
    ) -> list[EndedTask]:
        """End the tasks that nobody holds and whose seals nobody can open any more.

        Args:
            at: now; leases that ended by then hold nothing.
            before: those with seals that were made by then.
            reason: why, for whoever waits.
        """
        ...

    async def unswept(self, kind: TaskKind, before: datetime) -> list[EndedTask]:
        """Tasks that are over, of whose tries one may have left something.

        Args:
            kind: of task.
            before: those that were made by then.
        """
        ...

    async def swept(self, task: TaskId, at: datetime) -> bool:
        """Mark that what it left was looked for; False if it was before."""
        ...

    async def give_up(
        self, at: datetime, attempts: int, reason: str
    ) -> list[EndedTask]:
        """End the tasks that nobody holds and nobody may claim any more.

        Args:
            at: now; leases that ended by then hold nothing.
            attempts: claims that a task may have had.
            reason: why, for whoever waits.

        Returns:
            Those it was done to; their last claims are fenced off from here on.
        """
        ...

    async def sweep(self, kind: TaskKind, before: datetime) -> int:
        """Delete tasks of a kind that ended and were made before; how many."""
        ...


class WorkerRecords(Protocol):
    """Who is alive."""

    async def beat(self, status: WorkerStatus) -> None:
        """Say that a worker is alive and how its HSM is."""
        ...

    async def leave(self, slot: str, process: str) -> None:
        """Take back what a process said, unless another has its place by now."""
        ...

    async def alive(self, since: datetime) -> list[WorkerStatus]:
        """Workers that said so after `since`."""
        ...


class ActivationKeyRecords(Protocol):
    """What signing hosts publish of their keys."""

    async def publish(self, key: ActivationKey) -> None:
        """Record a key, in the place of an earlier one of that host and epoch."""
        ...

    async def published(self, since: int) -> list[ActivationKey]:
        """Keys of that epoch and later ones, by host and epoch."""
        ...

    async def forget(self, before: int) -> int:
        """Delete keys of epochs before that; how many there were."""
        ...
