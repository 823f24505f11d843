"""Signature requests, documents and signed documents in SQL."""

from collections.abc import Collection, Mapping
from dataclasses import replace
from datetime import datetime
from enum import StrEnum
from typing import Any, Final, TypeVar

from sqlalchemy import (
    Row,
    Select,
    and_,
    case,
    delete,
    exists,
    func,
    insert,
    not_,
    select,
    update,
)
from sqlalchemy.ext.asyncio import AsyncConnection

from appliance.domain.document import Damage, Repair
from appliance.domain.errors import ApplianceError, ErrorCode
from appliance.domain.hsm import DigestAlgorithm
from appliance.domain.ids import (
    ActivationId,
    DocumentId,
    IntegratorId,
    PersonId,
    ProcessId,
    RequestId,
    new_id,
)
from appliance.domain.levels import ProfileWishes
from appliance.domain.records.requests import (
    FRAME_ORIGIN,
    NewRequest,
    StoredDocument,
)
from appliance.domain.request import (
    UNFINISHED,
    RequestView,
    SignedDocumentView,
    check_move,
)
from appliance.domain.vocab import RequestState, SignatureLevel, TimestampPolicy
from appliance.storage.inserting import insert_into
from appliance.storage.inspections import inspection_from_json, inspection_to_json
from appliance.storage.tables import (
    document,
    document_repair,
    idempotency,
    integrator,
    metadata,
    signature_request,
    signed_document,
    signing_process,
)

REFERRING: Final = tuple(
    key.parent
    for table in metadata.sorted_tables
    for key in table.foreign_keys
    if key.column is document.c.id and key.ondelete is None
)
"""Every column that refers to a document, of whatever table; rows that go when their
document goes do not."""
_REPAIR: Final = (
    document_repair.c.sha256.label("original_sha256"),
    document_repair.c.damage,
)
NAMING: Final = tuple(
    table
    for table in metadata.sorted_tables
    if {"integrator", "sha256"} <= set(table.c.keys())
)
"""By convention: every table that names files of the document store."""


class SqlDocuments:
    """Documents and signed documents."""

    def __init__(self, connection: AsyncConnection) -> None:
        self._connection = connection

    async def add(self, new: StoredDocument, at: datetime) -> StoredDocument:
        """Record a document, or give the one with the same bytes.

        A document inspected again by a newer inspector keeps its place. It counts
        as new again, so that nobody removes it as unused before it is used.
        """
        inspection = inspection_to_json(new.inspection)
        result = await self._connection.execute(
            insert_into(self._connection, document)
            .values(
                id=new.id,
                integrator=new.integrator,
                sha256=new.sha256,
                size_bytes=new.inspection.size_bytes,
                inspection=inspection,
                created=at,
            )
            .on_conflict_do_update(
                index_elements=["integrator", "sha256"],
                set_={"inspection": inspection, "created": at},
            )
            .returning(document.c.id)
        )
        kept = replace(new, id=DocumentId(result.scalar_one()))
        if kept.repair is not None:
            await self._connection.execute(
                insert_into(self._connection, document_repair)
                .values(
                    document=kept.id,
                    integrator=kept.integrator,
                    sha256=kept.repair.original_sha256,
                    damage=list(kept.repair.damage),
                )
                .on_conflict_do_nothing()
            )
        return kept

    async def get(self, wanted: DocumentId) -> StoredDocument | None:
        """A document by id."""
        query = _documents().where(document.c.id == wanted)
        row = (await self._connection.execute(query)).one_or_none()
        return None if row is None else _stored(row)

    async def repaired(
        self, owner: IntegratorId, original_sha256: str
    ) -> StoredDocument | None:
        """The first repaired copy that was made of a damaged file."""
        query = (
            _documents()
            .where(
                document_repair.c.integrator == owner,
                document_repair.c.sha256 == original_sha256,
            )
            .order_by(document.c.created, document.c.id)
            .limit(1)
        )
        row = (await self._connection.execute(query)).one_or_none()
        return None if row is None else _stored(row)

    async def sealed(
        self, request: RequestId, view: SignedDocumentView, at: datetime
    ) -> None:
        """Record a version of a request's signed document, once."""
        await self._connection.execute(
            insert(signed_document).values(
                request=request,
                version=view.version,
                integrator=view.integrator,
                sha256=view.sha256,
                size_bytes=view.size_bytes,
                level=view.level,
                made=at,
            )
        )

    async def signed(self, request: RequestId) -> SignedDocumentView | None:
        """The newest version of a request's signed document."""
        return (await self.signed_of((request,))).get(request)

    async def signed_of(
        self, requests: Collection[RequestId]
    ) -> dict[RequestId, SignedDocumentView]:
        """The signed documents of those requests that have one."""
        rows = await self._connection.execute(
            select(signed_document, signature_request.c.name)
            .join(
                signature_request,
                signature_request.c.id == signed_document.c.request,
            )
            .where(signed_document.c.request.in_(requests))
            # Of several versions the newest comes last, and stays.
            .order_by(signed_document.c.version)
        )
        return {
            RequestId(row.request): SignedDocumentView(
                request=RequestId(row.request),
                integrator=IntegratorId(row.integrator),
                file_name=row.name,
                sha256=row.sha256,
                size_bytes=row.size_bytes,
                level=row.level,
                version=row.version,
            )
            for row in rows
        }

    async def forget_unused(self, before: datetime, limit: int) -> int:
        """Forget documents that came in before then, for nothing; how many."""
        unused = (
            select(document.c.id)
            .where(
                document.c.created < before,
                *(
                    not_(exists().where(column == document.c.id))
                    for column in REFERRING
                ),
            )
            .limit(limit)
        )
        found = list((await self._connection.execute(unused)).scalars())
        result = await self._connection.execute(
            delete(document).where(
                document.c.id.in_(found),
                # Whoever took it in again meanwhile made it new.
                document.c.created < before,
            )
        )
        return result.rowcount

    async def named(
        self, integrator: IntegratorId, sha256: Collection[str]
    ) -> set[str]:
        """Which of these are named by anything of that integrator's."""
        found: set[str] = set()
        for table in NAMING:
            rows = await self._connection.execute(
                select(table.c.sha256).where(
                    table.c.integrator == integrator, table.c.sha256.in_(sha256)
                )
            )
            found.update(rows.scalars())
        return found


