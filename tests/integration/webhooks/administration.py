"""Integrators' webhooks on the record, and what came of their messages.

admin = WebhookAdministration.of(core)
made = await admin.made(whose)
message = await admin.sent(made.endpoint.id, MessageState.GIVEN_UP)
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from ipaddress import ip_network
from typing import Self

from sqlalchemy import insert, select

from appliance.database import tables
from appliance.domain.ids import IntegratorId, RequestId, new_id
from appliance.domain.integrators.webhooks import WebhookMessage
from appliance.domain.keys.versioned_secrets import KeyRing
from appliance.domain.vocab import MessageState, WebhookEvent
from appliance.record.unit_of_work import Database
from appliance.secrets.sealed_box import SecretBox
from appliance.webhooks.delivery_log import DeliveryLog
from appliance.webhooks.endpoint_address import AddressRules
from appliance.webhooks.endpoint_secrets import FORMER, PRESENT, opened_secret
from appliance.webhooks.endpoints import NewWebhookSecret, WebhookEndpoints
from appliance.webhooks.fan_out_store import FanOutStore
from tests.support.factories.fakes import MovingClock
from tests.support.installation.record import CoreFixture

URL = "https://app.example/rubrica"
OPERATOR = "operator"


@dataclass
class WebhookAdministration:
    """The use cases over one database, and rows that only delivery writes."""

    store: Database
    clock: MovingClock
    sealer: SecretBox
    endpoints: WebhookEndpoints
    log: DeliveryLog

    @classmethod
    def of(
        cls,
        core: CoreFixture,
        schemes: Collection[str] = ("https",),
        networks: Sequence[str] = (),
    ) -> Self:
        """Over a record."""
        sealer = SecretBox(KeyRing.of(b"d" * 32))
        return cls(
            core.store,
            core.clock,
            sealer,
            WebhookEndpoints(
                core.store,
                sealer,
                core.clock,
                AddressRules(schemes, [ip_network(each) for each in networks]),
            ),
            DeliveryLog(core.store, core.clock),
        )

    async def made(
        self, whose: IntegratorId, url: str = URL, label: str = ""
    ) -> NewWebhookSecret:
        """A new endpoint, which is told of everything."""
        return await self.endpoints.create(OPERATOR, whose, url, label)

    async def sent(
        self,
        endpoint: str,
        state: MessageState = MessageState.DELIVERED,
        request: RequestId | None = None,
        kind: WebhookEvent = WebhookEvent.REQUEST_SIGNED,
    ) -> WebhookMessage:
        """A message that was tried once, now; the clock goes on by a second."""
        now = self.clock.now()
        message = WebhookMessage(
            new_id(), endpoint, None, kind, request, '{"a":1}', now, state, 1, now
        )
        async with self.store.write() as transaction:
            await FanOutStore(transaction).add([message])
            await transaction.connection.execute(
                insert(tables.webhook_attempt).values(
                    message=message.id,
                    at=now,
                    status=200 if state is MessageState.DELIVERED else 503,
                    failure=None if state is MessageState.DELIVERED else "status",
                    took_ms=12,
                    answer="ok",
                )
            )
        self.clock.forward(1)
        return message

    async def secrets(self, endpoint: str) -> tuple[str, str | None]:
        """The present secret of an endpoint, and the one before as it is kept."""
        query = select(tables.webhook_endpoint).where(
            tables.webhook_endpoint.c.id == endpoint
        )
        async with self.store.read() as transaction:
            row = (await transaction.connection.execute(query)).one()
        former = row.former_secret_sealed
        return (
            opened_secret(self.sealer, endpoint, row.secret_sealed, PRESENT),
            None
            if former is None
            else opened_secret(self.sealer, endpoint, former, FORMER),
        )
