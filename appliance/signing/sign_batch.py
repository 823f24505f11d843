"""Several requests signed by one command: one password, one activation.

What concerns one request is that request's result and harms no other; what
concerns the person, the password or the whole appliance refuses the call, as it
does for one request. Repeating the call is safe: what is signed gives its stored
answer, what goes on is waited for, and only the rest is signed.

Source: decisions "several at once", "repeating firmar"; design §3.
"""

import asyncio
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from structlog.contextvars import bind_contextvars

from appliance.core.background import Shielded
from appliance.core.unit_of_work import Database, Transaction
from appliance.documents.document_store import DocumentRowStore
from appliance.domain.clock import Clock
from appliance.domain.errors import ApplianceError, ErrorCode
from appliance.domain.ids import ActivationId, BatchId, PersonId, RequestId, new_id
from appliance.domain.ports import Expectation, Outcomes
from appliance.domain.requests.batch import BatchItem, BatchOutcome, BatchRow, SignBatch
from appliance.domain.requests.request import RequestView, SignedDocumentView, Signer
from appliance.settings import SigningSettings
from appliance.signing.activation import Authorizing, Means, Refusals, Wish
from appliance.signing.batch_store import BatchStore
from appliance.signing.request_store import RequestStore
from appliance.signing.requests import owned
from appliance.signing.signing_rules import repeated, standing

_LOOK_AGAIN_S: Final = 1.0
"""Longest time between two looks at the record."""
_PAUSE_S: Final = 0.05
"""Shortest: each document of a batch brings news."""


@dataclass(frozen=True, slots=True)
class _Found:
    """What a call finds of its requests."""

    refused: Refusals
    going_on: list[ActivationId]
    """Activations that other calls made, which sign some of them."""
    means: Means | None
    """For those that are still to be begun; None when there is none."""
    wish: Wish


class BatchSigning:
    """The use cases of `POST /solicitudes/firmar/lote` and of its progress.

    Args:
        store: the record.
        authorizing: makes the activation.
        outcomes: tells that a document is signed.
        clock: the time.
        settings: how long a call waits.
        shielded: what goes on when the caller leaves.
    """

    def __init__(
        self,
        store: Database,
        authorizing: Authorizing,
        outcomes: Outcomes,
        clock: Clock,
        settings: SigningSettings,
        shielded: Shielded,
    ) -> None:
        self._store = store
        self._authorizing = authorizing
        self._outcomes = outcomes
        self._clock = clock
        self._settings = settings
        self._shielded = shielded

    async def sign(self, batch: SignBatch, signer: Signer) -> BatchOutcome:
        """Sign several requests, or give what signing them before gave.

        Args:
            batch: what to sign and how, with the signing password.
            signer: who, as the front established it.

        Returns:
            How each stands once all ended or `wait_s` is over; then the work goes
            on, and `progress` tells of it.

        Raises:
            ApplianceError: `IDEMKEY_CONFLICT`; and where something is still to be
                signed: `CERTIFICATE_NOT_USABLE`, `HSM_UNAVAILABLE`,
                `SIGN_PASSWORD_WRONG`, `SIGN_LOCKED`, `RATE_LIMITED`,
                `IN_PROGRESS` while the password is changed.
        """
        async with self._store.read() as transaction:
            found = await self._look(transaction, batch, signer)
        refused = found.refused
        activation = (found.going_on or [ActivationId(new_id())])[0]
        if found.means is not None and found.wish.wanted:
            activation = ActivationId(new_id())
        bind_contextvars(activation=activation)
        async with self._outcomes.expect(activation) as news:
            if found.means is not None and found.wish.wanted:
                refused |= await self._shielded.run(
                    self._authorizing.authorize(
                        found.wish, signer, found.means, activation
                    )
                )
            row = BatchRow(
                id=batch.id_for(signer.person),
                person=signer.person,
                requests=batch.requests,
                params=batch.params,
                refused=refused,
                asked=self._clock.now(),
            )
            await self._wait(set(batch.requests) - refused.keys(), news)
        return await self._told(row)

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

    async def _look(
        self, transaction: Transaction, batch: SignBatch, signer: Signer
    ) -> _Found:
        """Tell apart what is refused, what is done or going on, and the rest.

        Raises:
            ApplianceError: `IDEMKEY_CONFLICT`; as of `Authorizing.means`.
        """
        key = batch.idempotency_key
        idempotency = None if key is None else (key, batch.sha256())
        await self._authorizing.check_key(transaction, signer.person, idempotency)
        views = await RequestStore(transaction).named(set(batch.requests))
        refused: Refusals = {}
        going_on: list[ActivationId] = []
        fresh: dict[RequestId, RequestView] = {}
        for request in batch.requests:
            try:
                view = owned(views.get(request), signer.person)
                if repeated(view, batch.params.sha256(request)):
                    going_on.append(ActivationId(view.activation or ""))
                else:
                    fresh[request] = view
            except ApplianceError as exc:
                refused[request] = exc
        means = None
        if fresh:
            means = await self._authorizing.means(
                transaction, signer.person, fresh.values(), batch.params
            )
            refused |= means.refused
        wanted = {
            request: batch.params.sha256(request)
            for request in fresh
            if request not in refused
        }
        wish = Wish(wanted, batch.params, batch.password, idempotency)
        return _Found(refused, going_on, means, wish)

    async def _wait(self, requests: Iterable[RequestId], news: Expectation) -> None:
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
            await news.wait(max(min(_LOOK_AGAIN_S, deadline - loop.time()), 0))

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
    # Signed documents last: what is told signed by then has its document.
    views = await RequestStore(transaction).named(set(row.requests))
    signed = await DocumentRowStore(transaction).signed_of(views)
    return BatchOutcome(
        row.id,
        tuple(
            _item(row, request, views.get(request), signed.get(request))
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
        outcome = standing(view, signed, row.params.sha256(request))
    except ApplianceError as exc:
        return BatchItem(request, problem=exc)
    return BatchItem(request, document=outcome.document if outcome else None)
