"""Sessions of the frame in SQL: every step one conditional UPDATE."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import (
    ColumnElement,
    Row,
    and_,
    delete,
    exists,
    insert,
    not_,
    or_,
    select,
    update,
)

from appliance.database.tables import embed_session, integrator, signature_request
from appliance.domain.documents.inspected import CameDocument
from appliance.domain.ids import (
    DocumentId,
    IntegratorId,
    PersonId,
    RequestBatchId,
    RequestId,
)
from appliance.domain.integrators.integrators import (
    EmbedSession,
    NewSessionRow,
    SessionFault,
    SessionState,
)
from appliance.domain.requests.intake import FRAME_ORIGIN
from appliance.domain.vocab import RequestState
from appliance.integrators.integrator_store import integrator_view
from appliance.record.unit_of_work import Store

_WHOSE = [column.label(f"i_{column.name}") for column in integrator.c]
_C = embed_session.c
_OLD = embed_session.alias()


@dataclass(frozen=True, slots=True)
class ExpiredSession:
    """A session whose time was over."""

    id: str
    public_id: str
    integrator: IntegratorId
    request: RequestId | None
    """What it had come to, or was opened for."""
    batch: RequestBatchId | None = None
    """What it was opened for in place of a request."""
    person: PersonId | None = None
    """Its proven signer."""


class SessionStore(Store):
    """Sessions of the frame."""

    async def add(self, new: NewSessionRow) -> None:
        """Record a session."""
        await self._connection.execute(
            insert(embed_session).values(
                id=new.id,
                public_id=new.public_id,
                token_index=new.token_index,
                integrator=new.integrator,
                api_key=new.api_key,
                state=SessionState.OPEN.value,
                issued=new.issued,
                until=new.until,
                wanted=new.wanted,
                batch=new.batch,
                fault=new.fault,
            )
        )

    async def get(self, session: str, *, lock: bool = False) -> EmbedSession | None:
        """A session by id; `lock` keeps others from changing it."""
        return await self._one(_C.id == session, lock=lock)

    async def by_token(self, indexes: Sequence[str]) -> EmbedSession | None:
        """A session by the HMAC of its token."""
        return await self._one(_C.token_index.in_(indexes))

    async def by_public_id(self, public_id: str) -> EmbedSession | None:
        """A session by the id that opens nothing."""
        return await self._one(_C.public_id == public_id)

    async def by_bearer(self, indexes: Sequence[str]) -> EmbedSession | None:
        """A session by the HMAC of the bearer that holds now."""
        return await self._one(_C.bearer_index.in_(indexes))

    async def _one(
        self, condition: ColumnElement[bool], *, lock: bool = False
    ) -> EmbedSession | None:
        query = (
            select(embed_session, *_WHOSE)
            .join(integrator, integrator.c.id == _C.integrator)
            .where(condition)
        )
        if lock:
            query = query.with_for_update(of=embed_session)
        row = (await self._connection.execute(query)).one_or_none()
        return None if row is None else _session(row)

    async def exchange(self, session: str, bearer_index: str, at: datetime) -> bool:
        """Set the bearer that holds from now on."""
        return await self._set(
            session,
            _C.state != SessionState.ENDED.value,
            _C.until > at,
            bearer_index=bearer_index,
        )

    async def init(
        self,
        session: str,
        nonce: str,
        idem_key: str | None,
        init_sha256: str,
        at: datetime,
    ) -> bool:
        """Take an init, until the signer has proven who they are."""
        return await self._set(
            session,
            *_open(at),
            _C.otp_at.is_(None),
            nonce=nonce,
            idem_key=idem_key,
            init_sha256=init_sha256,
            person=None,
        )

    async def count_document(self, session: str, most: int, at: datetime) -> bool:
        """Count one more document that it brings; False when it may bring no more."""
        return await self._set(
            session, *_open(at), _C.documents < most, documents=_C.documents + 1
        )

    async def count_code(self, session: str, most: int, at: datetime) -> bool:
        """Count one more code that it tries; False when it may try no more."""
        return await self._set(session, *_open(at), _C.codes < most, codes=_C.codes + 1)

    async def by_host(self, session: str, at: datetime) -> bool:
        """Say that the host has sent a document."""
        return await self._set(session, *_open(at), host_document=True)

    async def set_document(
        self, session: str, document: CameDocument, name: str, at: datetime
    ) -> bool:
        """Load or replace the document, until there is a request."""
        return await self._set(
            session,
            *_open(at),
            _C.request.is_(None),
            **_document_columns(document),
            document_name=name,
        )

    async def set_person(
        self, session: str, person: PersonId | None, at: datetime
    ) -> bool:
        """Say whom the signer was matched with, until that is proven."""
        return await self._set(session, *_open(at), _C.otp_at.is_(None), person=person)

    async def set_otp(self, session: str, person: PersonId, at: datetime) -> bool:
        """The matched person gave a right code."""
        return await self._set(session, *_open(at), _C.person == person, otp_at=at)

    async def set_request(self, session: str, request: RequestId, at: datetime) -> bool:
        """Bind the request to be signed, after a right code.

        Once; but one that was picked from the list, and that nothing was done with,
        may be put back for another, and one of a batch is read after the other.
        """
        picked = select(signature_request.c.id).where(
            signature_request.c.origin != FRAME_ORIGIN,
            signature_request.c.state == RequestState.PENDING.value,
        )
        return await self._set(
            session,
            *_open(at),
            _C.otp_at.is_not(None),
            or_(
                _C.request.is_(None),
                _C.request == request,
                _C.request.in_(picked),
                _C.batch.is_not(None),
            ),
            request=request,
        )

    async def complete(self, session: str, payload: dict[str, object]) -> bool:
        """Store what is told of the signature, once; also after the time."""
        return await self._set(
            session,
            or_(_C.request.is_not(None), _C.batch.is_not(None)),
            _C.completed.is_(None),
            completed=payload,
            state=SessionState.COMPLETED.value,
        )

    async def of_idem_key(
        self, integrator: IntegratorId, idem_key: str
    ) -> EmbedSession | None:
        """The newest session that made a request under an idempotency key."""
        query = (
            select(_C.id)
            .where(
                _C.integrator == integrator,
                _C.idem_key == idem_key,
                _C.request.is_not(None),
            )
            .order_by(_C.issued.desc())
            .limit(1)
        )
        found = (await self._connection.execute(query)).scalar_one_or_none()
        return None if found is None else await self.get(found)

    async def completed_of(self, request: RequestId) -> dict[str, object] | None:
        """What was told of a request's signature, by whichever session for it."""
        query = (
            select(_C.completed)
            .where(_C.request == request, _C.completed.is_not(None), _C.batch.is_(None))
            .order_by(_C.issued)
            .limit(1)
        )
        row = (await self._connection.execute(query)).one_or_none()
        return None if row is None else row.completed

    async def cancel(self, session: str, at: datetime) -> bool:
        """End a session without a signature."""
        return await self._set(session, *_open(at), state=SessionState.CANCELLED.value)

    async def carry_over(self, old: EmbedSession, new: str, at: datetime) -> bool:
        """Have a fresh session go on where another one stood; that one is over."""
        if old.successor is not None:
            return False
        taken = await self._set(
            new,
            *_open(at),
            _C.init_sha256.is_(None),
            nonce=old.nonce,
            idem_key=old.idem_key,
            init_sha256=old.init_sha256,
            person=old.person,
            otp_at=old.otp_at,
            **_document_columns(old.document),
            document_name=old.document_name,
            host_document=old.host_document,
            request=old.request,
            wanted=old.wanted,
            batch=old.batch,
            # As it was told: once, whatever token asks.
            **({} if old.completed is None else {"completed": old.completed}),
            codes=select(_OLD.c.codes).where(_OLD.c.id == old.id).scalar_subquery(),
        )
        if taken:
            await self._set(old.id, successor=new)
            await self._set(
                old.id,
                _C.state == SessionState.OPEN.value,
                state=SessionState.ENDED.value,
            )
        return taken

    async def _set(
        self, session: str, *conditions: ColumnElement[bool], **values: object
    ) -> bool:
        result = await self._connection.execute(
            update(embed_session).where(_C.id == session, *conditions).values(**values)
        )
        return result.rowcount == 1

    async def end_of_key(self, key_id: str, at: datetime) -> list[str]:
        """End the unfinished sessions of a key, and the requests they made."""
        return await self._end(_C.api_key == key_id, at)

    async def end_of_integrator(self, whose: IntegratorId, at: datetime) -> list[str]:
        """End an integrator's unfinished sessions, and the requests they made."""
        return await self._end(_C.integrator == whose, at)

    async def end_of_person(self, person: PersonId, at: datetime) -> list[str]:
        """End a person's unfinished sessions, and the requests they made."""
        return await self._end(_C.person == person, at)

    async def _end(self, whose: ColumnElement[bool], at: datetime) -> list[str]:
        ended = await self._connection.execute(
            update(embed_session)
            .where(
                whose,
                _C.state == SessionState.OPEN.value,
                _C.until > at,
            )
            .values(state=SessionState.ENDED.value)
            .returning(_C.public_id, _C.request)
        )
        rows = ended.all()
        requests = [row.request for row in rows if row.request is not None]
        # A request picked from the person's list outlives the session.
        await self._connection.execute(
            update(signature_request)
            .where(
                signature_request.c.id.in_(requests),
                signature_request.c.origin == FRAME_ORIGIN,
                signature_request.c.state.in_(
                    [RequestState.PENDING.value, RequestState.IN_PROGRESS.value]
                ),
            )
            .values(expires=at)
        )
        return [row.public_id for row in rows]

    async def expire(self, at: datetime, limit: int) -> list[ExpiredSession]:
        """Note that sessions are over whose end was not told, some at once.

        One that went on with a new token is not over, nor one whose signature is being
        made: that is told when it is.
        """
        found = (
            select(_C.id)
            .where(
                _C.until <= at,
                _C.expiry_told.is_(None),
                _C.state == SessionState.OPEN.value,
                _C.successor.is_(None),
                or_(and_(_C.batch.is_(None), not_(_is_busy())), _is_batch_at_rest()),
                _C.completed.is_(None),
            )
            .order_by(_C.until)
            .limit(limit)
            .with_for_update(of=embed_session, skip_locked=True)
        )
        rows = await self._connection.execute(
            update(embed_session)
            .where(_C.id.in_(found))
            .values(expiry_told=True)
            .returning(
                *(_C.id, _C.public_id, _C.integrator, _C.request, _C.wanted),
                *(_C.batch, _C.person, _C.otp_at),
            )
        )
        return [
            ExpiredSession(
                row.id,
                row.public_id,
                IntegratorId(row.integrator),
                None if row.batch else row.request or row.wanted,
                row.batch and RequestBatchId(row.batch),
                PersonId(row.person) if row.person and row.otp_at else None,
            )
            for row in rows
        ]

    async def sweep(self, before: datetime) -> int:
        """Forget sessions that were over by then; how many there were."""
        result = await self._connection.execute(
            delete(embed_session).where(_C.until < before)
        )
        return result.rowcount


