"""What the core needs from outside; adapters stand in storage and worker.

Each port has one contract test that runs on every adapter of it.
"""

from collections.abc import AsyncIterator, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from datetime import datetime
from typing import Protocol

from appliance.domain.document import (
    Inspection,
    RepairedCopy,
    VerificationReport,
)
from appliance.domain.hsm import DigestAlgorithm
from appliance.domain.ids import ActivationId, IntegratorId, TaskId
from appliance.domain.stamp import StampLayout
from appliance.domain.stamp_details import LogoPicture
from appliance.domain.timestamps import RevokedTsa


class PdfInspector(Protocol):
    """The sandbox: the only place where an untrusted PDF is opened."""

    async def inspect(self, pdf: bytes) -> Inspection:
        """Describe a PDF.

        Raises:
            DocumentRefusedError: it cannot be taken in, by a `PDF_*` code.
            ApplianceError: `SANDBOX_UNAVAILABLE`.
        """
        ...

    async def repair(self, pdf: bytes) -> RepairedCopy:
        """Write a damaged file that holds no signature anew.

        Raises:
            DocumentRefusedError: it cannot be repaired, by a `PDF_*` code.
            ApplianceError: `SANDBOX_UNAVAILABLE`.
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

    async def picture(self, content: bytes) -> LogoPicture:
        """Make a logo of a PNG or JPEG file: only its pixels are kept.

        Raises:
            ApplianceError: `PICTURE_UNUSABLE`, `SANDBOX_UNAVAILABLE`.
        """
        ...

    async def ping(self) -> None:
        """Make sure that the sandbox answers.

        Raises:
            ApplianceError: `SANDBOX_UNAVAILABLE`.
        """
        ...


class TimestampAuthority(Protocol):
    """Says when something existed, in a signed token (RFC 3161)."""

    async def stamp(self, imprint: bytes, digest: DigestAlgorithm) -> bytes:
        """Have a timestamp made.

        Args:
            imprint: digest of what is stamped, as long as its algorithm says.
            digest: what made the imprint.

        Returns:
            TimeStampToken, a CMS ContentInfo in DER, over that imprint; its
            signature, certificate and content were checked.

        Raises:
            ApplianceError: `TSA_UNAVAILABLE`.

        Source: RFC 3161, 2.4.2.
        """
        ...


@dataclass(frozen=True, slots=True)
class DocumentStream:
    """A document that is read in pieces, so that it is never held whole."""

    size_bytes: int
    """Of the document."""
    pieces: AsyncIterator[bytes] = field(repr=False)
    """Its bytes; ends early, by an `ApplianceError`, before what is not right."""


class DocumentStore(Protocol):
    """PDFs by integrator and SHA-256 of their bytes; written once, encrypted."""

    async def put(
        self,
        integrator: IntegratorId,
        *parts: bytes | memoryview,
        signed: bool = False,
    ) -> str:
        """Keep the bytes durably before returning.

        Args:
            integrator: whose.
            parts: the document's bytes, one after the other.
            signed: a key was used for it: it may have the reserve's room.

        Returns:
            Their SHA-256 in hex.

        Raises:
            ApplianceError: `STORAGE_FULL`; `STORE_UNAVAILABLE`, also for what is
                signed and does not even fit where the reserve was.
        """
        ...

    async def get(self, integrator: IntegratorId, sha256: str) -> bytes:
        """Read them back, hashed again on the way.

        Raises:
            ApplianceError: `STORE_UNAVAILABLE`, also when missing or altered.
        """
        ...

    async def stream(self, integrator: IntegratorId, sha256: str) -> DocumentStream:
        """Read them back in pieces, each known to be right before it is given.

        Raises:
            ApplianceError: `STORE_UNAVAILABLE`, also when missing or altered.
        """
        ...

    async def make_room(self, size_bytes: int) -> None:
        """Make sure that a document which is yet to be signed will find room.

        Raises:
            ApplianceError: `STORAGE_FULL`; `STORE_UNAVAILABLE`.
        """
        ...


class DocumentUpkeep(DocumentStore, Protocol):
    """A store, and what is done to it beside documents that come and go."""

    async def encrypt(self, integrator: IntegratorId, sha256: str) -> bool:
        """Encrypt a document that was stored before they were; whether it was one.

        Raises:
            ApplianceError: `STORE_UNAVAILABLE`, `STORAGE_FULL`.
        """
        ...

    def older(self, before: datetime) -> AsyncIterator[tuple[IntegratorId, list[str]]]:
        """What was put in last before then: integrator, and SHA-256 of each.

        Raises:
            ApplianceError: `STORE_UNAVAILABLE`.
        """
        ...

    async def remove(
        self, integrator: IntegratorId, sha256: str, before: datetime
    ) -> bool:
        """Remove a document, unless it was put in again since; whether it was.

        Raises:
            ApplianceError: `STORE_UNAVAILABLE`.
        """
        ...

    async def clear(self, before: datetime) -> int:
        """Remove what killed writers left before then; how many files.

        Raises:
            ApplianceError: `STORE_UNAVAILABLE`.
        """
        ...


class DocumentKeys(Protocol):
    """The keys that documents are encrypted with: one for each integrator."""

    async def get(self, integrator: IntegratorId) -> bytes | None:
        """An integrator's key, 32 bytes; None when there is none.

        Raises:
            ApplianceError: `STORE_UNAVAILABLE`.
        """
        ...

    async def make(self, integrator: IntegratorId) -> bytes:
        """An integrator's key, made where there is none yet.

        Raises:
            ApplianceError: `STORE_UNAVAILABLE`.
        """
        ...


class Doorbell(Protocol):
    """Wakes a worker. A ring may be lost; the record is the database."""

    async def ring(self, work: ActivationId | TaskId) -> None:
        """Tell any worker that there is work; never raises."""
        ...


class Expectation(Protocol):
    """A caller waiting for one activation's outcome."""

    async def wait(self, timeout_s: float) -> bool:
        """Wait for news or the time-out; True for news."""
        ...