class SqlRequests:
    """Signature requests."""

    def __init__(self, connection: AsyncConnection) -> None:
        self._connection = connection

    async def add(self, new: NewRequest) -> RequestId:
        """Record a request, `pendiente`, in a process of its own."""
        process = new_id()
        await self._connection.execute(
            insert(signing_process).values(
                id=process, integrator=new.integrator, created=new.created
            )
        )
        return await self._add(new, process, 0, RequestState.PENDING)

    async def follow(self, request: RequestId, new: NewRequest) -> RequestId:
        """Record one, `en_espera`, whose turn comes after another one's."""
        columns = signature_request.c
        place = (
            await self._connection.execute(
                select(columns.process, columns.seq).where(columns.id == request)
            )
        ).one()
        return await self._add(new, place.process, place.seq + 1, RequestState.WAITING)

    async def _add(
        self, new: NewRequest, process: str, seq: int, state: RequestState
    ) -> RequestId:
        result = await self._connection.execute(
            insert(signature_request)
            .values(
                process=process,
                seq=seq,
                person=new.person,
                integrator=new.integrator,
                document=new.document,
                name=new.name,
                state=state.value,
                reason="",
                origin=new.origin,
                created=new.created,
                expires=new.expires,
                wished_level=new.wishes.level,
                timestamp_policy=new.wishes.timestamp_policy,
                digest=new.wishes.digest,
                tsa=new.wishes.tsa and list(new.wishes.tsa),
            )
            .returning(signature_request.c.id)
        )
        return RequestId(result.scalar_one())

    async def of_process(self, process: ProcessId) -> list[RequestView]:
        """The requests of a process, in order."""
        query = (
            _views()
            .where(signature_request.c.process == process)
            .order_by(signature_request.c.seq)
        )
        return [_view(row) for row in await self._connection.execute(query)]

    async def lock_later(self, process: ProcessId, seq: int) -> list[RequestView]:
        """Those after a place in it, in order; others are kept from moving them.

        Whoever asks has locked the one at that place: locks are only ever taken
        onwards, so that no two wait for each other.
        """
        query = (
            _views()
            .where(signature_request.c.process == process)
            .where(signature_request.c.seq > seq)
            .order_by(signature_request.c.seq)
            .with_for_update(of=signature_request)
        )
        return [_view(row) for row in await self._connection.execute(query)]

    async def take_turn(self, request: RequestId, document: DocumentId) -> bool:
        """Move `en_espera` → `pendiente` on a document; False if it did not wait."""
        result = await self._connection.execute(
            update(signature_request)
            .where(
                signature_request.c.id == request,
                signature_request.c.state == RequestState.WAITING.value,
            )
            .values(state=RequestState.PENDING.value, document=document)
        )
        return result.rowcount == 1

    async def unfinished(self, after: RequestId, limit: int) -> list[RequestView]:
        """Requests that are not over, by number, those above one."""
        query = (
            _views()
            .where(
                signature_request.c.id > after,
                signature_request.c.state.in_([state.value for state in UNFINISHED]),
            )
            .order_by(signature_request.c.id)
            .limit(limit)
        )
        return [_view(row) for row in await self._connection.execute(query)]

    async def stalled(self, limit: int) -> list[RequestId]:
        """Requests that wait although the one before them is over."""
        before = signature_request.alias("before")
        rows = await self._connection.execute(
            select(signature_request.c.id)
            .join(
                before,
                and_(
                    before.c.process == signature_request.c.process,
                    before.c.seq == signature_request.c.seq - 1,
                ),
            )
            .where(
                signature_request.c.state == RequestState.WAITING.value,
                before.c.state.not_in([state.value for state in UNFINISHED]),
            )
            .order_by(signature_request.c.id)
            .limit(limit)
        )
        return [RequestId(number) for number in rows.scalars()]

    async def get(
        self, request: RequestId, *, lock: bool = False
    ) -> RequestView | None:
        """A request by id; `lock` keeps others from moving it."""
        return (await self.named((request,), lock=lock)).get(request)

    async def named(
        self, requests: Collection[RequestId], *, lock: bool = False
    ) -> dict[RequestId, RequestView]:
        """Those requests that there are; `lock` as in `get`, in the order of ids."""
        query = _views().where(signature_request.c.id.in_(requests))
        if lock:
            # In one order, so that two who lock several never wait for each other.
            query = query.order_by(signature_request.c.id)
            query = query.with_for_update(of=signature_request)
        rows = await self._connection.execute(query)
        return {RequestId(row.id): _view(row) for row in rows}

    async def in_progress(self, requests: Collection[RequestId]) -> int:
        """How many of those requests are `en_proceso`."""
        query = select(func.count()).where(
            signature_request.c.id.in_(requests),
            signature_request.c.state == RequestState.IN_PROGRESS.value,
        )
        return (await self._connection.execute(query)).scalar_one()

    async def of_person(
        self,
        person: PersonId,
        states: Collection[RequestState],
        *,
        limit: int | None = None,
        before: RequestId | None = None,
        integrator: IntegratorId | None = None,
    ) -> list[RequestView]:
        """A person's requests in those states, newest first."""
        query = (
            _views()
            .where(
                signature_request.c.person == person,
                signature_request.c.origin != FRAME_ORIGIN,
                signature_request.c.state.in_([state.value for state in states]),
            )
            .order_by(signature_request.c.id.desc())
        )
        if integrator is not None:
            query = query.where(signature_request.c.integrator == integrator)
        if before is not None:
            query = query.where(signature_request.c.id < before)
        if limit is not None:
            query = query.limit(limit)
        return [_view(row) for row in await self._connection.execute(query)]

    async def all(self, limit: int) -> list[RequestView]:
        """The newest requests of anybody, for operators."""
        query = _views().order_by(signature_request.c.id.desc()).limit(limit)
        return [_view(row) for row in await self._connection.execute(query)]

    async def begin(
        self, wanted: Mapping[RequestId, str], activation: ActivationId
    ) -> int:
        """Move `pendiente` → `en_proceso`; how many were `pendiente`."""
        result = await self._connection.execute(
            update(signature_request)
            .where(
                signature_request.c.id.in_(wanted),
                signature_request.c.state == RequestState.PENDING.value,
            )
            .values(
                state=RequestState.IN_PROGRESS.value,
                reason="",
                params_sha256=case(dict(wanted), value=signature_request.c.id),
                activation=activation,
            )
        )
        return result.rowcount

    async def move(
        self,
        request: RequestId,
        now: RequestState,
        then: RequestState,
        reason: str = "",
        *,
        level: str | None = None,
    ) -> bool:
        """Move along a legal edge; False if it was not in state `now`.

        Raises:
            ApplianceError: `STATE` for an edge that does not exist.
        """
        check_move(now, then)
        if then is RequestState.IN_PROGRESS:
            raise ApplianceError(ErrorCode.STATE, params={"estado": now.value})
        result = await self._connection.execute(
            update(signature_request)
            .where(
                signature_request.c.id == request,
                signature_request.c.state == now.value,
            )
            .values(state=then.value, reason=reason, level=level)
        )
        return result.rowcount == 1

    async def raised(self, request: RequestId, level: str) -> None:
        """Set the level that a signed request's document has reached."""
        await self._connection.execute(
            update(signature_request)
            .where(
                signature_request.c.id == request,
                signature_request.c.state == RequestState.SIGNED.value,
            )
            .values(level=level)
        )

    async def prolong(self, request: RequestId, until: datetime) -> None:
        """Give a request of a session more time to be signed."""
        await self._connection.execute(
            update(signature_request)
            .where(
                signature_request.c.id == request,
                signature_request.c.origin == FRAME_ORIGIN,
            )
            .values(expires=until)
        )

    async def remembered(self, scope: str, key: str) -> str | None:
        """The fingerprint that an idempotency key was first used with."""
        result = await self._connection.execute(
            select(idempotency.c.fingerprint).where(
                idempotency.c.scope == scope, idempotency.c.key == key
            )
        )
        return result.scalar_one_or_none()

    async def remember(
        self, scope: str, key: str, fingerprint: str, at: datetime
    ) -> None:
        """Bind an idempotency key to a fingerprint.

        Raises:
            ApplianceError: `IDEMKEY_CONFLICT` when it is bound to another.
        """
        await self._connection.execute(
            insert_into(self._connection, idempotency)
            .values(scope=scope, key=key, fingerprint=fingerprint, created=at)
            .on_conflict_do_nothing()
        )
        if await self.remembered(scope, key) != fingerprint:
            raise ApplianceError(ErrorCode.IDEMKEY_CONFLICT)

    async def overdue(self, at: datetime, limit: int) -> list[RequestId]:
        """Requests whose time to be signed is over."""
        rows = await self._connection.execute(
            select(signature_request.c.id)
            .where(
                signature_request.c.state.in_(
                    [RequestState.PENDING.value, RequestState.WAITING.value]
                ),
                signature_request.c.expires <= at,
            )
            # In one order, so that two sweeps never wait for each other.
            .order_by(signature_request.c.id)
            .limit(limit)
        )
        return [RequestId(number) for number in rows.scalars()]


