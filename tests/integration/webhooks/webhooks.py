"""Endpoints and events of an integrator, and a worker that delivers."""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

from aiohttp.abc import AbstractResolver
from sqlalchemy import insert, select, update

from appliance.database.tables import (
    api_key,
    embed_session,
    integrator_event,
    webhook_attempt,
    webhook_endpoint,
    webhook_message,
)
from appliance.domain.audit.record import AuditEvent
from appliance.domain.ids import IntegratorId, RequestId, new_id
from appliance.domain.integrators.integrators import SESSION_S, SessionState
from appliance.domain.integrators.webhooks import new_secret
from appliance.domain.keys.versioned_secrets import KeyRing
from appliance.domain.vocab import EventKind
from appliance.integrators.event_outbox import EventOutbox, EventTaker
from appliance.requests.endings import Endings
from appliance.secrets.sealed_box import SecretBox
from appliance.settings import WebhookSettings
from appliance.webhooks.delivery import WebhookDelivery
from appliance.webhooks.endpoint_secrets import FORMER, sealed_secret
from appliance.webhooks.fan_out import WebhookFanOut
from tests.support.installation.record import CoreFixture
from worker.network.guarded_http import GuardedHttp
from worker.network.webhooks import WebhookSender, tls_context

SEALER = SecretBox(KeyRing.of(b"d" * 32))


@dataclass
class Webhooks:
    """What a test of delivery steers."""

    core: CoreFixture
    options: dict[str, Any] = field(default_factory=dict)
    resolver: AbstractResolver | None = None
    schemes: tuple[str, ...] = ("http", "https")

    @property
    def settings(self) -> WebhookSettings:
        """Loopback may be told, unless the test says otherwise."""
        told = {"allowed_networks": ["127.0.0.0/8"], "timeout_s": 2, **self.options}
        return WebhookSettings.model_validate(told)

    def delivery(self, owner: str = "chores/h/1/p") -> WebhookDelivery:
        """A worker's transactions."""
        return WebhookDelivery(
            self.core.store, self.core.clock, SEALER, self.settings, owner
        )

    @asynccontextmanager
    async def sender(self, owner: str = "chores/h/1/p") -> AsyncIterator[WebhookSender]:
        """A worker."""
        async with GuardedHttp(
            self.settings, self.schemes, tls_context(self.settings), self.resolver
        ) as http:
            yield WebhookSender(
                self.delivery(owner), http, self.core.clock, self.settings
            )

    async def endpoint(
        self,
        url: str,
        events: Sequence[str] = (),
        *,
        secret: str | None = None,
        whose: IntegratorId | None = None,
        **changes: Any,
    ) -> str:
        """An endpoint of the integrator; its id."""
        made = new_id()
        former = changes.pop("former", None)
        values = {
            "id": made,
            "integrator": whose or await self.core.integrator(),
            "url": url,
            "label": "backend",
            "events": [*events],
            "secret_sealed": sealed_secret(SEALER, made, secret or new_secret()),
            "created": self.core.now,
            **changes,
        }
        if former is not None:
            values["former_secret_sealed"] = sealed_secret(SEALER, made, former, FORMER)
        async with self.core.store.write() as transaction:
            await transaction.connection.execute(
                insert(webhook_endpoint).values(values)
            )
        return made

    async def api_key(self, whose: IntegratorId, **more: Any) -> str:
        """A key of an integrator that nobody can use; its id."""
        made = new_id()[-12:]
        async with self.core.store.write() as transaction:
            await transaction.connection.execute(
                insert(api_key).values(
                    id=made,
                    integrator=whose,
                    label="backend",
                    key_index=made,
                    hint="…",
                    created=self.core.now,
                    **more,
                )
            )
        return made

    async def session(self, **more: Any) -> str:
        """A session of half an hour of the integrator's; its id."""
        made, whose = new_id(), await self.core.integrator()
        values = {
            "id": made,
            "public_id": made[-24:],
            "token_index": made,
            "integrator": whose,
            "api_key": await self.api_key(whose),
            "state": SessionState.OPEN.value,
            "issued": self.core.now,
            "until": self.core.now + timedelta(seconds=SESSION_S),
            **more,
        }
        async with self.core.store.write() as transaction:
            await transaction.connection.execute(insert(embed_session).values(values))
        return made

    async def remove_all(self) -> None:
        """Remove every endpoint."""
        async with self.core.store.write() as transaction:
            await transaction.connection.execute(
                update(webhook_endpoint).values(removed=self.core.now)
            )

    async def change(self, endpoint: str, **values: Any) -> None:
        """Change an endpoint's row."""
        async with self.core.store.write() as transaction:
            await transaction.connection.execute(
                update(webhook_endpoint)
                .where(webhook_endpoint.c.id == endpoint)
                .values(**values)
            )

    async def happen(
        self,
        kind: EventKind,
        request: RequestId | None = None,
        *,
        whose: IntegratorId | None = None,
        **detail: object,
    ) -> None:
        """Have something happen, as a use case records it."""
        whose = whose or await self.core.integrator()
        async with self.core.store.write() as transaction:
            transaction.audit.add(
                AuditEvent(
                    kind, "system", integrator=whose, request=request, detail=detail
                )
            )

    async def hand_on(self) -> int:
        """Make messages of it."""
        takers: list[EventTaker] = [Endings(), WebhookFanOut(self.core.clock)]
        return await EventOutbox(self.core.store, takers).run()

    async def deliver(self) -> int:
        """Try whatever is due, one after another; how many tries."""
        done = 0
        async with self.sender() as sender:
            while (claim := await sender.delivery.claim_next()) is not None:
                await sender.send(claim)
                done += 1
        return done

    # -- rows ------------------------------------------------------------------

    async def messages(self) -> list[Any]:
        """All messages, by what happened."""
        return await self._rows(webhook_message, webhook_message.c.event)

    async def attempts(self) -> list[Any]:
        """All tries, in their order."""
        return await self._rows(webhook_attempt, webhook_attempt.c.id)

    async def endpoint_row(self, endpoint: str) -> Any:
        """An endpoint."""
        rows = await self._rows(webhook_endpoint, webhook_endpoint.c.id)
        (found,) = [row for row in rows if row.id == endpoint]
        return found

    async def pending_events(self) -> int:
        """Events that nobody was told of."""
        rows = await self._rows(integrator_event, integrator_event.c.id)
        return sum(1 for row in rows if row.pending)

    async def _rows(self, table: Any, order: Any) -> list[Any]:
        async with self.core.store.read() as transaction:
            found = await transaction.connection.execute(select(table).order_by(order))
            return list(found)
