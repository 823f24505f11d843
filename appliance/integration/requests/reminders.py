"""Reminding signers, as an integrator's backend asks for it.

Source: docs/integration.md "Remind".
"""

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Final

from appliance.domain.audit.record import AuditEvent
from appliance.domain.clock import Clock
from appliance.domain.errors import REMINDED_TODAY, ApplianceError, ErrorCode
from appliance.domain.ids import ProcessId
from appliance.domain.integrators.integrators import IntegratorCaller
from appliance.domain.mail.mails import ASKS, DAYS, RECORDED, MailKind, NewMail
from appliance.domain.requests.request import RequestView
from appliance.domain.vocab import EventKind, RequestState
from appliance.mail.mail_store import MailStore
from appliance.mail.request_mail_store import RequestMail, RequestMailStore
from appliance.people.person_store import PersonStore
from appliance.record.unit_of_work import Database, Transaction
from appliance.requests.process_store import ProcessStore
from appliance.requests.request_store import RequestStore

_EVERY: Final = timedelta(days=1)


class BackendReminders:
    """Puts reminders to those whose turn it is into the outbox.

    Args:
        store: the record.
        clock: the time.
        is_on: whether mails are sent.
    """

    def __init__(self, store: Database, clock: Clock, *, is_on: bool) -> None:
        self._store = store
        self._clock = clock
        self._is_on = is_on

    async def remind(
        self, asking: IntegratorCaller, wanted: ProcessId
    ) -> list[RequestView]:
        """Write to those whose turn it is, each once a day at most.

        Args:
            asking: who.
            wanted: which process.

        Returns:
            The requests whose signers are written to, one at least.

        Raises:
            ApplianceError: `MAIL_OFF`; `SOLICITUD_NOT_FOUND`; `STATE` where nobody's
                signature is waited for; `RATE_LIMITED` where all have been reminded
                within a day.
        """
        async with self._store.write() as transaction:
            process = await ProcessStore(transaction).get(asking.integrator.id, wanted)
            if process is None:
                raise ApplianceError(ErrorCode.SOLICITUD_NOT_FOUND)
            if not asking.integrator.mails_signers:
                raise ApplianceError(ErrorCode.MAIL_OFF)
            waiting = await self._held(transaction, process.requests)
            if not self._is_on:
                # Those to test signers need no server.
                waiting = [
                    view for view in waiting if await _is_test(transaction, view)
                ]
                if not waiting:
                    raise ApplianceError(ErrorCode.MAIL_OFF)
            if not waiting:
                state = process.deciding.state.value
                raise ApplianceError(ErrorCode.STATE, params={"estado": state})
            return await self._remind(transaction, asking, waiting)

    async def _held(
        self, transaction: Transaction, requests: tuple[RequestView, ...]
    ) -> list[RequestView]:
        """Those that wait for their signer, kept from others."""
        now = self._clock.now()
        held = [
            await RequestStore(transaction).get(view.id, lock=True)
            for view in requests
            if view.state is RequestState.PENDING
        ]
        return [
            view
            for view in held
            if view is not None
            and view.state is RequestState.PENDING
            and (view.expires is None or view.expires > now)
        ]

    async def _remind(
        self,
        transaction: Transaction,
        asking: IntegratorCaller,
        waiting: list[RequestView],
    ) -> list[RequestView]:
        """Write to those who were not reminded of late.

        Raises:
            ApplianceError: `RATE_LIMITED`: all were.
        """
        now, mails = self._clock.now(), MailStore(transaction)
        reminded: list[RequestView] = []
        last = now
        for view in waiting:
            before = [
                mail
                for mail in await RequestMailStore(transaction).to(
                    view.person, view.created, ASKS
                )
                if mail.tells_of(view.id, view.batch)
            ]
            latest = max(
                (at for mail in before if (at := _reminded(mail, now))), default=None
            )
            if latest is not None and latest > now - _EVERY:
                last = min(last, latest)
                continue
            await mails.add(_reminder(view, before, now))
            transaction.audit.add(
                AuditEvent(
                    EventKind.REQUEST_REMINDED,
                    asking.actor,
                    integrator=view.integrator,
                    request=view.id,
                )
            )
            reminded.append(view)
        if not reminded:
            wait_s = round((last + _EVERY - now).total_seconds())
            raise ApplianceError(
                ErrorCode.RATE_LIMITED,
                extras={"retryAfter": max(wait_s, 1)},
                sentence=REMINDED_TODAY,
            )
        return reminded


def _reminded(mail: RequestMail, now: datetime) -> datetime | None:
    """When a mail reminded somebody, or does; None: it does not, or later."""
    is_asked_for = RECORDED in mail.detail
    is_alive = mail.is_open or mail.handed_over is not None
    if not is_alive or not (is_asked_for or mail.kind is MailKind.REMINDER):
        return None
    at = mail.made if is_asked_for else mail.due
    return at if at <= now else None


def _reminder(
    view: RequestView, before: Sequence[RequestMail], now: datetime
) -> NewMail:
    """What somebody is written: who was never asked is asked, not reminded.

    While the request's own mail waits to be sent, a reminder comes a day after it.
    """
    asks = [mail for mail in before if mail.kind is MailKind.REQUEST]
    is_asked = any(mail.handed_over is not None for mail in asks)
    waits = any(mail.is_open for mail in asks)
    return NewMail(
        view.person,
        MailKind.REMINDER if is_asked or waits else MailKind.REQUEST,
        now,
        view.integrator,
        view.id,
        {RECORDED: True, **({} if is_asked or not waits else {DAYS: _EVERY.days})},
    )


async def _is_test(transaction: Transaction, view: RequestView) -> bool:
    """Whether a request is for a test signer."""
    person = await PersonStore(transaction).get(view.person)
    return person is not None and person.is_test
