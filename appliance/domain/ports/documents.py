"""Where documents are kept, and under which keys."""

from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from datetime import datetime
from typing import Protocol, TypeAlias

from appliance.domain.errors import ApplianceError
from appliance.domain.ids import IntegratorId


@dataclass(frozen=True, slots=True)
class DocumentStream:
    """A document that is read in pieces, so that it is never held whole."""

    size_bytes: int
    """Of the document."""
    pieces: AsyncIterator[bytes] = field(repr=False)
    """Its bytes; ends early, by an `ApplianceError`, before what is not right."""
    part: Callable[[int, int], AsyncIterator[bytes]] | None = field(
        default=None, repr=False
    )
    """The bytes from an offset to before another, read without those around them; None
    where only the whole document can be checked."""


class DocumentMemory(Protocol):
    """A document's bytes where no process's heap holds them; nobody can change them."""

    @property
    def size_bytes(self) -> int:
        """How many there are."""
        ...

    @property
    def sha256(self) -> str:
        """Their SHA-256 in hex."""
        ...

    def opened(self) -> AbstractContextManager[int]:
        """A descriptor of them and of nothing else, within the context.

        Raises:
            OSError: the machine has no room for it.
        """
        ...

    def read(self, offset: int, size: int) -> bytes:
        """Some of them, from an offset on; fewer than `size` only at their end."""
        ...

    def __bytes__(self) -> bytes:
        """All of them."""
        ...


DocumentBytes: TypeAlias = bytes | DocumentMemory
"""A document that came in: a large one is not held in the heap."""


class BlobStore(Protocol):
    """PDFs by integrator and SHA-256 of their bytes; written once, encrypted."""

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
        ...

    async def put_all(
        self, integrator: IntegratorId, documents: Sequence[DocumentBytes]
    ) -> None:
        """Keep several documents that come in, as `put` does each.

        Raises:
            ApplianceError: as `put`; those before may be kept.
        """
        ...

    async def get(self, integrator: IntegratorId, sha256: str) -> bytes:
        """Read them back, hashed again on the way.

        Raises:
            ApplianceError: `STORE_UNAVAILABLE`; `DOCUMENT_DAMAGED`: missing or altered.
        """
        ...

    async def get_all(
        self, wanted: Sequence[tuple[IntegratorId, str]]
    ) -> list[bytes | ApplianceError]:
        """Read several back, each as `get` does, or why it cannot be.

        Args:
            wanted: whose each is, and its SHA-256 in hex.

        Raises:
            ApplianceError: `STORE_UNAVAILABLE`: nothing can be read.
        """
        ...

    async def put_signed(
        self, files: Sequence[tuple[IntegratorId, Sequence[bytes]]]
    ) -> list[str | ApplianceError]:
        """Keep several signed documents, each as `put` does, or why it cannot be.

        Args:
            files: whose each is, and its bytes in parts.

        Returns:
            Their SHA-256 in hex; all of them are durable.

        Raises:
            ApplianceError: `STORE_UNAVAILABLE`: nothing can be kept.
        """
        ...

    async def stream(self, integrator: IntegratorId, sha256: str) -> DocumentStream:
        """Read them back in pieces, each known to be right before it is given.

        Raises:
            ApplianceError: `STORE_UNAVAILABLE`; `DOCUMENT_DAMAGED`: missing or altered.
        """
        ...

    async def make_room(self, size_bytes: int) -> None:
        """Make sure that a document which is yet to be signed will find room.

        Raises:
            ApplianceError: `STORAGE_FULL`; `STORE_UNAVAILABLE`.
        """
        ...


class BlobMaintenance(BlobStore, Protocol):
    """A store, and what is done to it beside documents that come and go."""

    async def check(self) -> None:
        """Make sure that it is there, and this installation's.

        Raises:
            ApplianceError: `STORE_UNAVAILABLE`, `OVERLOADED`.
        """
        ...

    async def encrypt(self, integrator: IntegratorId, sha256: str) -> bool:
        """Encrypt a document that was stored before they were; whether it was one.

        Raises:
            ApplianceError: `STORE_UNAVAILABLE`, `STORAGE_FULL`.
        """
        ...

    def older(self, before: datetime) -> AsyncIterator[tuple[IntegratorId, list[str]]]:
        """What was put in last before then: integrator, and SHA-256 of each.

        Raises:
            ApplianceError: `STORE_UNAVAILABLE`.
        """
        ...

    async def remove(
        self, integrator: IntegratorId, sha256: str, before: datetime
    ) -> bool:
        """Remove a document, unless it was put in again since; whether it was.

        Raises:
            ApplianceError: `STORE_UNAVAILABLE`.
        """
        ...

    async def remove_unneeded(
        self,
        integrator: IntegratorId,
        sha256: str,
        is_needed: Callable[[], Awaitable[bool]],
    ) -> bool:
        """Remove a document, however new it is, unless somebody needs it.

        Who is going to put it in has said so in the record before: either `is_needed`
        finds that, or what they put in comes after the removal.

        Args:
            integrator: whose.
            sha256: of its bytes, hex.
            is_needed: asks the record, while nobody can put the document in.

        Returns:
            Whether it was there and is removed.

        Raises:
            ApplianceError: `STORE_UNAVAILABLE`, also where another one is removing
                it; what `is_needed` raises.
        """
        ...

    async def clear(self, before: datetime) -> int:
        """Remove what killed writers left before then; how many files.

        Raises:
            ApplianceError: `STORE_UNAVAILABLE`.
        """
        ...


class DocumentKeys(Protocol):
    """The keys that documents are encrypted with: one for each integrator."""

    async def get(self, integrator: IntegratorId) -> bytes | None:
        """An integrator's key, 32 bytes; None when there is none.

        Raises:
            ApplianceError: `STORE_UNAVAILABLE`.
        """
        ...

    async def make(self, integrator: IntegratorId) -> bytes:
        """Make an integrator's key; where there is one by now, that is it.

        Raises:
            ApplianceError: `STORE_UNAVAILABLE`.
        """
        ...
