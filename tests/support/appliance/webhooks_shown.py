"""Webhooks for pages to show: in every state, with what was sent and each attempt."""

from datetime import datetime, timedelta
from typing import Final

from sqlalchemy import insert, update

from appliance.bootstrap import ServiceRegistry
from appliance.database import tables
from appliance.domain.ids import new_id
from appliance.domain.integrators.webhooks import WebhookMessage
from appliance.domain.vocab import MessageState, WebhookEvent
from appliance.webhooks.bodies import body
from appliance.webhooks.endpoints import EndpointChange
from appliance.webhooks.fan_out_store import FanOutStore

_ACTOR: Final = "operator"
_TRIES: Final = (
    (None, "timeout", 15_000, ""),
    (503, "status", 1_204, '{"error":"Service Unavailable","retry":true}' * 8),
    (None, "refused_address", 3, ""),
)
"""Status, failure, milliseconds and answer of each."""


async def show_webhooks(front: ServiceRegistry, code: str) -> tuple[str, str]:
    """Make an integrator three webhooks; one's id, and that of a delivery.

    What was sent is nothing that happened: workers never see it.
    """
    whose = (await front.integrators.get(code)).id
    events = [WebhookEvent.REQUEST_SIGNED, WebhookEvent.REQUEST_REJECTED]
    made = await front.webhooks.create(
        _ACTOR, whose, "https://cobros.estudiosur.example/avisos/rubrica", "", events
    )
    off = await front.webhooks.create(
        _ACTOR, whose, f"https://viejo.estudiosur.example/{'largo-' * 20}", "Viejo"
    )
    await front.webhooks.create(
        _ACTOR, whose, "https://nuevo.estudiosur.example/", "Sistema nuevo de cobros"
    )
    await front.webhooks.change(
        _ACTOR, whose, off.endpoint.id, EndpointChange(is_on=False)
    )
    shown = made.endpoint.id
    await front.webhooks.rotate(_ACTOR, whose, shown)
    now = front.clock.now()
    lost = await _sent(front, shown, MessageState.GIVEN_UP, now - timedelta(days=4))
    await _sent(front, shown, MessageState.DELIVERED, now - timedelta(hours=2))
    await _sent(front, shown, MessageState.WITHDRAWN, now - timedelta(hours=1))
    await _sent(front, shown, MessageState.PENDING, now)
    async with front.core.store.write() as transaction:
        await transaction.connection.execute(
            update(tables.webhook_endpoint)
            .where(tables.webhook_endpoint.c.id == shown)
            .values(failing_since=now - timedelta(days=1))
        )
    return shown, lost


async def _sent(
    front: ServiceRegistry, endpoint: str, state: MessageState, at: datetime
) -> str:
    """A message that was tried, and, if it is pending, is tried in days alone."""
    kind = WebhookEvent.REQUEST_SIGNED
    told = {"procesoId": new_id(), "solicitudId": 4711, "referencia": "recibo-4711"}
    message = WebhookMessage(
        new_id(),
        endpoint,
        None,
        kind,
        None,
        body(kind, at, told),
        at,
        state,
        len(_TRIES),
        at + timedelta(days=3),
    )
    async with front.core.store.write() as transaction:
        await FanOutStore(transaction).add([message])
        for each, (status, failure, took_ms, answer) in enumerate(_TRIES):
            await transaction.connection.execute(
                insert(tables.webhook_attempt).values(
                    message=message.id,
                    at=at + timedelta(minutes=5 * each),
                    status=status,
                    failure=failure,
                    took_ms=took_ms,
                    answer=answer,
                )
            )
    return message.id
