"""Writes a revision that holds an empty Contents, and digests all but that.

A signature and a document timestamp are made so; what fills Contents differs.
"""

import hashlib
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from pyhanko.sign.signers.pdf_byterange import PdfByteRangeDigest

from appliance.domain.keys import DigestAlgorithm
from worker.pades.pdf.revision import Revision

if TYPE_CHECKING:
    from hashlib import _Hash


class FileDigests:
    """Digests of a file with something appended, the file itself hashed once.

    Args:
        content: the file as it stands.
    """

    def __init__(self, content: bytes) -> None:
        self.content = content
        self._running: dict[str, _Hash] = {}

    @classmethod
    def of(cls, content: bytes, made: "FileDigests | None") -> "FileDigests":
        """Those that were made, if they are of these very bytes; else fresh ones."""
        return cls(content) if made is None or made.content is not content else made

    def covering(self, algorithm: str, increment: bytes, start: int, end: int) -> bytes:
        """The digest of file and increment, but for Contents.

        Args:
            algorithm: a name of hashlib's.
            increment: what is appended.
            start: where Contents starts in it, bracket included.
            end: where it ends, bracket included.
        """
        if algorithm not in self._running:
            self._running[algorithm] = hashlib.new(algorithm, self.content)
        digest = self._running[algorithm].copy()
        view = memoryview(increment)
        digest.update(view[:start])
        digest.update(view[end:])
        return digest.digest()


@dataclass(frozen=True, slots=True)
class Reserved:
    """An increment with a place for a CMS."""

    increment: bytes = field(repr=False)
    """All that follows the file's bytes, with zeros in Contents."""
    contents_at: int
    """Where in `increment` the hexadecimal digits of Contents start."""
    contents_length: int
    """How many digits there are."""
    digest: bytes
    """Of file and increment, but for Contents."""


def reserve(
    revision: Revision,
    original: bytes,
    contents: PdfByteRangeDigest,
    algorithm: DigestAlgorithm,
    digests: FileDigests | None = None,
) -> Reserved:
    """Write a revision, and digest what a signature in it covers.

    Args:
        revision: of `original`, with the dictionary that is to be filled.
        original: the whole PDF as it stands.
        contents: that dictionary, from pyHanko.
        algorithm: of the digest.
        digests: of `original`, if they were made.

    Source: ISO 32000-2, 12.8.1.
    """
    tail = revision.write_tail(original)
    start, end = contents.contents.offsets
    contents.byte_range.fill_offsets(tail, start, end, tail.tell())
    increment = tail.getvalue()
    start, end = start - len(original), end - len(original)
    hashed = FileDigests.of(original, digests)
    return Reserved(
        increment=increment,
        contents_at=start + 1,
        contents_length=end - start - 2,
        digest=hashed.covering(algorithm.value, increment, start, end),
    )
