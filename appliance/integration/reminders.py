"""Reminding signers, as an integrator's backend asks for it.

Source: docs/integration.md "Remind".
"""

from datetime import timedelta
from typing import Final

from appliance.core.unit_of_work import Database, Transaction
from appliance.domain.audit import AuditEvent
from appliance.domain.clock import Clock
from appliance.domain.errors import REMINDED_TODAY, ApplianceError, ErrorCode
from appliance.domain.ids import ProcessId
from appliance.domain.integrators.integrators import IntegratorCaller
from appliance.domain.mail.mails import MailKind, NewMail
from appliance.domain.requests.request import RequestView
from appliance.domain.vocab import EventKind, RequestState
from appliance.mail.mail_store import MailStore
from appliance.people.person_store import PersonStore
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
            before = await mails.last_reminder(view.id, now)
            if before is not None and before > now - _EVERY:
                last = min(last, before)
                continue
            await mails.add(
                NewMail(view.person, MailKind.REMINDER, now, view.integrator, view.id)
            )
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


async def _is_test(transaction: Transaction, view: RequestView) -> bool:
    """Whether a request is for a test signer."""
    person = await PersonStore(transaction).get(view.person)
    return person is not None and person.is_test
