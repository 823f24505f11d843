"""Whether a PDF can be signed, as it is or as a repaired copy of it.

Source: docs/documents.md; decisions "PDFs".
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

from appliance.documents.document_bytes import rounds_of, sha256_of, size_of
from appliance.domain.documents.inspected import (
    FIELD_LOOK,
    Damage,
    FindingKind,
    Inspection,
    Repair,
    RepairedCopy,
    as_it_came,
)
from appliance.domain.errors import ApplianceError, DocumentRefusedError, ErrorCode
from appliance.domain.ports import DocumentBytes, PdfInspector
from appliance.settings import DocumentSettings

ROUND_DOCUMENTS: Final = 16
"""Most small documents that are looked at in one job of the sandbox."""
ROUND_BYTES: Final = 1_048_576
"""Of all of them: a job of several takes no longer than one of a large document."""
_NO_CHANGES: Final = 1
_REPAIRABLE: Final = frozenset(
    {
        ErrorCode.PDF_MALFORMED,
        ErrorCode.PDF_UNVERIFIABLE,
        ErrorCode.PDF_AMBIGUOUS,
        # Where the reader finds no page, others may: with them in the copy it has them.
        ErrorCode.PDF_NO_PAGES,
    }
)
_BETTER_ANEW: Final = frozenset(
    {
        FindingKind.DAMAGED,
        # Usage rights end with any change.
        FindingKind.USAGE_RIGHTS,
        # Programs that go by the count show other pages, or none.
        FindingKind.COUNT_LIES,
    }
)
"""Findings that a copy does not have."""
_READ: Final = _REPAIRABLE - {ErrorCode.PDF_MALFORMED}
"""Codes of files that were read, and are at fault in another way."""
_DAMAGE: Final = {
    ErrorCode.PDF_AMBIGUOUS: Damage.AMBIGUOUS,
    ErrorCode.PDF_NO_PAGES: Damage.PAGE_TREE,
}
"""Damages that describe the copy; they do not name a fault of the original."""
REPAIR_FIELD: Final = "reparar"
"""By which whoever sends a document refuses a copy of it."""


@dataclass(frozen=True, slots=True)
class Examined:
    """A PDF that can be signed, and what it was made of."""

    pdf: DocumentBytes = field(repr=False)
    inspection: Inspection
    repair: Repair | None


class Examination:
    """Has the sandbox look at what comes in, within the installation's limits.

    Args:
        inspector: the sandbox.
        settings: the limits, and what is not taken.
    """

    def __init__(self, inspector: PdfInspector, settings: DocumentSettings) -> None:
        self._inspector = inspector
        self._settings = settings

    async def examine(self, pdf: DocumentBytes, *, repairs: bool = True) -> Examined:
        """Look at a PDF, and have it written anew where that helps.

        Args:
            pdf: its bytes.
            repairs: whether a copy may be made; else what needs one is refused.

        Raises:
            DocumentRefusedError: it can be neither signed nor repaired, or is not
                taken here.
            ApplianceError: `DOCUMENT_EMPTY`, `DOCUMENT_TOO_LARGE`,
                `SANDBOX_UNAVAILABLE`.
        """
        self._demand_size(size_of(pdf))
        examined = await self._examined(pdf, repairs=repairs)
        self._demand_allowed(examined.inspection)
        return examined

    async def inspect_together(
        self, pdfs: Sequence[DocumentBytes]
    ) -> list[Inspection | None]:
        """Look at several documents of one owner by few jobs.

        Args:
            pdfs: of whatever size; large ones are left to `examine`.

        Returns:
            In order; None for what `examine` has to look at: it is large, empty,
            damaged, or nothing could be said of it beside others.

        Raises:
            ApplianceError: `OVERLOADED`.
        """
        found: list[Inspection | None] = [None] * len(pdfs)
        sizes = [size_of(pdf) for pdf in pdfs]
        small = [at for at, size in enumerate(sizes) if 0 < size <= self._most_small]
        sizes_of_small = [sizes[at] for at in small]
        for places in rounds_of(small, sizes_of_small, ROUND_DOCUMENTS, ROUND_BYTES):
            if len(places) == 1:
                continue
            described = await self._round([pdfs[at] for at in places])
            for at, inspection in zip(places, described, strict=True):
                if inspection is not None and inspection.size_bytes == sizes[at]:
                    found[at] = inspection
        return found

    @property
    def _most_small(self) -> int:
        return min(self._settings.limit_bytes, ROUND_BYTES)

    async def _round(self, pdfs: Sequence[DocumentBytes]) -> list[Inspection | None]:
        """What one job says of several documents; nothing, where it says nothing.

        Raises:
            ApplianceError: `OVERLOADED`.
        """
        try:
            return await self._inspector.inspect_all(pdfs)
        except ApplianceError as exc:
            if exc.code is ErrorCode.OVERLOADED:
                raise
            # One of them may have spoilt the answer; each has its own job then.
            return [None] * len(pdfs)

    def accept(
        self, pdf: DocumentBytes, inspection: Inspection, *, repairs: bool = True
    ) -> Examined | None:
        """A PDF of which it is known what this version's sandbox says.

        Args:
            pdf: its bytes.
            inspection: of these bytes.
            repairs: whether a copy may be made.

        Returns:
            None where it has to be looked at again, as it is to be repaired.

        Raises:
            DocumentRefusedError: it is not taken here.
            ApplianceError: `DOCUMENT_EMPTY`, `DOCUMENT_TOO_LARGE`.
        """
        if repairs and _is_to_repair(inspection):
            return None
        self._demand_size(size_of(pdf))
        self._demand_allowed(inspection)
        return Examined(pdf, inspection, None)

    async def examine_copy(self, copy: bytes, repair: Repair) -> Examined:
        """Look again at a copy that was made earlier.

        Raises:
            DocumentRefusedError: it is not taken here.
            ApplianceError: `SANDBOX_UNAVAILABLE`.
        """
        inspection = as_it_came(await self._inspector.inspect(copy), repair)
        self._demand_allowed(inspection)
        return Examined(copy, inspection, repair)

    def _demand_size(self, size_bytes: int) -> None:
        """Refuse what is empty or too large.

        Raises:
            ApplianceError: `DOCUMENT_EMPTY` or `DOCUMENT_TOO_LARGE`.
        """
        if not size_bytes:
            raise ApplianceError(ErrorCode.DOCUMENT_EMPTY)
        limit = self._settings.limit_bytes
        if size_bytes > limit:
            raise ApplianceError(ErrorCode.DOCUMENT_TOO_LARGE, params={"limit": limit})

    async def _examined(self, pdf: DocumentBytes, *, repairs: bool) -> Examined:
        """The PDF, or a copy of it that is written anew.

        Raises:
            DocumentRefusedError: it can be neither signed nor repaired.
        """
        inspection: Inspection | None = None
        refused: DocumentRefusedError | None = None
        try:
            inspection = await self._inspector.inspect(pdf)
        except DocumentRefusedError as refusal:
            if refusal.code not in _REPAIRABLE:
                raise
            if not repairs:
                # Whoever wants no copy is told that this is why there is none.
                refusal.extras.setdefault("field", REPAIR_FIELD)
                raise
            refused = refusal
        if inspection is not None and not (repairs and _is_to_repair(inspection)):
            return Examined(pdf, inspection, None)
        try:
            repaired = await self._inspector.repair(pdf)
            described = await self._inspector.inspect(repaired.pdf)
            _demand_sound(described)
            # By a job that has read neither before: whoever took over the one that
            # wrote the copy says nothing of its looks.
            looks = await self._looks_of(pdf, repaired)
        except DocumentRefusedError:
            if inspection is not None:
                return Examined(pdf, inspection, None)
            if refused is not None and refused.code in _READ:
                # It was read: that it cannot be repaired is not what is wrong.
                raise refused from None
            raise
        damage = looks | _damage_of(repaired, inspection, refused)
        origin = Repair(await sha256_of(pdf), tuple(sorted(damage)))
        return Examined(repaired.pdf, as_it_came(described, origin), origin)

    async def _looks_of(self, pdf: DocumentBytes, copy: RepairedCopy) -> set[Damage]:
        """Compare a file with its copy by what PDFium draws.

        Raises:
            ApplianceError: `OVERLOADED`, `SANDBOX_UNAVAILABLE`.
        """
        if Damage.PAGES in copy.damage:
            return {Damage.LOOK}
        alike = await self._inspector.compare(pdf, copy.pdf)
        if alike is None:
            return {Damage.LOOK_UNKNOWN}
        return set() if alike else {Damage.LOOK}

    def _demand_allowed(self, inspection: Inspection) -> None:
        """Refuse what the installation does not sign.

        Raises:
            DocumentRefusedError: `PDF_LOCKED`, `PDF_TOO_COMPLEX` or
                `PDF_NOT_ALLOWED`.
        """
        if _NO_CHANGES in {inspection.docmdp, inspection.signing.permitted}:
            raise DocumentRefusedError(ErrorCode.PDF_LOCKED, "certified with P=1")
        if len(inspection.pages) > self._settings.pages:
            raise DocumentRefusedError(ErrorCode.PDF_TOO_COMPLEX, "too many pages")
        refused = [
            kind.value for kind in inspection.findings if kind in self._settings.refuse
        ]
        if refused:
            kinds = ", ".join(refused)
            raise DocumentRefusedError(
                ErrorCode.PDF_NOT_ALLOWED,
                kinds,
                params={"kinds": kinds},
                extras={"avisos": refused},
            )


def _damage_of(
    copy: RepairedCopy,
    inspection: Inspection | None,
    refused: DocumentRefusedError | None,
) -> set[Damage]:
    """Say what was wrong with a file that was repaired.

    Args:
        copy: of it.
        inspection: of the file, where it could be taken in.
        refused: why it was not, otherwise.
    """
    damage = set(copy.damage)
    if refused is not None and refused.code in _DAMAGE:
        damage.add(_DAMAGE[refused.code])
    if inspection is not None and FindingKind.COUNT_LIES in inspection.findings:
        damage.add(Damage.PAGE_TREE)
    if not damage:
        is_read = refused is not None and refused.code in _READ
        damage.add(Damage.UNVERIFIABLE if is_read else Damage.SYNTAX)
    return damage


def _is_to_repair(inspection: Inspection) -> bool:
    """Whether a readable file is better written anew, and may still be changed."""
    found = _BETTER_ANEW.intersection(inspection.findings)
    # A signature takes the place of what an empty field of the document says.
    speaks = any(FIELD_LOOK in each.needs for each in inspection.signing.empty)
    return (bool(found) or speaks) and not inspection.signatures


def _demand_sound(copy: Inspection) -> None:
    """Refuse a repaired copy that is no better, or is not what was asked for.

    Raises:
        DocumentRefusedError: `PDF_MALFORMED`.
    """
    if copy.signatures or FindingKind.DAMAGED in copy.findings:
        raise DocumentRefusedError(ErrorCode.PDF_MALFORMED, "still damaged")
