"""A sandbox whose jobs a document takes over: they answer what the document wants.

    with taken_over(settings.sandbox_socket, lie):
        ...

    def lie(job: Job) -> Answer | None: …   None: as the true sandbox answers

It stands in front of a true sandbox, at its socket. A job that was taken over can do no
more than that: it has its request, its document and one connection to answer by.
"""

import mmap
import os
import socket
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from appliance.documents.sandbox_connection import exchange
from appliance.domain.errors import DocumentRefusedError
from appliance.domain.sandbox import LENGTH, Operation, decode, encode, refusal_to_json
from appliance.system.sealed_memory import MemoryWriter

_JOB_S: Final = 600.0


@dataclass(frozen=True, slots=True)
class Answer:
    """What a job answers.

    Args:
        result: its JSON.
        binary: bytes after it.
    """

    result: Mapping[str, Any]
    binary: bytes = field(default=b"", repr=False)

    def message(self) -> bytes:
        """The answer, ready to be sent."""
        head = {"result": self.result, "binary": len(self.binary)}
        return encode(head) + self.binary


@dataclass(frozen=True)
class Job:
    """What a job was asked, and what an honest one says."""

    operation: Operation
    params: Mapping[str, Any]
    pdf: bytes = field(repr=False)
    _sandbox: str

    def honest(
        self, pdf: bytes | None = None, params: Mapping[str, Any] | None = None
    ) -> Answer:
        """Answer of the true sandbox, of another document or question if given.

        Raises:
            DocumentRefusedError: it refuses the document.
        """
        asked = self.params if params is None else params
        content = self.pdf if pdf is None else pdf
        request = encode({"operation": self.operation.value, "params": asked})
        memory = None
        if content:
            writer = MemoryWriter("pdf")
            writer.write(content)
            memory = writer.sealed()
        deadline = time.monotonic() + _JOB_S
        reply = exchange(self._sandbox, request, memory, deadline)
        return Answer(reply.head["result"], reply.binary)


Lie = Callable[[Job], Answer | bytes | None]
"""Answer of a taken job: bytes are sent as they are; None: an honest answer."""


@contextmanager
def taken_over(place: Path, lie: Lie) -> Iterator[list[Operation]]:
    """Have a document answer for the sandbox.

    Args:
        place: socket of the true sandbox.
        lie: what its jobs answer instead.

    Returns:
        Operations for which a lie was told so far.
    """
    true = place.with_name(f"{place.name}.true")
    place.rename(true)
    told: list[Operation] = []
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as listener:
        try:
            listener.bind(str(place))
            listener.listen(64)
            server = threading.Thread(
                target=_serve, args=(listener, str(true), lie, told), daemon=True
            )
            server.start()
            yield told
        finally:
            # Whoever connects from here on finds the true one.
            true.rename(place)
            listener.shutdown(socket.SHUT_RDWR)


def _serve(listener: socket.socket, true: str, lie: Lie, told: list[Operation]) -> None:
    with suppress(OSError):  # it was shut down
        while True:
            connection, _ = listener.accept()
            threading.Thread(
                target=_answer, args=(connection, true, lie, told), daemon=True
            ).start()


def _answer(
    connection: socket.socket, true: str, lie: Lie, told: list[Operation]
) -> None:
    with connection, suppress(ConnectionError):
        job = _received(connection, true)
        if job is None:
            return
        try:
            answer = lie(job)
            if answer is None:
                connection.sendall(job.honest().message())
                return
        except DocumentRefusedError as refusal:
            message = {**refusal_to_json(refusal), "binary": 0}
            connection.sendall(encode(message))
            return
        told.append(job.operation)
        sent = answer if isinstance(answer, bytes) else answer.message()
        connection.sendall(sent)


def _received(connection: socket.socket, true: str) -> Job | None:
    """Read a request; None from who only looks whether the sandbox is there."""
    head, descriptors, _, _ = socket.recv_fds(connection, LENGTH.size, 1)
    if not head:
        return None
    (length,) = LENGTH.unpack(head)
    body = b""
    while len(body) < length:
        body += connection.recv(length - len(body))
    message = decode(body)
    pdf = b""
    for descriptor in descriptors:
        size = os.fstat(descriptor).st_size
        with mmap.mmap(descriptor, size, prot=mmap.PROT_READ) as view:
            pdf = view[:]
        os.close(descriptor)
    return Job(Operation(message["operation"]), message["params"], pdf, true)