_Word = TypeVar("_Word", bound=StrEnum)
_WISHES: Final = ("level", "timestamp_policy", "digest", "tsa")


def _views() -> Select[Any]:
    later = signature_request.alias("later")
    followed = exists().where(
        later.c.process == signature_request.c.process,
        later.c.seq > signature_request.c.seq,
        later.c.state == RequestState.WAITING.value,
    )
    return (
        select(
            signature_request,
            followed.label("followed"),
            document.c.sha256,
            document.c.inspection,
            *_REPAIR,
            integrator.c.name.label("integrator_name"),
            *(integrator.c[name].label(f"i_{name}") for name in _WISHES),
        )
        .join(document, document.c.id == signature_request.c.document)
        .outerjoin(document_repair, document_repair.c.document == document.c.id)
        .join(integrator, integrator.c.id == signature_request.c.integrator)
    )


def _view(row: Row[Any]) -> RequestView:
    return RequestView(
        id=RequestId(row.id),
        person=PersonId(row.person),
        integrator=IntegratorId(row.integrator),
        integrator_name=row.integrator_name,
        document_name=row.name,
        state=RequestState(row.state),
        reason=row.reason,
        sha256=row.sha256,
        inspection=inspection_from_json(row.inspection),
        created=row.created,
        expires=row.expires,
        params_sha256=row.params_sha256,
        activation=row.activation,
        origin=row.origin,
        wishes=ProfileWishes(
            _first(SignatureLevel, row.wished_level, row.i_level),
            _first(TimestampPolicy, row.timestamp_policy, row.i_timestamp_policy),
            _first(DigestAlgorithm, row.digest, row.i_digest),
            tuple(row.tsa or row.i_tsa or ()) or None,
        ),
        repair=_repair(row),
        process=ProcessId(row.process),
        seq=row.seq,
        followed=bool(row.followed),
    )


def _first(kind: type[_Word], *words: str | None) -> _Word | None:
    """The first word that is there: of the request, then of its integrator."""
    return next((kind(word) for word in words if word is not None), None)


def _documents() -> Select[Any]:
    return select(document, *_REPAIR).outerjoin(
        document_repair, document_repair.c.document == document.c.id
    )


def _stored(row: Row[Any]) -> StoredDocument:
    return StoredDocument(
        DocumentId(row.id),
        IntegratorId(row.integrator),
        row.sha256,
        inspection_from_json(row.inspection),
        _repair(row),
    )


def _repair(row: Row[Any]) -> Repair | None:
    if row.original_sha256 is None:
        return None
    return Repair(row.original_sha256, tuple(Damage(word) for word in row.damage))
