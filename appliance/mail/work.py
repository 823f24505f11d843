"""What a worker writes of the mails that it sends."""

from collections.abc import Collection
from datetime import datetime, timedelta
from typing import Final

from appliance.domain.audit.record import AuditEvent
from appliance.domain.clock import Clock
from appliance.domain.ids import RequestId
from appliance.domain.mail.mails import (
    AFTER_REQUEST,
    DAYS,
    RECORDED,
    MailClaim,
    MailKind,
    MailState,
)
from appliance.domain.vocab import EventKind
from appliance.mail.mail_store import MailStore
from appliance.mail.notice_store import NoticeStore
from appliance.mail.request_mail_store import RequestMailStore, batch_in, requests_in
from appliance.record.unit_of_work import Database, Transaction
from appliance.requests.request_store import RequestStore

_LEASE: Final = timedelta(minutes=2)
_HOUR: Final = timedelta(hours=1)
_FIRST_REST: Final = timedelta(minutes=1)
_AFTER_IT: Final = timedelta(seconds=10)
"""How long after the try of the mail before it one is looked at again."""
_LONGEST_REST: Final = timedelta(hours=4)
_DOUBLINGS: Final = 9
TRIES: Final = 24
"""After so many in vain, which takes three days, a mail is given up."""
KEPT: Final = timedelta(days=90)
"""How long it is known what became of a mail."""
_NOTICES: Final = "notices"
"""The share of security notices; no integrator's id is a word."""


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

    def now(self) -> datetime:
        """The time."""
        return self._clock.now()

    async def claim_next(self) -> MailClaim | None:
        """Take a mail that is due, of the integrator that had the fewest of late.

        So one's thousand reminders hold up nobody else's invitation.

        Raises:
            ApplianceError: `STORE_UNAVAILABLE`.
        """
        now = self._clock.now()
        async with self._store.read() as transaction:
            shares = await MailStore(transaction).waiting_shares(now, now - _HOUR)
            notices = await NoticeStore(transaction).sent_since(now - _HOUR, now)
        if notices is not None:
            shares[_NOTICES] = notices
        open_shares = {
            share: sent for share, sent in shares.items() if sent < self._per_hour
        }
        if not open_shares:
            return None
        share = min(open_shares, key=lambda each: open_shares[each])
        async with self._store.write() as transaction:
            if share == _NOTICES:
                return await NoticeStore(transaction).claim_next(
                    self._worker, now, _LEASE
                )
            return await MailStore(transaction).claim_of(
                share, self._worker, now, _LEASE
            )

    async def release_own(self) -> None:
        """Let go of what an earlier start of this slot, which is dead, had in hand."""
        async with self._store.write() as transaction:
            now = self._clock.now()
            await MailStore(transaction).release_of(self._worker, now)
            await NoticeStore(transaction).release_of(self._worker, now)

    async def renew(self, claim: MailClaim) -> bool:
        """Prolong the lease of what is in hand; False when another claim came since."""
        async with self._store.write() as transaction:
            store = _store_of(transaction, claim)
            return await store.renew(claim, self._clock.now() + _LEASE)

    async def may_go_from(self, claim: MailClaim) -> datetime | None:
        """From when on a mail may be sent, or is to be looked at again.

        One that follows a request's mail waits until that was handed over, and a
        reminder for its days after it.

        Returns:
            None where the mail before it will not be sent, nor is this one to be.

        Raises:
            ApplianceError: `STORE_UNAVAILABLE`.
        """
        now = self._clock.now()
        if claim.kind not in AFTER_REQUEST or claim.request is None:
            return now
        async with self._store.read() as transaction:
            view = await RequestStore(transaction).get(claim.request)
            if view is None:
                return None
            mails = await RequestMailStore(transaction).to(
                claim.person, view.created, [MailKind.REQUEST]
            )
        about = requests_in(claim.request, claim.detail)
        batch = batch_in(claim.detail) or view.batch
        before = [
            mail for mail in mails if any(mail.tells_of(one, batch) for one in about)
        ]
        if waits := [mail.due for mail in before if mail.is_open]:
            return max(now, *waits) + _AFTER_IT
        handed_over = [at for mail in before if (at := mail.handed_over) is not None]
        if not handed_over:
            return None
        days = claim.detail.get(DAYS, 0)
        return max(handed_over) + timedelta(days=days if isinstance(days, int) else 0)

    async def end(
        self,
        claim: MailClaim,
        state: MailState,
        answer: str = "",
        told: Collection[RequestId] = (),
    ) -> bool:
        """Say what became of a mail for good; False when another claim came since.

        Args:
            claim: the mail.
            state: what.
            answer: of the server.
            told: the requests that it told of.
        """
        async with self._store.write() as transaction:
            store = _store_of(transaction, claim)
            is_ours = await store.end(claim, state, answer, self._clock.now())
            is_recorded = claim.detail.get(RECORDED) is not None
            if is_ours and claim.kind is MailKind.REMINDER and not is_recorded:
                for request in told:
                    transaction.audit.add(
                        AuditEvent(
                            EventKind.REQUEST_REMINDED,
                            "system",
                            integrator=claim.integrator,
                            request=request,
                        )
                    )
            return is_ours

    async def wait(self, claim: MailClaim, until: datetime) -> bool:
        """Have a mail looked at later that is too early; False as `end`."""
        async with self._store.write() as transaction:
            return await MailStore(transaction).postpone(claim, until)

    async def failed(self, claim: MailClaim, answer: str) -> bool:
        """Have a mail tried again, each time after a longer rest, or give it up."""
        if claim.tries + 1 >= TRIES:
            return await self.end(claim, MailState.GIVEN_UP, answer)
        rest = min(_FIRST_REST * 2 ** min(claim.tries, _DOUBLINGS), _LONGEST_REST)
        async with self._store.write() as transaction:
            store = _store_of(transaction, claim)
            return await store.put_off(claim, self._clock.now() + rest, answer)


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
            notices = NoticeStore(transaction)
            await notices.catch_due(now)
            await notices.forget(now - KEPT)
            if not self._is_on:
                await mails.withdraw_due(now)
                await notices.withdraw_due(now)


def _store_of(transaction: Transaction, claim: MailClaim) -> MailStore | NoticeStore:
    """The store of a claim's row."""
    return (NoticeStore if claim.is_notice else MailStore)(transaction)
