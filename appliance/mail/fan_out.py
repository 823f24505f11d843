"""What signers are told by mail of their requests, made of integrators' events."""

from collections.abc import Mapping, Sequence
from datetime import timedelta
from itertools import groupby
from typing import Final

from appliance.core.unit_of_work import Transaction
from appliance.domain.clock import Clock
from appliance.domain.ids import IntegratorId, RequestId
from appliance.domain.integrators.events import TellableEvent
from appliance.domain.mail.mails import MailKind, NewMail
from appliance.domain.vocab import EventKind
from appliance.mail.mail_store import MailStore, Recipient

_ASKING: Final = (EventKind.REQUEST_CREATED, EventKind.REQUEST_TURN)


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
        asking, signed = _requests(events, mailing)
        if asking:
            asked = await store.asked(asking, only_tests=self._only_tests)
            await self._ask(store, asked, mailing)
        if signed:
            for told in await store.finished(signed, only_tests=self._only_tests):
                await store.add(self._mail(MailKind.SIGNED, [told]))

    async def _ask(
        self,
        store: MailStore,
        asked: Sequence[Recipient],
        mailing: Mapping[IntegratorId, tuple[int, ...]],
    ) -> None:
        """Tell each signer once of all that waits, and remind them later."""

        def whose(one: Recipient) -> tuple[IntegratorId, str]:
            return one.integrator, one.person

        for (integrator, _), theirs in groupby(sorted(asked, key=whose), whose):
            together = list(theirs)
            await store.add(self._mail(MailKind.REQUEST, together))
            for days in mailing[integrator]:
                await store.add(self._mail(MailKind.REMINDER, together, days))

    def _mail(
        self, kind: MailKind, theirs: Sequence[Recipient], days: int = 0
    ) -> NewMail:
        """A mail about the requests of one signer; more than one are named beside."""
        first, *others = theirs
        return NewMail(
            person=first.person,
            kind=kind,
            due=self._clock.now() + timedelta(days=days),
            integrator=first.integrator,
            request=first.request,
            detail={"also": [one.request for one in others]} if others else {},
        )


def _requests(
    events: Sequence[TellableEvent], mailing: Mapping[IntegratorId, object]
) -> tuple[list[RequestId], list[RequestId]]:
    """Requests that somebody was asked for, and those that were signed."""
    asking: list[RequestId] = []
    signed: list[RequestId] = []
    for event in events:
        if event.request is None or event.integrator not in mailing:
            continue
        if event.event in _ASKING:
            asking.append(event.request)
        elif event.event is EventKind.REQUEST_SIGNED:
            signed.append(event.request)
    return asking, signed
