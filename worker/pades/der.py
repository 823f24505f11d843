"""Just enough DER to put a CMS together and to take one apart again.

Only definite lengths and one-octet tags, which is all that CMS has.
"""

from typing import NamedTuple

_SHORT_LENGTH = 0x80
_MULTI_OCTET_TAG = 0x1F


def encode(tag: int, *contents: bytes) -> bytes:
    """One value: tag, length, contents.

    Source: X.690 8.1, 10.1.
    """
    body = b"".join(contents)
    size = len(body)
    if size < _SHORT_LENGTH:
        return bytes((tag, size)) + body
    length = size.to_bytes((size.bit_length() + 7) // 8, "big")
    return bytes((tag, _SHORT_LENGTH | len(length))) + length + body


class Value(NamedTuple):
    """One value as it was read."""

    tag: int
    body: bytes
    """Its contents."""
    whole: bytes
    """Tag, length and contents."""


def read(data: bytes) -> tuple[Value, bytes]:
    """Take the first value off.

    Args:
        data: starts with a value.

    Returns:
        The value, and the bytes after it.

    Raises:
        ValueError: not DER, or cut short.

    Source: X.690 8.1, 10.1.
    """
    if len(data) < 2 or data[0] & _MULTI_OCTET_TAG == _MULTI_OCTET_TAG:  # noqa: PLR2004 (tag and length)
        msg = "no value"
        raise ValueError(msg)
    start, size = 2, data[1]
    if size >= _SHORT_LENGTH:
        start += size - _SHORT_LENGTH
        size = int.from_bytes(data[2:start], "big")
        if size < _SHORT_LENGTH:
            msg = "length not in its shortest form"
            raise ValueError(msg)
    end = start + size
    if end > len(data):
        msg = "cut short"
        raise ValueError(msg)
    return Value(data[0], data[start:end], data[:end]), data[end:]


def children(contents: bytes) -> list[Value]:
    """The values within a constructed one, in order.

    Args:
        contents: of a SEQUENCE, SET or explicit tag.

    Raises:
        ValueError: not DER, or cut short.
    """
    found = []
    while contents:
        value, contents = read(contents)
        found.append(value)
    return found
