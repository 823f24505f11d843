"""Files on their way into the store of documents or out of it, in SQL."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from sqlalchemy import ColumnElement, delete, exists, func, insert, or_, select, update

from appliance.database.tables import (
    batch_preparation,
    document,
    document_original,
    passing_document,
    signature_request,
    uploaded_document,
)
from appliance.database.upsert import insert_into
from appliance.domain.ids import IntegratorId
from appliance.record.unit_of_work import Store

_C: Final = passing_document.c
_ORIGINAL: Final = document_original.c


@dataclass(frozen=True, slots=True)
class PassingFile:
    """One file that a call keeps, or did."""

    call: str
    integrator: IntegratorId
    sha256: str


class PassingDocumentStore(Store):
    """Rows that are there before their files are, and until these are gone."""

    async def add(
        self,
        call: str,
        integrator: IntegratorId,
        files: Mapping[str, int],
        at: datetime,
        *,
        leaves: bool = False,
    ) -> None:
        """Record files.

        Args:
            call: an id of its own, of what keeps them.
            integrator: whose.
            files: size in bytes of each, by SHA-256 (hex).
            at: the time.
            leaves: nothing needs them any more.
        """
        # In one order, so that nobody waits for each other.
        await self._connection.execute(
            insert(passing_document),
            [
                {
                    "call": call,
                    "sha256": sha256,
                    "integrator": integrator,
                    "size_bytes": files[sha256],
                    "leaves": leaves,
                    "since": at,
                }
                for sha256 in sorted(files)
            ],
        )

    async def recorded(self, call: str) -> int:
        """Forget those of a call that has recorded what they are; how many."""
        result = await self._connection.execute(
            delete(passing_document).where(_C.call == call, ~_C.leaves)
        )
        return result.rowcount

    async def renew(self, call: str, at: datetime) -> int:
        """Have those of a call that goes on count as new; how many."""
        result = await self._connection.execute(
            update(passing_document).where(_C.call == call, ~_C.leaves).values(since=at)
        )
        return result.rowcount

    async def add_copies(
        self,
        call: str,
        integrator: IntegratorId,
        files: Mapping[str, int],
        at: datetime,
    ) -> None:
        """Record more files of a call that goes on; arguments as of `add`."""
        await self._connection.execute(
            insert_into(self._connection, passing_document).on_conflict_do_nothing(),
            [
                {
                    "call": call,
                    "sha256": sha256,
                    "integrator": integrator,
                    "size_bytes": files[sha256],
                    "leaves": False,
                    "since": at,
                }
                for sha256 in sorted(files)
            ],
        )

    async def let_go(self, call: str, at: datetime) -> list[PassingFile]:
        """Have those of a call leave, and give them."""
        rows = await self._connection.execute(
            update(passing_document)
            .where(_C.call == call)
            .values(leaves=True, since=at)
            .returning(_C.integrator, _C.sha256)
        )
        return [
            PassingFile(call, IntegratorId(row.integrator), row.sha256) for row in rows
        ]

    async def let_go_of_some(
        self, abandoned: datetime, tried: datetime, at: datetime, limit: int
    ) -> Sequence[PassingFile]:
        """Some that leave and were not tried since, or that a dead call kept.

        Args:
            abandoned: no call that began before then goes on.
            tried: who was tried after that is left out.
            at: the time, by which they are tried now.
            limit: how many.
        """
        # A batch is prepared for as long as that takes.
        is_open = exists().where(batch_preparation.c.id == _C.call)
        due = or_(_C.leaves & (_C.since < tried), (_C.since < abandoned) & ~is_open)
        rows = await self._connection.execute(
            select(_C.call, _C.sha256, _C.integrator)
            .where(due)
            .order_by(_C.since)
            .limit(limit)
        )
        found = [
            PassingFile(row.call, IntegratorId(row.integrator), row.sha256)
            for row in rows
        ]
        for each in found:
            await self._connection.execute(
                update(passing_document)
                .where(_C.call == each.call, _C.sha256 == each.sha256)
                .values(leaves=True, since=at)
            )
        return found

    async def forget(self, each: PassingFile) -> None:
        """Forget one whose file is gone, or has its place in the record."""
        await self._connection.execute(
            delete(passing_document).where(
                _C.call == each.call, _C.sha256 == each.sha256
            )
        )

    async def passing_bytes(
        self,
        integrator: IntegratorId,
        *,
        but_sha256: Collection[str] = (),
        but_call: str = "",
    ) -> int:
        """Sizes of an integrator's, each file once, in bytes.

        What was uploaded or somebody is asked to sign is not among them: that is
        counted where it belongs.

        Args:
            integrator: whose.
            but_sha256: files that are not counted.
            but_call: whose are not counted.
        """
        size = func.max(_C.size_bytes).label("size")
        each = (
            select(size)
            .where(
                _C.integrator == integrator,
                _C.sha256.not_in(but_sha256),
                _C.call != but_call,
                ~_is_counted_elsewhere(),
            )
            .group_by(_C.sha256)
            .subquery()
        )
        query = select(func.coalesce(func.sum(each.c.size), 0))
        # PostgreSQL's sum of whole numbers is a decimal.
        return int((await self._connection.execute(query)).scalar_one())

    async def still_referred_to(self, integrator: IntegratorId, sha256: str) -> bool:
        """Whether a document that nobody uploaded or is asked to sign has the file.

        A session that was opened for an upload may be all that needs it by now.
        """
        found = exists().where(
            document.c.integrator == integrator, document.c.sha256 == sha256
        )
        repaired = exists().where(
            _ORIGINAL.integrator == integrator, _ORIGINAL.sha256 == sha256
        )
        row = select(passing_document.c.call).where(
            _C.integrator == integrator,
            _C.sha256 == sha256,
            or_(found, repaired),
            ~_is_counted_elsewhere(),
        )
        return (await self._connection.execute(row.limit(1))).first() is not None


def _is_counted_elsewhere() -> ColumnElement[bool]:
    """Somebody uploaded it, or is asked to sign it: as it is, or a copy of it."""
    users = (uploaded_document.c, signature_request.c)
    is_used = or_(*(exists().where(of.document == document.c.id) for of in users))
    is_it = exists().where(
        document.c.integrator == _C.integrator, document.c.sha256 == _C.sha256, is_used
    )
    is_copy_used = or_(
        *(
            exists().where(
                of.document == _ORIGINAL.document,
                or_(
                    of.original_sha256 == _ORIGINAL.sha256,
                    of.original_sha256.is_(None),
                ),
            )
            for of in users
        )
    )
    is_origin = exists().where(
        _ORIGINAL.integrator == _C.integrator,
        _ORIGINAL.sha256 == _C.sha256,
        is_copy_used,
    )
    return or_(is_it, is_origin)
