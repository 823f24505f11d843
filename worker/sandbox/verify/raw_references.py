"""Finds the references in an object without parsing it; for confined jobs only.

pyHanko takes a tenth of a millisecond for a small object, and longer for one in an
object stream. A document of a thousand pages has ten thousand objects that its pages
reach.
"""

import re
from collections.abc import Mapping
from itertools import pairwise
from typing import Final

from pyhanko.pdf_utils.generic import StreamObject
from pyhanko.pdf_utils.reader import PdfFileReader
from pyhanko.pdf_utils.xref import ObjStreamRef

from worker.pades.pdf.integers import integers_of
from worker.sandbox.inspect.pdf_objects import entry, number
from worker.sandbox.verify.object_history import ObjectHistory

_BYTES_MOST: Final = 4_096
_SPACE: Final = rb"[\x00\t\n\f\r ]"
_HEADER: Final = re.compile(
    rb"%b{0,9}\d{1,10}%b{1,9}\d{1,5}%b{1,9}obj" % ((_SPACE,) * 3)
)
_END: Final = re.compile(rb"(?<=[\x00\t\n\f\r \])>])(?:stream[\r\n]|endobj)")
_REFERENCE: Final = re.compile(
    rb"(/Parent%b{0,9})?(\d{1,10})%b{1,9}\d{1,5}%b{1,9}R" % ((_SPACE,) * 3)
)
_STRING: Final = re.compile(rb"\((?:[^()\\]|\\.)*\)", re.DOTALL)
# A parenthesis in a hexadecimal string begins no string.
_ODD: Final = re.compile(rb"<<<|(?<!<)<(?!<)[^<>]*\(")

References = list[tuple[int, bool]]
"""Numbers that an object refers to, each with True if its key is `/Parent`."""


class RawReferences:
    """References of the objects of one file, in their newest state.

    Args:
        reader: the open file.
        history: revisions of its objects.

    Source: ISO 32000-2, 7.3.10 and 7.5.7.
    """

    def __init__(self, reader: PdfFileReader, history: ObjectHistory) -> None:
        self._reader = reader
        self._history = history
        self._streams: dict[int, Mapping[int, bytes]] = {}

    def of(self, wanted: int) -> References | None:
        """Return the references of an object.

        Args:
            wanted: its number.

        Returns:
            None if the object has to be parsed: it is long, has comments or nested
            parentheses, or its end is not certain.
        """
        place = self._history.place(wanted)
        if isinstance(place, ObjStreamRef):
            body = self._compressed(place.obj_stream_id).get(wanted)
        elif place is not None:
            body = self._direct(place)
        else:
            return []
        if body is None or _ODD.search(body):
            return None
        body = _STRING.sub(b" ", body)
        if not _is_certain(body):
            return None
        return [
            (int(match[2]), match[1] is not None) for match in _REFERENCE.finditer(body)
        ]

    def _direct(self, offset: int) -> bytes | None:
        """Return an object that stands in the file, up to its stream."""
        self._reader.stream.seek(offset)
        read: bytes = self._reader.stream.read(_BYTES_MOST)
        header = _HEADER.match(read)
        end = header and _END.search(read, header.end())
        return read[header.end() : end.start()] if header and end else None

    def _compressed(self, stream: int) -> Mapping[int, bytes]:
        """Return the objects of an object stream, decoded on first use."""
        if stream not in self._streams:
            value = self._reader.get_object(self._history.reference(stream))
            self._streams[stream] = _objects(value)
        return self._streams[stream]


def _objects(stream: object) -> dict[int, bytes]:
    """Cut an object stream into its objects; nothing if it is not well formed."""
    first = number(entry(stream, "/First"))
    if not isinstance(stream, StreamObject) or first is None or first < 0:
        return {}
    data = stream.data
    header = integers_of(data[: int(first)]) or []
    numbers, starts = header[0::2], [int(first) + at for at in header[1::2]]
    # Each object ends where the next one begins, in whatever order they are listed.
    edges = sorted({*starts, len(data)})
    ends = dict(pairwise(edges))
    return {
        each: data[start : min(ends.get(start, start), start + _BYTES_MOST)]
        for each, start in zip(numbers, starts, strict=False)
    }


def _is_certain(body: bytes) -> bool:
    """Return whether an object, bare of its strings, is whole and has no comments."""
    return (
        not any(each in body for each in (b"(", b")", b"%"))
        and body.count(b"<<") == body.count(b">>")
        and body.count(b"[") == body.count(b"]")
    )
