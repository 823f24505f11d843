"""Unfolds the content of pages without keeping it, to find bombs early.

Signing never decodes a page; every reader does. A document whose pages unfold
into more than the budget is refused before a signer is shown it.
"""

import zlib
from collections.abc import Iterator, Sequence
from typing import Final

from pyhanko.pdf_utils.generic import ArrayObject, StreamObject

from appliance.domain.errors import DocumentRefusedError, ErrorCode
from worker.sandbox.inspect.pages import Page
from worker.sandbox.inspect.pdf_objects import Key, entry, key_of, raw_items, resolve

_BUDGET_BYTES: Final = 268_435_456
_CHUNK: Final = 1_048_576
_DEFLATE: Final = {"/FlateDecode", "/Fl"}


def unfold_pages(pages: Sequence[Page], *, strict: bool) -> bool:
    """Unfold the content streams of all pages.

    Args:
        pages: in any order.
        strict: raise what a broken stream raises; else count it as content.

    Returns:
        True when any page has content at all.

    Raises:
        DocumentRefusedError: `PDF_TOO_COMPLEX`, past 256 MiB in all.
    """
    left, seen, anything = _BUDGET_BYTES, set[Key](), False
    for page in pages:
        try:
            streams = list(_streams(page, seen))
        except Exception:
            if strict:
                raise
            # No signature depends on it, and a reader shows what it can.
            anything = True
            continue
        for chunk in (chunk for stream in streams for chunk in _unfold(stream)):
            left -= len(chunk)
            anything = anything or bool(chunk.strip())
            if left < 0:
                raise DocumentRefusedError(
                    ErrorCode.PDF_TOO_COMPLEX, "page content unfolds too far"
                )
    return anything


def _streams(page: Page, seen: set[Key]) -> Iterator[StreamObject]:
    """A page's content streams, without those seen on another page."""
    if "/Contents" not in page.node:
        return
    raw = page.node.raw_get("/Contents")
    content = resolve(raw)
    parts = raw_items(content) if isinstance(content, ArrayObject) else [raw]
    for part in parts:
        stream, key = resolve(part), key_of(part)
        if isinstance(stream, StreamObject) and (key is None or key not in seen):
            yield stream
        if key is not None:
            seen.add(key)


def _unfold(stream: StreamObject) -> Iterator[bytes]:
    """Chunks of a stream's data, as far as deflate alone was used on it."""
    data = stream.encoded_data
    chunks: Iterator[bytes] = (
        data[start : start + _CHUNK] for start in range(0, len(data), _CHUNK)
    )
    filters = entry(stream, "/Filter")
    names = [resolve(item) for item in raw_items(filters)] or [filters]
    for each in names:
        if str(each) not in _DEFLATE:
            break
        chunks = _inflate(chunks)
    return chunks


def _inflate(chunks: Iterator[bytes]) -> Iterator[bytes]:
    """Inflate without ever holding more than a chunk; stop where it is broken."""
    inflater = zlib.decompressobj()
    for chunk in chunks:
        rest = chunk
        while rest and not inflater.eof:
            try:
                out = inflater.decompress(rest, _CHUNK)
            except zlib.error:
                return
            rest = inflater.unconsumed_tail
            yield out
