"""What chores tell integrators with: messages made of events, and their delivery."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass

from appliance.bootstrap import Core
from appliance.domain.ports import Sealer
from appliance.integrators.event_outbox import EventOutbox, EventTaker
from appliance.requests.endings import Endings
from appliance.webhooks.delivery import WebhookDelivery
from appliance.webhooks.fan_out import WebhookFanOut
from worker.network.guarded_http import GuardedHttp
from worker.network.webhooks import WebhookSender, tls_context


@dataclass(frozen=True, slots=True)
class Telling:
    """What of it others use."""

    delivery: WebhookDelivery
    sender: WebhookSender
    outbox: EventOutbox

    async def hand_on(self) -> None:
        """Make messages of what has happened, and have them sent at once.

        Raises:
            ApplianceError: `STORE_UNAVAILABLE`.
        """
        if await self.outbox.run():
            self.sender.wake()

    async def run(self, stop: asyncio.Event) -> None:
        """Deliver until told to stop.

        Args:
            stop: set when it is to.
        """
        await self.sender.run(stop)


@asynccontextmanager
async def open_telling(
    core: Core, slot: str, sealer: Sealer, takers: Sequence[EventTaker] = ()
) -> AsyncIterator[Telling]:
    """Build it for the chores worker, and close it.

    Args:
        core: open.
        slot: of this worker.
        sealer: with the data key.
        takers: what else is made of events: there is one outbox, for an event is handed
            on once.

    Raises:
        SettingsError: `webhooks.ca_file` cannot be used.
    """
    settings = core.settings.webhooks
    delivery = WebhookDelivery(
        core.store, core.clock, sealer, settings, f"{slot}/{core.process}"
    )
    async with GuardedHttp(
        settings, core.settings.webhook_schemes, tls_context(settings)
    ) as http:
        yield Telling(
            delivery,
            WebhookSender(delivery, http, core.clock, settings),
            EventOutbox(core.store, [Endings(), WebhookFanOut(core.clock), *takers]),
        )
