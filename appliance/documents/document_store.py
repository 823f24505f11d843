"""Documents and signed documents in SQL."""

from collections.abc import Collection, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any, Final

from sqlalchemy import (
    ColumnElement,
    FromClause,
    Join,
    Row,
    Select,
    Table,
    and_,
    case,
    delete,
    exists,
    false,
    func,
    insert,
    not_,
    or_,
    select,
    true,
    tuple_,
    union,
    update,
)

from appliance.database.tables import (
    document,
    document_key,
    document_original,
    document_repair,
    embed_session_document,
    metadata,
    passing_document,
    signature_request,
    signed_document,
)
from appliance.database.upsert import insert_into
from appliance.domain.documents.inspected import (
    CameDocument,
    Inspection,
    Repair,
    as_it_came,
    inspection_from_json,
    inspection_to_json,
    repair_of,
)
from appliance.domain.ids import DocumentId, IntegratorId, RequestId
from appliance.domain.requests.intake import StoredDocument
from appliance.domain.requests.request import SignedDocumentView, SignedVersion
from appliance.domain.vocab import RequestState, SignatureLevel
from appliance.record.unit_of_work import Store

REFERRING: Final = tuple(
    key.parent
    for table in metadata.sorted_tables
    for key in table.foreign_keys
    if key.column is document.c.id and key.ondelete is None
)
"""Every column that refers to a document, of whatever table; rows that go when their
document goes do not."""
NAMING: Final = tuple(
    table
    for table in metadata.sorted_tables
    if {"integrator", "sha256"} <= set(table.c.keys())
)
"""By convention: every table that names files of the document store."""
_ORIGINALS: Final = (document_original, document_repair)
_REFERRING_TABLES: Final = tuple(column.table for column in REFERRING)


def repair_columns(of: FromClause) -> tuple[ColumnElement[Any], ...]:
    """What `repair_in` reads, of a table that `with_repair` joined.

    Args:
        of: the table, which refers to documents.
    """
    is_unsaid = of.c.original_sha256.is_(None)
    first, own = document_repair.c, document_original.c
    return (
        case((is_unsaid, first.sha256), else_=own.sha256).label("repaired_sha256"),
        case((is_unsaid, first.damage), else_=own.damage).label("damage"),
    )


def with_repair(joined: FromClause, of: FromClause) -> Join:
    """Join what a row's document came as.

    Args:
        joined: what the row is part of.
        of: the table, which refers to documents.
    """
    return joined.outerjoin(
        document_repair, document_repair.c.document == of.c.document
    ).outerjoin(
        document_original,
        and_(
            document_original.c.document == of.c.document,
            document_original.c.sha256 == of.c.original_sha256,
        ),
    )


def repair_in(row: Row[Any]) -> Repair | None:
    """The repair of a row with `repair_columns`."""
    return repair_of(row.repaired_sha256, row.damage)


_SIGNED: Final[Select[Any]] = select(signed_document, signature_request.c.name).join(
    signature_request, signature_request.c.id == signed_document.c.request
)


