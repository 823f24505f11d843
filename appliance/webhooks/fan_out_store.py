"""Who is to be told of events, and the messages that are made of them, in SQL."""

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from typing import Any

from sqlalchemy import Row, insert, select

from appliance.database.tables import (
    integrator,
    signature_request,
    signing_process,
    webhook_endpoint,
    webhook_message,
)
from appliance.domain.ids import IntegratorId, ProcessId, RequestId
from appliance.domain.integrators.webhooks import WebhookEndpoint, WebhookMessage
from appliance.record.unit_of_work import Store


class FanOutStore(Store):
    """Endpoints that are on, and messages to them."""

    async def endpoints(
        self, whose: Collection[IntegratorId]
    ) -> Mapping[IntegratorId, Sequence[WebhookEndpoint]]:
        """Endpoints that get messages; of a disabled integrator none do."""
        endpoint = webhook_endpoint.c
        rows = await self._connection.execute(
            select(webhook_endpoint)
            .join(integrator, integrator.c.id == endpoint.integrator)
            .where(
                endpoint.integrator.in_(whose),
                endpoint.disabled.is_(None),
                endpoint.removed.is_(None),
                integrator.c.disabled.is_(None),
            )
            .order_by(endpoint.id)
        )
        found: dict[IntegratorId, list[WebhookEndpoint]] = defaultdict(list)
        for row in rows:
            found[IntegratorId(row.integrator)].append(webhook_endpoint_of(row))
        return found

    async def processes(
        self, requests: Collection[RequestId]
    ) -> Mapping[RequestId, tuple[ProcessId, str | None]]:
        """The process of each request, and its reference."""
        rows = await self._connection.execute(
            select(
                signature_request.c.id,
                signing_process.c.id,
                signing_process.c.reference,
            )
            .join(signing_process, signing_process.c.id == signature_request.c.process)
            .where(signature_request.c.id.in_(requests))
        )
        return {RequestId(one): (ProcessId(of), name) for one, of, name in rows}

    async def add(self, messages: Sequence[WebhookMessage]) -> None:
        """Record messages that are to be sent, one at least."""
        await self._connection.execute(
            insert(webhook_message),
            [
                {
                    "id": each.id,
                    "endpoint": each.endpoint,
                    "event": each.event,
                    "kind": str(each.kind),
                    "request": each.request,
                    "body": each.body,
                    "created": each.created,
                    "state": each.state.value,
                    "tries": each.tries,
                    "due": each.due,
                    "fence": 0,
                }
                for each in messages
            ],
        )


def webhook_endpoint_of(row: Row[Any]) -> WebhookEndpoint:
    """A row of the table as the domain has it."""
    return WebhookEndpoint(
        id=row.id,
        integrator=IntegratorId(row.integrator),
        url=row.url,
        label=row.label,
        events=tuple(row.events),
        created=row.created,
        disabled=row.disabled,
        disabled_reason=row.disabled_reason,
        failing_since=row.failing_since,
        former_until=row.former_until,
        removed=row.removed,
    )
