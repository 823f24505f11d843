"""What integrators may know of their requests, in SQL; `SqlAudit` writes it."""

from collections.abc import Collection

from sqlalchemy import select

from appliance.core.database.tables import request_event
from appliance.core.unit_of_work import Store
from appliance.domain.ids import RequestId
from appliance.domain.requests.history import RequestEvent
from appliance.domain.vocab import EventKind


class HistoryStore(Store):
    """Events of requests."""

    async def of_requests(self, requests: Collection[RequestId]) -> list[RequestEvent]:
        """What became of those requests, oldest first.

        Requests of before there were such rows have those of later alone.
        """
        rows = await self._connection.execute(
            select(request_event)
            .where(request_event.c.request.in_(requests))
            .order_by(request_event.c.at, request_event.c.id)
        )
        return [
            RequestEvent(
                RequestId(row.request), EventKind(row.event), row.at, row.detail
            )
            for row in rows
        ]
