"""PDFs in a local folder, by integrator and SHA-256, encrypted.

Written to a temporary name, fsynced, renamed, and the folder fsynced, so that a
row that names a document is never ahead of its bytes. (obstore's local store
never fsyncs.) A file is named by the SHA-256 of what is in it, as the record names
it: so a file is found for its row, and a backup compared with the record, by who
has no key. Whoever reads the disk can tell whether a document that they have is
there too; an HMAC would hide that, and the record has the same hash anyway.
"""

import asyncio
import os
from collections.abc import (
    AsyncIterator,
    Awaitable,
    Callable,
    Sequence,
)
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, suppress
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import BinaryIO, Final, TypeVar

from appliance.documents.document_bytes import rounds_of, size_of
from appliance.documents.document_files import (
    NewDocument,
    SealedReader,
    contents,
    hashed,
    is_older,
    is_sealed,
    name_of,
    named_faults,
    older,
    opens,
    read_document,
    reading,
    sealed_part,
)
from appliance.documents.local.disk_reserve import Reserve
from appliance.documents.local.folder_mark import DocumentMark
from appliance.domain.errors import DOCUMENTS_AWAY, ApplianceError, ErrorCode
from appliance.domain.ids import IntegratorId
from appliance.domain.ports import (
    DocumentBytes,
    DocumentKeys,
    DocumentMemory,
    DocumentStream,
)
from appliance.system.durable_files import (
    NEW,
    held,
    make_folder,
    sync_folder,
    write_all_durably,
)
from appliance.system.loop_calls import asked_of_loop

_Key = TypeVar("_Key")
_GROUP: Final = 32
"""Documents that a disk is waited for together."""
_GROUP_BYTES: Final = 8_388_608
"""Of these, a larger one apart."""
_READERS: Final = 2
"""Threads that read for streams: the allocator keeps some pieces for each thread."""


