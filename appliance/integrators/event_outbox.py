"""What integrators may know of, on its way out: to webhooks, to mail.

`SqlAudit` writes each event in the transaction of what happened, as pending. Chores
hand it to whoever makes something of it to send, once, in one transaction with that:
an event that was committed is never lost and never taken twice.
"""

from collections.abc import Sequence
from typing import Final, Protocol

from appliance.domain.integrators.events import TellableEvent
from appliance.integrators.event_store import PendingEventStore
from appliance.record.unit_of_work import Database, Transaction

_AT_ONCE: Final = 200
"""Events that one transaction hands on."""


class EventTaker(Protocol):
    """Makes of events what is to be sent."""

    async def take(
        self, transaction: Transaction, events: Sequence[TellableEvent]
    ) -> None:
        """Record what is to be sent of some events.

        Args:
            transaction: in which they stop being pending.
            events: oldest first; of several integrators.
        """


class EventOutbox:
    """Hands pending events on.

    Args:
        store: the record.
        takers: get every event, each once.
    """

    def __init__(self, store: Database, takers: Sequence[EventTaker]) -> None:
        self._store = store
        self._takers = takers

    async def run(self) -> int:
        """Hand on what is pending; how many events. Most looks take no lock.

        Raises:
            ApplianceError: `STORE_UNAVAILABLE`.
        """
        done = 0
        async with self._store.read() as transaction:
            if not await PendingEventStore(transaction).any_pending():
                return done
        # Also what the takers recorded: events that follow from those.
        while handed := await self._hand_on():
            done += handed
        return done

    async def _hand_on(self) -> int:
        """Hand on the oldest ones; how many there were."""
        async with self._store.write() as transaction:
            outbox = PendingEventStore(transaction)
            ids, events = await outbox.pending(_AT_ONCE)
            if events:
                for taker in self._takers:
                    await taker.take(transaction, events)
            if ids:
                await outbox.settle(ids)
        return len(ids)
