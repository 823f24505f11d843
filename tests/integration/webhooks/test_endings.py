"""That a whole process or batch is done is told once, after what ended it."""

import asyncio
import json
from collections.abc import Sequence
from typing import Any

import pytest
from sqlalchemy import select, update

from appliance.database.tables import signature_request, signing_process
from appliance.domain.ids import RequestBatchId, RequestId, new_id
from appliance.domain.integrators.events import TellableEvent
from appliance.domain.requests.backend_batch import RequestBatch
from appliance.domain.requests.process import ProcessNote
from appliance.domain.vocab import EventKind, RequestState
from appliance.integrators.event_outbox import EventOutbox, EventTaker
from appliance.record.unit_of_work import Transaction
from appliance.requests.endings import Endings
from appliance.requests.request_batch_store import RequestBatchStore
from appliance.webhooks.fan_out import WebhookFanOut
from tests.integration.webhooks.webhooks import Webhooks

pytestmark = pytest.mark.storage
URL = "https://backend.example/"
SIGNED, CANCELLED = EventKind.REQUEST_SIGNED, EventKind.REQUEST_CANCELLED
COMPLETED, OVER = "solicitud.completada", "lote.terminado"
_STATES = {SIGNED: RequestState.SIGNED, CANCELLED: RequestState.CANCELLED}


async def _end(webhooks: Webhooks, kind: EventKind, *requests: RequestId) -> None:
    """Have requests be over, each with its event, as a use case does it."""
    for request in requests:
        async with webhooks.core.store.write() as transaction:
            await transaction.connection.execute(
                update(signature_request)
                .where(signature_request.c.id == request)
                .values(state=_STATES[kind].value)
            )
        detail: dict[str, Any] = {"sha256": f"{request:064x}", "level": "B-B"}
        await webhooks.happen(kind, request, **(detail if kind is SIGNED else {}))


async def _batch(webhooks: Webhooks, many: int) -> tuple[str, list[RequestId]]:
    """A batch of one person's requests."""
    core, batch = webhooks.core, RequestBatchId(new_id())
    note = ProcessNote(api_key="k" * 12, reference="recibos")
    new = RequestBatch(batch, await core.integrator(), core.now, note)
    async with core.store.write() as transaction:
        await RequestBatchStore(transaction).add(new)
    who = (await core.add_signer()).person
    return batch, [await core.add_request(who, batch=batch) for _ in range(many)]


async def _told(webhooks: Webhooks) -> list[tuple[str, RequestId]]:
    return [(each.kind, each.request) for each in await webhooks.messages()]


async def _begin(webhooks: Webhooks) -> None:
    """An endpoint that wants everything, after what was made for the test."""
    await webhooks.hand_on()
    await webhooks.endpoint(URL)


async def test_all_have_signed_once_the_last_has(webhooks: Webhooks) -> None:
    """After that signature's own event, with what all have signed."""
    core = webhooks.core
    people = [(await core.add_signer()).person for _ in range(2)]
    first, second = await core.add_process(people)
    await _begin(webhooks)

    await _end(webhooks, SIGNED, first)
    await webhooks.hand_on()
    await _end(webhooks, SIGNED, second)
    await webhooks.hand_on()
    await webhooks.hand_on()

    assert await _told(webhooks) == [
        ("solicitud.firmada", first),
        ("solicitud.firmada", second),
        (COMPLETED, second),
    ]
    async with core.store.read() as transaction:
        found = await transaction.connection.execute(select(signing_process.c.id))
        (process,) = found.scalars()
    data = json.loads((await webhooks.messages())[-1].body)["data"]
    assert data == {
        "procesoId": process,
        "solicitudId": second,
        "referencia": None,
        "sha256": f"{second:064x}",
        "nivel": "B-B",
    }


async def test_it_waits_for_an_event_that_is_handed_on_later(
    webhooks: Webhooks, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Both are signed as the first is handed on: it is told after the second."""
    monkeypatch.setattr("appliance.integrators.event_outbox._AT_ONCE", 1)
    core = webhooks.core
    people = [(await core.add_signer()).person for _ in range(2)]
    requests = await core.add_process(people)
    await _begin(webhooks)

    await _end(webhooks, SIGNED, *requests)
    await webhooks.hand_on()

    assert [kind for kind, _ in await _told(webhooks)] == [
        "solicitud.firmada",
        "solicitud.firmada",
        COMPLETED,
    ]


async def test_what_ends_unsigned_is_not_complete(webhooks: Webhooks) -> None:
    """One signed and the other cancelled: nobody is told that all have signed."""
    people = [(await webhooks.core.add_signer()).person for _ in range(2)]
    first, second = await webhooks.core.add_process(people)
    await _begin(webhooks)
    await _end(webhooks, SIGNED, first)
    await _end(webhooks, CANCELLED, second)
    await webhooks.hand_on()

    assert COMPLETED not in dict(await _told(webhooks))


async def test_batch_is_over_once_each_of_it_is(webhooks: Webhooks) -> None:
    """With how many ended in which way; in no order of its own it comes last."""
    batch, requests = await _batch(webhooks, 3)
    _, others = await _batch(webhooks, 1)
    await _begin(webhooks)

    await _end(webhooks, SIGNED, requests[2], requests[0])
    await webhooks.hand_on()
    assert OVER not in dict(await _told(webhooks))
    await _end(webhooks, CANCELLED, requests[1])
    await webhooks.hand_on()
    await webhooks.hand_on()

    told = await _told(webhooks)
    assert told[-2:] == [("solicitud.cancelada", requests[1]), (OVER, requests[1])]
    assert [kind for kind, _ in told].count(OVER) == 1
    assert others[0] not in {request for _, request in told}
    assert json.loads((await webhooks.messages())[-1].body)["data"] == {
        "loteId": batch,
        "referencia": "recibos",
        "total": 3,
        "estados": {"firmada": 2, "cancelada": 1},
    }


class _Killed:
    """A taker whose process dies in the middle of it, the first time."""

    def __init__(self) -> None:
        self.is_dead = False

    async def take(
        self, transaction: Transaction, events: Sequence[TellableEvent]
    ) -> None:
        del transaction, events
        if not self.is_dead:
            self.is_dead = True
            raise KeyboardInterrupt


async def test_death_and_another_host_tell_it_once(webhooks: Webhooks) -> None:
    """Who hands on dies; two others do it at the same time."""
    core = webhooks.core
    _, requests = await _batch(webhooks, 2)
    await _begin(webhooks)
    await _end(webhooks, SIGNED, *requests)
    takers: list[EventTaker] = [Endings(), WebhookFanOut(core.clock)]

    with pytest.raises(KeyboardInterrupt):
        await EventOutbox(core.store, [*takers, _Killed()]).run()
    assert await _told(webhooks) == []
    await asyncio.gather(*(EventOutbox(core.store, takers).run() for _ in range(2)))

    kinds = [kind for kind, _ in await _told(webhooks)]
    assert sorted(kinds) == sorted(
        [OVER, COMPLETED, COMPLETED, "solicitud.firmada", "solicitud.firmada"]
    )
    assert await webhooks.pending_events() == 0
