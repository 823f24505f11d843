"""PDFs in a bucket of an S3-compatible store, by integrator and SHA-256, encrypted.

An object has the name and the bytes that the file of a folder would have
(`appliance.documents.local.blob_store`), so either is a copy of the other. S3 has no
lock and no time of last use, so two small objects stand beside a document's for a
while:

    ab….again     it was put in again; its time counts as the document's
    ab….leaving   somebody is removing it, and nobody else may

Who removes: creates `leaving` (one at a time), looks once more how old both are,
removes the document, then `leaving`. Who puts in what is there already: writes `again`,
then looks for `leaving` and, when that is gone, for the document. Either the one sees
the other's `again` in its last look, or the other sees `leaving`, or the document is
gone and is put in anew: after `put` it is there.

Source: Amazon S3, "Conditional writes", "Strong consistency"; docs/storage.md.
"""

import asyncio
import io
import time
from collections.abc import (
    AsyncIterator,
    Awaitable,
    Callable,
    Coroutine,
    Iterable,
    Iterator,
    Sequence,
)
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Final, TypeVar

from appliance.documents.document_files import (
    NewDocument,
    SealedReader,
    contents,
    hashed,
    is_sealed,
    name_of,
    named_document,
    opens,
    reading,
    sealed_part,
)
from appliance.documents.s3.bucket import PART_BYTES, Bucket, Stored
from appliance.documents.s3.bucket_mark import BucketMark
from appliance.documents.s3.object_file import BucketFile
from appliance.domain.errors import (
    DOCUMENTS_AWAY,
    ApplianceError,
    DocumentsAwayError,
    ErrorCode,
)
from appliance.domain.ids import IntegratorId
from appliance.domain.ports import (
    DocumentBytes,
    DocumentKeys,
    DocumentMemory,
    DocumentStream,
)
from appliance.system.loop_calls import asked_of_loop

AGAIN: Final = ".again"
LEAVING: Final = ".leaving"
_THREADS: Final = 8
"""Requests of one process at a time."""
_SINGLE_BYTES: Final = PART_BYTES
"""Up to this a document goes in one request, which can say "unless it is there"."""
_ROUNDS: Final = 5
_REMOVAL_S: Final = 20.0
"""Longest that a removal may take; after it, it is left to the next sweep."""
_DEAD: Final = timedelta(minutes=10)
"""After this, whoever began to remove a document does not go on."""
_LOOK_AGAIN_S: Final = 0.05
Result = TypeVar("Result")


