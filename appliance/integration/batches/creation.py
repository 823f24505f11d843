"""Making batches: many documents that one person is asked to sign, by one call.

All of it or nothing. The call refuses what can be refused at no cost, all faults with
their places, before anything is recorded. Else it keeps the files that came, records
the batch with what is asked for, and is over: workers examine the documents and record
the requests (`batch_preparation`). Documents that were uploaded before were examined
then, and are not examined again; the batch holds them from here on.

Source: docs/integration.md "Ask for many at once".
"""

from collections.abc import AsyncIterator, Collection
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any

from appliance.documents.document_bytes import sha256_of, size_of
from appliance.domain.clock import Clock
from appliance.domain.errors import ApplianceError, ErrorCode
from appliance.domain.ids import IntegratorId, RequestBatchId
from appliance.domain.integrators.integrators import IntegratorCaller
from appliance.domain.ports import DocumentBytes, WorkNotifier
from appliance.domain.requests.backend_batch import (
    BatchToPrepare,
    DocumentToPrepare,
    RequestBatch,
)
from appliance.domain.requests.uploads import DEFAULT_NAME
from appliance.domain.vocab import BatchState, EventKind
from appliance.integration.batches.checks import (
    BatchChecks,
    ReadyBatch,
    came_as,
    demand_uploaded,
    name_of,
    uploads_of,
)
from appliance.integration.batches.events import batch_event
from appliance.integration.requests.idempotency import (
    MadeBefore,
    OrderKey,
    is_key_known,
)
from appliance.integration.requests.order import BatchDocument, BatchOrder
from appliance.record.unit_of_work import Database, Transaction
from appliance.requests.batch_queue import BatchQueue
from appliance.requests.intake import Intake
from appliance.requests.request_batch_store import RequestBatchStore
from appliance.requests.uploads import UploadedDocuments


@dataclass(frozen=True, slots=True)
class MadeBatch:
    """What an order came to."""

    batch: RequestBatchId
    is_repeated: bool
    """Whether an earlier call with its idempotency key made it."""


