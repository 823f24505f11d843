"""The sandbox's client: a PDF goes in as a sealed memfd, facts come out.

    inspector = SandboxClient(settings.sandbox_socket, timeout_s=45)
    inspection = await inspector.inspect(pdf)

Each job has a connection of its own and runs in a thread, since descriptors are
passed by blocking sockets only. What comes back is distrusted: a job that was
taken over can answer wrongly, but nothing else.
"""

import asyncio
import base64
import hashlib
import logging
import time
import zlib
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

from appliance.admission.fair_queue import FairLimits, FairQueue
from appliance.admission.work_owner import WORK_OWNER, WorkOwner
from appliance.documents.document_bytes import size_of
from appliance.documents.sandbox_connection import (
    NotReachedError,
    Reply,
    exchange,
)
from appliance.domain import sandbox
from appliance.domain.appearance.details import (
    LOGO_FILE_BYTES,
    LOGO_HEIGHT_PX,
    LOGO_WIDTH_PX,
    Logo,
    LogoPicture,
)
from appliance.domain.appearance.stamp import StampLayout
from appliance.domain.documents.inspected import Inspection, RepairedCopy, TextSearch
from appliance.domain.documents.verification import VerificationReport
from appliance.domain.errors import ApplianceError, DocumentRefusedError, ErrorCode
from appliance.domain.pki.timestamps import RevokedTsa
from appliance.domain.ports import DocumentBytes
from appliance.domain.sandbox import UNNAMED, JobCaller, MessageInvalidError, Operation
from appliance.system.sealed_memory import MemoryWriter, SealedMemory

_log = logging.getLogger(__name__)
_RETRY_AFTER_S: Final = 0.3
_PLACES: Final = FairLimits(places=8, per_share=6, per_party=2)
"""Jobs of one process that are at the sandbox or before it, and who wait for those."""
_PINGS: Final = 2
"""Threads beside those: whoever asks whether the sandbox is there waits for no job."""
_PDF: Final = b"%PDF-"
_PNG: Final = b"\x89PNG\r\n\x1a\n"


