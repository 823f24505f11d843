"""What integrators may know of, as long as it is pending, in SQL."""

from collections.abc import Sequence
from typing import Any

import structlog
from sqlalchemy import Row, select, update

from appliance.database.tables import integrator_event
from appliance.domain.ids import IntegratorId, RequestId
from appliance.domain.integrators.events import TellableEvent
from appliance.domain.vocab import EventKind
from appliance.record.unit_of_work import Store

_log = structlog.get_logger(__name__)


class PendingEventStore(Store):
    """Pending events."""

    async def any_pending(self) -> bool:
        """Whether there is one; it takes no lock."""
        looking = select(integrator_event.c.id).where(integrator_event.c.pending)
        return (await self._connection.execute(looking.limit(1))).first() is not None

    async def pending(self, limit: int) -> tuple[list[int], list[TellableEvent]]:
        """The oldest pending events, kept from whoever else hands on.

        Another one waits, for an event that it passed over would come after later ones
        of the same request.

        Returns:
            The ids of all, and those of them whose kind this version knows.
        """
        found = await self._connection.execute(
            select(integrator_event)
            .where(integrator_event.c.pending)
            .order_by(integrator_event.c.id)
            .limit(limit)
            .with_for_update()
        )
        rows = found.all()
        events = [event for row in rows if (event := _event(row)) is not None]
        return [row.id for row in rows], events

    async def settle(self, events: Sequence[int]) -> None:
        """Have events pending no more."""
        await self._connection.execute(
            update(integrator_event)
            .where(integrator_event.c.id.in_(events))
            .values(pending=False)
        )


def _event(row: Row[Any]) -> TellableEvent | None:
    """What happened; None: a later version wrote it, and there are no words for it."""
    try:
        kind = EventKind(row.event)
    except ValueError:
        _log.warning("outbox.unknown_event", id=row.id, kind=row.event)
        return None
    return TellableEvent(
        row.id,
        IntegratorId(row.integrator),
        None if row.request is None else RequestId(row.request),
        kind,
        row.at,
        row.detail,
    )
