"""HSM tasks and workers' heartbeats in SQL."""

from datetime import datetime, timedelta

from sqlalchemy import ColumnElement, and_, delete, insert, or_, select, update
from sqlalchemy.ext.asyncio import AsyncConnection

from appliance.domain.ids import TaskId
from appliance.domain.records.tasks import TaskClaim, TaskStatus, WorkerStatus
from appliance.domain.vocab import TaskKind, TaskState
from appliance.storage.leases import claim_one, fenced_update, release
from appliance.storage.tables import hsm_task, worker_status


class SqlTasks:
    """HSM tasks."""

    def __init__(self, connection: AsyncConnection) -> None:
        self._connection = connection

    async def add(
        self, task: TaskId, kind: TaskKind, given: dict[str, object], at: datetime
    ) -> None:
        """Record a task, waiting."""
        await self._connection.execute(
            insert(hsm_task).values(
                id=task,
                kind=kind.value,
                input=given,
                state=TaskState.WAITING.value,
                created=at,
                fence=0,
                reason="",
            )
        )

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

    async def any_open(self, kind: TaskKind) -> bool:
        """Whether a task of that kind waits or runs."""
        open_states = [TaskState.WAITING.value, TaskState.RUNNING.value]
        query = (
            select(hsm_task.c.id)
            .where(hsm_task.c.kind == kind.value, hsm_task.c.state.in_(open_states))
            .limit(1)
        )
        return (await self._connection.execute(query)).first() is not None

    async def any_claimable(self, at: datetime, attempts: int) -> bool:
        """Whether `claim_next` would find one now."""
        query = select(hsm_task.c.id).where(_claimable(at, attempts)).limit(1)
        return (await self._connection.execute(query)).first() is not None

    async def claim_next(
        self, owner: str, at: datetime, lease: timedelta, attempts: int
    ) -> TaskClaim | None:
        """Take the oldest task that nobody has in hand."""
        row = await claim_one(
            self._connection,
            hsm_task,
            _claimable(at, attempts),
            owner,
            at + lease,
            {"state": TaskState.RUNNING.value},
        )
        if row is None:
            return None
        return TaskClaim(TaskId(row.id), TaskKind(row.kind), row.input, row.fence)

    async def renew(self, claim: TaskClaim, until: datetime) -> bool:
        """Prolong the lease; False when another claim came since."""
        return await fenced_update(
            self._connection, hsm_task, claim.id, claim.fence, {"lease_until": until}
        )

    async def release_of(self, owner_prefix: str, at: datetime) -> int:
        """End the leases of a dead process; how many there were."""
        return await release(self._connection, hsm_task, owner_prefix, at)

    async def close(
        self,
        claim: TaskClaim,
        then: TaskState,
        output: dict[str, object] | None = None,
        reason: str = "",
    ) -> bool:
        """End a task; False when another claim came since."""
        values = {"state": then.value, "output": output, "reason": reason}
        return await fenced_update(
            self._connection, hsm_task, claim.id, claim.fence, values
        )

    async def give_up(
        self, at: datetime, attempts: int, reason: str
    ) -> list[TaskClaim]:
        """End the tasks that nobody holds and nobody may claim any more."""
        over = (
            select(hsm_task.c.id)
            .where(
                hsm_task.c.state == TaskState.RUNNING.value,
                hsm_task.c.lease_until <= at,
                hsm_task.c.fence >= attempts,
            )
            .with_for_update(skip_locked=True)
        )
        # The fencing number goes up, so that a worker that wakes late is refused.
        rows = await self._connection.execute(
            update(hsm_task)
            .where(hsm_task.c.id.in_(over))
            .values(
                state=TaskState.FAILED.value,
                reason=reason,
                fence=hsm_task.c.fence + 1,
            )
            .returning(hsm_task)
        )
        return [
            TaskClaim(TaskId(row.id), TaskKind(row.kind), row.input, row.fence - 1)
            for row in rows
        ]


def _claimable(at: datetime, attempts: int) -> ColumnElement[bool]:
    """Waiting, or let go of by whoever had it."""
    free = or_(
        hsm_task.c.state == TaskState.WAITING.value,
        and_(hsm_task.c.state == TaskState.RUNNING.value, hsm_task.c.lease_until <= at),
    )
    return free & (hsm_task.c.fence < attempts)


class SqlWorkers:
    """Who is alive."""

    def __init__(self, connection: AsyncConnection) -> None:
        self._connection = connection

    async def beat(self, status: WorkerStatus) -> None:
        """Say that a worker is alive and how its HSM is."""
        await self._connection.execute(
            delete(worker_status).where(worker_status.c.slot == status.slot)
        )
        await self._connection.execute(
            insert(worker_status).values(
                slot=status.slot,
                process=status.process,
                at=status.at,
                hsm=status.hsm,
                reason=status.reason,
            )
        )

    async def alive(self, since: datetime) -> list[WorkerStatus]:
        """Workers that said so after `since`."""
        rows = await self._connection.execute(
            select(worker_status)
            .where(worker_status.c.at > since)
            .order_by(worker_status.c.slot)
        )
        return [
            WorkerStatus(row.slot, row.process, row.at, row.hsm, row.reason)
            for row in rows
        ]
