"""HSM tasks in SQL."""

import hashlib
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from functools import cache
from typing import Any, Final

from sqlalchemy import (
    BindParameter,
    ColumnElement,
    Row,
    Select,
    and_,
    bindparam,
    case,
    delete,
    func,
    insert,
    or_,
    select,
)
from sqlalchemy.sql.dml import ReturningUpdate

from appliance.admission.work_owner import WORK_OWNER, WorkOwner
from appliance.database.tables import hsm_task, task_seal
from appliance.database.types import Instant
from appliance.domain.errors import ApplianceError, ErrorCode
from appliance.domain.ids import PersonId, TaskId
from appliance.domain.signing.activation import Seal
from appliance.domain.signing.hsm_tasks import (
    AskedTask,
    EndedTask,
    TaskClaim,
    TaskStatus,
)
from appliance.domain.vocab import TaskKind, TaskState
from appliance.keys.sealed_key_store import (
    add_seals,
    erase_seals,
    is_sealed,
    seals_of,
)
from appliance.record.leased_queue import LeasedQueue

_OPEN = (TaskState.WAITING.value, TaskState.RUNNING.value)
_URGENT = (TaskKind.PUBLISH.value, TaskKind.REVOKE.value)
"""Taken before all others: documents wait for OCSP answers for seconds only, and who
revokes wants it done. Few at a time, they keep nobody from the rest."""
OPEN_OF_SHARE: Final = 64
"""Tasks of one integrator, person or address that wait or run at a time."""


class HsmTaskStore(LeasedQueue):
    """HSM tasks."""

    table, tries = hsm_task, hsm_task.c.fence

    @classmethod
    def open(cls) -> ColumnElement[bool]:
        """Those that are not over."""
        return hsm_task.c.state.in_(_OPEN)

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

        Raises:
            ApplianceError: `OVERLOADED`: too many of the present call's owner are
                open already.
        """
        share = _share(WORK_OWNER.get())
        turn = await self._open_of(share)
        if share and turn >= OPEN_OF_SHARE:
            raise ApplianceError(ErrorCode.OVERLOADED)
        await self._connection.execute(
            insert(hsm_task).values(
                id=task,
                kind=kind.value,
                person=person,
                input=given,
                state=TaskState.WAITING.value,
                created=at,
                fence=0,
                reason="",
                share=share,
                turn=turn if share else 0,
            )
        )
        await add_seals(self._connection, task_seal, task, seals)

    async def _open_of(self, share: str) -> int:
        """How many tasks of a share are not over yet."""
        query = select(func.count()).where(
            hsm_task.c.share == share, hsm_task.c.state.in_(_OPEN)
        )
        return int((await self._connection.execute(query)).scalar_one())

    async def open_for(self, person: PersonId, kind: TaskKind) -> bool:
        """Whether a task of that kind about a person is not over yet."""
        query = (
            select(hsm_task.c.id)
            .where(
                hsm_task.c.person == person,
                hsm_task.c.kind == kind.value,
                hsm_task.c.state.in_(_OPEN),
            )
            .limit(1)
        )
        return (await self._connection.execute(query)).first() is not None

    async def of_person(self, person: PersonId, kind: TaskKind) -> list[AskedTask]:
        """All tasks of that kind about a person, newest last."""
        rows = await self._connection.execute(
            select(
                hsm_task.c.input,
                hsm_task.c.state,
                hsm_task.c.reason,
                hsm_task.c.created,
            )
            .where(hsm_task.c.person == person, hsm_task.c.kind == kind.value)
            .order_by(hsm_task.c.created, hsm_task.c.id)
        )
        return [
            AskedTask(row.input, TaskState(row.state), row.reason, row.created)
            for row in rows
        ]

    async def seals(self, task: TaskId) -> list[Seal]:
        """What stands sealed for a task, by host."""
        return await seals_of(self._connection, task_seal, task)

    async def status(self, task: TaskId) -> TaskStatus | None:
        """How a task stands."""
        row = (
            await self._connection.execute(
                select(hsm_task.c.state, hsm_task.c.output, hsm_task.c.reason).where(
                    hsm_task.c.id == task
                )
            )
        ).one_or_none()
        if row is None:
            return None
        return TaskStatus(TaskState(row.state), row.output or {}, row.reason)

    async def any_open(
        self, kind: TaskKind, given: Mapping[str, object] | None = None
    ) -> bool:
        """Whether a task of that kind, with that input if any, waits or runs."""
        query = (
            select(hsm_task.c.id)
            .where(hsm_task.c.kind == kind.value, hsm_task.c.state.in_(_OPEN))
            .limit(1)
        )
        if given is not None:
            query = query.where(hsm_task.c.input == given)
        return (await self._connection.execute(query)).first() is not None

    async def failed_by(
        self, kind: TaskKind, reasons: Collection[str], since: datetime
    ) -> list[Mapping[str, object]]:
        """Inputs of tasks of that kind, made since then, that failed for a reason."""
        query = select(hsm_task.c.input).where(
            hsm_task.c.kind == kind.value,
            hsm_task.c.state == TaskState.FAILED.value,
            hsm_task.c.reason.in_(reasons),
            hsm_task.c.created >= since,
        )
        return list((await self._connection.execute(query)).scalars())

    async def any_failed(self, kind: TaskKind, since: datetime) -> bool:
        """Whether a task of that kind, made since then, has failed."""
        query = (
            select(hsm_task.c.id)
            .where(
                hsm_task.c.kind == kind.value,
                hsm_task.c.state == TaskState.FAILED.value,
                hsm_task.c.created >= since,
            )
            .limit(1)
        )
        return (await self._connection.execute(query)).first() is not None

    async def any_claimable(
        self, host: str, at: datetime, attempts: int, kinds: Collection[TaskKind]
    ) -> bool:
        """Whether `claim_next` would find one now."""
        return await self._any(_looking(host, attempts, tuple(kinds)), {"at": at})

    async def claim_next(
        self,
        owner: str,
        host: str,
        at: datetime,
        lease: timedelta,
        attempts: int,
        kinds: Collection[TaskKind],
    ) -> TaskClaim | None:
        """Take a task that nobody has in hand.

        An urgent one, or of those that came after the fewest of their own owner what
        waits longest: a flood comes after everybody else's first ones.
        """
        claiming = _claiming(host, attempts, tuple(kinds))
        row = await self._claim(claiming, owner, at + lease, {"at": at})
        if row is None:
            return None
        seals = await self.seals(row.id)
        seal = next((seal for seal in seals if seal.host == host), None)
        return TaskClaim(TaskId(row.id), TaskKind(row.kind), row.input, row.fence, seal)

    async def close(
        self,
        claim: TaskClaim,
        then: TaskState,
        output: dict[str, object] | None = None,
        reason: str = "",
    ) -> bool:
        """End a task and erase its seals; False when another claim came since."""
        values = {"state": then.value, "output": output, "reason": reason}
        if not await self._fenced(claim, values):
            return False
        await erase_seals(self._connection, task_seal, claim.id)
        return True

    async def expire(
        self, at: datetime, before: datetime, reason: str
    ) -> list[EndedTask]:
        """End the tasks that nobody holds and whose seals nobody can open any more."""
        sealed = is_sealed(task_seal, hsm_task.c.id)
        late = _free(at) & sealed & (hsm_task.c.created <= before)
        return await self._fail(late, reason)

    async def give_up(
        self, at: datetime, attempts: int, reason: str
    ) -> list[EndedTask]:
        """End the tasks that nobody holds and nobody may claim any more."""
        over = (
            (hsm_task.c.state == TaskState.RUNNING.value)
            & (hsm_task.c.lease_until <= at)
            & self.quarantined(attempts)
        )
        return await self._fail(over, reason)

    async def _fail(self, which: ColumnElement[bool], reason: str) -> list[EndedTask]:
        """End tasks that nobody holds, and erase their seals."""
        free = select(hsm_task.c.id).where(which).with_for_update(skip_locked=True)
        values = {"state": TaskState.FAILED.value, "reason": reason}
        rows = await self._fence_off(hsm_task.c.id.in_(free), values)
        failed = [replace(task, fence=task.fence - 1) for task in map(_ended, rows)]
        for task in failed:
            await erase_seals(self._connection, task_seal, task.id)
        return failed

    async def sweep(self, kind: TaskKind, before: datetime) -> int:
        """Delete tasks of a kind that ended and were made before; how many."""
        ended = [TaskState.DONE.value, TaskState.FAILED.value]
        result = await self._connection.execute(
            delete(hsm_task).where(
                hsm_task.c.kind == kind.value,
                hsm_task.c.state.in_(ended),
                hsm_task.c.created < before,
            )
        )
        return result.rowcount


def _share(owner: WorkOwner) -> str:
    """How an owner's share is stored: some are addresses of people."""
    if not owner.share:
        return ""
    return hashlib.sha256(owner.share.encode()).hexdigest()[:32]


