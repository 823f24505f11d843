"""What the documents of a batch are, and what each signature is to look like.

Documents are examined in groups, several groups at a time, and kept only once nothing
is wrong with any of them. All that is wrong is told, in order.

Source: docs/integration.md "Ask for many at once".
"""

import asyncio
from collections.abc import Coroutine, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Final, TypeAlias

from appliance.core.system.sealed_memory import MemoryWriter
from appliance.documents.document_bytes import rounds_of, size_of
from appliance.documents.examination import ROUND_BYTES, ROUND_DOCUMENTS, Examined
from appliance.domain.errors import (
    FAULTS_TOLD,
    NOT_OF_WHAT_CAME,
    ApplianceError,
    Faults,
)
from appliance.domain.ids import IntegratorId
from appliance.domain.ports import DocumentBytes
from appliance.domain.requests.new_request import StoredDocument
from appliance.domain.requests.preset import SignaturePreset, WishedPreset
from appliance.domain.requests.uploads import DEFAULT_NAME
from appliance.integration.batch_checks import ReadyBatch, field_of, name_of
from appliance.integration.orders import BatchDocument, BatchOrder
from appliance.integration.refusals import refused_for, refused_within
from appliance.requests.intake import Intake, stored_as
from appliance.requests.presets import Presets
from appliance.requests.recording import NewSigner

_AT_ONCE: Final = 2
"""Groups of one call that are in work: as many jobs as one party has at the sandbox."""
_Wish: TypeAlias = tuple[str, WishedPreset]
"""SHA-256 of a document, and the look and place that its signature is to have."""
_Placed: TypeAlias = tuple[int, BatchDocument]
"""A document and its place in what was asked for."""


@dataclass(frozen=True, slots=True)
class SettledDocument:
    """One document of an order, ready to be recorded."""

    name: str
    stored: StoredDocument
    signer: NewSigner
    came: tuple[DocumentBytes, Examined] | None = None
    """What is to be kept: it came with the order; None: it is kept already."""


def came_of(
    settled: Sequence[SettledDocument],
) -> list[tuple[DocumentBytes, Examined]]:
    """What is to be kept of several."""
    return [each.came for each in settled if each.came is not None]


class BatchSettling:
    """Settles orders of batches.

    Args:
        intake: examines what comes in.
        presets: settle look and place.
    """

    def __init__(self, intake: Intake, presets: Presets) -> None:
        self._intake = intake
        self._presets = presets

    async def settle(
        self, whose: IntegratorId, order: BatchOrder, ready: ReadyBatch
    ) -> list[SettledDocument]:
        """Every document with its name, and what its signature is to look like.

        Args:
            whose: the integrator that orders.
            order: what for.
            ready: what is known of it.

        Raises:
            DocumentRefusedError: a PDF cannot be signed, or not searched.
            ApplianceError: all that is wrong with the documents; what is not of them
                at once.
        """
        work = _Work(self._intake, self._presets, whose, ready)
        groups = iter(_groups(order))
        await _beside_each_other(work.do_all(groups) for _ in range(_AT_ONCE))
        faults = Faults()
        for place in sorted(work.faults):
            faults.add(work.faults[place])
        faults.demand_none()
        return [work.settled[place] for place in sorted(work.settled)]