class DocumentStore(Store):
    """Documents and signed documents."""

    async def add(self, new: StoredDocument, at: datetime) -> StoredDocument:
        """Record a document, or give the one with the same bytes.

        A document inspected again by a newer inspector keeps its place. It counts
        as new again, so that nobody removes it as unused before it is used. What it
        came as before stays, for those who refer to it so.
        """
        return (await self.add_all([new], at))[0]

    async def add_all(
        self, new: Sequence[StoredDocument], at: datetime
    ) -> list[StoredDocument]:
        """The same for several of one integrator, some of which may be the same."""
        insertion = insert_into(self._connection, document)
        # In one order, so that two who add the same ones never wait for each other.
        distinct = {each.sha256: each for each in sorted(new, key=_sha256)}
        await self._connection.execute(
            insertion.on_conflict_do_update(
                index_elements=["integrator", "sha256"],
                set_={
                    "inspection": insertion.excluded.inspection,
                    "created": insertion.excluded.created,
                },
            ),
            [
                {
                    "id": each.id,
                    "integrator": each.integrator,
                    "sha256": each.sha256,
                    "size_bytes": each.inspection.size_bytes,
                    "inspection": inspection_to_json(each.inspection),
                    "created": at,
                }
                for each in distinct.values()
            ],
        )
        rows = await self._connection.execute(
            select(document.c.sha256, document.c.id).where(
                document.c.integrator == new[0].integrator,
                document.c.sha256.in_(distinct),
            )
        )
        ids = {row.sha256: DocumentId(row.id) for row in rows}
        kept = [replace(each, id=ids[each.sha256]) for each in new]
        await self._add_originals(document_original, kept)
        # The version before knows one original. A row of its own that refers to a
        # document which is there already must not begin to be a copy's.
        made = {each.id for each in new}
        await self._add_originals(
            document_repair, [each for each in kept if each.id in made]
        )
        return kept

    async def _add_originals(
        self, table: Table, kept: Collection[StoredDocument]
    ) -> None:
        """Record where copies come from, where that is new."""
        repairs = [
            {
                "document": each.id,
                "integrator": each.integrator,
                "sha256": each.repair.original_sha256,
                "damage": list(each.repair.damage),
            }
            for each in kept
            if each.repair is not None
        ]
        if repairs:
            await self._connection.execute(
                insert_into(self._connection, table).on_conflict_do_nothing(), repairs
            )

    async def renew(
        self, wanted: Collection[DocumentId], at: datetime
    ) -> set[DocumentId]:
        """Have documents count as new: nobody removes them before they are used.

        Until the transaction ends nobody else removes them.

        Returns:
            Those that there are: somebody has removed the others.
        """
        if len(wanted) > 1:
            # In one order, as in `add_all`.
            await self._connection.execute(
                select(document.c.id)
                .where(document.c.id.in_(wanted))
                .order_by(document.c.sha256)
                .with_for_update()
            )
        found = await self._connection.execute(
            update(document)
            .where(document.c.id.in_(wanted))
            .values(created=at)
            .returning(document.c.id)
        )
        return {DocumentId(each) for each in found.scalars()}

    async def get(self, wanted: CameDocument) -> StoredDocument | None:
        """A document by id, as it came."""
        return (await self.those((wanted,))).get(wanted)

    async def those(
        self, wanted: Collection[CameDocument]
    ) -> dict[CameDocument, StoredDocument]:
        """Documents by their ids, as they came."""
        ids = {each.id for each in wanted}
        repairs: dict[CameDocument, Repair] = {}
        for table in _ORIGINALS:
            rows = await self._connection.execute(
                select(table).where(table.c.document.in_(ids))
            )
            for row in rows:
                original = row.sha256 if table is document_original else None
                repair = repair_of(row.sha256, row.damage)
                if repair is not None:
                    repairs[CameDocument(row.document, original)] = repair
        found = await self._connection.execute(
            select(document).where(document.c.id.in_(ids))
        )
        rows_by_id = {row.id: row for row in found}
        return {
            each: stored_document(rows_by_id[each.id], repairs.get(each))
            for each in set(wanted)
            if each.id in rows_by_id
        }

    async def repaired(
        self, owner: IntegratorId, original_sha256: str
    ) -> StoredDocument | None:
        """The first repaired copy that was made of a damaged file."""
        query = (
            select(document, document_original.c.damage)
            .join(document_original, document_original.c.document == document.c.id)
            .where(
                document_original.c.integrator == owner,
                document_original.c.sha256 == original_sha256,
            )
            .order_by(document.c.created, document.c.id)
            .limit(1)
        )
        row = (await self._connection.execute(query)).one_or_none()
        if row is None:
            return None
        return stored_document(row, repair_of(original_sha256, row.damage))

    async def publish(
        self, views: Collection[SignedDocumentView], at: datetime
    ) -> set[RequestId]:
        """Move requests `en_proceso` → `firmada`, with their signed documents.

        Those that were in another state are left as they are; which were moved.
        """
        levels = {view.request: view.level for view in views}
        if len(levels) > 1:
            # Requests are locked in one order everywhere.
            await self._connection.execute(
                select(signature_request.c.id)
                .where(signature_request.c.id.in_(levels))
                .order_by(signature_request.c.id)
                .with_for_update()
            )
        moved = await self._connection.execute(
            update(signature_request)
            .where(
                signature_request.c.id.in_(levels),
                signature_request.c.state == RequestState.IN_PROGRESS.value,
            )
            .values(
                state=RequestState.SIGNED.value,
                reason="",
                level=case(levels, value=signature_request.c.id),
            )
            .returning(signature_request.c.id)
        )
        signed = {RequestId(request) for request in moved.scalars()}
        if signed:
            await self._add_versions(
                [view for view in views if view.request in signed], at
            )
        return signed

    async def sealed(
        self, request: RequestId, view: SignedDocumentView, at: datetime
    ) -> None:
        """Record a version of a request's signed document, once."""
        await self._add_versions([replace(view, request=request)], at)

    async def _add_versions(
        self, views: Collection[SignedDocumentView], at: datetime
    ) -> None:
        await self._connection.execute(
            insert(signed_document),
            [
                {
                    "request": view.request,
                    "version": view.version,
                    "integrator": view.integrator,
                    "sha256": view.sha256,
                    "size_bytes": view.size_bytes,
                    "level": view.level,
                    "made": at,
                }
                for view in views
            ],
        )

    async def signed(self, request: RequestId) -> SignedDocumentView | None:
        """The newest version of a request's signed document."""
        query = (
            _SIGNED.where(signed_document.c.request == request)
            .order_by(signed_document.c.version.desc())
            .limit(1)
        )
        row = (await self._connection.execute(query)).one_or_none()
        return None if row is None else _signed_view(row)

    async def first_signed(self, request: RequestId) -> SignedDocumentView | None:
        """The first version of it: as it was when the signature was made."""
        query = (
            _SIGNED.where(signed_document.c.request == request)
            .order_by(signed_document.c.version)
            .limit(1)
        )
        row = (await self._connection.execute(query)).one_or_none()
        return None if row is None else _signed_view(row)

    async def stamped_between(
        self, since: datetime, until: datetime, after: tuple[int, int], limit: int
    ) -> list[SignedDocumentView]:
        """Versions with a timestamp, made in that time, by request and version."""
        rows = await self._connection.execute(
            _SIGNED.where(
                signed_document.c.made >= since,
                signed_document.c.made <= until,
                signed_document.c.level != SignatureLevel.B_B.value,
                tuple_(signed_document.c.request, signed_document.c.version) > after,
            )
            .order_by(signed_document.c.request, signed_document.c.version)
            .limit(limit)
        )
        return [_signed_view(row) for row in rows]

    async def version(
        self, request: RequestId, sha256: str
    ) -> SignedDocumentView | None:
        """The version of a request's signed document that has this hash."""
        query = _SIGNED.where(
            signed_document.c.request == request, signed_document.c.sha256 == sha256
        )
        row = (await self._connection.execute(query)).one_or_none()
        return None if row is None else _signed_view(row)

    async def holding(self, request: RequestId) -> list[SignedVersion]:
        """All signed documents that hold a signature, newest first."""
        own, before = signature_request.alias("own"), document.alias("before")
        # Who signs in any order signs what the one before made, which is longer.
        same = func.coalesce(signature_request.c.turn == own.c.turn, false())
        rows = await self._connection.execute(
            select(signed_document)
            .join(
                signature_request,
                signature_request.c.id == signed_document.c.request,
            )
            .join(own, own.c.process == signature_request.c.process)
            .join(document, document.c.id == signature_request.c.document)
            .join(before, before.c.id == own.c.document)
            .where(own.c.id == request, or_(signature_request.c.seq >= own.c.seq, same))
            .where(or_(~same, document.c.size_bytes >= before.c.size_bytes))
            .order_by(
                func.coalesce(
                    signature_request.c.turn, signature_request.c.seq + 1
                ).desc(),
                document.c.size_bytes.desc(),
                signed_document.c.version.desc(),
            )
        )
        return [
            SignedVersion(
                request=RequestId(row.request),
                number=row.version,
                level=row.level,
                sha256=row.sha256,
                size_bytes=row.size_bytes,
                made=row.made,
            )
            for row in rows
        ]

    async def forget_unused(self, before: datetime, limit: int) -> int:
        """Forget documents that came in before then, for nothing; how many."""
        unused = select(document.c.id).where(_is_unused(before)).limit(limit)
        found = list((await self._connection.execute(unused)).scalars())
        result = await self._connection.execute(
            delete(document).where(
                document.c.id.in_(found),
                # Whoever took it in again meanwhile made it new.
                document.c.created < before,
            )
        )
        for table in _ORIGINALS:
            stale = (
                select(table.c.document)
                .join(document, document.c.id == table.c.document)
                .where(document.c.created < before, _is_stale(table))
                .limit(limit)
            )
            copies = list((await self._connection.execute(stale)).scalars())
            await self._forget_originals(
                table, table.c.document.in_(copies), document.c.created < before
            )
        return result.rowcount

    async def _forget_originals(
        self,
        table: Table,
        which: ColumnElement[bool],
        of_document: ColumnElement[bool],
    ) -> None:
        """Forget originals as whose copy nothing refers to a document any more.

        Args:
            table: that names them.
            which: of its rows.
            of_document: a condition of the copies.
        """
        # Whoever is about to refer to a copy holds its row, and is not waited for: what
        # is left is forgotten by a later sweep.
        held = await self._connection.execute(
            select(document.c.id)
            .where(document.c.id.in_(select(table.c.document).where(which)))
            .where(of_document)
            .order_by(document.c.sha256)
            .with_for_update(skip_locked=True)
        )
        copies = list(held.scalars())
        if copies:
            await self._connection.execute(
                delete(table).where(
                    which, table.c.document.in_(copies), _is_stale(table)
                )
            )

    async def forget_unneeded(self, integrator: IntegratorId, sha256: str) -> None:
        """Forget a document at once, if nothing refers to it or has brought it.

        And that it is the original of a copy, if nothing refers to the copy as such.
        """
        query = select(document.c.id).where(
            document.c.integrator == integrator, document.c.sha256 == sha256
        )
        # Who is about to refer to it holds its row; what they wrote is seen only by
        # a statement that begins after that.
        locked = await self._connection.execute(query.with_for_update())
        found = locked.scalar_one_or_none()
        if found is not None:
            await self._connection.execute(
                delete(document).where(
                    document.c.id == found, not_(_is_referred_to()), not_(_IS_BROUGHT)
                )
            )
        for table in _ORIGINALS:
            await self._forget_originals(
                table,
                and_(table.c.integrator == integrator, table.c.sha256 == sha256),
                true(),
            )

    async def named(
        self, integrator: IntegratorId, sha256: Collection[str]
    ) -> set[str]:
        """Which of these are named by anything of that integrator's."""
        named = [
            select(table.c.sha256).where(
                table.c.integrator == integrator, table.c.sha256.in_(sha256)
            )
            for table in NAMING
        ]
        return set((await self._connection.execute(union(*named))).scalars())

    async def is_needed(self, integrator: IntegratorId, sha256: str) -> bool:
        """Whether a file is named by anything but what says that it leaves.

        One statement: what goes from one table to another is seen in one of them.
        """
        named = [
            select(table.c.sha256).where(
                table.c.integrator == integrator,
                table.c.sha256 == sha256,
                ~passing_document.c.leaves if table is passing_document else true(),
            )
            for table in NAMING
        ]
        found = await self._connection.execute(union(*named))
        return found.first() is not None

    async def known(
        self, integrator: IntegratorId, sha256: Collection[str]
    ) -> tuple[dict[str, Inspection], set[str]]:
        """What this version's sandbox has said of files that came in before.

        Args:
            integrator: whose.
            sha256: of the files, hex.

        Returns:
            By SHA-256, of those that are kept; and which were damaged, so that a
            repaired copy is kept.
        """
        repair = document_original.c
        rows = await self._connection.execute(
            select(document).where(
                document.c.integrator == integrator, document.c.sha256.in_(sha256)
            )
        )
        # Of their bytes alone: a copy may come in as it is.
        stored = [stored_document(row, None) for row in rows]
        damaged = await self._connection.execute(
            select(repair.sha256).where(
                repair.integrator == integrator, repair.sha256.in_(sha256)
            )
        )
        found = {
            each.sha256: each.inspection
            for each in stored
            if not each.inspection.is_outdated
        }
        return found, set(damaged.scalars())


