"""Batches of requests in SQL."""

from collections import Counter
from collections.abc import Collection, Sequence
from datetime import datetime
from typing import Any, Final

from sqlalchemy import Row, Select, delete, func, insert, select, tuple_, update
from sqlalchemy.exc import IntegrityError

from appliance.database.tables import (
    document,
    person,
    request_batch,
    signature_request,
    signing_process,
)
from appliance.documents.document_store import repair_columns, repair_in, with_repair
from appliance.domain.documents.inspected import as_it_came, inspection_from_json
from appliance.domain.errors import (
    ApplianceError,
    ErrorCode,
    error_from_json,
    error_to_json,
)
from appliance.domain.ids import (
    IntegratorId,
    PersonId,
    ProcessId,
    RequestBatchId,
    RequestId,
)
from appliance.domain.requests.backend_batch import (
    BatchDocument,
    BatchMember,
    BatchStanding,
    RequestBatch,
    to_be_opened,
)
from appliance.domain.requests.preset import SignaturePreset, effective
from appliance.domain.requests.process import NamedBy, SignerShown
from appliance.domain.requests.terms import SignatureTerms
from appliance.domain.signing_command import GivenParameters
from appliance.domain.vocab import BatchState, Openings, RequestState
from appliance.record.unit_of_work import Store
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
                    person=new.person,
                    named_by=new.named_by and new.named_by.value,
                    state=new.state.value,
                    total=new.total,
                    examined=new.examined,
                    openings=new.openings.value,
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

    async def state_for(
        self, batch: RequestBatchId, signer: PersonId
    ) -> BatchState | None:
        """State of a batch that a person is to sign; None if there is no such batch."""
        rows = await self._connection.execute(
            select(_C.state).where(_C.id == batch, _C.person == signer)
        )
        row = rows.one_or_none()
        return None if row is None else stored_state(row.state)

    async def examined(self, batch: RequestBatchId, more: int) -> None:
        """Count documents that were examined."""
        await self._connection.execute(
            update(request_batch)
            .where(_C.id == batch)
            .values(examined=func.coalesce(_C.examined, 0) + more)
        )

    async def ready(self, batch: RequestBatchId) -> None:
        """Note that the requests of a batch exist."""
        await self._connection.execute(
            update(request_batch)
            .where(_C.id == batch)
            .values(state=BatchState.READY.value, examined=_C.total)
        )

    async def refuse(
        self, batch: RequestBatchId, faults: Sequence[ApplianceError], at: datetime
    ) -> None:
        """Note that a batch came to nothing; its reference is free again.

        Args:
            batch: whose documents are at fault.
            faults: in the order of its documents.
            at: the time.
        """
        await self._connection.execute(
            update(request_batch)
            .where(_C.id == batch)
            .values(
                state=BatchState.REFUSED.value,
                unique_reference=None,
                faults=[error_to_json(each) for each in faults],
                ended=at,
            )
        )

    async def take_back(self, batch: RequestBatchId, reason: str, at: datetime) -> None:
        """Note that a batch was taken back in time; its reference is free again."""
        await self._connection.execute(
            update(request_batch)
            .where(_C.id == batch)
            .values(
                state=BatchState.CANCELLED.value,
                unique_reference=None,
                reason=reason,
                ended=at,
            )
        )

    async def forget(self, before: datetime, limit: int) -> int:
        """Delete batches that came to nothing before then, the oldest; how many."""
        oldest = select(_C.id).where(_C.ended < before).order_by(_C.ended).limit(limit)
        found = list((await self._connection.execute(oldest)).scalars())
        if found:
            await self._connection.execute(
                delete(request_batch).where(_C.id.in_(found))
            )
        return len(found)

    async def signers(
        self, batches: Collection[RequestBatch]
    ) -> dict[RequestBatchId, SignerShown]:
        """Signers of batches without requests, as far as their integrator may know."""
        people = {each.person for each in batches if each.person is not None}
        rows = await self._connection.execute(
            select(person.c.id, person.c.cuil).where(person.c.id.in_(people))
        )
        cuils: dict[str, str] = {row.id: row.cuil for row in rows}
        return {
            each.id: SignerShown(
                each.person,
                cuils.get(each.person) if each.named_by is NamedBy.CUIL else None,
                None,
            )
            for each in batches
            if each.person is not None
        }

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

    async def openings(self, batch: RequestBatchId) -> Openings:
        """Documents of it that have to be opened before they are signed."""
        found = await self._connection.execute(
            select(_C.openings).where(_C.id == batch)
        )
        return stored_openings(found.scalar_one_or_none())

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
        openings = await self.openings(batch)
        if unread and openings is not Openings.ALL:
            unread = await self._unread_of(batch, signer, openings)
        return BatchStanding(states, seen, unread, openings)

    async def _unread_of(
        self, batch: RequestBatchId, signer: PersonId, openings: Openings
    ) -> int:
        """How many documents wait that still have to be opened."""
        demanded = await self._to_be_opened(batch, signer, openings)
        waiting = await self._connection.execute(
            select(_R.id).where(
                _R.batch == batch,
                _R.person == signer,
                _R.state == RequestState.PENDING.value,
                _R.seen.is_(None),
            )
        )
        return sum(RequestId(each) in demanded for each in waiting.scalars())

    async def _to_be_opened(
        self, batch: RequestBatchId, signer: PersonId, openings: Openings
    ) -> frozenset[RequestId]:
        requests = await self.requests_of(batch, signer)
        return to_be_opened(batch, openings, requests)

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
        query: Select[Any] = (
            select(
                _R.id,
                _R.name,
                _R.state,
                _R.reason,
                _R.seen,
                _R.preset,
                document.c.inspection,
                *repair_columns(signature_request),
            )
            .select_from(
                with_repair(
                    signature_request.join(document, document.c.id == _R.document),
                    signature_request,
                )
            )
            .where(_R.batch == batch, _R.person == signer, _R.id > after)
            .order_by(_R.id)
            .limit(limit)
        )
        rows = (await self._connection.execute(query)).all()
        openings = await self.openings(batch)
        demanded = await self._to_be_opened(batch, signer, openings)
        return [_batch_document(row, demanded) for row in rows]

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
                stored_state(row.state),
                None if row.person is None else PersonId(row.person),
                None if row.named_by is None else NamedBy(row.named_by),
                row.total or 0,
                row.examined or 0,
                tuple(error_from_json(each) for each in row.faults or ()),
                row.reason or "",
                stored_openings(row.openings),
            )
            for row in await self._connection.execute(query)
        ]


def stored_state(stored: str | None) -> BatchState:
    """State of a batch; versions that made its requests with it stored none.

    Args:
        stored: of its row.
    """
    return BatchState.READY if stored is None else BatchState(stored)


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


def stored_openings(stored: str | None) -> Openings:
    """Openings of a batch; versions that knew no other way stored none.

    Args:
        stored: of its row.
    """
    return Openings.ALL if stored is None else Openings(stored)


def _batch_document(row: Row[Any], demanded: Collection[RequestId]) -> BatchDocument:
    """One document of a batch, from its row.

    Args:
        row: of the request and its document.
        demanded: requests whose document has to be opened.
    """
    inspection = as_it_came(inspection_from_json(row.inspection), repair_in(row))
    preset = None if row.preset is None else SignaturePreset.from_json(row.preset)
    return BatchDocument(
        RequestId(row.id),
        row.name,
        len(inspection.pages),
        RequestState(row.state),
        row.reason,
        row.seen is not None,
        SignatureTerms.of(effective(GivenParameters(), preset), inspection),
        RequestId(row.id) in demanded,
        inspection.findings,
        inspection.signatures,
    )