@dataclass(slots=True)
class _Work:
    """What is settled so far of one order."""

    intake: Intake
    presets: Presets
    whose: IntegratorId
    ready: ReadyBatch
    settled: dict[int, SettledDocument] = field(default_factory=dict)
    faults: dict[int, ApplianceError] = field(default_factory=dict)
    _found: dict[_Wish, SignaturePreset] = field(default_factory=dict)
    """What was found for the same wish of the same bytes before."""
    _looking: dict[_Wish, asyncio.Lock] = field(default_factory=dict)

    async def do_all(self, groups: Iterator[list[_Placed]]) -> None:
        """Settle groups as long as there are some, and not too much is wrong.

        Whatever stands before a group that is begun is done or being done: so the
        first faults are found, however many are at it.

        Raises:
            ApplianceError: what nothing that came is to blame for.
        """
        for group in groups:
            examined = await self._examined(group)
            for place, each in group:
                try:
                    self.settled[place] = await self._one(place, each, examined)
                except ApplianceError as fault:
                    if fault.code in NOT_OF_WHAT_CAME:
                        raise
                    self.faults[place] = fault
            if len(self.faults) >= FAULTS_TOLD:
                return

    async def _examined(
        self, group: Sequence[_Placed]
    ) -> dict[int, Examined | ApplianceError]:
        """What came of the documents that came with the call, by place."""
        came = {
            place: each.document
            for place, each in group
            if not isinstance(each.document, str)
        }
        found = await self.intake.examined_all(self.whose, list(came.values()))
        return dict(zip(came, found, strict=True))

    async def _one(
        self,
        place: int,
        wanted: BatchDocument,
        examined: dict[int, Examined | ApplianceError],
    ) -> SettledDocument:
        """One document, with what its signature is to look like.

        Raises:
            DocumentRefusedError: the PDF cannot be signed.
            ApplianceError: `FILENAME`, those of `Intake.examined` and
                `Presets.settle`, with the field.
        """
        name = name_of(wanted, place)
        if isinstance(wanted.document, str):
            upload = self.ready.uploads[wanted.document]
            signer = await self._signer(place, wanted, upload.document, None)
            return SettledDocument(name or upload.name, upload.document, signer)
        came_as = "contenido" if wanted.part is None else "archivo"
        found = examined[place]
        with refused_for(field_of(place, came_as), wanted.part):
            if isinstance(found, ApplianceError):
                raise found
        found = _out_of_heap(found)
        stored = await stored_as(self.whose, found)
        signer = await self._signer(place, wanted, stored, found.pdf)
        came = (wanted.document, found)
        return SettledDocument(name or DEFAULT_NAME, stored, signer, came)

    async def _signer(
        self,
        place: int,
        wanted: BatchDocument,
        document: StoredDocument,
        pdf: DocumentBytes | None,
    ) -> NewSigner:
        """Who signs one document, and what they bring to it.

        Raises:
            ApplianceError: those of `Presets.settle`, with the field.
        """
        person, by = self.ready.person, self.ready.signer.by
        wished = wanted.wished or self.ready.signer.wished
        if wished is None:
            return NewSigner(person.id, by)
        wish = (document.sha256, wished)
        async with self._looking.setdefault(wish, asyncio.Lock()):
            if wish not in self._found:
                with refused_within(field_of(place, "sello")):
                    self._found[wish] = await self.presets.settle(
                        document, wished, person, pdf=pdf
                    )
        return NewSigner(person.id, by, self._found[wish])


def _groups(order: BatchOrder) -> Iterator[list[_Placed]]:
    """The documents in groups, in order; what was uploaded weighs nothing."""
    placed = list(order.placed())
    sizes = [
        0 if isinstance(each.document, str) else size_of(each.document)
        for _, each in placed
    ]
    return rounds_of(placed, sizes, ROUND_DOCUMENTS, ROUND_BYTES)


def _out_of_heap(examined: Examined) -> Examined:
    """A repaired copy where the file is that it was made of: many may have to wait."""
    if examined.repair is None or not isinstance(examined.pdf, bytes):
        return examined
    writer = MemoryWriter("document")
    writer.write(examined.pdf)
    return replace(examined, pdf=writer.sealed())


async def _beside_each_other(work: Iterable[Coroutine[None, None, None]]) -> None:
    """Do several things; the first error ends the others.

    Raises:
        ApplianceError: it.
    """
    tasks = [asyncio.create_task(each) for each in work]
    try:
        await asyncio.gather(*tasks)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
