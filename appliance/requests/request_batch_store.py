"""Batches of requests in SQL."""

from collections import Counter
from collections.abc import Collection
from datetime import datetime
from typing import Any, Final

from sqlalchemy import Row, Select, func, insert, select, tuple_
from sqlalchemy.exc import IntegrityError

from appliance.core.database.tables import (
    document,
    request_batch,
    signature_request,
    signing_process,
)
from appliance.core.unit_of_work import Store
from appliance.domain.documents import inspection_from_json
from appliance.domain.errors import ApplianceError, ErrorCode
from appliance.domain.ids import (
    IntegratorId,
    PersonId,
    ProcessId,
    RequestBatchId,
    RequestId,
)
from appliance.domain.requests.request_batch import (
    BatchDocument,
    BatchMember,
    BatchStanding,
    RequestBatch,
)
from appliance.domain.vocab import RequestState
from appliance.requests.process_store import note_of
from appliance.requests.request_store import note_columns

_C: Final = request_batch.c
_R: Final = signature_request.c


class RequestBatchStore(Store):
    """Batches, and which requests each has."""

    async def add(self, new: RequestBatch) -> None:
        """Record one; its requests name it.

        Raises:
            ApplianceError: `REFERENCE_IN_USE`.
        """
        try:
            await self._connection.execute(
                insert(request_batch).values(
                    id=new.id,
                    integrator=new.integrator,
                    created=new.created,
                    api_key=new.note.api_key,
                    **note_columns(new.note),
                )
            )
        except IntegrityError as exc:
            raise ApplianceError(ErrorCode.REFERENCE_IN_USE) from exc

    async def get(
        self, whose: IntegratorId, wanted: RequestBatchId
    ) -> RequestBatch | None:
        """A batch by id; somebody else's is as absent as none."""
        found = await self._those(
            select(request_batch).where(_C.id == wanted, _C.integrator == whose)
        )
        return found[0] if found else None

    async def page(
        self,
        whose: IntegratorId,
        before: tuple[datetime, str] | None,
        limit: int,
        reference: str | None = None,
    ) -> list[RequestBatch]:
        """An integrator's, newest first.

        Args:
            whose: they are.
            before: time and id of the one that the page begins after; None: the first.
            limit: how many.
            reference: of those that are asked for; None: all.
        """
        query = select(request_batch).where(_C.integrator == whose)
        if before is not None:
            query = query.where(tuple_(_C.created, _C.id) < before)
        if reference is not None:
            query = query.where(_C.reference == reference)
        return await self._those(
            query.order_by(_C.created.desc(), _C.id.desc()).limit(limit)
        )

    async def of_reference(
        self, whose: IntegratorId, reference: str
    ) -> RequestBatchId | None:
        """The batch that has a reference for itself."""
        found = await self._connection.execute(
            select(_C.id).where(
                _C.integrator == whose, _C.unique_reference == reference
            )
        )
        return found.scalar_one_or_none()

    async def states(
        self, batches: Collection[RequestBatchId]
    ) -> dict[RequestBatchId, Counter[RequestState]]:
        """How many requests of each are in which state."""
        rows = await self._connection.execute(
            select(_R.batch, _R.state, func.count().label("many"))
            .where(_R.batch.in_(batches))
            .group_by(_R.batch, _R.state)
        )
        found: dict[RequestBatchId, Counter[RequestState]] = {
            batch: Counter() for batch in batches
        }
        for row in rows:
            found[RequestBatchId(row.batch)][RequestState(row.state)] = row.many
        return found

    async def firsts(
        self, batches: Collection[RequestBatchId]
    ) -> dict[RequestBatchId, RequestId]:
        """The first request of each."""
        rows = await self._connection.execute(
            select(_R.batch, func.min(_R.id).label("first"))
            .where(_R.batch.in_(batches))
            .group_by(_R.batch)
        )
        return {RequestBatchId(row.batch): RequestId(row.first) for row in rows}

    async def members(
        self,
        batch: RequestBatchId,
        after: RequestId | None = None,
        limit: int | None = None,
    ) -> list[BatchMember]:
        """Its documents, in order.

        Args:
            batch: whose.
            after: the request of the last one of the page before; None: from the first.
            limit: how many; None: all.
        """
        query: Select[Any] = (
            select(
                _R.process,
                _R.id,
                signing_process.c.reference,
                _R.name,
                document.c.sha256,
                _R.state,
                _R.reason,
            )
            .join(signing_process, signing_process.c.id == _R.process)
            .join(document, document.c.id == _R.document)
            .where(_R.batch == batch)
            .order_by(_R.id)
            .limit(limit)
        )
        if after is not None:
            query = query.where(_R.id > after)
        return [_member(row) for row in await self._connection.execute(query)]

    async def requests_of(
        self, batch: RequestBatchId, signer: PersonId
    ) -> dict[RequestId, RequestState]:
        """A person's requests in it, in order, each with its state."""
        rows = await self._connection.execute(
            select(_R.id, _R.state)
            .where(_R.batch == batch, _R.person == signer)
            .order_by(_R.id)
        )
        return {RequestId(row.id): RequestState(row.state) for row in rows}

    async def standing(self, batch: RequestBatchId, signer: PersonId) -> BatchStanding:
        """How a person's requests in it stand."""
        is_unseen = _R.seen.is_(None).label("unseen")
        rows = await self._connection.execute(
            select(_R.state, is_unseen, func.count().label("many"))
            .where(_R.batch == batch, _R.person == signer)
            .group_by(_R.state, is_unseen)
        )
        states: Counter[RequestState] = Counter()
        seen = unread = 0
        for row in rows:
            state = RequestState(row.state)
            states[state] += row.many
            if not row.unseen:
                seen += row.many
            elif state is RequestState.PENDING:
                unread += row.many
        return BatchStanding(states, seen, unread)

    async def documents(
        self,
        batch: RequestBatchId,
        signer: PersonId,
        after: RequestId,
        limit: int,
    ) -> list[BatchDocument]:
        """What a person has in it, in order.

        Args:
            batch: which.
            signer: the person.
            after: the request of the last one of the page before; 0: from the first.
            limit: how many.
        """
        rows = await self._connection.execute(
            select(_R.id, _R.name, _R.state, _R.reason, _R.seen, document.c.inspection)
            .join(document, document.c.id == _R.document)
            .where(_R.batch == batch, _R.person == signer, _R.id > after)
            .order_by(_R.id)
            .limit(limit)
        )
        return [
            BatchDocument(
                RequestId(row.id),
                row.name,
                len(inspection_from_json(row.inspection).pages),
                RequestState(row.state),
                row.reason,
                row.seen is not None,
            )
            for row in rows
        ]

    async def message(self, batch: RequestBatchId) -> str | None:
        """What is written to the signer; None where its documents differ in it."""
        found = await self._connection.execute(
            select(signing_process.c.message)
            .join(signature_request, _R.process == signing_process.c.id)
            .where(_R.batch == batch)
            .distinct()
            .limit(2)
        )
        messages = list(found.scalars())
        return messages[0] if len(messages) == 1 else None

    async def _those(self, query: Select[Any]) -> list[RequestBatch]:
        return [
            RequestBatch(
                RequestBatchId(row.id),
                IntegratorId(row.integrator),
                row.created,
                note_of(row),
            )
            for row in await self._connection.execute(query)
        ]


def _member(row: Row[Any]) -> BatchMember:
    return BatchMember(
        ProcessId(row.process),
        RequestId(row.id),
        row.reference,
        row.name,
        row.sha256,
        RequestState(row.state),
        row.reason,
    )
