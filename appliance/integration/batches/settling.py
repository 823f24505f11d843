"""Settling the documents of a batch: what each is, and what its signature looks like.

Documents are examined in groups, several groups at a time. The outcome of a group is
written at its end, with the progress of the batch: what was settled once is not
settled again, whatever becomes of the worker.

Source: docs/integration.md "Ask for many at once".
"""

import asyncio
import time
from collections.abc import Callable, Coroutine, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final, TypeAlias

from appliance.admission.work_owner import working_for
from appliance.documents.document_bytes import rounds_of
from appliance.documents.document_store import DocumentStore
from appliance.documents.examination import ROUND_BYTES, ROUND_DOCUMENTS, Examined
from appliance.domain.clock import Clock
from appliance.domain.documents.inspected import CameDocument
from appliance.domain.errors import (
    FAULTS_TOLD,
    NOT_OF_WHAT_CAME,
    ApplianceError,
    ErrorCode,
)
from appliance.domain.ids import DocumentId, IntegratorId, RequestBatchId
from appliance.domain.people.identity import Person
from appliance.domain.ports import BlobStore, DocumentBytes, DocumentMemory
from appliance.domain.requests.backend_batch import DocumentToPrepare, SettledDocument
from appliance.domain.requests.intake import StoredDocument
from appliance.domain.requests.preset import SignaturePreset, WishedPreset
from appliance.integration.batches.checks import field_of
from appliance.integration.refusals import refused_for, refused_within
from appliance.record.unit_of_work import Database
from appliance.requests.batch_queue import BatchClaim, BatchQueue, ClaimLostError
from appliance.requests.intake import Intake, stored_as
from appliance.requests.presets import Presets
from appliance.requests.request_batch_store import RequestBatchStore
from appliance.system.sealed_memory import MemoryWriter

_AT_ONCE: Final = 2
"""Groups of one batch in progress: as many jobs as one party has at the sandbox."""
_Wish: TypeAlias = tuple[str | None, WishedPreset]
"""File or upload, and the look and place that its signature is to have."""


@dataclass(frozen=True, slots=True)
class BatchSettling:
    """Settles documents of batches.

    Args:
        store: the record.
        documents: the files.
        intake: examines them.
        presets: settle look and place.
        clock: the time.
        after_group: called with a batch's id once a group of its is written.
    """

    store: Database
    documents: BlobStore
    intake: Intake
    presets: Presets
    clock: Clock
    after_group: Callable[[RequestBatchId], None] = lambda _: None

    async def settle(
        self,
        claim: BatchClaim,
        documents: Sequence[DocumentToPrepare],
        person: Person,
        until: float,
    ) -> None:
        """Settle groups of documents for a while.

        Args:
            claim: of their batch.
            documents: all of the batch, in order.
            person: the signer.
            until: when no further group is begun, by the monotonic clock.

        Raises:
            ClaimLostError: another worker holds the batch, or it was taken back.
            ApplianceError: what no document is to blame for (`NOT_OF_WHAT_CAME`).
        """
        work = _Turn(self, claim, person, until, _found_before(documents))
        work.faults = sum(each.fault is not None for each in documents)
        left = [each for each in documents if each.is_open]
        sizes = [each.size_bytes for each in left]
        groups = rounds_of(left, sizes, ROUND_DOCUMENTS, ROUND_BYTES)
        await _beside_each_other(work.settle_all(groups) for _ in range(_AT_ONCE))

    async def write(
        self,
        claim: BatchClaim,
        settled: Sequence[SettledDocument],
        new: Sequence[StoredDocument],
    ) -> None:
        """Write what the documents of a group came to.

        Args:
            claim: of their batch.
            settled: what each came to.
            new: documents among them that came with the batch.

        Raises:
            ClaimLostError: nothing is written.
            ApplianceError: `STORE_UNAVAILABLE`.
        """
        async with self.store.write() as transaction:
            # Before any document is locked, as in all that ends a batch.
            if not await BatchQueue(transaction).get_on(claim):
                raise ClaimLostError
            kept: dict[DocumentId, DocumentId] = {}
            if new:
                made = await DocumentStore(transaction).add_all(new, self.clock.now())
                # The same bytes may have a row already.
                kept = {each.id: row.id for each, row in zip(new, made, strict=True)}
            written = [
                replace(
                    each,
                    document=each.document._replace(
                        id=kept.get(each.document.id, each.document.id)
                    ),
                )
                if each.document is not None
                else each
                for each in settled
            ]
            await BatchQueue(transaction).settle(claim, written)
            await RequestBatchStore(transaction).examined(claim.id, len(settled))
        self.after_group(claim.id)


