"""What waits for a worker, in SQL; each count reads an index by state."""

from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import ColumnElement, Table, and_, case, func, or_, select

from appliance.database.tables import (
    activation,
    batch_preparation,
    hsm_task,
    integrator,
    outside_job,
)
from appliance.domain.vocab import ActivationState, TaskState
from appliance.record.unit_of_work import Store


@dataclass(frozen=True, slots=True)
class Backlog:
    """What one queue holds that nobody has in hand."""

    length: int
    oldest: datetime | None
    """When the oldest of it came; None of none."""


_ACTIVATIONS = (
    ActivationState.WAITING.value,
    ActivationState.KEYING.value,
    ActivationState.FINISHING.value,
)
_TASKS = (TaskState.WAITING.value, TaskState.RUNNING.value)


class BacklogStore(Store):
    """What waits for a worker."""

    async def activations(self, at: datetime, *, outside: bool) -> Backlog:
        """Activations that may be claimed, or wait for a TSA or CA."""
        # `outside` is of the version before, which hands whole documents out.
        abroad = or_(
            activation.c.outside,
            select(outside_job.c.id)
            .where(outside_job.c.id == activation.c.id)
            .exists(),
        )
        among = and_(
            activation.c.state.in_(_ACTIVATIONS), abroad if outside else ~abroad
        )
        if outside:
            # Each look at a TSA that is away puts them off: they wait all the same.
            return await self._found(activation, among, activation.c.created)
        return await self._free(activation, among, at)

    async def tasks(self, at: datetime) -> Backlog:
        """HSM tasks that may be claimed."""
        return await self._free(hsm_task, hsm_task.c.state.in_(_TASKS), at)

    async def batches(self, at: datetime) -> Backlog:
        """Batches in preparation that may be claimed, or rest.

        Those of a disabled integrator wait for it alone.
        """
        is_off = select(integrator.c.id).where(
            integrator.c.id == batch_preparation.c.integrator,
            integrator.c.disabled.is_not(None),
        )
        return await self._free(batch_preparation, ~is_off.exists(), at)

    async def _free(
        self, table: Table, among: ColumnElement[bool], at: datetime
    ) -> Backlog:
        """Those that nobody has; each waits since it came, or was given back."""
        lease, created = table.c.lease_until, table.c.created
        since = case((lease > created, lease), else_=created)
        is_free = and_(among, or_(lease.is_(None), lease <= at))
        return await self._found(table, is_free, since)

    async def _found(
        self, table: Table, among: ColumnElement[bool], since: ColumnElement[datetime]
    ) -> Backlog:
        oldest = func.min(since, type_=table.c.created.type)
        query = select(func.count(), oldest).where(among)
        length, first = (await self._connection.execute(query)).one()
        return Backlog(length, first)
