"""The sandbox's client: a PDF goes in as a sealed memfd, facts come out.

    inspector = SandboxClient(settings.sandbox_socket, timeout_s=45)
    inspection = await inspector.inspect(pdf)

Each job has a connection of its own and runs in a thread, since descriptors are
passed by blocking sockets only. What comes back is distrusted: a job that was
taken over can answer wrongly, but nothing else.
"""

import asyncio
import base64
import fcntl
import hashlib
import logging
import os
import socket
import struct
import time
import zlib
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from appliance.domain import sandbox
from appliance.domain.document import (
    Inspection,
    RepairedCopy,
    VerificationReport,
)
from appliance.domain.errors import ApplianceError, ErrorCode
from appliance.domain.sandbox import LENGTH, MessageInvalidError, Operation
from appliance.domain.stamp import StampLayout
from appliance.domain.stamp_details import (
    LOGO_FILE_BYTES,
    LOGO_HEIGHT_PX,
    LOGO_WIDTH_PX,
    Logo,
    LogoPicture,
)
from appliance.domain.timestamps import RevokedTsa

_log = logging.getLogger(__name__)
_SEALS: Final = (
    fcntl.F_SEAL_SEAL | fcntl.F_SEAL_WRITE | fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW
)
_RETRY_AFTER_S: Final = 0.3
_WAITING: Final = 8
"""Jobs of one process that are at the sandbox or before it; others wait for those."""
_PDF: Final = b"%PDF-"
_PNG: Final = b"\x89PNG\r\n\x1a\n"


class _NotReachedError(Exception):
    """The connection ended before any answer: the server may be restarting."""


@dataclass(frozen=True, slots=True)
class _Reply:
    """An answer's JSON and its bytes."""

    head: Mapping[str, Any]
    binary: bytes = field(repr=False)


class SandboxClient:
    """Asks the sandbox about PDFs (port `PdfInspector`).

    Args:
        socket_path: where the sandbox listens.
        timeout_s: seconds for one job in all, waiting for its turn included; more
            than the sandbox's own limit of wall time.
    """

    def __init__(self, socket_path: Path, timeout_s: float) -> None:
        self._path = str(socket_path)
        self._timeout_s = timeout_s
        # Threads of its own: they wait for as long as jobs take, and in asyncio's few
        # nobody could read a document or compute its hash meanwhile.
        self._threads = ThreadPoolExecutor(_WAITING, thread_name_prefix="sandbox")

    async def inspect(self, pdf: bytes) -> Inspection:
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

    async def repair(self, pdf: bytes) -> RepairedCopy:
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
        try:
            return sandbox.report_from_json(_result(reply))
        except MessageInvalidError as exc:
            raise _unavailable("a report of another shape") from exc

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

    async def ping(self) -> None:
        """Make sure that the sandbox answers.

        Raises:
            ApplianceError: `SANDBOX_UNAVAILABLE`.
        """
        await self._ask(Operation.PING, {}, None)

    async def _ask(
        self, operation: Operation, params: Mapping[str, object], pdf: bytes | None
    ) -> _Reply:
        """Run one job in a thread.

        Raises:
            DocumentRefusedError: the sandbox refused the document.
            ApplianceError: `SANDBOX_UNAVAILABLE`.
        """
        request = sandbox.encode({"operation": operation.value, "params": params})
        deadline = time.monotonic() + self._timeout_s
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(
            self._threads, self._run, request, pdf, deadline
        )

    def _run(self, request: bytes, pdf: bytes | None, deadline: float) -> _Reply:
        """Run one job, a second time when the server was not there.

        Raises:
            DocumentRefusedError: the sandbox refused the document.
            ApplianceError: `SANDBOX_UNAVAILABLE`.
        """
        memory = None if pdf is None else _sealed(pdf)
        try:
            try:
                return self._exchange(request, memory, deadline)
            except _NotReachedError:
                time.sleep(_RETRY_AFTER_S)
                return self._exchange(request, memory, deadline)
        except _NotReachedError as exc:
            raise _unavailable("nobody answers") from exc
        except MessageInvalidError as exc:
            raise _unavailable("an answer of another shape") from exc
        except OSError as exc:
            raise _unavailable(exc.strerror or type(exc).__name__) from exc
        finally:
            if memory is not None:
                os.close(memory)

    def _exchange(self, request: bytes, memory: int | None, deadline: float) -> _Reply:
        """Connect, send, and read the answer.

        Raises:
            _NotReachedError: the connection ended before any answer.
        """
        descriptors = [] if memory is None else [memory]
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
            _allow(connection, deadline)
            try:
                connection.connect(self._path)
                sent = socket.send_fds(connection, [request], descriptors)
                connection.sendall(request[sent:])
                first = connection.recv(1)
            except (ConnectionError, FileNotFoundError) as exc:
                raise _NotReachedError from exc
            if not first:
                raise _NotReachedError
            return _read_reply(connection, first, deadline)


