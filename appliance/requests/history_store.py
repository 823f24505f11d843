"""What integrators may know of their requests, in SQL; `SqlAudit` writes it."""

from collections.abc import Collection
from typing import Final

from sqlalchemy import select

from appliance.database.tables import integrator_event
from appliance.domain.ids import RequestId
from appliance.domain.requests.history import RequestEvent
from appliance.domain.requests.told_names import EVENT_NAMES
from appliance.domain.vocab import EventKind
from appliance.record.unit_of_work import Store

MOST_EVENTS: Final = 500
"""Events that are told at once."""


class HistoryStore(Store):
    """Events of requests."""

    async def of_requests(self, requests: Collection[RequestId]) -> list[RequestEvent]:
        """What became of those requests, oldest first; of very much the newest.

        Requests of before there were such rows have those of later alone.
        """
        rows = await self._connection.execute(
            select(integrator_event)
            .where(
                integrator_event.c.request.in_(requests),
                integrator_event.c.event.in_([kind.value for kind in EVENT_NAMES]),
            )
            .order_by(integrator_event.c.at.desc(), integrator_event.c.id.desc())
            .limit(MOST_EVENTS)
        )
        told = [
            RequestEvent(
                RequestId(row.request), EventKind(row.event), row.at, row.detail
            )
            for row in rows
        ]
        return told[::-1]
