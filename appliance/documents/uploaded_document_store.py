"""What integrators' backends have uploaded, in SQL."""

from collections.abc import Collection, Sequence
from datetime import datetime
from typing import Any, Final

from sqlalchemy import (
    Row,
    Select,
    delete,
    exists,
    func,
    insert,
    not_,
    select,
    tuple_,
    union,
)

from appliance.database.tables import document, signature_request, uploaded_document
from appliance.documents.document_store import (
    repair_columns,
    repair_in,
    stored_document,
    with_repair,
)
from appliance.domain.ids import IntegratorId, UploadId
from appliance.domain.requests.uploads import UploadedDocument
from appliance.record.unit_of_work import Store

_C: Final = uploaded_document.c
_JOINED: Final = with_repair(
    uploaded_document.join(document, document.c.id == _C.document), uploaded_document
)
_UPLOADS: Final[Select[Any]] = select(
    document,
    *repair_columns(uploaded_document),
    _C.id.label("upload"),
    _C.name,
    _C.created.label("uploaded"),
    _C.until,
    _C.repairs,
).select_from(_JOINED)


class UploadedDocumentStore(Store):
    """Documents under the ids that integrators know."""

    async def add(self, new: UploadedDocument, size_bytes: int, api_key: str) -> None:
        """Record one.

        Args:
            new: it; its document is recorded.
            size_bytes: of the file as it came.
            api_key: id of the key that it came with.
        """
        await self._connection.execute(
            insert(uploaded_document).values(
                id=new.id,
                integrator=new.document.integrator,
                document=new.document.id,
                name=new.name,
                size_bytes=size_bytes,
                api_key=api_key,
                created=new.created,
                until=new.until,
                original_sha256=new.document.original_sha256,
                repairs=new.repairs,
            )
        )

    async def get(
        self, integrator: IntegratorId, wanted: UploadId
    ) -> UploadedDocument | None:
        """One of an integrator's, whether its time is over or not."""
        return (await self.named(integrator, (wanted,))).get(wanted)

    async def named(
        self, integrator: IntegratorId, wanted: Collection[UploadId]
    ) -> dict[UploadId, UploadedDocument]:
        """Those of an integrator's that there are, their time over or not."""
        query = _UPLOADS.where(_C.id.in_(wanted), _C.integrator == integrator)
        rows = await self._connection.execute(query)
        return {UploadId(row.upload): _uploaded(row) for row in rows}

    async def page(
        self,
        integrator: IntegratorId,
        now: datetime,
        before: tuple[datetime, str] | None,
        limit: int,
    ) -> Sequence[UploadedDocument]:
        """Those of an integrator's whose time is not over, newest first.

        Args:
            integrator: whose.
            now: the time.
            before: time and id of the one that the page begins after; None: the first.
            limit: how many.
        """
        query = _UPLOADS.where(_C.integrator == integrator, _C.until > now)
        if before is not None:
            query = query.where(tuple_(_C.created, _C.id) < before)
        query = query.order_by(_C.created.desc(), _C.id.desc()).limit(limit)
        return [_uploaded(row) for row in await self._connection.execute(query)]

    async def remove(self, integrator: IntegratorId, wanted: UploadId) -> int | None:
        """Remove one; the document itself stays.

        Returns:
            Bytes of the file as it came; None where it is gone.
        """
        result = await self._connection.execute(
            delete(uploaded_document)
            .where(_C.id == wanted, _C.integrator == integrator)
            .returning(_C.size_bytes)
        )
        return result.scalar_one_or_none()

    async def remove_over(
        self, now: datetime, limit: int
    ) -> Sequence[UploadedDocument]:
        """Remove some whose time is over, and give them: each to one caller alone."""
        query = _UPLOADS.where(_C.until <= now).order_by(_C.until).limit(limit)
        over = [_uploaded(row) for row in await self._connection.execute(query)]
        return [each for each in over if await self._remove_one(each)]

    async def _remove_one(self, each: UploadedDocument) -> bool:
        return await self.remove(each.document.integrator, each.id) is not None

    async def waiting_bytes(self, integrator: IntegratorId, but: str) -> int:
        """Sizes of what nobody is asked to sign, each document once, in bytes.

        Of a repaired one the damaged file, which is kept beside it, counts too.

        Args:
            integrator: whose.
            but: SHA-256 (hex) of a document, as it came, that is not counted.
        """
        original, _ = repair_columns(uploaded_document)
        waiting = (
            select(
                document.c.sha256,
                document.c.size_bytes,
                original,
                _C.size_bytes.label("came_bytes"),
            )
            .select_from(_JOINED)
            .where(
                document.c.integrator == integrator,
                not_(exists().where(signature_request.c.document == document.c.id)),
            )
            .subquery()
            .c
        )
        came = func.coalesce(waiting.repaired_sha256, waiting.sha256)
        files = union(
            select(waiting.sha256, waiting.size_bytes).where(came != but),
            select(waiting.repaired_sha256, waiting.came_bytes).where(
                waiting.repaired_sha256.is_not(None), came != but
            ),
        ).subquery()
        query = select(func.coalesce(func.sum(files.c.size_bytes), 0))
        # PostgreSQL's sum of whole numbers is a decimal.
        return int((await self._connection.execute(query)).scalar_one())


def _uploaded(row: Row[Any]) -> UploadedDocument:
    return UploadedDocument(
        UploadId(row.upload),
        stored_document(row, repair_in(row)),
        row.name,
        row.uploaded,
        row.until,
        row.repairs,
    )
