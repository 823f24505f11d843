"""Finds what a file holds besides what its pages show at first.

Layers that are off, pages outside the page tree, and content that a later revision
replaced: each is there to be brought back by a small change once the document is
signed.

Source: C. Mainka, V. Mladenov, S. Rohlmann: Shadow Attacks (NDSS 2021).
"""

import io
import time
from collections.abc import Iterator, Sequence
from typing import Final

import pikepdf
from pyhanko.pdf_utils.generic import (
    ArrayObject,
    DictionaryObject,
    IndirectObject,
    StreamObject,
)
from pyhanko.pdf_utils.misc import PdfDecodeLimitError
from pyhanko.pdf_utils.reader import PdfFileReader

from appliance.domain.document import FindingKind
from worker.sandbox.objects import (
    Budget,
    dictionary,
    entry,
    key_of,
    name,
    raw_items,
    resolve,
)
from worker.sandbox.pages import Page

_CPU_S: Final = 1.0
"""As long as a file's objects are looked through, and as long as its revisions."""
_PAGE_TYPES: Final = {"/Page", "/Template"}
_USES: Final = (
    ("/View", "/ViewState"),
    ("/Print", "/PrintState"),
    ("/Export", "/ExportState"),
)


def find_kept_back(
    pdf: bytes, reader: PdfFileReader, pages: Sequence[Page], budget: Budget
) -> set[FindingKind]:
    """Look for what is there without being shown.

    Args:
        pdf: the whole file.
        reader: of it, opened.
        pages: of the document.
        budget: steps that may be taken over the whole document.

    Raises:
        DocumentRefusedError: `PDF_TOO_COMPLEX`, when the budget is used up.
    """
    found: set[FindingKind] = set()
    if _hides_layers(reader.root, budget):
        found.add(FindingKind.HIDDEN_LAYERS)
    if _has_replaced_content(reader, pages):
        found.add(FindingKind.REPLACED_CONTENT)
    # What only tolerant reading understands is repaired, and the copy holds no
    # object that nothing refers to.
    if reader.strict and _has_unshown_pages(pdf, pages):
        found.add(FindingKind.UNSHOWN_PAGES)
    return found


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


def _has_replaced_content(reader: PdfFileReader, pages: Sequence[Page]) -> bool:
    """Say whether a page once showed content that it shows no more.

    What was added to a page's content takes nothing away, nor does an object that
    was written again as it was.
    """
    if reader.xrefs.total_revisions == 1:
        return False
    until = time.process_time() + _CPU_S
    for page in pages:
        if time.process_time() > until:
            break
        try:
            if _is_replaced(reader, page):
                return True
        except (MemoryError, PdfDecodeLimitError):
            raise
        except Exception:  # noqa: BLE001, S112 (no signature depends on old revisions)
            continue
    return False


def _is_replaced(reader: PdfFileReader, page: Page) -> bool:
    """Compare a page's content with that of the revision that brought the page."""
    now = list(_content(page.node))
    if page.ref is not None:
        before = _as_introduced(reader, page.ref)
        if isinstance(before, DictionaryObject):
            kept = {key_of(raw) for raw in now}
            if any(key_of(raw) not in kept for raw in _content(before)):
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


def _content(page: DictionaryObject) -> Iterator[object]:
    """A page's content streams, as references; not resolved in any revision."""
    raw = page.raw_get("/Contents") if "/Contents" in page else None
    if isinstance(raw, ArrayObject):
        yield from raw_items(raw)
    elif raw is not None:
        yield raw


def _has_unshown_pages(pdf: bytes, pages: Sequence[Page]) -> bool:
    """Say whether an object is a page, and none of the document's."""
    shown = {key_of(page.ref) for page in pages}
    until = time.process_time() + _CPU_S
    try:
        with pikepdf.open(io.BytesIO(pdf), suppress_warnings=True) as opened:
            for each in opened.objects:
                if time.process_time() > until:
                    break
                if _is_page(each) and each.objgen not in shown:
                    return True
    except MemoryError:
        raise
    except Exception:  # noqa: BLE001 (broken objects raise anything; none is needed)
        return False
    return False


def _is_page(each: pikepdf.Object) -> bool:
    if not isinstance(each, pikepdf.Dictionary):
        return False
    kind = each.get("/Type")
    return isinstance(kind, pikepdf.Name) and str(kind) in _PAGE_TYPES
