"""Preparing batches: documents examined, places looked up, then all requests recorded.

Documents are examined in groups, two groups at a time. What each came to is written
after its group, so that a worker that is killed loses a group at most. A batch has a
turn of a few seconds; then another one that waits has its own. Once every document is
settled, one transaction records all requests. If a document is at fault the batch is
refused: nobody is asked to sign anything, and its files, references and idempotency
key are free again.

Whatever no document is to blame for (`NOT_OF_WHAT_CAME`) ends the turn and refuses
nothing: the batch is tried again until it gets on.

Source: docs/integration.md "Ask for many at once".
"""

import time
from collections.abc import Collection, Sequence
from datetime import timedelta
from enum import Enum, auto
from typing import Final

import structlog

from appliance.documents.document_store import DocumentStore
from appliance.documents.passing_document_store import PassingDocumentStore
from appliance.documents.passing_documents import PassingDocuments
from appliance.domain.clock import Clock
from appliance.domain.errors import (
    FAULTS_TOLD,
    ApplianceError,
    ErrorCode,
    Faults,
    FieldInvalidError,
)
from appliance.domain.ids import IntegratorId
from appliance.domain.people.identity import Person
from appliance.domain.requests.backend_batch import DocumentToPrepare, RequestBatch
from appliance.domain.requests.levels import ProfileWishes
from appliance.domain.requests.process import BACKEND_ORIGIN, ProcessNote
from appliance.domain.vocab import EventKind
from appliance.integration.batches.checks import (
    field_of,
    reference_in_use,
    unknown_signer,
)
from appliance.integration.batches.events import SYSTEM, batch_event
from appliance.integration.batches.settling import BatchSettling
from appliance.integration.requests.idempotency import release_key
from appliance.people.person_store import PersonStore
from appliance.people.signer_for_tests_store import seen_by
from appliance.record.unit_of_work import Database, Transaction
from appliance.requests.batch_queue import (
    ATTEMPTS,
    BatchClaim,
    BatchQueue,
    ClaimLostError,
)
from appliance.requests.process_store import ProcessStore
from appliance.requests.recording import NewProcess, NewSigner, record_all
from appliance.requests.request_batch_store import RequestBatchStore

_LEASE: Final = timedelta(seconds=60)
_REST: Final = timedelta(seconds=5)
"""Time until a batch is tried again that something of ours held up."""
KEPT: Final = timedelta(days=90)
"""Time for which the faults of a refused batch can be read."""
_FORGOTTEN_AT_ONCE: Final = 200
_log = structlog.get_logger(__name__)


class Turn(Enum):
    """Outcome of a batch's turn."""

    ENDED = auto()
    """It is ready, or refused."""
    UNFINISHED = auto()
    LOST = auto()
    """Another worker holds it, or it was taken back."""


