"""Makes messages of events: one for each endpoint that wants to be told."""

from collections.abc import Sequence

from appliance.domain.clock import Clock
from appliance.domain.ids import RequestId, new_id
from appliance.domain.integrators.events import TellableEvent
from appliance.domain.integrators.webhooks import WebhookEndpoint, WebhookMessage
from appliance.domain.vocab import MessageState
from appliance.record.unit_of_work import Transaction
from appliance.webhooks.bodies import KINDS, ProcessName, event_body
from appliance.webhooks.fan_out_store import FanOutStore


class WebhookFanOut:
    """An `EventTaker`.

    Args:
        clock: the time.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock

    async def take(
        self, transaction: Transaction, events: Sequence[TellableEvent]
    ) -> None:
        """See `EventTaker`."""
        store = FanOutStore(transaction)
        endpoints = await store.endpoints({each.integrator for each in events})
        told = [
            (endpoint, event)
            for event in events
            if (kind := KINDS.get(event.event)) is not None
            for endpoint in endpoints.get(event.integrator, ())
            if endpoint.wants(kind)
        ]
        if not told:
            return
        about = {event.request for _, event in told if event.request is not None}
        processes = {
            request: ProcessName(*name)
            for request, name in (await store.processes(about)).items()
        }
        await store.add([self._message(*each, processes) for each in told])

    def _message(
        self,
        endpoint: WebhookEndpoint,
        event: TellableEvent,
        processes: dict[RequestId, ProcessName],
    ) -> WebhookMessage:
        now = self._clock.now()
        process = None if event.request is None else processes.get(event.request)
        return WebhookMessage(
            id=new_id(),
            endpoint=endpoint.id,
            event=event.id,
            kind=KINDS[event.event],
            request=event.request,
            body=event_body(event, process),
            created=now,
            state=MessageState.PENDING,
            tries=0,
            due=now,
        )
