"""What a worker writes of the mails that it sends."""

from datetime import timedelta
from typing import Final

from appliance.core.unit_of_work import Database
from appliance.domain.clock import Clock
from appliance.domain.mail.mails import MailClaim, MailState
from appliance.mail.mail_store import MailStore

_LEASE: Final = timedelta(minutes=2)
_HOUR: Final = timedelta(hours=1)
_FIRST_REST: Final = timedelta(minutes=1)
_LONGEST_REST: Final = timedelta(hours=4)
_DOUBLINGS: Final = 9
TRIES: Final = 24
"""After so many in vain, which takes three days, a mail is given up."""
KEPT: Final = timedelta(days=90)
"""How long it is known what became of a mail."""


class MailWork:
    """The use cases of a worker that sends mails.

    Args:
        store: the record.
        clock: the time.
        worker: the worker's slot.
        per_hour: most mails an hour on behalf of one integrator.
    """

    def __init__(
        self, store: Database, clock: Clock, worker: str, per_hour: int
    ) -> None:
        self._store = store
        self._clock = clock
        # With its end, for another slot of this host may begin as it does.
        self._worker = f"{worker}/"
        self._per_hour = per_hour

    async def claim_next(self) -> MailClaim | None:
        """Take a mail that is due, of the integrator that had the fewest of late.

        So one's thousand reminders hold up nobody else's invitation.

        Raises:
            ApplianceError: `STORE_UNAVAILABLE`.
        """
        now = self._clock.now()
        async with self._store.read() as transaction:
            shares = await MailStore(transaction).waiting_shares(now, now - _HOUR)
        open_shares = {
            share: sent for share, sent in shares.items() if sent < self._per_hour
        }
        if not open_shares:
            return None
        share = min(open_shares, key=lambda each: open_shares[each])
        async with self._store.write() as transaction:
            return await MailStore(transaction).claim_of(
                share, self._worker, now, _LEASE
            )

    async def release_own(self) -> None:
        """Let go of what an earlier start of this slot, which is dead, had in hand."""
        async with self._store.write() as transaction:
            await MailStore(transaction).release_of(self._worker, self._clock.now())

    async def renew(self, claim: MailClaim) -> bool:
        """Prolong the lease of what is in hand; False when another claim came since."""
        async with self._store.write() as transaction:
            return await MailStore(transaction).renew(claim, self._clock.now() + _LEASE)

    async def end(self, claim: MailClaim, state: MailState, answer: str = "") -> bool:
        """Say what became of a mail for good; False when another claim came since."""
        async with self._store.write() as transaction:
            return await MailStore(transaction).end(
                claim, state, answer, self._clock.now()
            )

    async def failed(self, claim: MailClaim, answer: str) -> bool:
        """Have a mail tried again, each time after a longer rest, or give it up."""
        if claim.tries + 1 >= TRIES:
            return await self.end(claim, MailState.GIVEN_UP, answer)
        rest = min(_FIRST_REST * 2 ** min(claim.tries, _DOUBLINGS), _LONGEST_REST)
        async with self._store.write() as transaction:
            return await MailStore(transaction).put_off(
                claim, self._clock.now() + rest, answer
            )


class MailUpkeep:
    """What is done with mails beside sending them.

    Args:
        store: the record.
        clock: the time.
        is_on: whether mails are sent.
    """

    def __init__(self, store: Database, clock: Clock, *, is_on: bool) -> None:
        self._store = store
        self._clock = clock
        self._is_on = is_on

    async def run(self) -> None:
        """Keep what is to test signers, and forget what ended long ago.

        Where mail is off, withdraw what else is due.

        Raises:
            ApplianceError: `STORE_UNAVAILABLE`.
        """
        now = self._clock.now()
        async with self._store.write() as transaction:
            mails = MailStore(transaction)
            await mails.catch_due(now)
            await mails.forget(now - KEPT)
            if not self._is_on:
                await mails.withdraw_due(now)
