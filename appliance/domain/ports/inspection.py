"""The sandbox, as the core asks it."""

from collections.abc import Sequence
from typing import Protocol

from appliance.domain.appearance.details import LogoPicture
from appliance.domain.appearance.stamp import StampLayout
from appliance.domain.documents.inspected import Inspection, RepairedCopy, TextSearch
from appliance.domain.documents.verification import VerificationReport
from appliance.domain.pki.timestamps import RevokedTsa
from appliance.domain.ports.documents import DocumentBytes


class PdfInspector(Protocol):
    """The sandbox: the only place where an untrusted PDF is opened."""

    async def inspect(self, pdf: DocumentBytes) -> Inspection:
        """Describe a PDF.

        Raises:
            DocumentRefusedError: it cannot be taken in, by a `PDF_*` code.
            ApplianceError: `SANDBOX_UNAVAILABLE`.
        """
        ...

    async def inspect_all(
        self, pdfs: Sequence[DocumentBytes]
    ) -> list[Inspection | None]:
        """Describe several small PDFs of one owner in one job.

        Returns:
            In order; None for one that has to be inspected alone: none is refused
            because of what stands beside it.

        Raises:
            ApplianceError: `OVERLOADED`, `SANDBOX_UNAVAILABLE`.
        """
        ...

    async def repair(self, pdf: DocumentBytes) -> RepairedCopy:
        """Write a damaged file that holds no signature anew.

        Raises:
            DocumentRefusedError: it cannot be repaired, by a `PDF_*` code.
            ApplianceError: `SANDBOX_UNAVAILABLE`.
        """
        ...

    async def compare(self, pdf: DocumentBytes, copy: DocumentBytes) -> bool | None:
        """Draw a file and its copy in a job of their own.

        Returns:
            True: each page looks the same. None: not each one could be compared, and
            none is known to differ.

        Raises:
            ApplianceError: `OVERLOADED`, `SANDBOX_UNAVAILABLE`.
        """
        ...

    async def render(
        self,
        pdf: bytes,
        page: int,
        stamp: StampLayout | None,
        dpi: int,
        picture: LogoPicture | None = None,
    ) -> bytes:
        """Draw one page (1-based), with a stamp laid on it, as a PNG.

        The picture is the logo that the stamp names.

        Raises:
            DocumentRefusedError: it cannot be drawn.
            ApplianceError: `SANDBOX_UNAVAILABLE`.
        """
        ...

    async def verify(
        self,
        pdf: bytes,
        roots: Sequence[bytes],
        stamp_roots: Sequence[bytes] | None = None,
        revoked: Sequence[RevokedTsa] = (),
    ) -> VerificationReport:
        """Check every signature of a PDF against trusted roots.

        Args:
            pdf: the whole file.
            roots: trusted for signers, DER.
            stamp_roots: trusted for timestamps, DER; None: the same.
            revoked: TSAs whose certificates are known to be revoked.

        Raises:
            DocumentRefusedError: the file cannot be read as a PDF.
            ApplianceError: `SANDBOX_UNAVAILABLE`.
        """
        ...

    async def try_chain(self, path: Sequence[bytes]) -> VerificationReport:
        """Verify a sample under stand-ins of a chain: the same but for their keys.

        It needs no key of the chain. Keys and signatures of the chain itself are not
        looked at.

        Args:
            path: the signer's certificate, then each one's issuer up to the root, DER.

        Raises:
            DocumentRefusedError: what is signed so cannot be read.
            ApplianceError: `SANDBOX_UNAVAILABLE`.
        """
        ...

    async def picture(self, content: bytes) -> LogoPicture:
        """Make a logo of a PNG or JPEG file: only its pixels are kept.

        Raises:
            ApplianceError: `PICTURE_UNUSABLE`, `SANDBOX_UNAVAILABLE`.
        """
        ...

    async def find_text(
        self, pdf: DocumentBytes, text: str, occurrence: int, page: int | None = None
    ) -> TextSearch:
        """Look for a text of a PDF's pages, as far as that is bounded.

        Args:
            pdf: the whole file.
            text: in NFC; any run of white space is as any other. Case counts.
            occurrence: which of several, from 1, in the order of the pages.
            page: the only one that is searched, 1-based; None: all of them.

        Raises:
            DocumentRefusedError: it cannot be read, by a `PDF_*` code.
            ApplianceError: `SANDBOX_UNAVAILABLE`.
        """
        ...

    async def ping(self) -> None:
        """Make sure that the sandbox answers.

        Raises:
            ApplianceError: `SANDBOX_UNAVAILABLE`.
        """
        ...
