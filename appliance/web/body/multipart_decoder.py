"""A decoder of multipart bodies that collects nothing but what a part may hold.

Werkzeug's keeps what stands before the first boundary, each part's head and what
follows the last boundary until they are complete, however long they are, and then
parses a head in one go. Here each of them is refused as soon as it is too long.
"""

import re
from typing import Final

from werkzeug.datastructures import Headers
from werkzeug.sansio.multipart import (
    BLANK_LINE_RE,
    Event,
    MultipartDecoder,
    Preamble,
    State,
)

HEAD_BYTES: Final = 8_192
"""Longest head of a part."""
HEAD_LINES: Final = 16
"""Most lines of a part's head."""
AROUND_BYTES: Final = 1_024
"""Longest text before the first boundary, and after the last one."""
_BOUNDARY: Final = re.compile(r"[\x20-\x7e]{0,69}[\x21-\x7e]")
_BLANK_BYTES: Final = 4
_BOUNDARY_MORE: Final = 8
"""Line ends and dashes around a boundary."""
_LINE: Final = re.compile(rb"\r\n|\r|\n")


def is_boundary(text: str) -> bool:
    """Whether a boundary has 1 to 70 printable ASCII characters.

    Source: RFC 2046, 5.1.1.
    """
    return _BOUNDARY.fullmatch(text) is not None


class BoundedDecoder(MultipartDecoder):
    """Takes data and gives events, as its base does.

    Args:
        boundary: between the parts.
        max_parts: that a body may have.
    """

    def next_event(self) -> Event:
        """What comes next.

        Raises:
            ValueError: the body is not what its boundary says, or something in it
                besides the parts' content is too long.
            RequestEntityTooLarge: it has too many parts.
        """
        if self.state is State.PART:
            self._check_head()
        event = super().next_event()
        if isinstance(event, Preamble):
            _check_size(len(event.data), AROUND_BYTES)
        elif self.state is State.PREAMBLE:
            # The first boundary may be in it already, but for its line's end.
            around = AROUND_BYTES + len(self.boundary) + _BOUNDARY_MORE
            _check_size(len(self.buffer), around)
        elif self.state is State.EPILOGUE:
            # What came with the last boundary has been taken away by now.
            _check_size(len(self.buffer), AROUND_BYTES)
        return event

    def _parse_headers(self, data: bytes | bytearray) -> Headers:
        """Read a part's head, which some programs write in their own code page.

        Windows-1252 has all of Latin-1 that is text. A byte that it does not have
        becomes U+FFFD, which no file name may have.
        """
        try:
            return super()._parse_headers(data)
        except UnicodeDecodeError:
            text = data.decode("cp1252", errors="replace")
            return super()._parse_headers(text.encode())

    def _check_head(self) -> None:
        end = BLANK_LINE_RE.search(self.buffer, 0, HEAD_BYTES + _BLANK_BYTES)
        known = len(self.buffer) if end is None else end.start()
        _check_size(known, HEAD_BYTES)
        lines = _LINE.findall(self.buffer, 0, known)
        _check_size(len(lines), HEAD_LINES)


def _check_size(size: int, most: int) -> None:
    """Refuse what is too long.

    Raises:
        ValueError: it is.
    """
    if size > most:
        msg = "a part of the multipart body is too long"
        raise ValueError(msg)