class S3BlobStore:
    """A `BlobMaintenance` in one bucket.

    Args:
        bucket: the objects.
        keys: of the integrators.
        mark: whose bucket it must be; None: that is not asked.
    """

    def __init__(
        self, bucket: Bucket, keys: DocumentKeys, mark: BucketMark | None = None
    ) -> None:
        self._bucket = bucket
        self._keys = keys
        self._mark = mark
        self._threads = ThreadPoolExecutor(_THREADS, thread_name_prefix="bucket")

    async def check(self) -> None:
        """Make sure that the bucket is there, and this installation's.

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
            signed: a key was used for it: what finds no room is tried again.

        Returns:
            Their SHA-256 in hex.

        Raises:
            ApplianceError: `STORAGE_FULL`, of what is not signed; `STORE_UNAVAILABLE`.
        """
        await self.check()
        key = await self._keys.get(integrator)
        if key is None:
            key = await self._keys.make(integrator)
        try:
            return await self._run(self._put, integrator, parts, key)
        except ApplianceError as exc:
            if signed and exc.code is ErrorCode.STORAGE_FULL:
                raise ApplianceError(
                    ErrorCode.STORE_UNAVAILABLE, sentence=DOCUMENTS_AWAY
                ) from exc
            raise

    async def put_all(
        self, integrator: IntegratorId, documents: Sequence[DocumentBytes]
    ) -> None:
        """Keep several documents that come in; see `BlobStore`.

        Raises:
            ApplianceError: as `put`.
        """
        for kept in await _each_of(self.put(integrator, one) for one in documents):
            if isinstance(kept, ApplianceError):
                raise kept

    async def get(self, integrator: IntegratorId, sha256: str) -> bytes:
        """Read them back, hashed again on the way.

        Raises:
            ApplianceError: `STORE_UNAVAILABLE`; `DOCUMENT_DAMAGED`: missing or altered.
        """
        name = name_of(integrator, sha256)
        await self.check()
        key = await self._keys.get(integrator)

        def read() -> bytes:
            # A BytesIO grows in place and gives its buffer away uncopied.
            content = io.BytesIO()
            with reading(integrator, sha256):
                file = BucketFile(self._bucket, name)
                for piece in hashed(
                    contents(file, file.size_bytes, integrator, sha256, key), sha256
                ):
                    content.write(piece)
            return content.getvalue()

        return await self._run(read)

    async def get_all(
        self, wanted: Sequence[tuple[IntegratorId, str]]
    ) -> list[bytes | ApplianceError]:
        """Read several back; see `BlobStore`."""
        return await _each_of(self.get(*one) for one in wanted)

    async def put_signed(
        self, files: Sequence[tuple[IntegratorId, Sequence[bytes]]]
    ) -> list[str | ApplianceError]:
        """Keep several signed documents; see `BlobStore`."""
        return await _each_of(
            self.put(integrator, *parts, signed=True) for integrator, parts in files
        )

    async def stream(self, integrator: IntegratorId, sha256: str) -> DocumentStream:
        """Read them back in pieces, each known to be right before it is given.

        Raises:
            ApplianceError: `STORE_UNAVAILABLE`; `DOCUMENT_DAMAGED`: missing or altered.
        """
        name = name_of(integrator, sha256)
        await self.check()
        key = await self._keys.get(integrator)

        def look() -> tuple[int, BucketFile, bool]:
            with reading(integrator, sha256):
                file = BucketFile(self._bucket, name)
                reader = contents(file, file.size_bytes, integrator, sha256, key)
                has_parts = isinstance(reader, SealedReader)
                if isinstance(reader, SealedReader):
                    next(iter(reader))
                    size = reader.size_bytes
                else:
                    size = sum(len(piece) for piece in hashed(reader, sha256))
                file.seek(0)
                return size, file, has_parts

        size, file, has_parts = await self._run(look)

        async def pieces() -> AsyncIterator[bytes]:
            with reading(integrator, sha256):
                reader = await self._run(
                    contents, file, file.size_bytes, integrator, sha256, key
                )
                whole = hashed(reader, sha256)
                while (piece := await self._run(next, whole, None)) is not None:
                    yield piece

        async def part(start: int, end: int) -> AsyncIterator[bytes]:
            with reading(integrator, sha256):
                reader = await self._run(
                    contents, file, file.size_bytes, integrator, sha256, key
                )
                some = sealed_part(reader, start, end)
                while (piece := await self._run(next, some, None)) is not None:
                    yield piece

        return DocumentStream(size, pieces(), part if has_parts else None)

    async def make_room(self, size_bytes: int) -> None:
        """Make sure that the store is there; how much room it has, it does not say.

        Raises:
            ApplianceError: `STORE_UNAVAILABLE`.
        """
        del size_bytes
        await self.check()

    async def encrypt(self, integrator: IntegratorId, sha256: str) -> bool:
        """Encrypt a document that was stored before they were; whether it was one.

        Raises:
            ApplianceError: `STORE_UNAVAILABLE`, `STORAGE_FULL`.
        """
        name = name_of(integrator, sha256)

        def plain() -> bool:
            with reading(integrator, sha256):
                return not is_sealed(BucketFile(self._bucket, name))

        if not await self._run(plain):
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
        pages = self._bucket.pages()
        again: Stored | None = None
        while (page := await self._run(next, pages, None)) is not None:
            found: dict[IntegratorId, list[str]] = {}
            for each in page:
                # By their names `again` comes just before its document.
                if each.name.endswith(AGAIN):
                    again = each
                    continue
                newest = each
                if again is not None and again.name == _beside(each.name, AGAIN):
                    newest = again
                document = named_document(each.name)
                if document is not None and _is_older(newest, before):
                    found.setdefault(document[0], []).append(document[1])
            for integrator, names in found.items():
                yield integrator, names

    async def remove(
        self, integrator: IntegratorId, sha256: str, before: datetime
    ) -> bool:
        """Remove a document, unless it was put in again since; whether it was.

        Raises:
            ApplianceError: `STORE_UNAVAILABLE`.
        """
        name = name_of(integrator, sha256)
        await self.check()
        return await self._run(self._remove, name, before)

    async def remove_unneeded(
        self,
        integrator: IntegratorId,
        sha256: str,
        is_needed: Callable[[], Awaitable[bool]],
    ) -> bool:
        """Remove a document unless it is needed; see `BlobMaintenance`.

        Raises:
            ApplianceError: `STORE_UNAVAILABLE`, also where another one is removing
                it; what `is_needed` raises.
        """
        name = name_of(integrator, sha256)
        await self.check()
        asked = asked_of_loop(is_needed)

        def is_due() -> bool:
            return not asked() and self._bucket.look(name) is not None

        removed = await self._run(self._remove_where, name, is_due)
        if removed is None:
            raise ApplianceError(ErrorCode.STORE_UNAVAILABLE, sentence=DOCUMENTS_AWAY)
        return removed

    async def clear(self, before: datetime) -> int:
        """Remove what killed writers left before then; how many uploads.

        Raises:
            ApplianceError: `STORE_UNAVAILABLE`.
        """
        await self.check()
        return await self._run(self._bucket.abandon_uploads, before)

    async def _run(self, work: Callable[..., Result], *arguments: object) -> Result:
        """Do what blocks, in one of the threads for it."""
        loop = asyncio.get_running_loop()
        try:
            return await loop.run_in_executor(self._threads, partial(work, *arguments))
        except DocumentsAwayError:
            if self._mark is not None:
                self._mark.doubt()
            raise

    def _put(
        self,
        integrator: IntegratorId,
        parts: Sequence[bytes | memoryview | DocumentMemory],
        key: bytes,
    ) -> str:
        """Have a document be there, whoever removes it meanwhile.

        Raises:
            ApplianceError: `STORAGE_FULL`, `STORE_UNAVAILABLE`.
        """
        new = NewDocument(integrator, parts, key)
        sha256, sealed = new.sha256, new.sealed
        name = name_of(integrator, sha256)
        is_small = new.size_bytes <= _SINGLE_BYTES
        for _ in range(_ROUNDS):
            if self._is_new(name, sealed, is_small=is_small):
                return sha256
            if self._holds(integrator, sha256, key):
                self._bucket.write(_beside(name, AGAIN), b"again")
            else:
                self._bucket.write(name, b"".join(sealed()) if is_small else sealed())
            self._wait_for_who_removes(_beside(name, LEAVING))
            if self._bucket.look(name) is not None:
                return sha256
        raise ApplianceError(ErrorCode.STORE_UNAVAILABLE, sentence=DOCUMENTS_AWAY)

    def _is_new(
        self, name: str, sealed: Callable[[], Iterator[bytes]], *, is_small: bool
    ) -> bool:
        """Put a document where there is none; whether there was none."""
        if is_small:
            return self._bucket.create(name, b"".join(sealed()))
        if self._bucket.look(name) is not None:
            return False
        # Two that do so at once put the same document, under two salts: both are right.
        self._bucket.write(name, sealed())
        return True

    def _holds(self, integrator: IntegratorId, sha256: str, key: bytes) -> bool:
        """Whether a document is there, encrypted, and what it is named by."""
        try:
            file = BucketFile(self._bucket, name_of(integrator, sha256))
            return opens(file, file.size_bytes, integrator, sha256, key)
        except FileNotFoundError:
            return False

    def _wait_for_who_removes(self, leaving: str) -> None:
        """Return once nobody is removing a document.

        Raises:
            ApplianceError: `STORE_UNAVAILABLE`: somebody is for longer than it takes.
        """
        deadline = time.monotonic() + _REMOVAL_S
        while (found := self._bucket.look(leaving)) is not None:
            if _is_older(found, datetime.now(UTC) - _DEAD):
                return
            if time.monotonic() > deadline:
                raise ApplianceError(
                    ErrorCode.STORE_UNAVAILABLE, sentence=DOCUMENTS_AWAY
                )
            time.sleep(_LOOK_AGAIN_S)

    def _remove(self, name: str, before: datetime) -> bool:
        """Remove a document if it is old, and nobody else removes it."""
        if not self._is_old(name, before):
            return False
        return self._remove_where(name, partial(self._is_old, name, before)) is True

    def _remove_where(self, name: str, is_due: Callable[[], bool]) -> bool | None:
        """Remove a document if that is due, while nobody else removes it.

        Args:
            name: of its object.
            is_due: asked while who puts it in waits.

        Returns:
            Whether it was removed; None: somebody else is at it, or it took too long.
        """
        leaving, began = _beside(name, LEAVING), time.monotonic()
        if not self._bucket.create(leaving, b"leaving"):
            found = self._bucket.look(leaving)
            if found is not None and _is_older(found, datetime.now(UTC) - _DEAD):
                self._bucket.delete(leaving)  # the next sweep begins anew
            return None
        try:
            if not is_due():
                return False
            # Whoever was stopped in between does not go on, after who knows what.
            if time.monotonic() < began + _REMOVAL_S:
                self._bucket.delete(name)
                self._bucket.delete(_beside(name, AGAIN))
                return True
            return None
        finally:
            self._bucket.delete(leaving)

    def _is_old(self, name: str, before: datetime) -> bool:
        """Whether a document is there, and was put in last before then."""
        found = self._bucket.look(name)
        if found is None or not _is_older(found, before):
            return False
        again = self._bucket.look(_beside(name, AGAIN))
        return again is None or _is_older(again, before)


def _beside(name: str, suffix: str) -> str:
    """The name of an object beside a document's."""
    return name.removesuffix(".pdf") + suffix


def _is_older(stored: Stored, before: datetime) -> bool:
    return stored.written < before


async def _each_of(
    calls: Iterable[Coroutine[object, object, Result]],
) -> list[Result | ApplianceError]:
    """Make calls beside each other; what each gave, or how it was refused."""

    async def one(call: Coroutine[object, object, Result]) -> Result | ApplianceError:
        try:
            return await call
        except ApplianceError as exc:
            return exc

    return await asyncio.gather(*map(one, calls))
