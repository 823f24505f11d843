"""Batches of an integrator's backend: seen and taken back.

What belongs to another integrator is as absent as what does not exist.

Source: docs/integration.md "Ask for many at once".
"""

from collections.abc import Sequence
from datetime import datetime

from appliance.core.unit_of_work import Database, Transaction
from appliance.domain.errors import ApplianceError, ErrorCode
from appliance.domain.ids import IntegratorId, RequestBatchId, RequestId
from appliance.domain.integrators.integrators import IntegratorCaller
from appliance.domain.requests.request import SHOWN
from appliance.domain.requests.request_batch import (
    BatchDetails,
    BatchMember,
    RequestBatch,
)
from appliance.requests.process_store import ProcessStore
from appliance.requests.request_batch_store import RequestBatchStore
from appliance.signing.requests import cancel_alone


class BackendBatches:
    """The use cases of an integrator's backend around batches.

    Args:
        store: the record.
    """

    def __init__(self, store: Database) -> None:
        self._store = store

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
            ApplianceError: `LOTE_NOT_FOUND`; `STATE` where all of it is over without a
                signature.
        """
        async with self._store.read() as transaction:
            await _batch_of(transaction, whose, wanted)
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
                signed; `STATE` once all of it is over.
        """
        async with self._store.write() as transaction:
            await _batch_of(transaction, asking.integrator.id, wanted)
            members = await RequestBatchStore(transaction).members(wanted)
            requests = [each.request for each in members]
            if not await cancel_alone(transaction, requests, asking.actor, reason):
                state = members[-1].state.value
                raise ApplianceError(ErrorCode.STATE, params={"estado": state})
        return await self.get(asking.integrator.id, wanted)


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
    return [
        BatchDetails(each, signers[firsts[each.id]], states[each.id])
        for each in batches
    ]
