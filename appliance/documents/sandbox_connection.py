"""One connection to the sandbox: a request and a sealed memfd go out, a reply comes in.

It blocks, as descriptors are passed by blocking sockets only.
"""

import socket
import struct
import time
from collections.abc import Mapping
from contextlib import nullcontext
from dataclasses import dataclass, field
from typing import Any

from appliance.domain import sandbox
from appliance.domain.ports import DocumentMemory
from appliance.domain.sandbox import (
    LENGTH,
    UNNAMED,
    JobCaller,
    MessageInvalidError,
    socket_name,
)


class NotReachedError(Exception):
    """The connection ended before any answer: the server may be restarting."""


@dataclass(frozen=True, slots=True)
class Reply:
    """An answer's JSON and its bytes."""

    head: Mapping[str, Any]
    binary: bytes = field(repr=False)


def exchange(
    path: str,
    request: bytes,
    memory: DocumentMemory | None,
    deadline: float,
    caller: JobCaller = UNNAMED,
) -> Reply:
    """Connect, send, and read the answer.

    Args:
        path: of the sandbox's socket.
        request: a whole message.
        memory: what nobody can change any more, or None.
        deadline: on the monotonic clock, in seconds.
        caller: whose job it is; the server's places are given out by it.

    Raises:
        NotReachedError: the connection ended before any answer.
        DocumentRefusedError: the sandbox refused the document.
        MessageInvalidError: the answer does not follow the protocol.
        OSError: of the socket; `TimeoutError` past the deadline.
    """
    with (
        nullcontext() if memory is None else memory.opened() as descriptor,
        socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection,
    ):
        descriptors = [] if descriptor is None else [descriptor]
        _allow(connection, deadline)
        connection.bind(socket_name(caller))
        try:
            connection.connect(path)
            sent = socket.send_fds(connection, [request], descriptors)
            connection.sendall(request[sent:])
            first = connection.recv(1)
        except (ConnectionError, FileNotFoundError) as exc:
            raise NotReachedError from exc
        if not first:
            raise NotReachedError
        return _read_reply(connection, first, deadline)


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


def _read_reply(connection: socket.socket, first: bytes, deadline: float) -> Reply:
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
    return Reply(message, _receive(connection, size, deadline))


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
