"""What signers are told by mail of their requests, made of integrators' events."""

from collections.abc import Collection, Mapping, Sequence
from datetime import timedelta
from itertools import groupby
from typing import Any, Final

from appliance.domain.clock import Clock
from appliance.domain.ids import IntegratorId, RequestBatchId, RequestId
from appliance.domain.integrators.events import TellableEvent
from appliance.domain.mail.mails import DAYS, MailKind, NewMail
from appliance.domain.vocab import EventKind, RequestState
from appliance.mail.mail_store import MailStore, Recipient
from appliance.mail.request_mail_store import RequestMailStore
from appliance.record.unit_of_work import Transaction
from appliance.requests.request_batch_store import RequestBatchStore
from appliance.requests.request_store import RequestStore

_OVER: Final = {
    EventKind.REQUEST_CANCELLED: MailKind.CANCELLED,
    EventKind.REQUEST_EXPIRED: MailKind.EXPIRED,
}
_ENDINGS: Final = frozenset(
    {
        EventKind.REQUEST_SIGNED,
        EventKind.REQUEST_REJECTED,
        EventKind.REQUEST_CANCELLED,
        EventKind.REQUEST_EXPIRED,
        EventKind.REQUEST_FAILED,
    }
)
"""After these nobody is reminded of a request."""
_REMINDED: Final = frozenset(
    {RequestState.WAITING, RequestState.PENDING, RequestState.IN_PROGRESS}
)
"""States of a request whose signer may still have to be reminded."""
_OF_BATCH: Final = (
    (RequestState.SIGNED, MailKind.SIGNED),
    (RequestState.FAILED, MailKind.SIGNED),
    (RequestState.CANCELLED, MailKind.CANCELLED),
    (RequestState.EXPIRED, MailKind.EXPIRED),
)
"""What is told of a batch that is over, by the first of these that one of it is in.
Whoever rejected all of it knows."""


