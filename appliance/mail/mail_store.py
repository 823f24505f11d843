"""Mails in SQL: written with what they tell of, claimed by who sends them."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final

from sqlalchemy import (
    ColumnElement,
    Row,
    Select,
    and_,
    bindparam,
    delete,
    exists,
    func,
    insert,
    or_,
    select,
    update,
)

from appliance.database.tables import integrator, mail_message, signature_request
from appliance.domain.ids import (
    IntegratorId,
    PersonId,
    ProcessId,
    RequestBatchId,
    RequestId,
)
from appliance.domain.mail.mails import (
    MailClaim,
    MailKind,
    MailState,
    MailView,
    NewMail,
)
from appliance.domain.requests.intake import FRAME_ORIGIN
from appliance.domain.requests.request import RequestView
from appliance.domain.vocab import RequestState
from appliance.mail.request_mail_store import APART, request_mail
from appliance.people.signer_for_tests_store import is_made_up
from appliance.record.leased_queue import LeasedQueue

_PENDING: Final = MailState.PENDING.value
_SHARE: Final = func.coalesce(mail_message.c.integrator, "")
_VIEW: Final = [
    mail_message.c[name]
    for name in (
        "id",
        "person",
        "request",
        "kind",
        "state",
        "tries",
        "answer",
        "created",
        "due",
        "ended",
    )
]
_TO_MADE_UP: Final = is_made_up(mail_message.c.person)
"""Those to test signers, which no server is handed."""
_LOOKED_THROUGH: Final = 200
"""Mails to a signer since a request was made, among which those that name it are."""
OWN: Final = ""
"""The share of mails on nobody's behalf but the installation's."""


_OWN: Final = signature_request.alias("own")
_RECIPIENT: Final = tuple(
    _OWN.c[name] for name in ("integrator", "person", "id", "batch", "created")
)


@dataclass(frozen=True, slots=True)
class Recipient:
    """Whom a request is for."""

    integrator: IntegratorId
    person: PersonId
    request: RequestId
    batch: RequestBatchId | None
    """What it was asked for with, where it is one of many."""
    created: datetime
    """When it was asked for."""


class MailStore(LeasedQueue):
    """Mails."""

    table, tries = mail_message, mail_message.c.tries

    @classmethod
    def open(cls) -> ColumnElement[bool]:
        """Those that are still to be sent."""
        return mail_message.c.state == _PENDING

    async def add(self, new: NewMail) -> None:
        """Have a mail sent, once this transaction is committed."""
        await self._connection.execute(
            insert(mail_message).values(
                id=new.id,
                integrator=new.integrator,
                person=new.person,
                request=new.request,
                kind=new.kind.value,
                detail=dict(new.detail),
                link_sealed=new.link_sealed,
                state=_PENDING,
                answer="",
                tries=0,
                due=new.due,
                created=self._clock.now(),
                fence=0,
            )
        )

    async def withdraw(self, person: PersonId, kind: MailKind) -> None:
        """Have somebody's mails of one kind not sent any more."""
        await self._connection.execute(
            update(mail_message)
            .where(
                mail_message.c.person == person,
                mail_message.c.kind == kind.value,
                self.open(),
            )
            .values(
                state=MailState.WITHDRAWN.value,
                ended=self._clock.now(),
                link_sealed=None,
            )
        )

    async def withdraw_these(self, mails: Collection[str], at: datetime) -> None:
        """Withdraw mails that are still to be sent and that no sender has in progress.

        Args:
            mails: their ids.
            at: the time.
        """
        await self._connection.execute(
            update(mail_message)
            .where(mail_message.c.id.in_(mails), self.open(), self.unheld(at))
            .values(state=MailState.WITHDRAWN.value, ended=at, link_sealed=None)
        )

    async def withdraw_due(self, at: datetime) -> int:
        """Have nothing sent that is due; how many there were."""
        result = await self._connection.execute(
            update(mail_message)
            .where(self.open(), mail_message.c.due <= at)
            .values(state=MailState.WITHDRAWN.value, ended=at, link_sealed=None)
        )
        return result.rowcount

    async def catch_due(self, at: datetime) -> int:
        """Keep what is due and to a test signer; how many there were.

        Of reminders those whose document was signed meanwhile are withdrawn.
        """
        due = (self.open(), mail_message.c.due <= at, _TO_MADE_UP)
        waits = exists().where(
            signature_request.c.id == mail_message.c.request,
            signature_request.c.state == RequestState.PENDING.value,
        )
        reminds = mail_message.c.kind == MailKind.REMINDER.value
        await self._connection.execute(
            update(mail_message)
            .where(*due, reminds, ~waits)
            .values(state=MailState.WITHDRAWN.value, ended=at, link_sealed=None)
        )
        result = await self._connection.execute(
            update(mail_message)
            .where(*due)
            .values(state=MailState.CAUGHT.value, ended=at)
        )
        return result.rowcount

    async def caught(
        self, person: PersonId, at: datetime, limit: int
    ) -> list[MailClaim]:
        """What a test signer was written, newest first, as if it were in hand.

        Args:
            person: the test signer.
            at: the time; what is due later is not there yet.
            limit: how many.
        """
        is_there = or_(
            mail_message.c.state == MailState.CAUGHT.value,
            # Not yet looked at; a reminder may turn out to be over.
            and_(self.open(), mail_message.c.kind != MailKind.REMINDER.value),
        )
        newest = (
            select(*_VIEW, mail_message.c.integrator, mail_message.c.detail)
            .where(mail_message.c.person == person, mail_message.c.due <= at, is_there)
            .order_by(mail_message.c.due.desc(), mail_message.c.id.desc())
            .limit(limit)
        )
        rows = await self._connection.execute(newest)
        return [
            MailClaim(
                id=row.id,
                fence=0,
                person=PersonId(row.person),
                integrator=row.integrator and IntegratorId(row.integrator),
                request=None if row.request is None else RequestId(row.request),
                kind=MailKind(row.kind),
                detail=row.detail,
                link_sealed=None,
                tries=row.tries,
                created=row.created,
                due=row.due,
            )
            for row in rows
        ]

    async def forget(self, before: datetime) -> int:
        """Delete what ended before a time; how many there were.

        That somebody was asked is known as long as they may sign: what follows depends
        on it.
        """
        waits = exists().where(
            mail_message.c.kind == MailKind.REQUEST.value,
            signature_request.c.id == mail_message.c.request,
            signature_request.c.state.in_(
                [RequestState.PENDING.value, RequestState.IN_PROGRESS.value]
            ),
        )
        result = await self._connection.execute(
            delete(mail_message).where(mail_message.c.ended < before, ~waits)
        )
        return result.rowcount

    async def of_process(self, process: ProcessId) -> list[MailView]:
        """Mails about the requests of a process, oldest first."""
        return await self._views(
            select(*_VIEW)
            .join(signature_request, signature_request.c.id == mail_message.c.request)
            .where(signature_request.c.process == process)
        )

    async def of_request(
        self, view: RequestView, first: RequestId | None
    ) -> list[MailView]:
        """Mails about a request, by itself or with others of its signer, oldest first.

        Args:
            view: the request.
            first: of its batch, whose mails name that one; None: it is of none.
        """
        named = {view.id, view.id if first is None else first}
        # One that names others beside the first follows soon after they were made.
        theirs = (
            select(mail_message.c.id)
            .where(
                mail_message.c.person == view.person,
                mail_message.c.created >= view.created - APART,
            )
            .order_by(mail_message.c.created, mail_message.c.id)
            .limit(_LOOKED_THROUGH)
        )
        found: dict[str, MailView] = {}
        for which in (
            mail_message.c.request.in_(named),
            mail_message.c.id.in_(theirs),
        ):
            query: Select[Any] = select(*_VIEW, mail_message.c.detail).where(which)
            for row in await self._connection.execute(query):
                mail = request_mail(row)
                if mail is not None and mail.tells_of(view.id, view.batch):
                    found[row.id] = _view(row)
        return sorted(found.values(), key=lambda mail: (mail.created, mail.id))

    async def of_person(self, person: PersonId, limit: int) -> list[MailView]:
        """The newest mails to a person, oldest first."""
        newest = (
            select(*_VIEW)
            .where(mail_message.c.person == person)
            .order_by(mail_message.c.created.desc(), mail_message.c.id)
            .limit(limit)
        )
        rows = (await self._connection.execute(newest)).all()
        return [_view(row) for row in reversed(rows)]

    async def _views(self, query: Select[Any]) -> list[MailView]:
        rows = await self._connection.execute(
            query.order_by(mail_message.c.created, mail_message.c.id)
        )
        return [_view(row) for row in rows]

    async def mailing(self) -> dict[IntegratorId, tuple[int, ...]]:
        """Integrators whose signers are written to, with their days of reminders."""
        rows = await self._connection.execute(
            select(integrator.c.id, integrator.c.reminder_days).where(
                integrator.c.mails_signers
            )
        )
        return {IntegratorId(row.id): tuple(row.reminder_days or ()) for row in rows}

    async def asked(
        self, requests: Collection[RequestId], *, only_tests: bool = False
    ) -> list[Recipient]:
        """Of some requests those that wait for their signer, who is not in a frame.

        Args:
            requests: which.
            only_tests: of test signers alone.
        """
        return await self._recipients(
            select(*_RECIPIENT).where(
                _OWN.c.id.in_(requests),
                _OWN.c.state == RequestState.PENDING.value,
                _OWN.c.origin != FRAME_ORIGIN,
            ),
            only_tests=only_tests,
        )

    async def asked_by_mail(self, requests: Collection[RequestId]) -> set[RequestId]:
        """Of some requests those that a mail asks for by its own number."""
        rows = await self._connection.execute(
            select(mail_message.c.request).where(
                mail_message.c.request.in_(requests),
                mail_message.c.kind == MailKind.REQUEST.value,
            )
        )
        return {RequestId(request) for request in rows.scalars()}

    async def recipients(
        self, requests: Collection[RequestId], *, only_tests: bool = False
    ) -> list[Recipient]:
        """Whom some requests are for that no frame brought.

        Args:
            requests: which.
            only_tests: of test signers alone.
        """
        return await self._recipients(
            select(*_RECIPIENT).where(
                _OWN.c.id.in_(requests), _OWN.c.origin != FRAME_ORIGIN
            ),
            only_tests=only_tests,
        )

    async def finished(
        self, requests: Collection[RequestId], *, only_tests: bool = False
    ) -> list[Recipient]:
        """All signers of the processes of some requests, where all have signed.

        Those who are being told already are left out, and batches: they are told of
        as a whole.

        Args:
            requests: which.
            only_tests: of the signers the test signers alone.
        """
        theirs = select(signature_request.c.process).where(
            signature_request.c.id.in_(requests)
        )
        unsigned = exists().where(
            signature_request.c.process == _OWN.c.process,
            signature_request.c.state != RequestState.SIGNED.value,
        )
        told = exists().where(
            mail_message.c.request == _OWN.c.id,
            mail_message.c.kind == MailKind.SIGNED.value,
        )
        return await self._recipients(
            select(*_RECIPIENT).where(
                _OWN.c.process.in_(theirs), _OWN.c.batch.is_(None), ~unsigned, ~told
            ),
            only_tests=only_tests,
        )

    async def _recipients(
        self, query: Select[Any], *, only_tests: bool
    ) -> list[Recipient]:
        if only_tests:
            query = query.where(is_made_up(_OWN.c.person))
        rows = await self._connection.execute(query.order_by(_OWN.c.id))
        return [
            Recipient(
                IntegratorId(row.integrator),
                PersonId(row.person),
                RequestId(row.id),
                None if row.batch is None else RequestBatchId(row.batch),
                row.created,
            )
            for row in rows
        ]

    async def waiting_shares(self, at: datetime, since: datetime) -> dict[str, int]:
        """Integrators with mail to be sent now; of each how much was since a time.

        Args:
            at: the present time.
            since: from when on counts what was sent.

        Returns:
            By id, `OWN` for the installation.
        """
        waiting = (
            await self._connection.execute(
                select(_SHARE).where(_claimable(at)).group_by(_SHARE)
            )
        ).scalars()
        shares = dict.fromkeys(waiting, 0)
        if not shares:
            return shares
        sent = await self._connection.execute(
            select(_SHARE.label("share"), func.count().label("sent"))
            .where(
                mail_message.c.ended > since,
                mail_message.c.state == MailState.SENT.value,
            )
            .group_by(_SHARE)
        )
        return shares | {row.share: row.sent for row in sent if row.share in shares}

    async def claim_of(
        self, share: str, owner: str, at: datetime, lease: timedelta
    ) -> MailClaim | None:
        """Take the mail of a share that is due first, and that nobody has in hand."""
        claimable = and_(_claimable(at), bindparam("share") == _SHARE)
        claiming = self.claiming(claimable, mail_message.c.due)
        row = await self._claim(claiming, owner, at + lease, {"share": share})
        if row is None:
            return None
        return MailClaim(
            id=row.id,
            fence=row.fence,
            person=PersonId(row.person),
            integrator=row.integrator and IntegratorId(row.integrator),
            request=None if row.request is None else RequestId(row.request),
            kind=MailKind(row.kind),
            detail=row.detail,
            link_sealed=row.link_sealed,
            tries=row.tries,
            created=row.created,
        )

    async def end(
        self, claim: MailClaim, state: MailState, answer: str, at: datetime
    ) -> bool:
        """End a claim for good; False when another one came since."""
        values = {
            "state": state.value,
            "answer": answer,
            "ended": at,
            "link_sealed": None,
            "lease_until": None,
            "tries": claim.tries + 1,
        }
        return await self._fenced(claim, values)

    async def put_off(self, claim: MailClaim, due: datetime, answer: str) -> bool:
        """End a claim whose mail is to be tried again; False as `end`."""
        values = {
            "due": due,
            "answer": answer,
            "lease_until": None,
            "tries": claim.tries + 1,
        }
        return await self._fenced(claim, values)

    async def postpone(self, claim: MailClaim, due: datetime) -> bool:
        """End a claim whose mail was not tried: it comes later; False as `end`."""
        return await self._fenced(claim, {"due": due, "lease_until": None})

    async def standing(self, at: datetime) -> tuple[int, datetime | None]:
        """How many mails are due, and since when the first of them."""
        oldest = func.min(mail_message.c.created, type_=mail_message.c.created.type)
        found = await self._connection.execute(
            select(func.count(), oldest).where(self.open(), mail_message.c.due <= at)
        )
        count, first = found.one()
        return count, first

    async def ended(self) -> Mapping[MailState, int]:
        """How many ended in which way, of those that are not forgotten."""
        found = await self._connection.execute(
            select(mail_message.c.state, func.count())
            .where(mail_message.c.ended.is_not(None))
            .group_by(mail_message.c.state)
        )
        return {MailState(state): count for state, count in found}


def _claimable(at: datetime) -> ColumnElement[bool]:
    """Mails to be sent now; one of a later version's kind waits for that version."""
    until = mail_message.c.lease_until
    return and_(
        mail_message.c.state == _PENDING,
        mail_message.c.kind.in_([each.value for each in MailKind]),
        mail_message.c.due <= at,
        or_(until.is_(None), until <= at),
        ~_TO_MADE_UP,
        # A version to come may know more: those are its own to send.
        mail_message.c.kind.in_([kind.value for kind in MailKind]),
    )


def _view(row: Row[Any]) -> MailView:
    return MailView(
        id=row.id,
        person=PersonId(row.person),
        request=None if row.request is None else RequestId(row.request),
        kind=MailKind(row.kind),
        state=MailState(row.state),
        tries=row.tries,
        answer=row.answer,
        created=row.created,
        due=row.due,
        ended=row.ended,
    )