class BatchPreparation:
    """The use cases of a worker that prepares batches.

    Args:
        store: the record.
        settling: settles documents.
        passing: keeps files until requests refer to them.
        clock: the time.
        owner: `<slot>/<process>`.
    """

    def __init__(
        self,
        store: Database,
        settling: BatchSettling,
        passing: PassingDocuments,
        clock: Clock,
        owner: str,
    ) -> None:
        self._store = store
        self._settling = settling
        self._passing = passing
        self._clock = clock
        self._owner = owner

    async def claim_next(self, but: Collection[IntegratorId] = ()) -> BatchClaim | None:
        """Take the batch that has waited longest for its turn; None: none waits.

        Args:
            but: integrators that have a batch in progress in this worker.

        Raises:
            ApplianceError: `STORE_UNAVAILABLE`.
        """
        now = self._clock.now()
        async with self._store.read() as transaction:
            if not await BatchQueue(transaction).any_due(now, but):
                return None
        async with self._store.write() as transaction:
            claim = await BatchQueue(transaction).claim_next(
                self._owner, now, _LEASE, but
            )
        if claim is not None and claim.tries >= ATTEMPTS:
            _log.error("batch.quarantined", lote=claim.id, tries=claim.tries)
        return claim

    async def renew(self, claim: BatchClaim) -> bool:
        """Prolong a lease; False if another claim came since, or the batch ended."""
        async with self._store.write() as transaction:
            return await BatchQueue(transaction).renew(
                claim, self._clock.now() + _LEASE
            )

    async def release_own(self) -> None:
        """End the leases of an earlier start of this slot, which is dead."""
        slot = self._owner.rpartition("/")[0]
        async with self._store.write() as transaction:
            await BatchQueue(transaction).release_of(f"{slot}/", self._clock.now())

    async def let_go(self, claim: BatchClaim) -> None:
        """End a turn: batches that wait have theirs first."""
        async with self._store.write() as transaction:
            await BatchQueue(transaction).let_go(claim, self._clock.now())

    async def put_off(self, claim: BatchClaim) -> None:
        """End a turn in which something of ours was away."""
        async with self._store.write() as transaction:
            await BatchQueue(transaction).let_go(claim, self._clock.now() + _REST)

    async def forget(self) -> int:
        """Delete batches that came to nothing long ago; how many."""
        forgotten = 0
        while True:
            before = self._clock.now() - KEPT
            async with self._store.write() as transaction:
                found = await RequestBatchStore(transaction).forget(
                    before, _FORGOTTEN_AT_ONCE
                )
            forgotten += found
            if found < _FORGOTTEN_AT_ONCE:
                return forgotten

    async def take_turn(self, claim: BatchClaim, most_s: float) -> Turn:
        """Settle documents of a batch for a while; end it once all are settled.

        Args:
            claim: of the batch.
            most_s: time after which no further group is begun, in seconds.

        Raises:
            ApplianceError: `NOT_OF_WHAT_CAME`: no document is to blame.
        """
        until = time.monotonic() + most_s
        async with self._store.read() as transaction:
            documents = await BatchQueue(transaction).documents(claim.id)
            batch = await RequestBatchStore(transaction).get(claim.integrator, claim.id)
            person = await _person_of(transaction, batch)
        if batch is None or not documents:
            return Turn.LOST
        faults = [each.fault for each in documents if each.fault is not None]
        try:
            if person is None:
                await self._refuse(claim, batch, [unknown_signer()])
                return Turn.ENDED
            is_open = any(each.is_open for each in documents)
            if is_open and len(faults) < FAULTS_TOLD:
                await self._settling.settle(claim, documents, person, until)
                return await self._after(claim, batch, person)
            return await self._end(claim, batch, person, documents)
        except ClaimLostError:
            return Turn.LOST

    async def _after(
        self, claim: BatchClaim, batch: RequestBatch, person: Person
    ) -> Turn:
        """End a batch if nothing is left to be examined.

        Raises:
            ClaimLostError: another worker holds it, or it was taken back.
            ApplianceError: `STORE_UNAVAILABLE`.
        """
        async with self._store.read() as transaction:
            documents = await BatchQueue(transaction).documents(claim.id)
        if not documents:
            raise ClaimLostError
        count = sum(each.fault is not None for each in documents)
        if any(each.is_open for each in documents) and count < FAULTS_TOLD:
            return Turn.UNFINISHED
        return await self._end(claim, batch, person, documents)

    async def _end(
        self,
        claim: BatchClaim,
        batch: RequestBatch,
        person: Person,
        documents: Sequence[DocumentToPrepare],
    ) -> Turn:
        """Record all requests of a batch, or refuse it.

        Raises:
            ApplianceError: `STORE_UNAVAILABLE`.
        """
        found = Faults()
        for each in documents:
            if each.fault is not None and not found.is_full:
                # Its field says the place alone, which no person looks up.
                each.fault.extras.setdefault("documento", each.name)
                found.add(each.fault)
        if not found.found:
            for late in await self._late_faults(claim, documents):
                found.add(late)
        if not found.found:
            try:
                await self._record(claim, batch, person, documents)
            except ApplianceError as refusal:
                if refusal.code is not ErrorCode.REFERENCE_IN_USE:
                    raise
                # A call took it after the look above.
                for late in await self._late_faults(claim, documents) or [refusal]:
                    found.add(late)
        if found.found:
            await self._refuse(claim, batch, found.found)
        return Turn.ENDED

    async def _late_faults(
        self, claim: BatchClaim, documents: Sequence[DocumentToPrepare]
    ) -> list[ApplianceError]:
        """Faults that arose since the call, though no document is at fault."""
        faults: list[ApplianceError] = []
        expires = claim.order.expires
        if expires is not None and expires <= self._clock.now():
            faults.append(FieldInvalidError("vence", "a time to come"))
        unique = {
            each.reference: each.place
            for each in documents
            if each.is_unique and each.reference
        }
        async with self._store.read() as transaction:
            taken = await ProcessStore(transaction).of_references(
                claim.integrator, unique.keys()
            )
        for reference, place in unique.items():
            if reference in taken:
                field_name = field_of(place, "referencia")
                other = taken[reference]
                faults.append(reference_in_use(field_name, procesoId=other))
        return faults

    async def _record(
        self,
        claim: BatchClaim,
        batch: RequestBatch,
        person: Person,
        documents: Sequence[DocumentToPrepare],
    ) -> None:
        """Make all requests of a batch, in one transaction.

        Raises:
            ClaimLostError: another worker holds it, or it was taken back.
            ApplianceError: `REFERENCE_IN_USE`, `STORE_UNAVAILABLE`.
        """
        wanted = {each.document for each in documents if each.document is not None}
        async with self._store.read() as transaction:
            stored = await DocumentStore(transaction).those(wanted)
        now = self._clock.now()
        async with self._store.write() as transaction:
            if not await BatchQueue(transaction).end(claim):
                raise ClaimLostError
            await PassingDocumentStore(transaction).recorded(claim.id)
            await RequestBatchStore(transaction).ready(claim.id)
            await record_all(
                transaction,
                [
                    NewProcess(
                        document=stored[each.document],
                        name=each.name,
                        signers=(NewSigner(person.id, batch.named_by, each.preset),),
                        origin=BACKEND_ORIGIN,
                        actor=claim.order.actor,
                        created=now,
                        expires=claim.order.expires,
                        wishes=ProfileWishes(level=claim.order.level),
                        note=_note_of(batch, each),
                        batch=batch.id,
                    )
                    for each in documents
                    if each.document is not None
                ],
            )
            transaction.audit.add(batch_event(EventKind.BATCH_READY, SYSTEM, batch))
        _log.info("batch.ready", lote=batch.id, documents=len(documents))

    async def _refuse(
        self, claim: BatchClaim, batch: RequestBatch, faults: Sequence[ApplianceError]
    ) -> None:
        """End a batch that came to nothing.

        Raises:
            ClaimLostError: another worker holds it, or it was taken back.
            ApplianceError: `STORE_UNAVAILABLE`.
        """
        async with self._store.write() as transaction:
            if not await BatchQueue(transaction).end(claim):
                raise ClaimLostError
            await RequestBatchStore(transaction).refuse(
                claim.id, faults, self._clock.now()
            )
            await release_key(
                transaction, claim.integrator, claim.order.idempotency_key, claim.id
            )
            await self._passing.let_go(transaction, claim.id)
            told = {"faults": len(faults), "code": faults[0].code.value}
            transaction.audit.add(
                batch_event(EventKind.BATCH_REFUSED, SYSTEM, batch, **told)
            )
        _log.info("batch.refused", lote=batch.id, count=len(faults))


async def _person_of(
    transaction: Transaction, batch: RequestBatch | None
) -> Person | None:
    """The signer of a batch; None once its integrator can ask them no more."""
    if batch is None or batch.person is None:
        return None
    found = await PersonStore(transaction).get(batch.person)
    return await seen_by(transaction, found, batch.integrator)


def _note_of(batch: RequestBatch, each: DocumentToPrepare) -> ProcessNote:
    """Note of one document: its own words, and those of its batch."""
    return ProcessNote(
        batch.note.api_key,
        each.reference,
        each.is_unique,
        each.metadata,
        batch.note.language,
        batch.note.message,
    )
