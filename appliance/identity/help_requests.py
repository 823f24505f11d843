"""Help for people who cannot sign: they ask, an officer answers, they may withdraw it.

A request says what is missing and nothing else. It has no free text: nobody types a
password into it, and no stranger tells an officer which phone to call. On the public
page the answer is the same whether the data fit somebody or nobody.

A request that came after a right code and one that came without are kept apart, and
shown beside each other: a stranger who knows CUIL and e-mail cannot change what the
signer asked, and a signer who has lost the phone since is heard all the same.
"""

import secrets
from datetime import timedelta
from typing import Final

from appliance.domain.audit.record import AuditEvent
from appliance.domain.clock import Clock
from appliance.domain.errors import ApplianceError, ErrorCode
from appliance.domain.ids import IntegratorId, PersonId, new_id
from appliance.domain.mail.mails import MailKind, NewMail
from appliance.domain.people.help_requests import HelpRequest
from appliance.domain.ports import LookupIndex, Sealer
from appliance.domain.vocab import EventKind, HelpTopic
from appliance.identity.login import email_indexes
from appliance.mail.invitation_mail import LINK
from appliance.mail.mail_store import MailStore
from appliance.people.help_request_store import HelpRequestStore
from appliance.people.person_store import PersonStore
from appliance.record.unit_of_work import Database, Transaction
from appliance.settings import Settings

WITHDRAW: Final = "/retirar/"
"""Path of the page behind the link in the mail, below the page of help."""
_PURPOSE: Final = "help-request"
_CODE_BYTES: Final = 32
_MOST: Final = 5
_WITHIN: Final = timedelta(days=1)
"""How often a person's request of each kind may be opened within a time."""


