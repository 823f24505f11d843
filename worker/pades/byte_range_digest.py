"""Digests what a ByteRange covers: a file and its increment, but for Contents."""

import hashlib
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from hashlib import _Hash


@dataclass(slots=True, eq=False)
class FileDigests:
    """Digests of a file with something appended, the file itself hashed once."""

    content: bytes = field(repr=False)
    """The file as it stands."""
    _running: "dict[str, _Hash]" = field(default_factory=dict, init=False, repr=False)

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