def _ended(row: Row[Any]) -> EndedTask:
    person = None if row.person is None else PersonId(row.person)
    return EndedTask(TaskId(row.id), row.fence, person)


def _free(at: datetime | BindParameter[datetime]) -> ColumnElement[bool]:
    """Waiting, or let go of by whoever had it."""
    return or_(
        hsm_task.c.state == TaskState.WAITING.value,
        and_(hsm_task.c.state == TaskState.RUNNING.value, hsm_task.c.lease_until <= at),
    )


@cache
def _looking(host: str, attempts: int, kinds: tuple[TaskKind, ...]) -> Select[Any]:
    return select(hsm_task.c.id).where(_claimable(host, attempts, kinds)).limit(1)


@cache
def _claiming(
    host: str, attempts: int, kinds: tuple[TaskKind, ...]
) -> ReturningUpdate[Any]:
    return HsmTaskStore.claiming(
        _claimable(host, attempts, kinds),
        case((hsm_task.c.kind.in_(_URGENT), -1), else_=hsm_task.c.turn),
        {"state": TaskState.RUNNING.value},
    )


def _claimable(
    host: str, attempts: int, kinds: Collection[TaskKind]
) -> ColumnElement[bool]:
    """Free, not tried too often, and without seals or sealed to this host."""
    at = bindparam("at", type_=Instant())
    free = _free(at) & ~HsmTaskStore.quarantined(attempts)
    possible = hsm_task.c.kind.in_([kind.value for kind in kinds])
    unsealed = ~is_sealed(task_seal, hsm_task.c.id)
    ours = unsealed | is_sealed(task_seal, hsm_task.c.id, host)
    return free & possible & ours
