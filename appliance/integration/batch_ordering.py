"""Making batches: many documents that one person is asked to sign, by one call.

All of it or nothing: what can be refused is refused, all of it with its place, before
anything is recorded, and what costs nothing before a document is examined; then all is
recorded in one transaction, by a few statements. Documents that were uploaded before
were examined then, and are not again.

Source: docs/integration.md "Ask for many at once".
"""

import asyncio
from collections.abc import AsyncIterator, Collection
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import partial

from appliance.core.unit_of_work import Database, Transaction
from appliance.domain.clock import Clock
from appliance.domain.errors import BATCH_TOO_SLOW, ApplianceError, ErrorCode
from appliance.domain.ids import IntegratorId, RequestBatchId, new_id
from appliance.domain.integrators.integrators import IntegratorCaller
from appliance.domain.ports import LookupIndex
from appliance.domain.requests.levels import ProfileWishes
from appliance.domain.requests.process import BACKEND_ORIGIN
from appliance.domain.requests.request_batch import RequestBatch
from appliance.integration.batch_checks import (
    BatchChecks,
    demand_uploaded,
    uploads_of,
)
from appliance.integration.batch_settling import (
    BatchSettling,
    SettledDocument,
    came_of,
)
from appliance.integration.order_keys import MadeBefore, OrderKey, is_key_known
from appliance.integration.ordering import SETTLING_S
from appliance.integration.orders import BatchDocument, BatchOrder
from appliance.requests.intake import Intake
from appliance.requests.presets import Presets
from appliance.requests.recording import NewProcess, record_all
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
        intake: examines and keeps what comes in.
        uploads: what came before.
        presets: settle look and place.
        lookup: finds people by e-mail.
        clock: the time.
    """

    def __init__(
        self,
        store: Database,
        intake: Intake,
        uploads: UploadedDocuments,
        presets: Presets,
        lookup: LookupIndex,
        clock: Clock,
    ) -> None:
        self._store = store
        self._intake = intake
        self._uploads = uploads
        self._settling = BatchSettling(intake, presets)
        self._checks = BatchChecks(store, uploads, lookup, clock)
        self._clock = clock

    async def is_repeated(self, whose: IntegratorId, key: str | None) -> bool:
        """Whether an order with this idempotency key was made before."""
        return await is_key_known(self._store, whose, key)

    async def create(self, asking: IntegratorCaller, order: BatchOrder) -> MadeBatch:
        """Ask one person to sign many documents.

        Args:
            asking: who asks.
            order: what for.

        Raises:
            DocumentRefusedError: a PDF cannot be signed, or not searched.
            FieldInvalidError: `vence` is over, or a reference is there twice.
            ApplianceError: `PERSON_NOT_FOUND`, `REFERENCE_IN_USE`,
                `IDEMKEY_CONFLICT`, `OVERLOADED` where settling it takes too long; with
                the document's field those of `BackendOrders.create`.
        """
        whose = asking.integrator.id
        key = OrderKey(whose, order.idempotency_key, await order.fingerprint())
        check = partial(self._checks.ready, whose, order)
        # What is faulty came to nothing, whatever its key stands for.
        ready = await (check() if order.faults else key.unless_made(self._store, check))
        if isinstance(ready, MadeBefore):
            return MadeBatch(RequestBatchId(ready.id), is_repeated=True)
        try:
            async with asyncio.timeout(SETTLING_S):
                settled = await self._settling.settle(whose, order, ready)
        except TimeoutError as exc:
            raise ApplianceError(ErrorCode.OVERLOADED, sentence=BATCH_TOO_SLOW) from exc
        async with (
            self._naming_the_other(whose, order),
            self._intake.keeping(whose, came_of(settled)) as kept,
            self._store.write() as transaction,
        ):
            now = self._clock.now()
            bound = await key.bind(transaction, now)
            if bound is not None:
                return MadeBatch(RequestBatchId(bound), is_repeated=True)
            batch = RequestBatch(RequestBatchId(new_id()), whose, now, order.note)
            await self._hold(transaction, whose, order.documents)
            await RequestBatchStore(transaction).add(batch)
            await kept.recorded(transaction)
            await record_all(transaction, _processes(asking, order, settled, batch))
            await key.stands_for(transaction, batch.id, now)
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


def _processes(
    asking: IntegratorCaller,
    order: BatchOrder,
    settled: Collection[SettledDocument],
    batch: RequestBatch,
) -> list[NewProcess]:
    """What is to be recorded, in order."""
    return [
        NewProcess(
            document=each.stored,
            name=each.name,
            signers=(each.signer,),
            origin=BACKEND_ORIGIN,
            actor=asking.actor,
            created=batch.created,
            expires=order.expires,
            wishes=ProfileWishes(level=order.level),
            note=said.note,
            batch=batch.id,
        )
        for said, each in zip(order.documents, settled, strict=True)
    ]
