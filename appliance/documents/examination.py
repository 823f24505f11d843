"""Whether a PDF can be signed, as it is or as a repaired copy of it.

Source: docs/documents.md; decisions "PDFs".
"""

import asyncio
import hashlib
from dataclasses import dataclass, field, replace
from typing import Final

from appliance.domain.documents import FindingKind, Inspection, Repair
from appliance.domain.errors import ApplianceError, DocumentRefusedError, ErrorCode
from appliance.domain.ports import DocumentBytes, PdfInspector
from appliance.settings import DocumentSettings

_NO_CHANGES: Final = 1
_REPAIRABLE: Final = frozenset({ErrorCode.PDF_MALFORMED, ErrorCode.PDF_UNVERIFIABLE})


@dataclass(frozen=True, slots=True)
class Examined:
    """A PDF that can be signed, and where it comes from."""

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

    async def examine(self, pdf: DocumentBytes) -> Examined:
        """Look at a PDF, and repair it where that helps.

        Raises:
            DocumentRefusedError: it can be neither signed nor repaired, or is not
                taken here.
            ApplianceError: `DOCUMENT_EMPTY`, `DOCUMENT_TOO_LARGE`,
                `SANDBOX_UNAVAILABLE`.
        """
        self._demand_size(size_of(pdf))
        examined = await self._examined(pdf)
        self._demand_allowed(examined.inspection)
        return examined

    async def examine_copy(self, copy: bytes, repair: Repair) -> Examined:
        """Look again at a copy that was made earlier.

        Raises:
            DocumentRefusedError: it is not taken here.
            ApplianceError: `SANDBOX_UNAVAILABLE`.
        """
        inspection = as_repaired(await self._inspector.inspect(copy))
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

    async def _examined(self, pdf: DocumentBytes) -> Examined:
        """The PDF, or the repaired copy of it.

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
            refused = refusal
        if inspection is not None and not _is_to_repair(inspection):
            return Examined(pdf, inspection, None)
        try:
            repaired = await self._inspector.repair(pdf)
            described = await self._inspector.inspect(repaired.pdf)
            _demand_sound(described)
        except DocumentRefusedError:
            if inspection is not None:
                return Examined(pdf, inspection, None)
            if refused is not None and refused.code is ErrorCode.PDF_UNVERIFIABLE:
                # It was read: that it cannot be repaired is not what is wrong.
                raise refused from None
            raise
        origin = Repair(await sha256_of(pdf), repaired.damage)
        return Examined(repaired.pdf, as_repaired(described), origin)

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


def size_of(pdf: DocumentBytes) -> int:
    """How many bytes a document has."""
    return len(pdf) if isinstance(pdf, bytes) else pdf.size_bytes


async def sha256_of(pdf: DocumentBytes) -> str:
    """The SHA-256 of a document, in hex."""
    if not isinstance(pdf, bytes):
        return pdf.sha256
    # A large one would hold up everybody else.
    return (await asyncio.to_thread(hashlib.sha256, pdf)).hexdigest()


def _is_to_repair(inspection: Inspection) -> bool:
    """Whether a readable file is damaged and may still be changed."""
    return FindingKind.DAMAGED in inspection.findings and not inspection.signatures


def _demand_sound(copy: Inspection) -> None:
    """Refuse a repaired copy that is no better, or is not what was asked for.

    Raises:
        DocumentRefusedError: `PDF_MALFORMED`.
    """
    if copy.signatures or FindingKind.DAMAGED in copy.findings:
        raise DocumentRefusedError(ErrorCode.PDF_MALFORMED, "still damaged")


def as_repaired(inspection: Inspection) -> Inspection:
    """The inspection of a copy, with the finding that it is one.

    Args:
        inspection: by the sandbox, which cannot know.
    """
    findings = {*inspection.findings, FindingKind.REPAIRED}
    return replace(inspection, findings=tuple(sorted(findings)))
