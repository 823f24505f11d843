"""Batches that wait for their documents to be examined, in SQL.

A claim holds one for a few groups of documents; then another one has its turn.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import cache
from typing import Any, Final

from sqlalchemy import (
    ColumnElement,
    Row,
    Select,
    and_,
    bindparam,
    delete,
    func,
    insert,
    or_,
    select,
    update,
)
from sqlalchemy.exc import IntegrityError
from sqlalchemy.sql.dml import ReturningUpdate

from appliance.database.tables import batch_document, batch_preparation, integrator
from appliance.database.types import Instant
from appliance.domain.documents.inspected import CameDocument
from appliance.domain.errors import (
    ApplianceError,
    ErrorCode,
    error_from_json,
    error_to_json,
)
from appliance.domain.ids import DocumentId, IntegratorId, RequestBatchId
from appliance.domain.requests.backend_batch import (
    BatchToPrepare,
    DocumentToPrepare,
    RequestBatch,
    SettledDocument,
)
from appliance.domain.requests.preset import SignaturePreset, WishedPreset
from appliance.domain.vocab import SignatureLevel
from appliance.record.leased_queue import LeasedQueue

ATTEMPTS: Final = 5
"""Claims without progress after which a batch seems to kill workers."""
QUARANTINE: Final = timedelta(hours=1)
"""Rest of such a batch between two claims; it is never given up."""
_P: Final = batch_preparation.c
_D: Final = batch_document.c
_AT: Final[Any] = bindparam("at", type_=Instant())
_RESTED: Final[Any] = bindparam("rested", type_=Instant())


class ClaimLostError(Exception):
    """Another worker holds the batch, or it was taken back."""


@dataclass(frozen=True, slots=True)
class BatchClaim:
    """A batch in progress."""

    id: RequestBatchId
    fence: int
    integrator: IntegratorId
    order: BatchToPrepare
    tries: int
    """This claim among them."""


class BatchQueue(LeasedQueue):
    """Batches in preparation, with their documents."""

    table, tries = batch_preparation, _P.tries

    async def add(
        self,
        batch: RequestBatch,
        order: BatchToPrepare,
        documents: Sequence[DocumentToPrepare],
    ) -> None:
        """Have a batch prepared, once this transaction is committed.

        Args:
            batch: recorded already.
            order: what is asked for.
            documents: in order; one at least.

        Raises:
            ApplianceError: `REFERENCE_IN_USE`: another batch in preparation has a
                document with that reference.
        """
        await self._connection.execute(
            insert(batch_preparation).values(
                id=batch.id,
                integrator=batch.integrator,
                created=batch.created,
                actor=order.actor,
                expires=order.expires,
                level=order.level and order.level.value,
                idempotency_key=order.idempotency_key,
                tries=0,
                fence=0,
            )
        )
        try:
            await self._connection.execute(
                insert(batch_document), [_columns(batch, each) for each in documents]
            )
        except IntegrityError as exc:
            raise ApplianceError(ErrorCode.REFERENCE_IN_USE) from exc

    async def any_due(self, at: datetime, but: Collection[IntegratorId] = ()) -> bool:
        """True if `claim_next` would give a batch."""
        return await self._any(_looking(), _given(at, but))

    async def claim_next(
        self,
        owner: str,
        at: datetime,
        lease: timedelta,
        but: Collection[IntegratorId] = (),
    ) -> BatchClaim | None:
        """Take the batch that has waited longest for its turn.

        Args:
            owner: `<slot>/<process>`.
            at: the time.
            lease: how long it is held.
            but: integrators that have a batch in progress in this worker.
        """
        row = await self._claim(_claiming(), owner, at + lease, _given(at, but))
        if row is None:
            return None
        level = None if row.level is None else SignatureLevel(row.level)
        return BatchClaim(
            RequestBatchId(row.id),
            row.fence,
            IntegratorId(row.integrator),
            BatchToPrepare(row.actor, row.expires, level, row.idempotency_key),
            row.tries,
        )

    async def let_go(self, claim: BatchClaim, until: datetime) -> bool:
        """Give a batch back that nothing is wrong with.

        Args:
            claim: of the caller.
            until: when its next turn may be; others that wait come first.

        Returns:
            False if another claim came since, or the batch has ended.
        """
        return await self._fenced(claim, {"lease_until": until, "tries": 0})

    async def get_on(self, claim: BatchClaim) -> bool:
        """Note that a batch gets on, and keep others from it until the caller ends.

        Returns:
            False if another claim came since, or the batch has ended.
        """
        return await self._fenced(claim, {"tries": 0})

    async def settle(
        self, claim: BatchClaim, settled: Sequence[SettledDocument]
    ) -> None:
        """Write what documents came to; see `get_on`."""
        statement = (
            update(batch_document)
            .where(_D.batch == bindparam("of_batch"), _D.place == bindparam("at_place"))
            .values(
                document=func.coalesce(
                    bindparam("new_document", type_=_D.document.type), _D.document
                ),
                original_sha256=func.coalesce(
                    bindparam("new_original", type_=_D.original_sha256.type),
                    _D.original_sha256,
                ),
                preset=bindparam("new_preset", type_=_D.preset.type),
                settled=bindparam("new_settled"),
                fault=bindparam("new_fault", type_=_D.fault.type),
            )
        )
        await self._connection.execute(
            statement,
            [
                {
                    "of_batch": claim.id,
                    "at_place": each.place,
                    "new_document": each.document and each.document.id,
                    "new_original": each.document and each.document.original_sha256,
                    "new_preset": each.preset and each.preset.to_json(),
                    "new_settled": each.fault is None,
                    "new_fault": each.fault and error_to_json(each.fault),
                }
                for each in settled
            ],
        )

    async def documents(self, batch: RequestBatchId) -> list[DocumentToPrepare]:
        """All documents of a batch, in order; none once it has ended."""
        rows = await self._connection.execute(
            select(batch_document).where(_D.batch == batch).order_by(_D.place)
        )
        return [_document(row) for row in rows]

    async def of_references(
        self, whose: IntegratorId, references: Collection[str]
    ) -> dict[str, RequestBatchId]:
        """Batches in preparation with documents that those references are unique to."""
        rows = await self._connection.execute(
            select(_D.unique_reference, _D.batch).where(
                _D.integrator == whose, _D.unique_reference.in_(references)
            )
        )
        return {row.unique_reference: RequestBatchId(row.batch) for row in rows}

    async def end(self, claim: BatchClaim) -> bool:
        """Remove what was to be done for a batch; False as of `let_go`."""
        return await self._end(claim.id, _P.fence == claim.fence) is not None

    async def take_back_of(
        self, whose: IntegratorId, batch: RequestBatchId
    ) -> BatchToPrepare | None:
        """Remove what was to be done for an integrator's batch, whoever holds it.

        Returns:
            What was asked for; None if the batch has ended, or is not there.
        """
        return await self._end(batch, _P.integrator == whose)

    async def _end(
        self, batch: RequestBatchId, *conditions: ColumnElement[bool]
    ) -> BatchToPrepare | None:
        found = await self._connection.execute(
            delete(batch_preparation)
            .where(_P.id == batch, *conditions)
            .returning(batch_preparation)
        )
        row = found.one_or_none()
        if row is None:
            return None
        await self._connection.execute(delete(batch_document).where(_D.batch == batch))
        level = None if row.level is None else SignatureLevel(row.level)
        return BatchToPrepare(row.actor, row.expires, level, row.idempotency_key)


def _given(at: datetime, but: Collection[IntegratorId]) -> Mapping[str, object]:
    return {"at": at, "rested": at - QUARANTINE, "busy": [*but]}


def _claimable() -> ColumnElement[bool]:
    """Batches that no lease holds, of integrators that may ask for signatures."""
    is_off = select(integrator.c.id).where(
        integrator.c.id == _P.integrator, integrator.c.disabled.is_not(None)
    )
    return and_(
        BatchQueue.unheld(_AT),
        or_(~BatchQueue.quarantined(ATTEMPTS), BatchQueue.unheld(_RESTED)),
        _P.integrator.not_in(bindparam("busy", expanding=True)),
        ~is_off.exists(),
    )


@cache
def _looking() -> Select[Any]:
    return BatchQueue.looking(_P.id, _claimable())


@cache
def _claiming() -> ReturningUpdate[Any]:
    return BatchQueue.claiming(_claimable(), values={"tries": _P.tries + 1})


def _columns(batch: RequestBatch, each: DocumentToPrepare) -> dict[str, object]:
    return {
        "batch": batch.id,
        "place": each.place,
        "integrator": batch.integrator,
        "sha256": each.sha256,
        "size_bytes": each.size_bytes,
        "document": each.document and each.document.id,
        "original_sha256": each.document and each.document.original_sha256,
        "name": each.name,
        "field": each.field,
        "part": each.part,
        "reference": each.reference,
        "unique_reference": each.reference if each.is_unique else None,
        "metadata": dict(each.metadata) or None,
        "repairs": each.repairs,
        "wished": each.wished and each.wished.to_json(),
        "settled": each.is_settled,
    }


def _document(row: Row[Any]) -> DocumentToPrepare:
    return DocumentToPrepare(
        place=row.place,
        name=row.name,
        field=row.field,
        part=row.part,
        sha256=row.sha256,
        size_bytes=row.size_bytes,
        document=None
        if row.document is None
        else CameDocument(DocumentId(row.document), row.original_sha256),
        reference=row.reference,
        is_unique=row.unique_reference is not None,
        metadata=row.metadata or {},
        repairs=row.repairs,
        wished=None if row.wished is None else WishedPreset.from_json(row.wished),
        preset=None if row.preset is None else SignaturePreset.from_json(row.preset),
        is_settled=row.settled,
        fault=None if row.fault is None else error_from_json(row.fault),
    )
