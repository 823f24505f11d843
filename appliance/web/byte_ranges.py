"""Byte ranges of a document: what `Range` and `If-Range` ask for.

One range an answer. Several, another unit, or a malformed one are ignored and the
whole document is the answer, as RFC 9110 permits; so a request can never ask for more
bytes than the document has.

Source: RFC 9110, 13.1.5 and 14.
"""

import re
from dataclasses import dataclass
from typing import Final

from quart import request

_ONE: Final = re.compile(
    r"bytes=[ \t]{0,8}([0-9]{0,18})-([0-9]{0,18})[ \t]{0,8}", re.ASCII | re.IGNORECASE
)


@dataclass(frozen=True, slots=True)
class ByteRange:
    """One range as it was asked for, of a document whose size is not known yet."""

    first: int | None
    """Offset of the first byte; None: the last bytes of the document."""
    last: int | None
    """Offset of the last byte; without `first` how many bytes; None: to the end."""

    def within(self, size_bytes: int) -> tuple[int, int] | None:
        """Offsets of the first byte and after the last one; None: no byte is there.

        Args:
            size_bytes: of the document.
        """
        if self.first is None:
            start, end = max(size_bytes - (self.last or 0), 0), size_bytes
        else:
            start = self.first
            end = size_bytes if self.last is None else min(self.last + 1, size_bytes)
        return (start, end) if start < end else None


def asked() -> ByteRange | None:
    """The range that the present request asks for; None: the whole document."""
    if request.method != "GET":
        return None
    found = _ONE.fullmatch(request.headers.get("Range", ""))
    if found is None:
        return None
    first, last = (int(text) if text else None for text in found.groups())
    backwards = first is not None and last is not None and last < first
    if backwards or (first is None and last is None):
        return None
    return ByteRange(first, last)


def goes_on() -> bool:
    """Return whether the present request asks for more of what it has begun to read."""
    wanted = asked()
    return wanted is not None and wanted.first != 0


def still_holds(tag: str) -> bool:
    """Return whether `If-Range` lets a range be the answer.

    Args:
        tag: the document's `ETag`, a strong one.
    """
    # A date never matches: a document has no other version than its hash.
    return request.headers.get("If-Range", tag) == tag
