"""A file that revisions are appended to, held in memory as few times as can be."""


class GrowingFile:
    """A file in parts; they are joined where its bytes are read, and only then.

    Args:
        parts: what it begins with, one after the other. Whoever gives them holds
            them anyway.
    """

    def __init__(self, *parts: bytes) -> None:
        self._parts = parts
        self._appended: tuple[bytes, ...] = ()
        self._joined: bytes | None = None

    @property
    def content(self) -> bytes:
        """All of it; not to be kept beyond what it is read for."""
        parts = (*self._parts, *self._appended)
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
