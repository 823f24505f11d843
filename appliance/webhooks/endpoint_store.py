"""Integrators' webhooks in SQL: where they want to be told, and by which secret."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from sqlalchemy import Select, func, insert, select, update

from appliance.database.tables import webhook_endpoint, webhook_message
from appliance.domain.ids import IntegratorId
from appliance.domain.integrators.webhooks import WebhookEndpoint
from appliance.domain.vocab import MessageState
from appliance.record.unit_of_work import Store
from appliance.webhooks.fan_out_store import webhook_endpoint_of


class EndpointStore(Store):
    """Endpoints of one integrator; those of another are as absent as removed ones."""

    async def of(
        self, whose: IntegratorId, *, lock: bool = False
    ) -> list[WebhookEndpoint]:
        """An integrator's endpoints, oldest first.

        Args:
            whose: they are.
            lock: keep them from others until this transaction ends.
        """
        query = _those_of(whose).order_by(
            webhook_endpoint.c.created, webhook_endpoint.c.id
        )
        rows = await self._connection.execute(
            query.with_for_update(key_share=True) if lock else query
        )
        return [webhook_endpoint_of(row) for row in rows]

    async def get(
        self, whose: IntegratorId, endpoint: str, *, lock: bool = False
    ) -> WebhookEndpoint | None:
        """One of them.

        Args:
            whose: it is.
            endpoint: its id.
            lock: keep it from others until this transaction ends.
        """
        query = _those_of(whose).where(webhook_endpoint.c.id == endpoint)
        found = await self._connection.execute(
            query.with_for_update(key_share=True) if lock else query
        )
        row = found.first()
        return None if row is None else webhook_endpoint_of(row)

    async def add(self, new: WebhookEndpoint, secret_sealed: bytes) -> None:
        """Record one."""
        await self._connection.execute(
            insert(webhook_endpoint).values(
                id=new.id,
                integrator=new.integrator,
                url=new.url,
                label=new.label,
                events=[*new.events],
                secret_sealed=secret_sealed,
                created=new.created,
            )
        )

    async def change(self, changed: WebhookEndpoint) -> None:
        """Write what may change of one, but for its secrets."""
        await self._connection.execute(
            update(webhook_endpoint)
            .where(webhook_endpoint.c.id == changed.id)
            .values(
                url=changed.url,
                label=changed.label,
                events=[*changed.events],
                disabled=changed.disabled,
                disabled_reason=changed.disabled_reason,
                failing_since=changed.failing_since,
                removed=changed.removed,
            )
        )

    async def secret(self, endpoint: str) -> bytes:
        """The present secret of one that is there, sealed."""
        found = await self._connection.execute(
            select(webhook_endpoint.c.secret_sealed).where(
                webhook_endpoint.c.id == endpoint
            )
        )
        sealed: bytes = found.scalar_one()
        return sealed

    async def replace_secret(
        self, endpoint: str, present: bytes, former: bytes | None, until: datetime
    ) -> None:
        """Sign by another secret from now on.

        Args:
            endpoint: whose.
            present: the new one, sealed.
            former: the one before, sealed for its column; None: it signs no more.
            until: how long the former one signs.
        """
        await self._connection.execute(
            update(webhook_endpoint)
            .where(webhook_endpoint.c.id == endpoint)
            .values(
                secret_sealed=present, former_secret_sealed=former, former_until=until
            )
        )

    async def withdraw(self, endpoint: str) -> None:
        """Send nothing more of what is pending."""
        await self._connection.execute(
            update(webhook_message)
            .where(
                webhook_message.c.endpoint == endpoint,
                webhook_message.c.state == MessageState.PENDING,
            )
            .values(state=MessageState.WITHDRAWN)
        )

    async def pending(self, whose: IntegratorId) -> Mapping[str, int]:
        """How many messages are to be sent to each of an integrator's endpoints."""
        rows = await self._connection.execute(
            select(webhook_message.c.endpoint, func.count().label("messages"))
            .join(webhook_endpoint, webhook_endpoint.c.id == webhook_message.c.endpoint)
            .where(
                webhook_endpoint.c.integrator == whose,
                webhook_message.c.state == MessageState.PENDING,
            )
            .group_by(webhook_message.c.endpoint)
        )
        return {row.endpoint: row.messages for row in rows}


def _those_of(whose: IntegratorId) -> Select[Any]:
    return select(webhook_endpoint).where(
        webhook_endpoint.c.integrator == whose, webhook_endpoint.c.removed.is_(None)
    )