@dataclass(slots=True)
class _Turn:
    """Documents of one batch in its turn."""

    settling: BatchSettling
    claim: BatchClaim
    person: Person
    until: float
    found: dict[_Wish, SignaturePreset]
    """Places that were found for the same wish of the same file."""
    faults: int = 0
    _looking: dict[_Wish, asyncio.Lock] = field(default_factory=dict)

    async def settle_all(self, groups: Iterator[list[DocumentToPrepare]]) -> None:
        """Settle groups until the turn is over, or as many faults as are told known.

        Whatever stands before a group that is begun is done or being done, so the
        first faults of a batch are found, however many groups are in progress.

        Raises:
            ClaimLostError: as of `BatchSettling.settle`.
            ApplianceError: likewise.
        """
        for group in groups:
            await self._settle(group)
            if self.faults >= FAULTS_TOLD or time.monotonic() >= self.until:
                return

    async def _settle(self, group: Sequence[DocumentToPrepare]) -> None:
        # At the sandbox each batch is a party of its integrator's.
        with working_for(self.claim.integrator, self.claim.id):
            examined = await self._examined(group)
            uploads = await self._uploads(group)
            new: dict[tuple[str, str], StoredDocument] = {}
            settled = [await self._one(each, examined, uploads, new) for each in group]
        copies = [
            each.pdf
            for each in examined.values()
            if not isinstance(each, ApplianceError) and each.repair is not None
        ]
        await self.settling.intake.passing.keep_more(
            self.claim.id, self.claim.integrator, copies
        )
        await self.settling.write(self.claim, settled, list(new.values()))
        self.faults += sum(each.fault is not None for each in settled)

    async def _examined(
        self, group: Sequence[DocumentToPrepare]
    ) -> dict[int, Examined | ApplianceError]:
        """Findings of the documents that came with the batch, by place."""
        whose = self.claim.integrator
        came = {each.place: each.sha256 for each in group if each.sha256 is not None}
        sizes = {each.sha256: each.size_bytes for each in group}
        small = sorted({one for one in came.values() if sizes[one] <= ROUND_BYTES})
        documents = self.settling.documents
        files: dict[str, DocumentBytes] = {}
        read = await documents.get_all([(whose, one) for one in small])
        for sha256, file in zip(small, read, strict=True):
            if isinstance(file, ApplianceError):
                raise file
            files[sha256] = file
        for sha256 in set(came.values()) - files.keys():
            files[sha256] = await _in_memory_file(documents, whose, sha256)
        pdfs = [files[sha256] for sha256 in came.values()]
        as_they_are = {each.place for each in group if not each.repairs}
        found = await self.settling.intake.examined_all(
            whose,
            pdfs,
            [at for at, place in enumerate(came) if place in as_they_are],
        )
        return dict(zip(came, found, strict=True))

    async def _uploads(
        self, group: Sequence[DocumentToPrepare]
    ) -> dict[CameDocument, StoredDocument]:
        """Documents of a group that were uploaded before the batch came."""
        wanted = {each.document for each in group if each.document is not None}
        if not wanted:
            return {}
        async with self.settling.store.read() as transaction:
            return await DocumentStore(transaction).those(wanted)

    async def _one(
        self,
        each: DocumentToPrepare,
        examined: Mapping[int, Examined | ApplianceError],
        uploads: dict[CameDocument, StoredDocument],
        new: dict[tuple[str, str], StoredDocument],
    ) -> SettledDocument:
        """Settle one document.

        Args:
            each: the document.
            examined: findings, by place.
            uploads: documents that were uploaded; this one is put there as it is
                described now.
            new: documents of the group that came with the batch, by SHA-256 and
                that of the file whose copy it is; this one is added.

        Raises:
            ApplianceError: what no document is to blame for.
        """
        try:
            pdf: DocumentBytes | None = None
            inspections = self.settling.intake.inspections
            if each.document is not None:
                with refused_for(field_of(each.place, each.field), each.part):
                    # An upgrade may have come since it was uploaded.
                    document = await inspections.current_document(
                        uploads[each.document]
                    )
                uploads[each.document] = document
            else:
                found = examined[each.place]
                with refused_for(field_of(each.place, each.field), each.part):
                    if isinstance(found, ApplianceError):
                        raise found
                pdf = found.pdf
                document = await stored_as(self.claim.integrator, found)
                document = new.setdefault(
                    (document.sha256, document.original_sha256), document
                )
            preset = await self._preset(each, document, pdf)
        except ApplianceError as fault:
            if fault.code in NOT_OF_WHAT_CAME:
                raise
            return SettledDocument(each.place, fault=fault)
        return SettledDocument(each.place, document.came, preset)

    async def _preset(
        self,
        each: DocumentToPrepare,
        document: StoredDocument,
        pdf: DocumentBytes | None,
    ) -> SignaturePreset | None:
        """Look and place of a document's signature; None: they are the signer's.

        Raises:
            ApplianceError: those of `Presets.settle`, with the field.
        """
        if each.wished is None:
            return None
        wish = _wish_of(each, each.wished)
        async with self._looking.setdefault(wish, asyncio.Lock()):
            if wish not in self.found:
                with refused_within(field_of(each.place, "sello")):
                    self.found[wish] = await self.settling.presets.settle(
                        document, each.wished, self.person, pdf=pdf
                    )
        return self.found[wish]


async def _in_memory_file(
    documents: BlobStore, whose: IntegratorId, sha256: str
) -> DocumentMemory:
    """Read a large document where no heap holds it.

    Args:
        documents: the files.
        whose: the integrator.
        sha256: of the document, hex.

    Raises:
        ApplianceError: `STORE_UNAVAILABLE`; `OVERLOADED`: the machine has no room.
    """
    stream = await documents.stream(whose, sha256)
    try:
        writer = MemoryWriter("document")
        async for piece in stream.pieces:
            writer.write(piece)
        return writer.sealed()
    except OSError as exc:
        raise ApplianceError(ErrorCode.OVERLOADED) from exc


def _wish_of(each: DocumentToPrepare, wished: WishedPreset) -> _Wish:
    return (each.sha256 or (each.document and each.document.id), wished)


def _found_before(
    documents: Sequence[DocumentToPrepare],
) -> dict[_Wish, SignaturePreset]:
    """Places that earlier turns found."""
    return {
        _wish_of(each, each.wished): each.preset
        for each in documents
        if each.wished is not None and each.preset is not None
    }


async def _beside_each_other(work: Iterable[Coroutine[None, None, None]]) -> None:
    """Do several things; the first error ends the others.

    Raises:
        ClaimLostError: it.
        ApplianceError: likewise.
    """
    tasks = [asyncio.create_task(each) for each in work]
    try:
        await asyncio.gather(*tasks)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