class SandboxClient:
    """Asks the sandbox about PDFs (port `PdfInspector`).

    Args:
        socket_path: where the sandbox listens.
        timeout_s: seconds for one job in all, waiting for its turn at the sandbox
            included; more than the sandbox's own limit of wall time.
        limits: of the jobs that this process has there at a time.
    """

    def __init__(
        self, socket_path: Path, timeout_s: float, limits: FairLimits = _PLACES
    ) -> None:
        self._path = str(socket_path)
        self._timeout_s = timeout_s
        self._queue = FairQueue(limits, "sandbox")
        # Threads of its own: they wait for as long as jobs take, and in asyncio's few
        # nobody could read a document or compute its hash meanwhile.
        self._threads = ThreadPoolExecutor(limits.places, thread_name_prefix="sandbox")
        self._ping_threads = ThreadPoolExecutor(_PINGS, thread_name_prefix="ping")

    async def inspect(self, pdf: DocumentBytes) -> Inspection:
        """Describe a PDF.

        Raises:
            DocumentRefusedError: it cannot be taken in, by a `PDF_*` code.
            ApplianceError: `SANDBOX_UNAVAILABLE`.
        """
        reply = await self._ask(Operation.INSPECT, {}, pdf)
        try:
            return sandbox.inspection_from_json(_result(reply))
        except MessageInvalidError as exc:
            raise _unavailable("an inspection of another shape") from exc

    async def inspect_all(
        self, pdfs: Sequence[DocumentBytes]
    ) -> list[Inspection | None]:
        """Describe several small PDFs of one owner in one job; see `PdfInspector`.

        Raises:
            ApplianceError: `OVERLOADED`, `SANDBOX_UNAVAILABLE`.
        """
        params = {"sizes": [size_of(pdf) for pdf in pdfs]}
        together = b"".join(bytes(pdf) for pdf in pdfs)
        try:
            reply = await self._ask(Operation.INSPECT_ALL, params, together)
        except DocumentRefusedError:
            # One of them was too much for the job; which, nobody knows.
            return [None] * len(pdfs)
        try:
            return sandbox.inspections_from_json(_result(reply), len(pdfs))
        except MessageInvalidError as exc:
            raise _unavailable("inspections of another shape") from exc

    async def repair(self, pdf: DocumentBytes) -> RepairedCopy:
        """Write a damaged file that holds no signature anew.

        Raises:
            DocumentRefusedError: it cannot be repaired, by a `PDF_*` code.
            ApplianceError: `SANDBOX_UNAVAILABLE`.
        """
        reply = await self._ask(Operation.REPAIR, {}, pdf)
        if not reply.binary.startswith(_PDF):
            raise _unavailable("a repaired copy that is no PDF")
        try:
            damage = sandbox.damage_from_json(_result(reply))
        except MessageInvalidError as exc:
            raise _unavailable("a repair of another shape") from exc
        return RepairedCopy(reply.binary, damage)

    async def compare(self, pdf: DocumentBytes, copy: DocumentBytes) -> bool | None:
        """Draw a file and its copy in a job of their own; see `PdfInspector`.

        Raises:
            ApplianceError: `OVERLOADED`, `SANDBOX_UNAVAILABLE`.
        """
        params = {"sizes": [size_of(pdf), size_of(copy)]}
        writer = MemoryWriter("pdf")
        for one in (pdf, copy):
            writer.write(bytes(one))
        try:
            reply = await self._ask(Operation.COMPARE, params, writer.sealed())
            alike = _result(reply).get("alike")
        except DocumentRefusedError:
            # It is too much to be drawn in time: nothing is known.
            return None
        except MessageInvalidError as exc:
            raise _unavailable("a comparison of another shape") from exc
        if alike is not None and not isinstance(alike, bool):
            raise _unavailable("a comparison of another shape")
        return alike

    async def render(
        self,
        pdf: bytes,
        page: int,
        stamp: StampLayout | None,
        dpi: int,
        picture: LogoPicture | None = None,
    ) -> bytes:
        """Draw one page (1-based), with a stamp laid on it, as a PNG.

        Raises:
            DocumentRefusedError: it cannot be drawn.
            ApplianceError: `SANDBOX_UNAVAILABLE`.
        """
        layout = None if stamp is None else sandbox.layout_to_json(stamp)
        logo = None if picture is None else sandbox.picture_to_json(picture)
        params = {"page": page, "dpi": dpi, "stamp": layout, "picture": logo}
        reply = await self._ask(Operation.RENDER, params, pdf)
        if not reply.binary.startswith(_PNG):
            raise _unavailable("a picture that is no PNG")
        return reply.binary

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
        params = {
            "roots": _encoded(roots),
            "stampRoots": _encoded(roots if stamp_roots is None else stamp_roots),
            "revoked": sandbox.revoked_to_json(revoked),
        }
        reply = await self._ask(Operation.VERIFY, params, pdf)
        return _report(reply)

    async def try_chain(self, path: Sequence[bytes]) -> VerificationReport:
        """Verify a sample under stand-ins of a chain; see `PdfInspector`.

        Raises:
            DocumentRefusedError: what is signed so cannot be read.
            ApplianceError: `SANDBOX_UNAVAILABLE`.
        """
        reply = await self._ask(Operation.TRY_CHAIN, {"path": _encoded(path)}, None)
        return _report(reply)

    async def picture(self, content: bytes) -> LogoPicture:
        """Make a logo of a PNG or JPEG file: only its pixels are kept.

        Raises:
            ApplianceError: `PICTURE_UNUSABLE`, `SANDBOX_UNAVAILABLE`.
        """
        if not 0 < len(content) <= LOGO_FILE_BYTES:
            raise ApplianceError(ErrorCode.PICTURE_UNUSABLE)
        reply = await self._ask(Operation.PICTURE, {}, content)
        try:
            return _logo_picture(_result(reply), reply.binary)
        except MessageInvalidError as exc:
            raise _unavailable("a picture of another shape") from exc

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
        wanted = sandbox.wanted_to_json(text, occurrence, page)
        reply = await self._ask(Operation.FIND_TEXT, wanted, pdf)
        try:
            return sandbox.search_from_json(_result(reply))
        except MessageInvalidError as exc:
            raise _unavailable("a search of another shape") from exc

    async def ping(self) -> None:
        """Make sure that the sandbox answers.

        Raises:
            ApplianceError: `SANDBOX_UNAVAILABLE`.
        """
        caller = sandbox.job_caller(Operation.PING, "")
        request = sandbox.encode({"operation": Operation.PING.value, "params": {}})
        deadline = time.monotonic() + self._timeout_s
        await asyncio.get_running_loop().run_in_executor(
            self._ping_threads, self._run, request, None, deadline, caller
        )

    async def _ask(
        self,
        operation: Operation,
        params: Mapping[str, object],
        pdf: DocumentBytes | None,
    ) -> Reply:
        """Run one job in a thread.

        Raises:
            DocumentRefusedError: the sandbox refused the document.
            ApplianceError: `OVERLOADED`, `SANDBOX_UNAVAILABLE`.
        """
        owner = WORK_OWNER.get()
        # Strangers, of all processes, are one share of the sandbox.
        caller = sandbox.job_caller(operation, owner.group or owner.share)
        request = sandbox.encode({"operation": operation.value, "params": params})
        return await self._in_turn(owner, request, pdf, caller)

    async def _in_turn(
        self,
        owner: WorkOwner,
        request: bytes,
        pdf: DocumentBytes | None,
        caller: JobCaller,
    ) -> Reply:
        """Run one job in a thread, when it is its owner's turn.

        Raises:
            DocumentRefusedError: the sandbox refused the document.
            ApplianceError: `OVERLOADED`, `SANDBOX_UNAVAILABLE`.
        """
        place = await self._queue.acquire(owner)
        deadline = time.monotonic() + self._timeout_s
        loop = asyncio.get_running_loop()
        work = self._threads.submit(self._run, request, pdf, deadline, caller)

        def done(_: object) -> None:
            with suppress(RuntimeError):  # the loop is closed
                loop.call_soon_threadsafe(place.release)

        # Not when the caller leaves: the job goes on, and so does its place.
        work.add_done_callback(done)
        return await asyncio.wrap_future(work)

    def _run(
        self,
        request: bytes,
        pdf: DocumentBytes | None,
        deadline: float,
        caller: JobCaller = UNNAMED,
    ) -> Reply:
        """Run one job, a second time when the server was not there.

        Raises:
            DocumentRefusedError: the sandbox refused the document.
            ApplianceError: `SANDBOX_UNAVAILABLE`.
        """
        try:
            # Never the stored file's own descriptor: what the sandbox holds must not
            # be a way to the file.
            memory = _in_memory(pdf) if isinstance(pdf, bytes) else pdf
            try:
                return exchange(self._path, request, memory, deadline, caller)
            except NotReachedError:
                time.sleep(_RETRY_AFTER_S)
                return exchange(self._path, request, memory, deadline, caller)
        except NotReachedError as exc:
            raise _unavailable("nobody answers") from exc
        except MessageInvalidError as exc:
            raise _unavailable("an answer of another shape") from exc
        except OSError as exc:
            raise _unavailable(exc.strerror or type(exc).__name__) from exc


