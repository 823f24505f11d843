"""What is asked of a document's bytes, wherever they are."""

import asyncio
import hashlib
from collections.abc import Iterator, Sequence
from typing import TypeVar

from appliance.domain.ports import DocumentBytes

_Each = TypeVar("_Each")


def size_of(pdf: DocumentBytes) -> int:
    """How many bytes a document has."""
    return len(pdf) if isinstance(pdf, bytes) else pdf.size_bytes


async def sha256_of(pdf: DocumentBytes) -> str:
    """The SHA-256 of a document, in hex."""
    if not isinstance(pdf, bytes):
        return pdf.sha256
    # A large one would hold up everybody else.
    return (await asyncio.to_thread(hashlib.sha256, pdf)).hexdigest()


def rounds_of(
    documents: Sequence[_Each], sizes: Sequence[int], most: int, most_bytes: int
) -> Iterator[list[_Each]]:
    """Documents in groups that something is done to together, in order.

    Args:
        documents: or what stands for them.
        sizes: of each, in bytes.
        most: documents of one group.
        most_bytes: of one group; a larger document has one of its own.
    """
    together: list[_Each] = []
    total = 0
    for each, size in zip(documents, sizes, strict=True):
        if together and (len(together) == most or total + size > most_bytes):
            yield together
            together, total = [], 0
        together.append(each)
        total += size
    if together:
        yield together