class Outcomes(Protocol):
    """Tells fronts that an activation ended. News may be lost."""

    def expect(
        self, activation: ActivationId
    ) -> AbstractAsyncContextManager[Expectation]:
        """Listen from now on; enter it before the work is committed."""
        ...

    async def announce(self, activation: ActivationId) -> None:
        """Wake whoever expects it; never raises."""
        ...

    async def run(self) -> None:
        """Listen for news of other processes, until cancelled."""


class Sealer(Protocol):
    """Keeps secrets of the database under a key from a file (design §4)."""

    def seal(self, secret: bytes, *, table: str, row: str, column: str) -> bytes:
        """Encrypt a value so that it opens only in its own place."""
        ...

    def open(self, sealed: bytes, *, table: str, row: str, column: str) -> bytes:
        """Decrypt what `seal` made for the same place.

        Raises:
            ApplianceError: `STORE_UNAVAILABLE`: another key, another place, or
                an altered value.
        """
        ...


class LookupIndex(Protocol):
    """Finds secrets by a keyed hash, so that the database holds none."""

    def index(self, purpose: str, value: str) -> str:
        """Index of a value for one purpose, to be stored; 64 characters."""
        ...

    def indexes(self, purpose: str, value: str) -> tuple[str, ...]:
        """All that may stand stored for it, by each version; `index` first."""
        ...


class WorkerIdentities(Protocol):
    """The HSM's worker identities that this front has pinned (design §4)."""

    def signed(self, identity: str, statement: bytes, signature: bytes) -> bool:
        """Whether a pinned identity signed a statement.

        Args:
            identity: SHA-256, in hex, of its SubjectPublicKeyInfo.
            statement: what was signed.
            signature: ECDSA (DER) or RSASSA-PKCS1-v1_5, over SHA-256.
        """
        ...