_IS_BROUGHT: Final = exists().where(
    embed_session_document.c.integrator == document.c.integrator,
    embed_session_document.c.sha256 == document.c.sha256,
)
"""A session of the frame has brought a document."""


def _is_stale(table: Table) -> ColumnElement[bool]:
    """Nothing refers to a document as the copy of an original, or has brought that.

    Args:
        table: one of `_ORIGINALS`.
    """
    brought = exists().where(
        embed_session_document.c.integrator == table.c.integrator,
        embed_session_document.c.sha256 == table.c.sha256,
    )
    referring = [
        exists().where(
            of.c.document == table.c.document,
            or_(of.c.original_sha256.is_(None), of.c.original_sha256 == table.c.sha256),
        )
        for of in _REFERRING_TABLES
    ]
    return not_(or_(brought, *referring))


def _is_referred_to() -> ColumnElement[bool]:
    return or_(*(exists().where(column == document.c.id) for column in REFERRING))


def _is_unused(before: datetime) -> ColumnElement[bool]:
    """Came in before then, and nothing refers to it."""
    return and_(document.c.created < before, not_(_is_referred_to()))


def _signed_view(row: Row[Any]) -> SignedDocumentView:
    return SignedDocumentView(
        request=RequestId(row.request),
        integrator=IntegratorId(row.integrator),
        file_name=row.name,
        sha256=row.sha256,
        size_bytes=row.size_bytes,
        level=row.level,
        version=row.version,
    )


