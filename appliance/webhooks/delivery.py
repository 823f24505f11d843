"""What becomes of a message that chores try to deliver.

A try is settled in one transaction: the message, the record of the try, what is known
of the endpoint, and the audit if that gets nothing any more.
"""

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from appliance.domain.audit.record import AuditEvent
from appliance.domain.clock import Clock
from appliance.domain.integrators.webhooks import WebhookAttempt, signed_headers
from appliance.domain.ports import Sealer
from appliance.domain.vocab import (
    DeliveryFailure,
    EventKind,
    MessageState,
    WebhookDisabled,
)
from appliance.record.unit_of_work import Database, Transaction
from appliance.settings import WebhookSettings
from appliance.webhooks.endpoint_secrets import FORMER, opened_secret
from appliance.webhooks.message_queue import (
    NOBODY,
    Full,
    MessageClaim,
    MessageQueue,
)
from appliance.webhooks.schedule import next_try

_LEASE: Final = timedelta(minutes=2)
_FORGOTTEN_AT_ONCE: Final = 1000


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a try came to."""

    at: datetime
    """When it began."""
    took: timedelta
    status: int | None = None
    failure: DeliveryFailure | None = None
    answer: str = ""
    """How the answer's body begins, printable."""
    retry_after: str = ""


class WebhookDelivery:
    """The use cases of a worker that delivers messages.

    Args:
        store: the record.
        clock: the time.
        sealer: with the data key.
        settings: of webhooks.
        owner: `<slot>/<process>` of the worker.
    """

    def __init__(
        self,
        store: Database,
        clock: Clock,
        sealer: Sealer,
        settings: WebhookSettings,
        owner: str,
    ) -> None:
        self._store = store
        self._clock = clock
        self._sealer = sealer
        self._settings = settings
        self._owner = owner

    async def release_own(self) -> int:
        """End the leases of earlier, dead starts of this worker's slot."""
        slot, _, _ = self._owner.rpartition("/")
        async with self._store.write() as transaction:
            return await MessageQueue(transaction).release_of(
                f"{slot}/", self._clock.now()
            )

    async def claim_next(self, full: Full = NOBODY) -> MessageClaim | None:
        """Take a message that is due; most looks take no lock.

        Args:
            full: who has had their share.

        Raises:
            ApplianceError: `STORE_UNAVAILABLE`.
        """
        now = self._clock.now()
        async with self._store.read() as transaction:
            if not await MessageQueue(transaction).any_due(now, full):
                return None
        async with self._store.write() as transaction:
            return await MessageQueue(transaction).claim_next(
                self._owner, now, _LEASE, full
            )

    async def renew(self, claim: MessageClaim) -> bool:
        """Prolong the lease of what is in hand; False when another claim came since."""
        async with self._store.write() as transaction:
            return await MessageQueue(transaction).renew(
                claim, self._clock.now() + _LEASE
            )

    def headers(self, claim: MessageClaim, at: datetime) -> dict[str, str]:
        """What a message is sent with.

        Args:
            claim: of the caller.
            at: of this try.

        Raises:
            ApplianceError: `STORE_UNAVAILABLE`: its secret does not open.
            ValueError: what it opens to is no secret.
        """
        keys = [opened_secret(self._sealer, claim.endpoint, claim.secret_sealed)]
        if claim.former_secret_sealed is not None:
            former = claim.former_secret_sealed
            keys.append(opened_secret(self._sealer, claim.endpoint, former, FORMER))
        signed = signed_headers(claim.id, claim.body.encode(), at, keys)
        return {"Content-Type": "application/json", **signed}

    async def settle(self, claim: MessageClaim, outcome: Outcome) -> bool:
        """Record what a try came to; False when another claim came since.

        Args:
            claim: of the caller.
            outcome: of the try.

        Raises:
            ApplianceError: `STORE_UNAVAILABLE`.
        """
        now = self._clock.now()
        state, due = MessageState.DELIVERED, now
        if outcome.failure is not None:
            again = next_try(claim.tries + 1, now, outcome.retry_after)
            state = MessageState.GIVEN_UP if again is None else MessageState.PENDING
            due = again or now
        async with self._store.write() as transaction:
            queue = MessageQueue(transaction)
            await queue.lock(claim.endpoint)
            if not await queue.ended(claim, state, due):
                return False
            await queue.add_attempt(_attempt(claim, outcome))
            if outcome.failure is None:
                await queue.succeeded(claim.endpoint)
            else:
                await self._failed(transaction, claim, outcome.failure, now)
        return True

    async def _failed(
        self,
        transaction: Transaction,
        claim: MessageClaim,
        failure: DeliveryFailure,
        now: datetime,
    ) -> None:
        """Note that an endpoint fails; disable it where it is to get nothing more."""
        queue = MessageQueue(transaction)
        since = await queue.failed(claim.endpoint, now)
        if failure is DeliveryFailure.GONE:
            reason = WebhookDisabled.GONE
        elif now - since >= timedelta(days=self._settings.disable_days):
            reason = WebhookDisabled.FAILING
        else:
            return
        if await queue.disable(claim.endpoint, reason, now):
            transaction.audit.add(
                AuditEvent(
                    EventKind.WEBHOOK_DISABLED,
                    "system",
                    integrator=claim.integrator,
                    detail={
                        "endpoint": claim.endpoint,
                        "reason": reason.value,
                        "since": since.isoformat(timespec="seconds"),
                    },
                )
            )

    async def withdraw(self) -> int:
        """Withdraw what waits for endpoints that get nothing any more; how many."""
        async with self._store.read() as transaction:
            if not await MessageQueue(transaction).any_stranded():
                return 0
        async with self._store.write() as transaction:
            return await MessageQueue(transaction).withdraw()

    async def forget(self) -> int:
        """Delete what was sent so long ago that it is not kept; how many messages."""
        before = self._clock.now() - timedelta(days=self._settings.kept_days)
        done = 0
        while True:
            async with self._store.write() as transaction:
                gone = await MessageQueue(transaction).forget(
                    before, _FORGOTTEN_AT_ONCE
                )
            done += gone
            if gone < _FORGOTTEN_AT_ONCE:
                return done


def _attempt(claim: MessageClaim, outcome: Outcome) -> WebhookAttempt:
    return WebhookAttempt(
        message=claim.id,
        at=outcome.at,
        status=outcome.status,
        failure=None if outcome.failure is None else outcome.failure.value,
        took_ms=round(outcome.took.total_seconds() * 1000),
        answer=outcome.answer,
    )
