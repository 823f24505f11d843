"""Batches of an integrator's backend: seen and taken back.

What belongs to another integrator is as absent as what does not exist.

Source: docs/integration.md "Ask for many at once".
"""

from collections.abc import Sequence
from datetime import datetime

from appliance.documents.passing_documents import PassingDocuments
from appliance.domain.clock import Clock
from appliance.domain.errors import BATCH_STATE, ApplianceError, ErrorCode
from appliance.domain.ids import IntegratorId, RequestBatchId, RequestId
from appliance.domain.integrators.integrators import IntegratorCaller
from appliance.domain.requests.backend_batch import (
    BatchDetails,
    BatchMember,
    RequestBatch,
)
from appliance.domain.requests.request import SHOWN
from appliance.domain.vocab import BatchState, EventKind
from appliance.integration.batches.events import batch_event
from appliance.integration.requests.idempotency import release_key
from appliance.record.unit_of_work import Database, Transaction
from appliance.requests.batch_queue import BatchQueue
from appliance.requests.process_store import ProcessStore
from appliance.requests.request_batch_store import RequestBatchStore
from appliance.signing.requests import cancel_alone


class BackendBatches:
    """The use cases of an integrator's backend around batches.

    Args:
        store: the record.
        passing: keeps the files of batches in preparation.
        clock: the time.
    """

    def __init__(
        self, store: Database, passing: PassingDocuments, clock: Clock
    ) -> None:
        self._store = store
        self._passing = passing
        self._clock = clock

    async def page(
        self,
        whose: IntegratorId,
        before: tuple[datetime, str] | None,
        limit: int,
        reference: str | None = None,
    ) -> list[BatchDetails]:
        """An integrator's, newest first; arguments as of `RequestBatchStore.page`."""
        async with self._store.read() as transaction:
            found = await RequestBatchStore(transaction).page(
                whose, before, limit, reference
            )
            return await _details(transaction, found)

    async def get(self, whose: IntegratorId, wanted: RequestBatchId) -> BatchDetails:
        """One batch.

        Raises:
            ApplianceError: `LOTE_NOT_FOUND`.
        """
        async with self._store.read() as transaction:
            batch = await _batch_of(transaction, whose, wanted)
            return (await _details(transaction, [batch]))[0]

    async def to_sign(
        self, whose: IntegratorId, wanted: RequestBatchId
    ) -> RequestBatchId:
        """The batch that a session is to be opened for.

        Raises:
            ApplianceError: `LOTE_NOT_FOUND`; `STATE` where it is not ready, or all of
                it is over without a signature.
        """
        async with self._store.read() as transaction:
            batch = await _batch_of(transaction, whose, wanted)
            if batch.state is not BatchState.READY:
                refusal = _wrong_state(batch.state)
                raise refusal
            states = (await RequestBatchStore(transaction).states([wanted]))[wanted]
        if not states.keys() & SHOWN:
            over = min(state.value for state in states)
            raise ApplianceError(ErrorCode.STATE, params={"estado": over})
        return wanted

    async def members(
        self,
        wanted: RequestBatchId,
        after: RequestId | None = None,
        limit: int | None = None,
    ) -> list[BatchMember]:
        """The documents of a batch that the caller has seen, in order.

        Args:
            wanted: whose.
            after: the request of the last one of the page before; None: from the first.
            limit: how many; None: all.
        """
        async with self._store.read() as transaction:
            return await RequestBatchStore(transaction).members(wanted, after, limit)

    async def cancel(
        self, asking: IntegratorCaller, wanted: RequestBatchId, reason: str
    ) -> BatchDetails:
        """Take back what is not signed yet.

        Args:
            asking: who.
            wanted: which.
            reason: in words, for whoever looks; may be empty.

        Raises:
            ApplianceError: `LOTE_NOT_FOUND`; `IN_PROGRESS` while any of it is being
                signed; `STATE` once all of it is over, or it was refused.
        """
        if await self._cancel_unready(asking, wanted, reason):
            return await self.get(asking.integrator.id, wanted)
        async with self._store.write() as transaction:
            members = await RequestBatchStore(transaction).members(wanted)
            requests = [each.request for each in members]
            if not await cancel_alone(transaction, requests, asking.actor, reason):
                state = members[-1].state.value
                raise ApplianceError(ErrorCode.STATE, params={"estado": state})
        return await self.get(asking.integrator.id, wanted)

    async def _cancel_unready(
        self, asking: IntegratorCaller, wanted: RequestBatchId, reason: str
    ) -> bool:
        """Take a batch back that is being prepared; False if it is ready.

        Raises:
            ApplianceError: `LOTE_NOT_FOUND`; `STATE` where it came to nothing before.
        """
        whose = asking.integrator.id
        async with self._store.write() as transaction:
            # Who ends its preparation first decides: a worker waits for this row.
            order = await BatchQueue(transaction).take_back_of(whose, wanted)
            batch = await _batch_of(transaction, whose, wanted)
            if order is None:
                if batch.state is not BatchState.READY:
                    refusal = _wrong_state(batch.state)
                    raise refusal
                return False
            await RequestBatchStore(transaction).take_back(
                wanted, reason, self._clock.now()
            )
            await release_key(transaction, whose, order.idempotency_key, wanted)
            await self._passing.let_go(transaction, wanted)
            told = {"reason": reason} if reason else {}
            transaction.audit.add(
                batch_event(EventKind.BATCH_CANCELLED, asking.actor, batch, **told)
            )
        return True


def _wrong_state(state: BatchState) -> ApplianceError:
    """Refusal of what a batch that is not ready does not allow."""
    return ApplianceError(
        ErrorCode.STATE, params={"estado": state.value}, sentence=BATCH_STATE
    )


async def _batch_of(
    transaction: Transaction, whose: IntegratorId, wanted: RequestBatchId
) -> RequestBatch:
    """A batch of that integrator; anybody else's is as absent.

    Raises:
        ApplianceError: `LOTE_NOT_FOUND`.
    """
    found = await RequestBatchStore(transaction).get(whose, wanted)
    if found is None:
        raise ApplianceError(ErrorCode.LOTE_NOT_FOUND)
    return found


async def _details(
    transaction: Transaction, batches: Sequence[RequestBatch]
) -> list[BatchDetails]:
    """How batches stand."""
    ids = [each.id for each in batches]
    states = await RequestBatchStore(transaction).states(ids)
    firsts = await RequestBatchStore(transaction).firsts(ids)
    signers = await ProcessStore(transaction).signers(firsts.values())
    unready = [each for each in batches if each.id not in firsts]
    named = await RequestBatchStore(transaction).signers(unready)
    return [
        BatchDetails(
            each,
            signers[firsts[each.id]] if each.id in firsts else named[each.id],
            states[each.id],
        )
        for each in batches
    ]