def _sha256(document: StoredDocument) -> str:
    return document.sha256


def stored_document(row: Row[Any], repair: Repair | None) -> StoredDocument:
    """A document of its row.

    Args:
        row: of `document`, with more columns, if need be.
        repair: by which it was made.
    """
    return StoredDocument(
        DocumentId(row.id),
        IntegratorId(row.integrator),
        row.sha256,
        as_it_came(inspection_from_json(row.inspection), repair),
        repair,
    )


KEY_TABLE: Final = "document_key"
KEY_COLUMN: Final = "key_sealed"
"""Where a key stands, and what it is sealed for."""


class DocumentKeyStore(Store):
    """One row an integrator that has documents, over one connection."""

    async def get(self, integrator: IntegratorId) -> bytes | None:
        """An integrator's key, sealed."""
        result = await self._connection.execute(
            select(document_key.c.key_sealed).where(
                document_key.c.integrator == integrator
            )
        )
        return result.scalar_one_or_none()

    async def add(
        self, integrator: IntegratorId, sealed: bytes, created: datetime
    ) -> bool:
        """Record a key; False when there is one, which stays."""
        result = await self._connection.execute(
            insert_into(self._connection, document_key)
            .values(integrator=integrator, key_sealed=sealed, created=created)
            .on_conflict_do_nothing()
        )
        return result.rowcount == 1

    async def remove(self, integrator: IntegratorId) -> bool:
        """Forget a key; whether there was one."""
        result = await self._connection.execute(
            delete(document_key).where(document_key.c.integrator == integrator)
        )
        return result.rowcount == 1
