"""A job's side of its connection: one request in, one answer out."""

import fcntl
import mmap
import os
import socket
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from appliance.domain import sandbox
from appliance.domain.errors import DocumentRefusedError, ErrorCode
from appliance.domain.sandbox import LENGTH, MessageInvalidError, Operation

_SEALS: Final = fcntl.F_SEAL_WRITE | fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW


@dataclass(frozen=True, slots=True)
class Request:
    """What one job was asked."""

    operation: str
    params: Mapping[str, Any]
    pdf: bytes = field(repr=False)
    """Empty when no document was sent."""


@dataclass(frozen=True, slots=True)
class Answer:
    """What it answers, when it does not refuse."""

    result: Mapping[str, Any]
    binary: bytes = field(default=b"", repr=False)


def receive_request(connection: socket.socket, document_bytes: int) -> Request:
    """Read the request and its document.

    Args:
        connection: blocking.
        document_bytes: largest document that is read; of a comparison each may be as
            large.

    Raises:
        DocumentRefusedError: `DOCUMENT_EMPTY` or `DOCUMENT_TOO_LARGE`.
        MessageInvalidError: it does not follow the protocol, or the document
            could still be changed by who sent it.
    """
    head, descriptors, flags, _ = socket.recv_fds(connection, LENGTH.size, 1)
    if flags & socket.MSG_CTRUNC or not head:
        raise MessageInvalidError
    head += _receive(connection, LENGTH.size - len(head))
    (length,) = LENGTH.unpack(head)
    if length > sandbox.REQUEST_BYTES_MAX:
        raise MessageInvalidError
    message = sandbox.decode(_receive(connection, length))
    operation, params = message.get("operation"), message.get("params")
    if not isinstance(operation, str) or not isinstance(params, dict):
        raise MessageInvalidError
    pdf = b""
    if descriptors:
        count = 2 if operation == Operation.COMPARE else 1
        pdf = _read_sealed(descriptors[0], count * document_bytes)
        os.close(descriptors[0])
    return Request(operation, params, pdf)


def _receive(connection: socket.socket, count: int) -> bytes:
    """Read exactly that many bytes.

    Raises:
        MessageInvalidError: the other side closed before.
    """
    parts = []
    while count:
        part = connection.recv(min(count, 65_536))
        if not part:
            raise MessageInvalidError
        parts.append(part)
        count -= len(part)
    return b"".join(parts)


def _read_sealed(descriptor: int, document_bytes: int) -> bytes:
    """Read the document, once it is sure that nobody can change it any more.

    Raises:
        DocumentRefusedError: it is empty or too large.
        MessageInvalidError: it is not a memfd with all three seals.
    """
    try:
        seals = fcntl.fcntl(descriptor, fcntl.F_GET_SEALS)
    except OSError as exc:
        raise MessageInvalidError from exc
    if seals & _SEALS != _SEALS:
        raise MessageInvalidError
    size = os.fstat(descriptor).st_size
    if size == 0:
        raise DocumentRefusedError(ErrorCode.DOCUMENT_EMPTY)
    if size > document_bytes:
        raise DocumentRefusedError(
            ErrorCode.DOCUMENT_TOO_LARGE, params={"limit": document_bytes}
        )
    with mmap.mmap(descriptor, size, prot=mmap.PROT_READ) as view:
        return view[:]


def answer_bytes(answer: Answer | DocumentRefusedError) -> bytes:
    """Write an answer, ready to be sent."""
    if isinstance(answer, DocumentRefusedError):
        return sandbox.encode({**sandbox.refusal_to_json(answer), "binary": 0})
    head = {"result": answer.result, "binary": len(answer.binary)}
    return sandbox.encode(head) + answer.binary
