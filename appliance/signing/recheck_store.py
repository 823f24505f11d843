"""Signed documents that are kept, page by page, in SQL."""

from typing import Any

from sqlalchemy import Select, exists, func, select

from appliance.database.tables import signature_request, signed_document
from appliance.domain.ids import IntegratorId, ProcessId, RequestId
from appliance.domain.requests.kept_documents import KeptDocument, Selection
from appliance.record.unit_of_work import Store

_newer = signed_document.alias("newer")
_first = signed_document.alias("first")
_other = signed_document.alias("other")
_of_other = signature_request.alias("of_other")


class RecheckStore(Store):
    """The newest version of each request's signed document."""

    async def count(self, selection: Selection) -> int:
        """Number of documents of a selection."""
        query = _selected(select(func.count()), selection, selection.before)
        return int((await self._connection.execute(query)).scalar_one())

    async def page(
        self, selection: Selection, before: RequestId | None, limit: int
    ) -> list[KeptDocument]:
        """Documents of a selection, newest request first.

        Args:
            selection: which.
            before: only requests with a lower number; None: from the newest on.
            limit: most that are returned.
        """
        # Each signature of a process adds to the file: what is shorter came before.
        # Later versions add timestamps to one of them, so first versions are compared.
        signatures = (
            select(func.count(_of_other.c.id.distinct()))
            .select_from(_other)
            .join(_of_other, _of_other.c.id == _other.c.request)
            .join(_first, _first.c.request == signed_document.c.request)
            .where(
                _of_other.c.process == signature_request.c.process,
                _other.c.version == 1,
                _first.c.version == 1,
                _other.c.size_bytes <= _first.c.size_bytes,
            )
            .correlate(signed_document, signature_request)
            .scalar_subquery()
        )
        query = select(
            signed_document, signature_request.c.process, signatures.label("signatures")
        )
        rows = await self._connection.execute(
            _selected(query, selection, before)
            .order_by(signed_document.c.request.desc())
            .limit(limit)
        )
        return [
            KeptDocument(
                request=RequestId(row.request),
                process=ProcessId(row.process),
                integrator=IntegratorId(row.integrator),
                version=row.version,
                sha256=row.sha256,
                signatures=row.signatures,
            )
            for row in rows
        ]


def _selected(
    query: Select[Any], selection: Selection, before: RequestId | None
) -> Select[Any]:
    """Restrict a query to the newest versions of a selection."""
    query = (
        query.select_from(signed_document)
        .join(signature_request, signature_request.c.id == signed_document.c.request)
        .where(
            ~exists().where(
                _newer.c.request == signed_document.c.request,
                _newer.c.version > signed_document.c.version,
            )
        )
    )
    if before is not None:
        query = query.where(signed_document.c.request < before)
    if selection.request is not None:
        query = query.where(signed_document.c.request == selection.request)
    if selection.since is not None:
        query = query.where(signed_document.c.made >= selection.since)
    return query