def _sealed(pdf: bytes) -> int:
    """Put bytes into a memfd that nobody can change any more.

    Never the stored file's own descriptor: what the sandbox holds must not be
    a way to the file.
    """
    memory = os.memfd_create("pdf", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
    try:
        view = memoryview(pdf)
        while view:
            view = view[os.write(memory, view) :]
        fcntl.fcntl(memory, fcntl.F_ADD_SEALS, _SEALS)
    except OSError:
        os.close(memory)
        raise
    return memory


def _allow(connection: socket.socket, deadline: float) -> None:
    """Let calls block until the deadline at most.

    Not `settimeout`, which makes the socket non-blocking: descriptors are passed
    by blocking sockets only, and a full queue would refuse instead of waiting.

    Raises:
        TimeoutError: it has passed.
    """
    left = deadline - time.monotonic()
    if left <= 0:
        raise TimeoutError
    value = struct.pack("@ll", int(left), int(left % 1 * 1_000_000) or 1)
    for option in (socket.SO_RCVTIMEO, socket.SO_SNDTIMEO):
        connection.setsockopt(socket.SOL_SOCKET, option, value)


def _read_reply(connection: socket.socket, first: bytes, deadline: float) -> _Reply:
    """Read an answer whose first byte is here already.

    Raises:
        DocumentRefusedError: the sandbox refused the document.
        MessageInvalidError: it does not follow the protocol.
    """
    head = first + _receive(connection, LENGTH.size - 1, deadline)
    (length,) = LENGTH.unpack(head)
    if length > sandbox.ANSWER_BYTES_MAX:
        raise MessageInvalidError
    message = sandbox.decode(_receive(connection, length, deadline))
    if "refused" in message:
        raise sandbox.refusal_from_json(message)
    size = message.get("binary")
    if not isinstance(size, int) or not 0 <= size <= sandbox.BINARY_BYTES_MAX:
        raise MessageInvalidError
    return _Reply(message, _receive(connection, size, deadline))


def _receive(connection: socket.socket, count: int, deadline: float) -> bytes:
    """Read exactly that many bytes.

    Raises:
        MessageInvalidError: the other side closed before.
    """
    received = bytearray()
    while len(received) < count:
        _allow(connection, deadline)
        part = connection.recv(min(count - len(received), 1_048_576))
        if not part:
            raise MessageInvalidError
        received += part
    return bytes(received)


def _encoded(certificates: Sequence[bytes]) -> list[str]:
    """Certificates as they stand in a request."""
    return [base64.b64encode(each).decode() for each in certificates]


def _result(reply: _Reply) -> Mapping[str, Any]:
    """The result of an answer.

    Raises:
        MessageInvalidError: it is no object.
    """
    result = reply.head.get("result")
    if not isinstance(result, dict):
        raise MessageInvalidError
    return result


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