class LocalBlobStore:
    """A `BlobStore` in one folder.

    Args:
        folder: made when it is not there. What is made is open to owner and
            group as far as the umask lets it be (roles may run as users of
            their own that share a group), and to nobody else.
        keys: of the integrators.
        reserve_bytes: room that is kept for what was signed already.
        intake_room_bytes: free room that what comes in leaves on the disk.
        mark: whose folder it must be; None: that is not asked.
    """

    def __init__(
        self,
        folder: Path,
        keys: DocumentKeys,
        reserve_bytes: int = 0,
        intake_room_bytes: int = 0,
        mark: DocumentMark | None = None,
    ) -> None:
        self._folder = folder
        self._mark = mark
        self._keys = keys
        self._reserve = Reserve(folder, reserve_bytes, intake_room_bytes)
        self._readers = ThreadPoolExecutor(_READERS, thread_name_prefix="read")

    async def check(self) -> None:
        """Make sure that the folder is there, and this installation's.

        Raises:
            ApplianceError: `STORE_UNAVAILABLE`, `OVERLOADED`.
        """
        if self._mark is not None:
            await self._mark.check()

    async def put(
        self,
        integrator: IntegratorId,
        *parts: bytes | memoryview | DocumentMemory,
        signed: bool = False,
    ) -> str:
        """Keep the bytes durably before returning.

        Args:
            integrator: whose.
            parts: the document's bytes, one after the other.
            signed: a key was used for it: it may have the reserve's room.

        Returns:
            Their SHA-256 in hex.

        Raises:
            ApplianceError: `STORAGE_FULL`; `STORE_UNAVAILABLE`, also for what is
                signed and does not even fit where the reserve was.
        """
        await self.check()
        key = await self._key(integrator)

        def put() -> str:
            new = NewDocument(integrator, parts, key)
            if signed:
                kept = self._put_signed(new)
                if isinstance(kept, ApplianceError):
                    raise kept
            else:
                self._write([new], self._reserve.demand_intake_room)
            return new.sha256

        return await asyncio.to_thread(put)

    async def put_all(
        self, integrator: IntegratorId, documents: Sequence[DocumentBytes]
    ) -> None:
        """Keep several documents that come in; see `BlobStore`.

        Raises:
            ApplianceError: as `put`.
        """
        await self.check()
        key = await self._key(integrator)

        def put(group: Sequence[DocumentBytes]) -> None:
            news = [NewDocument(integrator, (each,), key) for each in group]
            self._write(news, self._reserve.demand_intake_room)

        sizes = [size_of(each) for each in documents]
        for group in rounds_of(documents, sizes, _GROUP, _GROUP_BYTES):
            await asyncio.to_thread(put, group)

    async def get(self, integrator: IntegratorId, sha256: str) -> bytes:
        """Read them back, hashed again on the way.

        Raises:
            ApplianceError: `STORE_UNAVAILABLE`; `DOCUMENT_DAMAGED`: missing or altered.
        """
        await self.check()
        key = await self._keys.get(integrator)
        path = self._folder / name_of(integrator, sha256)
        return await asyncio.to_thread(read_document, path, integrator, sha256, key)

    async def get_all(
        self, wanted: Sequence[tuple[IntegratorId, str]]
    ) -> list[bytes | ApplianceError]:
        """Read several back; see `BlobStore`.

        Raises:
            ApplianceError: `STORE_UNAVAILABLE`: nothing can be read.
        """
        await self.check()
        keys = await self._keys_of(wanted, self._keys.get)

        def read() -> list[bytes | ApplianceError]:
            found: list[bytes | ApplianceError] = []
            for integrator, sha256 in wanted:
                key = keys[integrator]
                if isinstance(key, ApplianceError):
                    found.append(key)
                    continue
                try:
                    path = self._folder / name_of(integrator, sha256)
                    found.append(read_document(path, integrator, sha256, key))
                except ApplianceError as exc:
                    found.append(exc)
            return found

        return await asyncio.to_thread(read)

    async def put_signed(
        self, files: Sequence[tuple[IntegratorId, Sequence[bytes]]]
    ) -> list[str | ApplianceError]:
        """Keep several signed documents; see `BlobStore`.

        Raises:
            ApplianceError: `STORE_UNAVAILABLE`: nothing can be kept.
        """
        await self.check()
        keys = await self._keys_of(files, self._key)

        def put() -> list[str | ApplianceError]:
            news = [
                key
                if isinstance(key, ApplianceError)
                else NewDocument(owner, parts, key)
                for owner, parts in files
                for key in (keys[owner],)
            ]
            try:
                self._write([new for new in news if isinstance(new, NewDocument)])
            except ApplianceError:
                return [
                    self._put_signed(new) if isinstance(new, NewDocument) else new
                    for new in news
                ]
            return [new.sha256 if isinstance(new, NewDocument) else new for new in news]

        return await asyncio.to_thread(put)

    async def _keys_of(
        self,
        files: Sequence[tuple[IntegratorId, object]],
        get: Callable[[IntegratorId], Awaitable[_Key]],
    ) -> dict[IntegratorId, _Key | ApplianceError]:
        """The keys of all owners, or why one cannot be had."""
        keys: dict[IntegratorId, _Key | ApplianceError] = {}
        for owner in {owner for owner, _ in files}:
            try:
                keys[owner] = await get(owner)
            except ApplianceError as exc:
                keys[owner] = exc
        return keys

    async def _key(self, integrator: IntegratorId) -> bytes:
        key = await self._keys.get(integrator)
        return await self._keys.make(integrator) if key is None else key

    async def stream(self, integrator: IntegratorId, sha256: str) -> DocumentStream:
        """Read them back in pieces, each known to be right before it is given.

        Raises:
            ApplianceError: `STORE_UNAVAILABLE`; `DOCUMENT_DAMAGED`: missing or altered.
        """
        await self.check()
        key = await self._keys.get(integrator)
        path = self._folder / name_of(integrator, sha256)

        def look() -> tuple[int, bool]:
            with reading(integrator, sha256), path.open("rb") as file:
                reader = contents(file, _size_of(file), integrator, sha256, key)
                if isinstance(reader, SealedReader):
                    next(iter(reader))
                    return reader.size_bytes, True
                return sum(len(piece) for piece in hashed(reader, sha256)), False

        read = partial(asyncio.get_running_loop().run_in_executor, self._readers)

        async def pieces() -> AsyncIterator[bytes]:
            with reading(integrator, sha256), await read(path.open, "rb") as file:
                size = await read(_size_of, file)
                reader = await read(contents, file, size, integrator, sha256, key)
                whole = hashed(reader, sha256)
                while (piece := await read(next, whole, None)) is not None:
                    yield piece

        async def part(start: int, end: int) -> AsyncIterator[bytes]:
            with reading(integrator, sha256), await read(path.open, "rb") as file:
                size = await read(_size_of, file)
                reader = await read(contents, file, size, integrator, sha256, key)
                some = sealed_part(reader, start, end)
                while (piece := await read(next, some, None)) is not None:
                    yield piece

        size, is_sealed_file = await read(look)
        return DocumentStream(size, pieces(), part if is_sealed_file else None)

    async def make_room(self, size_bytes: int) -> None:
        """Make sure that a document which is yet to be signed will find room.

        Raises:
            ApplianceError: `STORAGE_FULL`; `STORE_UNAVAILABLE`.
        """
        await self.check()
        await asyncio.to_thread(self._reserve.make_room, size_bytes)

    async def encrypt(self, integrator: IntegratorId, sha256: str) -> bool:
        """Encrypt a document that was stored before they were; whether it was one.

        Raises:
            ApplianceError: `STORE_UNAVAILABLE`, `STORAGE_FULL`.
        """
        path = self._folder / name_of(integrator, sha256)

        def plain() -> bool:
            with reading(integrator, sha256), path.open("rb") as file:
                return not is_sealed(file)

        if not await asyncio.to_thread(plain):
            return False
        await self.put(integrator, await self.get(integrator, sha256))
        return True

    async def older(
        self, before: datetime
    ) -> AsyncIterator[tuple[IntegratorId, list[str]]]:
        """What was put in last before then: integrator, and SHA-256 of each.

        Raises:
            ApplianceError: `STORE_UNAVAILABLE`.
        """
        await self.check()
        for folder in await asyncio.to_thread(self._shelves):
            names = await asyncio.to_thread(older, folder, before)
            if names:
                yield IntegratorId(folder.parent.name), names

    async def remove(
        self, integrator: IntegratorId, sha256: str, before: datetime
    ) -> bool:
        """Remove a document, unless it was put in again since; whether it was.

        Raises:
            ApplianceError: `STORE_UNAVAILABLE`.
        """
        path = self._folder / name_of(integrator, sha256)

        def remove() -> bool:
            with named_faults(), held(path.parent, alone=True):
                if not is_older(path, before):
                    return False
                path.unlink()
                return True

        await self.check()
        return await asyncio.to_thread(remove)

    async def remove_unneeded(
        self,
        integrator: IntegratorId,
        sha256: str,
        is_needed: Callable[[], Awaitable[bool]],
    ) -> bool:
        """Remove a document unless it is needed; see `BlobMaintenance`.

        Raises:
            ApplianceError: `STORE_UNAVAILABLE`; what `is_needed` raises.
        """
        path = self._folder / name_of(integrator, sha256)
        asked = asked_of_loop(is_needed)

        def remove() -> bool:
            if not path.parent.exists():
                return False
            with named_faults(), held(path.parent, alone=True):
                if asked() or not path.exists():
                    return False
                path.unlink()
                return True

        await self.check()
        return await asyncio.to_thread(remove)

    async def clear(self, before: datetime) -> int:
        """Remove what killed writers left before then; how many files.

        Raises:
            ApplianceError: `STORE_UNAVAILABLE`.
        """

        def clear() -> int:
            with named_faults():
                found = [
                    path
                    for folder in (self._folder, *self._shelves())
                    for path in folder.glob(f"{NEW}*")
                    if is_older(path, before)
                ]
                for path in found:
                    path.unlink(missing_ok=True)
                return len(found)

        await self.check()
        return await asyncio.to_thread(clear)

    def _shelves(self) -> list[Path]:
        """The folders that documents lie in."""
        with named_faults():
            return sorted(path for path in self._folder.glob("*/??") if path.is_dir())

    def _put_signed(self, new: NewDocument) -> str | ApplianceError:
        """Keep one for which a key was used, where the reserve was if need be."""
        try:
            self._write([new])
        except ApplianceError as exc:
            if exc.code is not ErrorCode.STORAGE_FULL:
                return exc
        else:
            return new.sha256
        try:
            self._write_on_reserve(new)
        except ApplianceError as exc:
            return exc
        return new.sha256

    def _write(
        self,
        news: Sequence[NewDocument],
        demand_room: Callable[[int], None] | None = None,
    ) -> None:
        """Have them in their places, durable.

        Args:
            news: of any integrators.
            demand_room: raises where so many bytes more are too many.

        Raises:
            ApplianceError: `STORAGE_FULL`, `STORE_UNAVAILABLE`.
        """
        paths = {
            self._folder / name_of(new.integrator, new.sha256): new for new in news
        }
        shelves = sorted({path.parent for path in paths})
        with named_faults(), ExitStack() as stack:
            for shelf in shelves:
                make_folder(shelf)
                # Who removes what nothing refers to waits, or has been here.
                stack.enter_context(held(shelf, alone=False))
            fresh = []
            for path, new in paths.items():
                if _is_at(path, new):
                    os.utime(path)
                    # Another writer may be between its rename and its fsync.
                    sync_folder(path.parent)
                    continue
                if demand_room is not None:
                    demand_room(new.size_bytes)
                fresh.append((path, new.sealed()))
            if fresh:
                write_all_durably(fresh)

    def _write_on_reserve(self, new: NewDocument) -> None:
        """Write once more, where the reserve was.

        Raises:
            ApplianceError: `STORE_UNAVAILABLE`.
        """
        with named_faults():
            self._reserve.release()
        try:
            self._write([new])
        except ApplianceError as exc:
            raise ApplianceError(
                ErrorCode.STORE_UNAVAILABLE, sentence=DOCUMENTS_AWAY
            ) from exc


def _is_at(path: Path, new: NewDocument) -> bool:
    """Whether a document is there already, to be opened by the same key."""
    with suppress(FileNotFoundError), path.open("rb") as file:
        return opens(file, _size_of(file), new.integrator, new.sha256, new.key)
    return False


def _size_of(file: BinaryIO) -> int:
    return os.fstat(file.fileno()).st_size
