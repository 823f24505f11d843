"""One message: its length, its JSON object, what can be asked, how much is read."""

import json
import struct
from collections.abc import Mapping
from enum import StrEnum
from typing import Any, Final

LENGTH: Final = struct.Struct("!I")
"""The length before each JSON object."""
REQUEST_BYTES_MAX: Final = 1_048_576
"""JSON of a request: a layout, or the roots of a verification."""
ANSWER_BYTES_MAX: Final = 4_194_304
"""JSON of an answer: the boxes of 5,000 pages take a tenth of it."""
BINARY_BYTES_MAX: Final = 110_000_000
"""Bytes after an answer: a PNG of 4,000 by 4,000 pixels, or a repaired copy."""


class Operation(StrEnum):
    """What can be asked of the sandbox."""

    INSPECT = "inspect"
    INSPECT_ALL = "inspect_all"
    REPAIR = "repair"
    COMPARE = "compare"
    RENDER = "render"
    VERIFY = "verify"
    TRY_CHAIN = "try_chain"
    PICTURE = "picture"
    FIND_TEXT = "find_text"
    PING = "ping"


class MessageInvalidError(ValueError):
    """A message that does not follow the protocol; never shown to anybody."""


def encode(message: Mapping[str, object]) -> bytes:
    """Write a JSON object with its length before it."""
    body = json.dumps(message, allow_nan=False, separators=(",", ":")).encode()
    return LENGTH.pack(len(body)) + body


def decode(body: bytes) -> dict[str, Any]:
    """Read the JSON object of a message.

    Raises:
        MessageInvalidError: it is not a JSON object.
    """
    try:
        message = json.loads(body)
    except (ValueError, RecursionError) as exc:
        raise MessageInvalidError from exc
    if not isinstance(message, dict):
        raise MessageInvalidError
    return message
