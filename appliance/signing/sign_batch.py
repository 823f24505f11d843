"""Several requests signed by one command and one password.

What concerns one request is that request's result and harms no other; what
concerns the person, the password or the whole appliance refuses the call, as it
does for one request. Repeating the call is safe: what is signed gives its stored
answer, what goes on is waited for, and only the rest is signed.

Source: decisions "several at once", "repeating firmar"; design §3.
"""

import asyncio
from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Final

from appliance.domain.clock import Clock
from appliance.domain.errors import BATCH_STATE, ApplianceError, ErrorCode
from appliance.domain.ids import BatchId, PersonId, RequestBatchId, RequestId
from appliance.domain.ports import Subscription
from appliance.domain.requests.request import RequestView, SignedDocumentView, Signer
from appliance.domain.requests.signing_batch import (
    BatchItem,
    BatchOutcome,
    BatchRow,
    SignBatch,
)
from appliance.domain.vocab import RequestState
from appliance.record.unit_of_work import Database, Transaction
from appliance.requests.request_batch_store import RequestBatchStore
from appliance.requests.request_store import RequestStore
from appliance.settings import SigningSettings
from appliance.signing.batch_store import BatchStore
from appliance.signing.sign import Signing
from appliance.signing.signing_rules import standing

_OVER: Final = frozenset(
    {RequestState.CANCELLED, RequestState.REJECTED, RequestState.EXPIRED}
)
"""What somebody or time has ended: nothing that a command could sign, or could have."""
_LOOK_AGAIN_S: Final = 1.0
"""Longest time between two looks at the record."""
_PAUSE_S: Final = 0.05
"""Shortest: each group of a batch brings news."""


class BatchSigning:
    """The use cases of `POST /solicitudes/firmar/lote` and of its progress.

    Args:
        store: the record.
        signing: begins what is to be signed.
        clock: the time.
        settings: how long a call waits.
    """

    def __init__(
        self, store: Database, signing: Signing, clock: Clock, settings: SigningSettings
    ) -> None:
        self._store = store
        self._signing = signing
        self._clock = clock
        self._settings = settings

    async def sign(
        self,
        batch: SignBatch,
        signer: Signer,
        waits: Callable[[], object] = lambda: None,
    ) -> BatchOutcome:
        """Sign several requests, or give what signing them before gave.

        Args:
            batch: what to sign and how, with the signing password.
            signer: who, as the front established it.
            waits: called where only another call's work is to be waited for.

        Returns:
            How each stands once all ended or `wait_s` is over; then the work goes
            on, and `progress` tells of it. Of a whole batch without what was over
            before, unsigned, unless all of it was.

        Raises:
            ApplianceError: `LOTE_NOT_FOUND`, `IDEMKEY_CONFLICT`, `STATE` of a batch
                that is not ready; and where something
                is still to be signed: `CERTIFICATE_NOT_USABLE`, `HSM_UNAVAILABLE`,
                `SIGN_PASSWORD_WRONG`, `SIGN_LOCKED`, `RATE_LIMITED`,
                `IN_PROGRESS` while the password is changed.
        """
        told = batch.requests
        if batch.whole is not None:
            found = await self._requests_of(batch.whole, signer.person)
            # All of them tell a repeated command, whatever becomes of some.
            batch = replace(batch, requests=tuple(found))
            over = {request for request in found if found[request] in _OVER}
            told = tuple(each for each in found if each not in over) or batch.requests
        async with self._signing.begin(batch.requests, batch, signer) as begun:
            if not begun.is_new:
                waits()
            row = BatchRow(
                id=batch.id_for(signer.person, begun.parameters.of_presets),
                person=signer.person,
                requests=told,
                params=batch.given.params,
                fingerprints=begun.parameters.of_presets,
                refused=dict(begun.refused),
                asked=self._clock.now(),
            )
            await self._wait(
                set(batch.requests) - begun.refused.keys(), begun.subscription
            )
        return await self._told(row)

    async def _requests_of(
        self, batch: RequestBatchId, signer: PersonId
    ) -> dict[RequestId, RequestState]:
        """What a person has in an integrator's batch, in order.

        Raises:
            ApplianceError: `LOTE_NOT_FOUND`: nothing; `STATE`: the batch is not ready.
        """
        async with self._store.read() as transaction:
            batches = RequestBatchStore(transaction)
            found = await batches.requests_of(batch, signer)
            state = None if found else await batches.state_for(batch, signer)
        if found:
            return found
        if state is None:
            raise ApplianceError(ErrorCode.LOTE_NOT_FOUND)
        raise ApplianceError(
            ErrorCode.STATE, params={"estado": state.value}, sentence=BATCH_STATE
        )

    async def progress(self, person: PersonId, batch: BatchId) -> BatchOutcome:
        """How a batch stands whose caller was told to look again.

        Args:
            person: its signer; anybody else's is as absent.
            batch: as `BatchOutcome.id` named it.

        Raises:
            ApplianceError: `LOTE_NOT_FOUND`.
        """
        async with self._store.read() as transaction:
            row = await BatchStore(transaction).get(batch)
            if row is None or row.person != person:
                raise ApplianceError(ErrorCode.LOTE_NOT_FOUND)
            return await _outcome(transaction, row)

    async def _wait(
        self, requests: Iterable[RequestId], subscription: Subscription
    ) -> None:
        """Wait until none of them is being signed, or `wait_s` is over.

        Each document brings news; looking at all of them for each would cost more
        than it tells, so looks keep a distance.
        """
        loop = asyncio.get_running_loop()
        deadline = loop.time() + self._settings.wait_s
        awaited = set(requests)
        while awaited:
            async with self._store.read() as transaction:
                if not await RequestStore(transaction).in_progress(awaited):
                    return
            left = deadline - loop.time()
            if left <= 0:
                return
            await asyncio.sleep(min(_PAUSE_S, left))
            await subscription.wait(max(min(_LOOK_AGAIN_S, deadline - loop.time()), 0))

    async def _told(self, row: BatchRow) -> BatchOutcome:
        """How it stands; kept for `progress` where that is not the end."""
        async with self._store.read() as transaction:
            outcome = await _outcome(transaction, row)
        if not outcome.is_over:
            async with self._store.write() as transaction:
                await BatchStore(transaction).put(row)
        return outcome


async def _outcome(transaction: Transaction, row: BatchRow) -> BatchOutcome:
    """Every request's result as it stands now, in the order of the command."""
    found = await RequestStore(transaction).with_signed(set(row.requests))
    return BatchOutcome(
        row.id,
        tuple(
            _item(row, request, *found.get(request, (None, None)))
            for request in row.requests
        ),
    )


def _item(
    row: BatchRow,
    request: RequestId,
    view: RequestView | None,
    signed: SignedDocumentView | None,
) -> BatchItem:
    if request in row.refused:
        return BatchItem(request, problem=row.refused[request])
    if view is None:
        return BatchItem(request, problem=ApplianceError(ErrorCode.SOLICITUD_NOT_FOUND))
    try:
        outcome = standing(view, signed, row.fingerprint(request))
    except ApplianceError as exc:
        return BatchItem(request, problem=exc)
    return BatchItem(request, document=outcome.document if outcome else None)
