"""A sandbox that is played: each test's own overrides what it is asked for."""

import hashlib
import zlib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

from appliance.domain.appearance.details import Logo, LogoPicture
from appliance.domain.appearance.stamp import StampLayout
from appliance.domain.documents.inspected import (
    Damage,
    EmptyField,
    FindingKind,
    Inspection,
    PageBox,
    RepairedCopy,
    SigningFacts,
    TextSearch,
)
from appliance.domain.documents.verification import (
    YES,
    SignatureReport,
    VerificationReport,
)
from appliance.domain.errors import ApplianceError, DocumentRefusedError, ErrorCode
from appliance.domain.pki.timestamps import RevokedTsa
from appliance.domain.ports import DocumentBytes

BAD_PDF: Final = b"%PDF-1.7\n%bad\n%%EOF\n"
DAMAGED_PDF: Final = b"%PDF-damaged"
CERTIFIED: Final = b"%PDF certified"
FULL: Final = b"%PDF full"


def whole_signature(field: str) -> SignatureReport:
    """A signature of which every question is answered by *yes*."""
    return SignatureReport(field, YES, YES, YES, YES, YES, YES, YES)


class PlayedSandbox:
    """Is always there, and is asked for nothing (port `PdfInspector`)."""

    async def inspect(self, pdf: DocumentBytes) -> Inspection:
        """See `PdfInspector`."""
        raise NotImplementedError

    async def inspect_all(
        self, pdfs: Sequence[DocumentBytes]
    ) -> list[Inspection | None]:
        """Each as `inspect` has it; what that refuses is left to it."""
        found: list[Inspection | None] = []
        for pdf in pdfs:
            try:
                found.append(await self.inspect(pdf))
            except DocumentRefusedError:
                found.append(None)
        return found

    async def repair(self, pdf: DocumentBytes) -> RepairedCopy:
        """See `PdfInspector`."""
        raise NotImplementedError

    async def compare(self, pdf: DocumentBytes, copy: DocumentBytes) -> bool | None:
        """See `PdfInspector`."""
        raise NotImplementedError

    async def render(
        self,
        pdf: bytes,
        page: int,
        stamp: StampLayout | None,
        dpi: int,
        picture: LogoPicture | None = None,
    ) -> bytes:
        """See `PdfInspector`."""
        raise NotImplementedError

    async def verify(
        self,
        pdf: bytes,
        roots: Sequence[bytes],
        stamp_roots: Sequence[bytes] | None = None,
        revoked: Sequence[RevokedTsa] = (),
    ) -> VerificationReport:
        """See `PdfInspector`."""
        raise NotImplementedError

    async def try_chain(self, path: Sequence[bytes]) -> VerificationReport:
        """See `PdfInspector`."""
        raise NotImplementedError

    async def picture(self, content: bytes) -> LogoPicture:
        """See `PdfInspector`."""
        raise NotImplementedError

    async def find_text(
        self, pdf: DocumentBytes, text: str, occurrence: int, page: int | None = None
    ) -> TextSearch:
        """See `PdfInspector`."""
        raise NotImplementedError

    async def ping(self) -> None:
        """It answers."""


@dataclass
class FakeInspector(PlayedSandbox):
    """Describes every file that begins as a PDF alike, but for these.

    `BAD_PDF` and `DAMAGED_PDF` are refused, and the latter can be repaired. What
    begins as `CERTIFIED` is certified with P = 2 and has an empty field; what begins
    as `FULL` is certified and has none.

    Args:
        pages: of each, of A4.
    """

    pages: int

    async def inspect(self, pdf: DocumentBytes) -> Inspection:
        """So many pages, one finding."""
        pdf = bytes(pdf)
        if not pdf.startswith(b"%PDF") or pdf in {BAD_PDF, DAMAGED_PDF}:
            raise DocumentRefusedError(ErrorCode.PDF_MALFORMED, "played")
        page = PageBox(0.0, 0.0, 595.0, 842.0, 0)
        described = Inspection(
            len(pdf), (page,) * self.pages, (FindingKind.JAVASCRIPT,), 0, None
        )
        if not pdf.startswith((CERTIFIED, FULL)):
            return described
        field = EmptyField("Firma", 2, (100, 100, 300, 180))
        empty = (field,) if pdf.startswith(CERTIFIED) else ()
        facts = SigningFacts(permitted=2, empty=empty)
        return replace(described, signatures=1, docmdp=2, signing=facts)

    async def try_chain(self, path: Sequence[bytes]) -> VerificationReport:
        """Every chain is one by which signatures are valid."""
        del path
        return VerificationReport((whole_signature("Muestra"),), YES)

    async def repair(self, pdf: DocumentBytes) -> RepairedCopy:
        """One file can be."""
        if bytes(pdf) != DAMAGED_PDF:
            raise DocumentRefusedError(ErrorCode.PDF_MALFORMED, "played")
        return RepairedCopy(b"%PDF-repaired", (Damage.STREAMS, Damage.SURROUNDINGS))

    async def compare(self, pdf: DocumentBytes, copy: DocumentBytes) -> bool | None:
        """The copy looks the same."""
        del pdf, copy
        return True

    async def render(
        self,
        pdf: bytes,
        page: int,
        stamp: StampLayout | None,
        dpi: int,
        picture: LogoPicture | None = None,
    ) -> bytes:
        """Draw one page."""
        del pdf, stamp, picture
        return b"\x89PNG page %d at %d" % (page, dpi)

    async def picture(self, content: bytes) -> LogoPicture:
        """A picture of two pixels, of anything but a PDF."""
        if content.startswith(b"%PDF"):
            raise ApplianceError(ErrorCode.PICTURE_UNUSABLE)
        rows = hashlib.sha256(content).digest()[:6]
        logo = Logo(hashlib.sha256(rows).hexdigest(), 2, 1)
        return LogoPicture(logo, zlib.compress(rows))


@dataclass
class NamedSignatures(FakeInspector):
    """Says of each file that it holds a valid signature, whose and in which field.

    Both are the file's last words: `%PDF-1.7 20123456786 Firma-7`.
    """

    pages: int = 1

    async def verify(
        self,
        pdf: bytes,
        roots: Sequence[bytes],
        stamp_roots: Sequence[bytes] | None = None,
        revoked: Sequence[RevokedTsa] = (),
    ) -> VerificationReport:
        """One signature, by Ana Pérez."""
        del roots, stamp_roots, revoked
        _, cuil, name = pdf.decode().split()
        signature = replace(
            whole_signature(name), signer="Ana Pérez", signer_serial=f"CUIL {cuil}"
        )
        return VerificationReport((signature,), ending=YES)