def _is_busy() -> ColumnElement[bool]:
    """Whether what a session is about is being signed, or is signed."""
    busy = [RequestState.IN_PROGRESS.value, RequestState.SIGNED.value]
    return exists().where(
        signature_request.c.id == _C.request, signature_request.c.state.in_(busy)
    )


def _is_batch_at_rest() -> ColumnElement[bool]:
    """Whether a session is for a batch of which nothing is being signed."""
    in_work = exists().where(
        signature_request.c.batch == _C.batch,
        signature_request.c.state == RequestState.IN_PROGRESS.value,
    )
    return and_(_C.batch.is_not(None), not_(in_work))


def _open(at: datetime) -> tuple[ColumnElement[bool], ...]:
    return _C.state == SessionState.OPEN.value, _C.until > at


def _document_columns(document: CameDocument | None) -> dict[str, object]:
    """Columns of a session's document."""
    if document is None:
        return {"document": None, "original_sha256": None}
    return {"document": document.id, "original_sha256": document.original_sha256}


def _session(row: Row[Any]) -> EmbedSession:
    return EmbedSession(
        id=row.id,
        public_id=row.public_id,
        integrator=integrator_view(row),
        issued=row.issued,
        until=row.until,
        nonce=row.nonce,
        idem_key=row.idem_key,
        person=row.person,
        otp_at=row.otp_at,
        document=None
        if row.document is None
        else CameDocument(DocumentId(row.document), row.original_sha256),
        document_name=row.document_name,
        request=row.request,
        completed=row.completed,
        state=SessionState(row.state),
        init_sha256=row.init_sha256,
        host_document=row.host_document,
        successor=row.successor,
        wanted=row.wanted and RequestId(row.wanted),
        batch=row.batch and RequestBatchId(row.batch),
        fault=row.fault and SessionFault(row.fault),
    )