class BackendBatchOrders:
    """Makes the batches that integrators' backends ask for.

    Args:
        store: the record.
        intake: keeps what comes in.
        uploads: what came before.
        checks: refuse what can be refused at no cost.
        notifier: wakes who prepares batches.
        clock: the time.
    """

    def __init__(
        self,
        store: Database,
        intake: Intake,
        uploads: UploadedDocuments,
        checks: BatchChecks,
        notifier: WorkNotifier,
        clock: Clock,
    ) -> None:
        self._store = store
        self._intake = intake
        self._uploads = uploads
        self._checks = checks
        self._notifier = notifier
        self._clock = clock

    async def is_repeated(self, whose: IntegratorId, key: str | None) -> bool:
        """Whether an order with this idempotency key was made before."""
        return await is_key_known(self._store, whose, key)

    async def create(self, asking: IntegratorCaller, order: BatchOrder) -> MadeBatch:
        """Ask one person to sign many documents.

        Args:
            asking: the integrator's backend.
            order: what it asks for.

        Raises:
            FieldInvalidError: `vence` is over, or a reference is there twice.
            SeveralFaultsError: several of these.
            ApplianceError: `PERSON_NOT_FOUND`, `REFERENCE_IN_USE`,
                `IDEMKEY_CONFLICT`, `DOCUMENT_QUOTA`, `STORAGE_FULL`,
                `STORE_UNAVAILABLE`; with the document's field `DOCUMENT_NOT_FOUND`,
                `FILENAME`, `DOCUMENT_EMPTY`, `DOCUMENT_TOO_LARGE`.
        """
        whose = asking.integrator.id
        key = OrderKey(whose, order.idempotency_key, await order.fingerprint())
        check = partial(self._checks.ready, whose, order)
        # What is faulty came to nothing, whatever its key stands for.
        ready = await (check() if order.faults else key.unless_made(self._store, check))
        if isinstance(ready, MadeBefore):
            return MadeBatch(RequestBatchId(ready.id), is_repeated=True)
        documents = await _documents(order, ready)
        async with (
            self._naming_the_other(whose, order),
            self._intake.keeping_files(whose, files_in(order.documents)) as kept,
            self._store.write() as transaction,
        ):
            now = self._clock.now()
            bound = await key.bind(transaction, now)
            if bound is not None:
                return MadeBatch(RequestBatchId(bound), is_repeated=True)
            # Its files are kept under its id.
            batch = RequestBatch(
                RequestBatchId(kept.call),
                whose,
                now,
                order.note,
                BatchState.PREPARING,
                ready.person.id,
                ready.signer.by,
                len(documents),
                sum(each.is_settled for each in documents),
                openings=order.openings,
            )
            await self._hold(transaction, whose, order.documents)
            await kept.handed_on(transaction, now)
            await RequestBatchStore(transaction).add(batch)
            wanted = BatchToPrepare(
                asking.actor, order.expires, order.level, order.idempotency_key
            )
            await BatchQueue(transaction).add(batch, wanted, documents)
            await key.stands_for(transaction, batch.id, now)
            transaction.audit.add(
                batch_event(
                    EventKind.BATCH_RECEIVED,
                    asking.actor,
                    batch,
                    openings=batch.openings.value,
                )
            )
        await self._notifier.notify(batch.id)
        return MadeBatch(batch.id, is_repeated=False)

    async def _hold(
        self,
        transaction: Transaction,
        whose: IntegratorId,
        documents: Collection[BatchDocument],
    ) -> None:
        """Have all that was uploaded be there still.

        Raises:
            ApplianceError: `DOCUMENT_NOT_FOUND`: one was deleted meanwhile.
        """
        held = await self._uploads.hold(transaction, whose, uploads_of(documents))
        for place, each in enumerate(documents):
            demand_uploaded(held, place, each.document)

    @asynccontextmanager
    async def _naming_the_other(
        self, whose: IntegratorId, order: BatchOrder
    ) -> AsyncIterator[None]:
        """Say which reference is in use by what, where that is why it is refused.

        Raises:
            ApplianceError: `REFERENCE_IN_USE`, with the field and the other one's id.
        """
        try:
            yield
        except ApplianceError as refusal:
            if refusal.code is not ErrorCode.REFERENCE_IN_USE:
                raise
            for other in await self._checks.references_in_use(whose, order):
                raise other from refusal
            raise


def files_in(documents: Collection[BatchDocument]) -> list[DocumentBytes]:
    """Files that came with an order."""
    return [each.document for each in documents if not isinstance(each.document, str)]


async def _documents(order: BatchOrder, ready: ReadyBatch) -> list[DocumentToPrepare]:
    """Documents of an order that are to be examined and settled, in order."""
    found: list[DocumentToPrepare] = []
    for place, each in order.placed():
        name = name_of(each, place)
        common: dict[str, Any] = {
            "place": place,
            "field": came_as(each),
            "part": each.part,
            "reference": each.note.reference,
            "is_unique": each.note.is_unique,
            "metadata": each.note.metadata,
            "repairs": each.repairs,
            "wished": each.wished or ready.signer.wished,
        }
        if isinstance(each.document, str):
            upload = ready.uploads[each.document]
            found.append(
                DocumentToPrepare(
                    name=name or upload.name,
                    sha256=None,
                    size_bytes=0,
                    document=upload.document.came,
                    # It was examined when it came, and its place is the signer's.
                    is_settled=common["wished"] is None,
                    **common,
                )
            )
        else:
            found.append(
                DocumentToPrepare(
                    name=name or DEFAULT_NAME,
                    sha256=await sha256_of(each.document),
                    size_bytes=size_of(each.document),
                    document=None,
                    **common,
                )
            )
    return found
