"""What of an installation's life integrators are told: of people, keys and sessions."""

import json
from datetime import timedelta

import pytest
from sqlalchemy import insert

from appliance.database.tables import integrator_event
from appliance.domain.audit.record import AuditEvent
from appliance.domain.ids import PersonId, RequestBatchId
from appliance.domain.integrators.integrators import SessionState
from appliance.domain.requests.backend_batch import RequestBatch
from appliance.domain.requests.process import ProcessNote
from appliance.domain.vocab import EventKind
from appliance.integration.batches.events import batch_event
from appliance.integrators.key_expiry import KeyExpiry
from appliance.people.vouch_store import Vouch, VouchStore
from appliance.requests.history_store import HistoryStore
from appliance.signing.expiry import ExpiryJob
from tests.integration.webhooks.webhooks import Webhooks

pytestmark = pytest.mark.storage
URL = "https://backend.example/"


async def _of_people(webhooks: Webhooks, kind: EventKind, *people: PersonId) -> None:
    rest = {"days": 7, "notAfter": "2026-06-01T00:00:00+00:00"}
    async with webhooks.core.store.write() as transaction:
        for person in people:
            detail = {"person": person, **rest}
            transaction.audit.add(AuditEvent(kind, "system", detail=detail))


async def test_who_knows_a_person_is_told_of_them(webhooks: Webhooks) -> None:
    """Whoever asks them to sign, or vouched for them, once each; nobody else."""
    core = webhooks.core
    whose = await core.integrator()
    voucher = await core.add_integrator("avala")
    stranger = await core.add_integrator("nada")
    named = {
        await webhooks.endpoint(URL, whose=each): each
        for each in (whose, voucher, stranger)
    }
    signer = await core.add_signer(credential=False)
    key = await webhooks.api_key(voucher)
    for _ in range(2):
        await core.add_request(signer.person)
    async with core.store.write() as transaction:
        vouch = Vouch(signer.person, voucher, key, "DNI", "Marta", core.now)
        await VouchStore(transaction).add(vouch, core.now)
    await webhooks.hand_on()

    other = await core.add_signer(credential=False)
    await _of_people(webhooks, EventKind.CREDENTIAL_ISSUED, signer.person)
    ending = EventKind.CERTIFICATE_EXPIRING
    await _of_people(webhooks, ending, signer.person, other.person)
    await webhooks.hand_on()

    told = [
        (named[each.endpoint], each.kind, each.request)
        for each in await webhooks.messages()
    ]
    assert sorted(told) == sorted(
        (each, kind, None)
        for each in (whose, voucher)
        for kind in ("firmante.listo", "certificado.por_vencer")
    )
    body = (await webhooks.messages())[-1].body
    assert f'"personaId":"{signer.person}"' in body
    assert '"dias":7' in body


async def test_nobody_is_told_of_certificates_of_the_installation(
    webhooks: Webhooks,
) -> None:
    """They are about no person."""
    await webhooks.endpoint(URL)
    async with webhooks.core.store.write() as transaction:
        transaction.audit.add(
            AuditEvent(
                EventKind.CERTIFICATE_EXPIRING,
                "system",
                detail={"kind": "ca", "days": 7},
            )
        )

    assert await webhooks.hand_on() == 0


async def test_session_of_a_request_is_told_with_it(webhooks: Webhooks) -> None:
    """And is no part of the request's `historia`."""
    await webhooks.endpoint(URL)
    signer = await webhooks.core.add_signer(credential=False)
    request = await webhooks.core.add_request(signer.person)
    await webhooks.happen(EventKind.SESSION_OPENED, request, session="ab12", key="k")
    await webhooks.happen(EventKind.SESSION_COMPLETED, request, session="ab12")
    await webhooks.happen(EventKind.REQUEST_VIEWED, request)
    await webhooks.hand_on()

    made = await webhooks.messages()
    assert [each.kind for each in made] == [
        "sesion.abierta",
        "sesion.completada",
        "solicitud.vista",
    ]
    assert '"sesionId":"ab12"' in made[0].body
    assert "claveId" not in made[0].body
    async with webhooks.core.store.read() as transaction:
        history = await HistoryStore(transaction).of_requests([request])
    assert [each.event for each in history] == [EventKind.REQUEST_VIEWED]
    assert webhooks.core.now - history[0].at == timedelta(0)


