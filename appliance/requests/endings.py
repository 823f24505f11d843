"""That a whole process is signed, or a whole batch over, as its integrator is told.

It follows from the events of single requests, and is recorded in the transaction that
hands on the last of these: once, whoever signed it and whatever died meanwhile, and
after it. Of two who sign the last documents of a batch at once neither sees what the
other does; who hands on their events sees both.

Source: docs/webhooks.md "What arrives".
"""

from collections.abc import Collection, Mapping, Sequence
from typing import Final

from appliance.domain.ids import RequestBatchId, RequestId
from appliance.domain.integrators.events import TellableEvent
from appliance.domain.vocab import EventKind
from appliance.record.unit_of_work import Transaction
from appliance.requests.endings_store import EndingsStore
from appliance.requests.request_batch_store import RequestBatchStore

_ENDING: Final = frozenset(
    {
        EventKind.REQUEST_SIGNED,
        EventKind.REQUEST_REJECTED,
        EventKind.REQUEST_CANCELLED,
        EventKind.REQUEST_EXPIRED,
        EventKind.REQUEST_FAILED,
    }
)
"""After which a request is over."""


class Endings:
    """An `EventTaker`; what it records is handed on after what it was given."""

    async def take(
        self, transaction: Transaction, events: Sequence[TellableEvent]
    ) -> None:
        """See `EventTaker`."""
        ends = {
            each.request: each
            for each in events
            if each.request is not None and each.event in _ENDING
        }
        if not ends:
            return
        store = EndingsStore(transaction)
        taken = [each.id for each in events]
        parts = await store.parts(ends)
        processes = {
            part.process: [
                each.request for each in parts if each.process == part.process
            ]
            for part in parts
        }
        for process in await store.completed(processes, _ENDING, taken):
            last = _last(ends, processes[process])
            await store.add(last, EventKind.REQUEST_COMPLETED, last.detail)
        batches = {part.batch: part.request for part in parts if part.batch is not None}
        for batch in await store.over(batches, _ENDING, taken):
            last = _last(ends, [each.request for each in parts if each.batch == batch])
            detail = await _of_batch(transaction, last, batch)
            await store.add(last, EventKind.BATCH_ENDED, detail)


def _last(
    ends: Mapping[RequestId, TellableEvent], requests: Collection[RequestId]
) -> TellableEvent:
    """What happened last of what ended some requests, one at least."""
    return max((ends[request] for request in requests), key=lambda each: each.id)


async def _of_batch(
    transaction: Transaction, last: TellableEvent, batch: RequestBatchId
) -> dict[str, object]:
    """What is told of a batch that is over."""
    batches = RequestBatchStore(transaction)
    found = await batches.get(last.integrator, batch)
    states = (await batches.states([batch]))[batch]
    return {
        "batch": batch,
        "reference": None if found is None else found.note.reference,
        "total": states.total(),
        "states": {state.value: many for state, many in states.items()},
    }
