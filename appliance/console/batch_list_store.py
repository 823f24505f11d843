"""Batches as the console shows them, in SQL that both databases take."""

import uuid

from sqlalchemy import ColumnElement, select

from appliance.database.tables import batch_preparation, integrator, request_batch
from appliance.domain.console.lists import BatchView, RequestFilter
from appliance.domain.errors import error_from_json
from appliance.domain.ids import RequestBatchId
from appliance.record.unit_of_work import Store, Transaction
from appliance.requests.request_batch_store import RequestBatchStore, stored_state

NAMED = 10
"""Batches of one reference, the newest: integrators may use one again."""


class ConsoleBatchStore(Store):
    """Batches of all integrators.

    Args:
        transaction: to read in.
    """

    def __init__(self, transaction: Transaction) -> None:
        super().__init__(transaction)
        self._batches = RequestBatchStore(transaction)

    async def named(self, wanted: RequestFilter) -> tuple[BatchView, ...]:
        """The batch of a filter, or those that its text names whole; newest first.

        Without a text those that are prepared, whose requests no list has yet; with
        filters that ask for requests, none.

        Args:
            wanted: its text is a `loteId`, or what an integrator calls its batches.
        """
        if wanted.batch is not None:
            return await self._those(wanted, request_batch.c.id == wanted.batch)
        text = wanted.text.strip()
        if not text:
            return await self._in_preparation(wanted)
        if (lote := read_batch_id(text)) is not None:
            found = await self._those(wanted, request_batch.c.id == lote)
            if found:
                return found
        return await self._those(wanted, request_batch.c.reference == text)

    async def _in_preparation(self, wanted: RequestFilter) -> tuple[BatchView, ...]:
        of_requests = (wanted.state, wanted.person, wanted.since, wanted.before)
        if any(each is not None for each in of_requests):
            return ()
        # Rows of that table are few: each goes with its batch's preparation.
        open_ones = select(batch_preparation.c.id)
        return await self._those(wanted, request_batch.c.id.in_(open_ones))

    async def _those(
        self, wanted: RequestFilter, which: ColumnElement[bool]
    ) -> tuple[BatchView, ...]:
        query = (
            select(
                request_batch.c.id,
                request_batch.c.reference,
                request_batch.c.created,
                request_batch.c.state,
                request_batch.c.total,
                request_batch.c.examined,
                request_batch.c.faults,
                request_batch.c.reason,
                integrator.c.code,
                integrator.c.name,
            )
            .join(integrator, integrator.c.id == request_batch.c.integrator)
            .where(which)
            .order_by(request_batch.c.created.desc(), request_batch.c.id)
            .limit(NAMED)
        )
        if wanted.integrator:
            query = query.where(integrator.c.code == wanted.integrator)
        rows = (await self._connection.execute(query)).all()
        if not rows:
            return ()
        states = await self._batches.states([RequestBatchId(row.id) for row in rows])
        return tuple(
            BatchView(
                RequestBatchId(row.id),
                row.reference or "",
                row.code,
                row.name,
                row.created,
                states[RequestBatchId(row.id)],
                stored_state(row.state),
                row.total or 0,
                row.examined or 0,
                tuple(error_from_json(each) for each in row.faults or ()),
                row.reason or "",
            )
            for row in rows
        )


def read_batch_id(text: str) -> RequestBatchId | None:
    """Read a `loteId` as people paste it; None for what is none.

    Args:
        text: 36 characters, in either case.
    """
    try:
        found = str(uuid.UUID(text))
    except ValueError:
        return None
    return RequestBatchId(found) if found == text.lower() else None