class HelpRequests:
    """Files and withdraws requests for help; needs no secret but data and lookup keys.

    Args:
        store: the record.
        lookup: finds people by e-mail address, and requests by code.
        sealer: seals links on their way to a mail.
        clock: the time.
        settings: addresses, and whether mail is on.
    """

    def __init__(
        self,
        store: Database,
        lookup: LookupIndex,
        sealer: Sealer,
        clock: Clock,
        settings: Settings,
    ) -> None:
        self._store = store
        self._lookup = lookup
        self._sealer = sealer
        self._clock = clock
        self._url = f"{settings.help_url}{WITHDRAW}"
        self._mail_is_on = settings.mail.is_on

    async def ask(self, cuil: str, email: str, topic: HelpTopic) -> None:
        """File the request of whoever has this CUIL and this address, if anybody has.

        The caller learns nothing of the result: neither whether somebody was found
        nor whether the request counts.

        Args:
            cuil: eleven digits.
            email: as typed.
            topic: what it is about.
        """
        async with self._store.write() as transaction:
            by_cuil = await PersonStore(transaction).by_cuil(cuil)
            by_email = await PersonStore(transaction).by_email_index(
                email_indexes(self._lookup, email)
            )
            if by_cuil is None or by_email is None or by_cuil.id != by_email.id:
                transaction.audit.add(AuditEvent(EventKind.HELP_UNMATCHED, "anonymous"))
                return
            await self._file(transaction, by_cuil.id, topic, None, proven=False)

    async def ask_in_frame(
        self,
        person: PersonId | None,
        topic: HelpTopic,
        integrator: IntegratorId,
        *,
        proven: bool,
    ) -> None:
        """File the request of the person that a session of the frame is about.

        Args:
            person: the session's.
            topic: what it is about.
            integrator: whose frame it is.
            proven: the session has had a right code.

        Raises:
            ApplianceError: `IDENTITY_MISMATCH` for a session that is about nobody
                yet; `RATE_LIMITED` for a person who asked too often today.
        """
        if person is None:
            raise ApplianceError(ErrorCode.IDENTITY_MISMATCH)
        async with self._store.write() as transaction:
            if not await self._file(
                transaction, person, topic, integrator, proven=proven
            ):
                wait_s = int(_WITHIN.total_seconds())
                raise ApplianceError(
                    ErrorCode.RATE_LIMITED, extras={"retryAfter": wait_s}
                )

    async def _file(
        self,
        transaction: Transaction,
        person: PersonId,
        topic: HelpTopic,
        integrator: IntegratorId | None,
        *,
        proven: bool,
    ) -> bool:
        """Open a request, or another in the place of the open one.

        Returns:
            False if they asked too often.
        """
        requests = HelpRequestStore(transaction)
        if await requests.is_open(person, topic, proven=proven):
            return True
        code = secrets.token_urlsafe(_CODE_BYTES)
        row_id = new_id()
        if not await requests.open(
            person,
            row_id,
            topic,
            integrator,
            proven=proven,
            code_index=self._lookup.index(_PURPOSE, code),
            at=self._clock.now(),
            most=_MOST,
            within=_WITHIN,
        ):
            # Of two calls at once with one topic the second finds it open.
            return await requests.is_open(person, topic, proven=proven)
        transaction.audit.add(
            AuditEvent(
                EventKind.HELP_ASKED,
                f"person:{person}" if proven else "anonymous",
                detail={"person": person, "topic": topic.value},
            )
        )
        if self._mail_is_on:
            await self._tell(transaction, person, topic, f"{self._url}{code}")
        return True

    async def _tell(
        self, transaction: Transaction, person: PersonId, topic: HelpTopic, url: str
    ) -> None:
        """Write to the person, with the link that withdraws the request."""
        row = new_id()
        await MailStore(transaction).add(
            NewMail(
                id=row,
                person=person,
                kind=MailKind.HELP_ASKED,
                due=transaction.clock.now(),
                detail={"topic": topic.value},
                link_sealed=self._sealer.seal(
                    url.encode(), table=LINK.table, row=row, column=LINK.column
                ),
            )
        )

    async def is_withdrawable(self, code: str) -> bool:
        """Return whether the code of a link belongs to a request that is open."""
        indexes = self._lookup.indexes(_PURPOSE, code)
        async with self._store.read() as transaction:
            return await HelpRequestStore(transaction).by_code(indexes)

    async def withdraw(self, code: str) -> bool:
        """Withdraw the request of a link; False if there is none, or it is over.

        Args:
            code: of the link.
        """
        indexes = self._lookup.indexes(_PURPOSE, code)
        async with self._store.write() as transaction:
            person = await HelpRequestStore(transaction).withdraw(
                indexes, self._clock.now()
            )
            if person is None:
                return False
            transaction.audit.add(
                AuditEvent(
                    EventKind.HELP_WITHDRAWN, "anonymous", detail={"person": person}
                )
            )
        return True


class HelpDesk:
    """Open requests for help, as officers see and close them.

    Args:
        store: the record.
        clock: the time.
    """

    def __init__(self, store: Database, clock: Clock) -> None:
        self._store = store
        self._clock = clock

    async def of_person(self, person: PersonId) -> list[HelpRequest]:
        """Open requests of a person, the one with a proof first."""
        async with self._store.read() as transaction:
            return await HelpRequestStore(transaction).of_person(person)

    async def newest(self, limit: int) -> list[HelpRequest]:
        """Open requests, newest first."""
        async with self._store.read() as transaction:
            return await HelpRequestStore(transaction).newest(limit)

    async def close(self, actor: str, person: PersonId, request: str) -> bool:
        """Close a person's request; False if it is over already.

        Args:
            actor: the officer.
            person: whose it is.
            request: its id; one that was filed since, or beside it, stays open.
        """
        async with self._store.write() as transaction:
            now = self._clock.now()
            if not await HelpRequestStore(transaction).close(person, request, now):
                return False
            transaction.audit.add(
                AuditEvent(EventKind.HELP_CLOSED, actor, detail={"person": person})
            )
        return True
