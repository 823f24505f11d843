"""Finds what a file holds besides what its pages show at first.

Layers that are off, and content that a later revision replaced: each is there to be
brought back by a small change once the document is signed. Pages outside the page tree
are found by `object_scan`. What of that cannot be looked at is told as well, for who
prepares such a file can also see to it that it cannot be read.

Source: C. Mainka, V. Mladenov, S. Rohlmann: Shadow Attacks (NDSS 2021).
"""

import time
from collections.abc import Callable, Iterator, Sequence
from typing import Final

from pyhanko.pdf_utils.generic import (
    ArrayObject,
    DictionaryObject,
    IndirectObject,
    StreamObject,
)
from pyhanko.pdf_utils.misc import PdfDecodeLimitError
from pyhanko.pdf_utils.reader import PdfFileReader

from appliance.domain.documents.inspected import FindingKind
from worker.sandbox.inspect.pages import Page
from worker.sandbox.inspect.pdf_objects import (
    Budget,
    dictionary,
    entry,
    key_of,
    name,
    raw_items,
    resolve,
)

_CPU_S: Final = 1.0
"""As long as a file's revisions are looked through."""
_USES: Final = (
    ("/View", "/ViewState"),
    ("/Print", "/PrintState"),
    ("/Export", "/ExportState"),
)


def find_kept_back(
    reader: PdfFileReader, pages: Sequence[Page], budget: Budget
) -> set[FindingKind]:
    """Look for what is there without being shown.

    Args:
        reader: of the whole file, opened.
        pages: of the document.
        budget: steps that may be taken over the whole document.

    Raises:
        DocumentRefusedError: `PDF_TOO_COMPLEX`, when the budget is used up.
    """
    found: set[FindingKind] = set()
    if _hides_layers(reader.root, budget):
        found.add(FindingKind.HIDDEN_LAYERS)
    return found | _replaced_content(reader, pages)


def _hides_layers(catalog: DictionaryObject, budget: Budget) -> bool:
    """Say whether a layer is off at first, or on screen or paper alone.

    Source: ISO 32000-2, 8.11.4.3 and 8.11.4.4.
    """
    properties = dictionary(catalog, "/OCProperties")
    first = dictionary(properties, "/D")
    if name(first, "/BaseState") not in {None, "/ON"}:
        return True
    if any(True for _ in raw_items(entry(first, "/OFF"))):
        return True
    if not any(True for _ in raw_items(entry(first, "/AS"))):
        return False  # nothing switches them by use
    for raw in raw_items(entry(properties, "/OCGs")):
        budget.take()
        usage = dictionary(resolve(raw), "/Usage")
        if any(name(dictionary(usage, use), key) == "/OFF" for use, key in _USES):
            return True
    return False


def _replaced_content(reader: PdfFileReader, pages: Sequence[Page]) -> set[FindingKind]:
    """Find whether a page once showed content that it shows no more.

    What was added to a page's content takes nothing away, nor does an object that
    was written again as it was.
    """
    found: set[FindingKind] = set()
    if reader.xrefs.total_revisions == 1:
        return found
    until = time.process_time() + _CPU_S
    for page in pages:
        if time.process_time() > until:
            found.add(FindingKind.UNEXAMINED_PARTS)
            break
        try:
            if _is_replaced(reader, page):
                found.add(FindingKind.REPLACED_CONTENT)
                break
        except (MemoryError, PdfDecodeLimitError):
            raise
        except Exception:  # noqa: BLE001 (broken old revisions raise anything)
            found.add(FindingKind.UNEXAMINED_PARTS)
    return found


def _is_replaced(reader: PdfFileReader, page: Page) -> bool:
    """Compare a page's content with that of the revision that brought the page."""

    def introduced(raw: object) -> object:
        """What a raw value was at first, be it still the same one."""
        if not isinstance(raw, IndirectObject):
            return raw
        before = _as_introduced(reader, raw)
        return resolve(raw) if before is None else before

    now = list(_content(page.node, resolve))
    then = page.node if page.ref is None else introduced(page.ref)
    if isinstance(then, DictionaryObject):
        kept = {key_of(raw) for raw in now}
        if any(key_of(raw) not in kept for raw in _content(then, introduced)):
            return True
    for raw in now:
        if isinstance(raw, IndirectObject):
            before, after = _as_introduced(reader, raw), resolve(raw)
            if (
                isinstance(before, StreamObject)
                and isinstance(after, StreamObject)
                and before.encoded_data != after.encoded_data
            ):
                return True
    return False


def _as_introduced(reader: PdfFileReader, ref: IndirectObject) -> object:
    """An object as its first revision had it; None where it is still the same one."""
    first = reader.xrefs.get_introducing_revision(ref.reference)
    if first == reader.xrefs.get_last_change(ref.reference):
        return None
    return reader.get_object(ref.reference, revision=first)


def _content(
    page: DictionaryObject, read: Callable[[object], object]
) -> Iterator[object]:
    """A page's content streams, as references.

    Args:
        page: as some revision had it.
        read: follows a reference, where the streams' array is an object of its own.
    """
    raw = page.raw_get("/Contents") if "/Contents" in page else None
    value = read(raw)
    if isinstance(value, ArrayObject):
        yield from raw_items(value)
    elif raw is not None:
        yield raw