class MailFanOut:
    """Takes events, and writes to the signers of integrators that want it.

    Args:
        clock: the time.
        only_tests: to test signers alone: no mail is sent, and theirs are read.
    """

    def __init__(self, clock: Clock, *, only_tests: bool = False) -> None:
        self._clock = clock
        self._only_tests = only_tests

    async def take(
        self, transaction: Transaction, events: Sequence[TellableEvent]
    ) -> None:
        """Record the mails that follow from some events.

        Args:
            transaction: in which the events stop being pending.
            events: oldest first; of several integrators.
        """
        store = MailStore(transaction)
        mailing = await store.mailing()
        told = [each for each in events if each.integrator in mailing]
        if asking := [e.request for e in told if e.request and _asks(e)]:
            asked = await store.asked(asking, only_tests=self._only_tests)
            await self._ask(transaction, asked, mailing)
        is_signed = EventKind.REQUEST_SIGNED
        if signed := [e.request for e in told if e.request and e.event is is_signed]:
            for one in await store.finished(signed, only_tests=self._only_tests):
                await store.add(self._mail(MailKind.SIGNED, [one]))
        if ended := [e.request for e in told if e.request and e.event in _ENDINGS]:
            await self._withdraw_reminders(transaction, ended)
        for event, kind in _OVER.items():
            if over := [e.request for e in told if e.request and e.event is event]:
                await self._tell_over(transaction, kind, over)
        for each in told:
            if each.event is EventKind.BATCH_ENDED and each.request is not None:
                await self._tell_of_batch(transaction, each, each.request)

    async def _ask(
        self,
        transaction: Transaction,
        asked: Sequence[Recipient],
        mailing: Mapping[IntegratorId, tuple[int, ...]],
    ) -> None:
        """Tell each signer once of all that waits, or of each batch; remind later."""
        store = MailStore(transaction)
        batches = {each.batch for each in asked if each.batch is not None}
        firsts = await RequestBatchStore(transaction).firsts(batches)
        done = await store.asked_by_mail(firsts.values())
        for together in _together(asked):
            batch = together[0].batch
            # Its events are handed on a part at a time.
            if batch is not None and firsts[batch] in done:
                continue
            first = None if batch is None else firsts[batch]
            await store.add(self._mail(MailKind.REQUEST, together, first))
            for days in mailing[together[0].integrator]:
                await store.add(self._mail(MailKind.REMINDER, together, first, days))

    async def _withdraw_reminders(
        self, transaction: Transaction, ended: Collection[RequestId]
    ) -> None:
        """Withdraw the reminders of which everything they tell of has ended."""
        store, now = MailStore(transaction), self._clock.now()
        known = await store.recipients(ended, only_tests=self._only_tests)
        over: set[str] = set()
        for person in {each.person for each in known}:
            theirs = [each for each in known if each.person == person]
            since = min(each.created for each in theirs)
            mails = await RequestMailStore(transaction).to(
                person, since, [MailKind.REMINDER]
            )
            for mail in mails:
                is_theirs = any(
                    mail.tells_of(each.request, each.batch) for each in theirs
                )
                if mail.is_open and is_theirs:
                    asked = mail.requests
                    if mail.batch is not None:
                        batches = RequestBatchStore(transaction)
                        asked = frozenset(await batches.requests_of(mail.batch, person))
                    views = await RequestStore(transaction).named([*asked])
                    if not any(view.state in _REMINDED for view in views.values()):
                        over.add(mail.id)
        if over:
            await store.withdraw_these(over, now)

    async def _tell_over(
        self, transaction: Transaction, kind: MailKind, over: Collection[RequestId]
    ) -> None:
        """Tell who is asked by mail that it is over; of a batch once all of it is."""
        store = MailStore(transaction)
        known = await store.recipients(over, only_tests=self._only_tests)
        for together in _together([one for one in known if one.batch is None]):
            mails = await RequestMailStore(transaction).to(
                together[0].person,
                min(one.created for one in together),
                [MailKind.REQUEST],
            )
            asked = [
                one
                for one in together
                if any(mail.tells_of(one.request, None) for mail in mails)
            ]
            if asked:
                await store.add(self._mail(kind, asked))

    async def _tell_of_batch(
        self, transaction: Transaction, ended: TellableEvent, last: RequestId
    ) -> None:
        """Tell its signer how a batch ended."""
        store, states = MailStore(transaction), ended.detail.get("states")
        found = await store.recipients([last], only_tests=self._only_tests)
        if not found or found[0].batch is None or not isinstance(states, Mapping):
            return
        kinds = [kind for state, kind in _OF_BATCH if state.value in states]
        firsts = await RequestBatchStore(transaction).firsts([found[0].batch])
        for kind in kinds[:1]:
            await store.add(self._mail(kind, found, firsts[found[0].batch]))

    def _mail(
        self,
        kind: MailKind,
        theirs: Sequence[Recipient],
        first_of_batch: RequestId | None = None,
        days: int = 0,
    ) -> NewMail:
        """A mail about the requests of one signer; more than one are named beside."""
        one, *others = theirs
        detail: dict[str, Any] = {}
        if first_of_batch is not None:
            detail["batch"] = one.batch
        elif others:
            detail["also"] = [each.request for each in others]
        if days:
            detail[DAYS] = days
        return NewMail(
            person=one.person,
            kind=kind,
            due=self._clock.now() + timedelta(days=days),
            integrator=one.integrator,
            request=one.request if first_of_batch is None else first_of_batch,
            detail=detail,
        )


def _together(theirs: Sequence[Recipient]) -> list[list[Recipient]]:
    """What one mail tells of: all of a signer, but each batch by itself."""

    def whose(one: Recipient) -> tuple[IntegratorId, str, RequestBatchId | str]:
        return one.integrator, one.person, one.batch or ""

    return [list(own) for _, own in groupby(sorted(theirs, key=whose), whose)]


def _asks(event: TellableEvent) -> bool:
    """Whether somebody's turn began: one that waits for others is asked by its turn."""
    is_new = event.event is EventKind.REQUEST_CREATED
    return event.event is EventKind.REQUEST_TURN or (
        is_new and "predecessor" not in event.detail
    )
