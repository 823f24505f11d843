"""Bytes that are kept out of a process's heap, and that nobody can change any more.

    writer = MemoryWriter("pdf")
    async for chunk in chunks:
        writer.write(chunk)
    memory = writer.sealed()

They lie in a memfd (memfd_create(2)): memory of the machine, which no process has
mapped, which is read in pieces, and which another process can be handed as a
descriptor. It ends with the last object that refers to it and the last descriptor
elsewhere: it is never closed under somebody who reads it.
"""

import fcntl
import hashlib
import os
from contextlib import suppress
from typing import Final

_SEALS: Final = (
    fcntl.F_SEAL_SEAL | fcntl.F_SEAL_WRITE | fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW
)


class _Memfd:
    """A descriptor that is closed once nothing refers to it."""

    def __init__(self, name: str) -> None:
        self.descriptor = os.memfd_create(name, os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)

    def __del__(self) -> None:
        # There is none where it could not be made.
        with suppress(AttributeError, OSError):
            os.close(self.descriptor)


class SealedMemory:
    """Bytes that were written once (port `DocumentMemory`).

    Args:
        memfd: with all seals.
        size_bytes: of it.
        sha256: of its bytes, in hex.
    """

    def __init__(self, memfd: _Memfd, size_bytes: int, sha256: str) -> None:
        self._memfd = memfd
        self.size_bytes = size_bytes
        self.sha256 = sha256

    def fileno(self) -> int:
        """Its descriptor, as long as this object is there."""
        return self._memfd.descriptor

    def read(self, offset: int, size: int) -> bytes:
        """Some of its bytes; fewer only at its end.

        Args:
            offset: of the first one.
            size: how many.
        """
        pieces = []
        while size > 0 and (piece := os.pread(self.fileno(), size, offset)):
            pieces.append(piece)
            offset, size = offset + len(piece), size - len(piece)
        return b"".join(pieces)

    def __bytes__(self) -> bytes:
        """All of it, for who needs it at once."""
        return self.read(0, self.size_bytes)


class MemoryWriter:
    """Takes bytes as they come.

    Args:
        name: of the memfd, as the kernel shows it.
    """

    def __init__(self, name: str) -> None:
        self._memfd = _Memfd(name)
        self._digest = hashlib.sha256()
        self.size_bytes = 0
        """Of what was written so far."""

    def write(self, content: bytes) -> None:
        """Add bytes.

        Raises:
            OSError: the machine has no room for them.
        """
        self._digest.update(content)
        view = memoryview(content)
        while view:
            written = os.write(self._memfd.descriptor, view)
            self.size_bytes += written
            view = view[written:]

    def sealed(self) -> SealedMemory:
        """What was written; nothing can be added to it."""
        fcntl.fcntl(self._memfd.descriptor, fcntl.F_ADD_SEALS, _SEALS)
        return SealedMemory(self._memfd, self.size_bytes, self._digest.hexdigest())
