"""A file that revisions are appended to, held in memory as few times as can be."""

from dataclasses import dataclass, field


@dataclass(slots=True, eq=False)
class GrowingFile:
    """A file in parts; they are joined where its bytes are read, and only then."""

    parts: tuple[bytes, ...] = field(repr=False)
    """What it begins with, in order. Whoever gives them holds them anyway."""
    _appended: tuple[bytes, ...] = field(default=(), init=False, repr=False)
    _joined: bytes | None = field(default=None, init=False, repr=False)

    @property
    def content(self) -> bytes:
        """All of it; not to be kept beyond what it is read for."""
        parts = (*self.parts, *self._appended)
        if len(parts) == 1:
            return parts[0]
        if self._joined is None:
            self._joined = b"".join(parts)
        return self._joined

    @property
    def appended(self) -> bytes:
        """What follows the bytes that it began with."""
        return b"".join(self._appended)

    def append(self, revision: bytes) -> None:
        """Append a revision; nothing, where it is empty.

        Args:
            revision: its bytes.
        """
        if revision:
            # Let go of first: what is joined anew is then there once, not twice.
            self._joined = None
            self._appended = (*self._appended, revision)
