"""What was sent to an integrator's webhook, and how to have it sent again.

A message that is sent again keeps its id, by which its receiver knows it.

Source: docs/webhooks.md "What was sent", "Send again".
"""

from dataclasses import replace
from datetime import timedelta
from typing import Final

from appliance.domain.audit.record import AuditEvent
from appliance.domain.clock import Clock
from appliance.domain.errors import ApplianceError, ErrorCode
from appliance.domain.ids import IntegratorId
from appliance.domain.integrators.webhook_log import (
    DeliveryFilter,
    LoggedMessage,
    Replayed,
)
from appliance.domain.vocab import EventKind, MessageState
from appliance.record.unit_of_work import Database, Transaction
from appliance.webhooks.endpoints import demand_on, endpoint_of
from appliance.webhooks.log_store import MessageLogStore

REPLAYED_AT_MOST: Final = 1_000
"""Messages that one call has sent again."""

_AHEAD: Final = timedelta(milliseconds=1)
"""By how much a message is due before those that wait for the same endpoint."""


class DeliveryLog:
    """The use cases around what was sent.

    Args:
        store: the record.
        clock: the time.
    """

    def __init__(self, store: Database, clock: Clock) -> None:
        self._store = store
        self._clock = clock

    async def matching(
        self, whose: IntegratorId, endpoint: str, asked: DeliveryFilter
    ) -> list[LoggedMessage]:
        """An endpoint's messages, newest first, each with its last try alone.

        Raises:
            ApplianceError: `WEBHOOK_NOT_FOUND`.
        """
        async with self._store.read() as transaction:
            await endpoint_of(transaction, whose, endpoint)
            return await MessageLogStore(transaction).matching(endpoint, asked)

    async def get(
        self, whose: IntegratorId, endpoint: str, message: str
    ) -> LoggedMessage:
        """One of them, with its newest tries.

        Raises:
            ApplianceError: `WEBHOOK_NOT_FOUND`, `DELIVERY_NOT_FOUND`.
        """
        async with self._store.read() as transaction:
            await endpoint_of(transaction, whose, endpoint)
            return await _message(transaction, endpoint, message)

    async def replay(
        self, actor: str, whose: IntegratorId, endpoint: str, message: str
    ) -> LoggedMessage:
        """Have a message sent again, or a pending one tried now.

        It goes before all that waits for the same endpoint, and before nothing else:
        no integrator's message overtakes another one's by it.

        Args:
            actor: for the audit.
            whose: the endpoint is.
            endpoint: its id.
            message: its id.

        Raises:
            ApplianceError: `WEBHOOK_NOT_FOUND`, `WEBHOOK_DISABLED`,
                `DELIVERY_NOT_FOUND`.
        """
        now = self._clock.now()
        async with self._store.write() as transaction:
            demand_on(await endpoint_of(transaction, whose, endpoint, lock=True))
            log = MessageLogStore(transaction)
            found = await _message(transaction, endpoint, message)
            first = await log.first_due(endpoint, message)
            at = now if first is None else min(now, first - _AHEAD)
            if found.message.state is MessageState.PENDING:
                # One that is put off waits for its time no longer.
                await log.hasten(message, min(at, found.message.due))
            else:
                await log.send_again([message], at)
            _audit(
                transaction, actor, whose, {"endpoint": endpoint, "message": message}
            )
            return await _message(transaction, endpoint, message)

    async def replay_all(
        self, actor: str, whose: IntegratorId, endpoint: str, asked: DeliveryFilter
    ) -> Replayed:
        """Have messages sent again, the oldest first, up to `REPLAYED_AT_MOST`.

        Args:
            actor: for the audit.
            whose: the endpoint is.
            endpoint: its id.
            asked: which ones; those that are pending stay as they are.

        Raises:
            ApplianceError: `WEBHOOK_NOT_FOUND`, `WEBHOOK_DISABLED`.
        """
        # One more shows whether any are left.
        asked = replace(asked, limit=REPLAYED_AT_MOST + 1)
        now = self._clock.now()
        async with self._store.write() as transaction:
            demand_on(await endpoint_of(transaction, whose, endpoint, lock=True))
            log = MessageLogStore(transaction)
            found = await log.settled(endpoint, asked)
            chosen = [message for message, _ in found[:REPLAYED_AT_MOST]]
            if chosen:
                await log.send_again(chosen, now)
                detail: dict[str, object] = {"endpoint": endpoint, "count": len(chosen)}
                _audit(transaction, actor, whose, detail)
        left = found[REPLAYED_AT_MOST:]
        return Replayed(len(chosen), left[0][1] if left else None)


async def _message(
    transaction: Transaction, endpoint: str, message: str
) -> LoggedMessage:
    """A message of an endpoint.

    Raises:
        ApplianceError: `DELIVERY_NOT_FOUND`.
    """
    found = await MessageLogStore(transaction).get(endpoint, message)
    if found is None:
        raise ApplianceError(ErrorCode.DELIVERY_NOT_FOUND)
    return found


def _audit(
    transaction: Transaction,
    actor: str,
    whose: IntegratorId,
    detail: dict[str, object],
) -> None:
    transaction.audit.add(
        AuditEvent(EventKind.WEBHOOK_REPLAYED, actor, integrator=whose, detail=detail)
    )
