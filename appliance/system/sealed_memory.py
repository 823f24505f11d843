"""Bytes that are kept out of a process's heap, and that nobody can change any more.

    writer = MemoryWriter("pdf")
    async for chunk in chunks:
        writer.write(chunk)
    memory = writer.sealed()

Of several documents that come one after the other, `writer.end_document()` says where
one ends, and `writer.sealed_documents()` gives them: one descriptor holds all.

They lie in a memfd (memfd_create(2)): memory of the machine, which no process has
mapped, which is read in pieces, and which another process can be handed as a
descriptor. It ends with the last object that refers to it and the last descriptor
elsewhere: it is never closed under somebody who reads it.
"""

import errno
import fcntl
import hashlib
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
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
        start: where they begin in what the memfd holds.
    """

    def __init__(
        self, memfd: _Memfd, size_bytes: int, sha256: str, start: int = 0
    ) -> None:
        self._memfd = memfd
        self._start = start
        self.size_bytes = size_bytes
        self.sha256 = sha256

    @contextmanager
    def opened(self) -> Iterator[int]:
        """A descriptor of these bytes alone, which another process may be handed.

        Raises:
            OSError: the machine has no room for a copy of one among several.
        """
        if os.fstat(self._memfd.descriptor).st_size == self.size_bytes:
            yield self._memfd.descriptor
            return
        copy = _Memfd("document")
        at, end = self._start, self._start + self.size_bytes
        while at < end:
            sent = os.sendfile(copy.descriptor, self._memfd.descriptor, at, end - at)
            if not sent:
                raise OSError(errno.EIO, "a memory file is shorter than it was")
            at += sent
        fcntl.fcntl(copy.descriptor, fcntl.F_ADD_SEALS, _SEALS)
        yield copy.descriptor

    def read(self, offset: int, size: int) -> bytes:
        """Some of its bytes; fewer only at its end.

        Args:
            offset: of the first one.
            size: how many.
        """
        pieces = []
        size = min(size, self.size_bytes - offset)
        at = self._start + offset
        while size > 0 and (piece := os.pread(self._memfd.descriptor, size, at)):
            pieces.append(piece)
            at, size = at + len(piece), size - len(piece)
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
        self._ended: list[SealedMemory] = []
        self._start = 0
        self.size_bytes = 0
        """Of what was written so far, of the present document."""

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
        self.end_document()
        return self.sealed_documents()[0]

    def end_document(self) -> None:
        """Say that what was written is a document, and what follows another one."""
        digest = self._digest.hexdigest()
        ended = SealedMemory(self._memfd, self.size_bytes, digest, self._start)
        self._ended.append(ended)
        self._digest = hashlib.sha256()
        self._start, self.size_bytes = self._start + self.size_bytes, 0

    def sealed_documents(self) -> list[SealedMemory]:
        """Those that were ended, in order; nothing can be added to them."""
        fcntl.fcntl(self._memfd.descriptor, fcntl.F_ADD_SEALS, _SEALS)
        return self._ended