def _in_memory(pdf: bytes) -> SealedMemory:
    """Bytes of the heap as the sandbox is handed them.

    Raises:
        OSError: the machine has no room for them.
    """
    writer = MemoryWriter("pdf")
    writer.write(pdf)
    return writer.sealed()


def _encoded(certificates: Sequence[bytes]) -> list[str]:
    """Certificates as they stand in a request."""
    return [base64.b64encode(each).decode() for each in certificates]


def _result(reply: Reply) -> Mapping[str, Any]:
    """The result of an answer.

    Raises:
        MessageInvalidError: it is no object.
    """
    result = reply.head.get("result")
    if not isinstance(result, dict):
        raise MessageInvalidError
    return result


def _report(reply: Reply) -> VerificationReport:
    """The verification report of an answer.

    Raises:
        ApplianceError: `SANDBOX_UNAVAILABLE`: it is of another shape.
    """
    try:
        return sandbox.report_from_json(_result(reply))
    except MessageInvalidError as exc:
        raise _unavailable("a report of another shape") from exc


def _logo_picture(result: Mapping[str, Any], rows: bytes) -> LogoPicture:
    """The logo that a picture became.

    Raises:
        MessageInvalidError: it is not as large as it says, or too large.
    """
    width, height = result.get("width"), result.get("height")
    if (
        not isinstance(width, int)
        or not isinstance(height, int)
        or not 1 <= width <= LOGO_WIDTH_PX
        or not 1 <= height <= LOGO_HEIGHT_PX
        or len(rows) != 3 * width * height
    ):
        raise MessageInvalidError
    # Deflated here: what the sandbox says goes into PDFs as nothing but pixels.
    logo = Logo(hashlib.sha256(rows).hexdigest(), width, height)
    return LogoPicture(logo, zlib.compress(rows, 9))


def _unavailable(why: str) -> ApplianceError:
    """The error that callers get; the cause is for the log alone."""
    _log.warning("sandbox: %s", why)
    return ApplianceError(ErrorCode.SANDBOX_UNAVAILABLE)