async def test_end_of_a_key_is_told_in_time(webhooks: Webhooks) -> None:
    """Once 30, 7 and 1 day before, and when it has come; not in half of its life."""
    core = webhooks.core
    whose = await core.integrator()
    await webhooks.endpoint(URL)
    life = timedelta(days=100)
    key = await webhooks.api_key(whose, expires=core.now + life)
    await webhooks.api_key(whose)
    await webhooks.api_key(whose, expires=core.now + life, revoked=core.now)
    await webhooks.api_key(whose, expires=core.now + life, ends=core.now)
    expiry = KeyExpiry(core.store, core.clock)

    for _ in range(102):
        await expiry.warn()
        core.clock.forward(86_400)
    await webhooks.hand_on()

    told = [json.loads(each.body) for each in await webhooks.messages()]
    assert {each["type"] for each in told} == {"clave.por_vencer"}
    assert {each["data"]["claveId"] for each in told} == {key}
    assert [each["data"]["dias"] for each in told] == [30, 7, 1, 0]


async def test_session_that_is_over_is_told_once(webhooks: Webhooks) -> None:
    """Unless it was completed, went on with a new token, or a signature is made."""
    core = webhooks.core
    await webhooks.endpoint(URL)
    signer = await core.add_signer()
    request = await core.add_request(signer.person)
    busy = await core.add_request(signer.person)
    await core.begin(signer, [busy])
    over = await webhooks.session(wanted=request)
    await webhooks.session(state=SessionState.COMPLETED.value)
    await webhooks.session(state=SessionState.CANCELLED.value)
    await webhooks.session(successor=over)
    await webhooks.session(request=busy)
    sweeping = ExpiryJob(core.store, core.completion_notifier, core.clock)
    await webhooks.hand_on()
    before = len(await webhooks.messages())

    assert await sweeping.expire_sessions() == 0
    core.clock.forward(1800)
    assert await sweeping.expire_sessions() == 1
    assert await sweeping.expire_sessions() == 0
    await webhooks.hand_on()

    (told,) = (await webhooks.messages())[before:]
    assert (told.kind, told.request) == ("sesion.vencida", request)
    assert f'"sesionId":"{over[-24:]}"' in told.body


async def test_event_of_a_later_version_stops_nobody(webhooks: Webhooks) -> None:
    """It is settled, told by nothing; what comes after it is told."""
    await webhooks.endpoint(URL)
    async with webhooks.core.store.write() as transaction:
        await transaction.connection.execute(
            insert(integrator_event).values(
                integrator=await webhooks.core.integrator(),
                event="request.of_another_version",
                at=webhooks.core.now,
                detail={},
                pending=True,
            )
        )
        await transaction.connection.execute(
            insert(integrator_event).values(
                integrator=await webhooks.core.integrator(),
                event=EventKind.API_KEY_EXPIRING.value,
                at=webhooks.core.now,
                detail={"key": "k", "more": 1},
                pending=True,
            )
        )
    await webhooks.happen(EventKind.API_KEY_FLAGGED, key="k", reason="elsewhere")
    assert await webhooks.hand_on() == 3

    ending, message = await webhooks.messages()
    assert json.loads(ending.body)["data"] == {"claveId": "k"}
    assert json.loads(message.body)["data"]["motivo"] == "elsewhere"
    assert await webhooks.pending_events() == 0


async def test_batch_is_told_when_it_is_ready_or_refused(webhooks: Webhooks) -> None:
    """By its id and its reference; of a refused one how many faults, and the first."""
    whose = await webhooks.core.integrator()
    await webhooks.endpoint(URL)
    batch = RequestBatch(
        RequestBatchId("lote"),
        whose,
        webhooks.core.now,
        ProcessNote("k", "recibos"),
        total=3,
    )
    async with webhooks.core.store.write() as transaction:
        for kind, more in (
            (EventKind.BATCH_RECEIVED, {}),
            (EventKind.BATCH_READY, {}),
            (EventKind.BATCH_REFUSED, {"faults": 2, "code": "PDF_MALFORMED"}),
            (EventKind.BATCH_CANCELLED, {"reason": "Era otra"}),
        ):
            transaction.audit.add(batch_event(kind, "system", batch, **more))
    await webhooks.hand_on()

    told = [json.loads(each.body) for each in await webhooks.messages()]

    base = {"loteId": "lote", "referencia": "recibos", "total": 3}
    assert [(each["type"], each["data"]) for each in told] == [
        ("lote.listo", base),
        ("lote.rechazado", {**base, "errores": 2, "codigo": "PDF_MALFORMED"}),
    ]
