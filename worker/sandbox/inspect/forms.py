"""What a document's form says: its signatures, its certification, XFA."""

import re
from collections.abc import Iterator, Sequence
from typing import Final

from pyhanko.pdf_utils.generic import (
    ArrayObject,
    BooleanObject,
    DictionaryObject,
    StreamObject,
)

from appliance.domain.documents.inspected import MARKS_KEPT, SignatureMark
from worker.sandbox.inspect.pages import Page, read_box
from worker.sandbox.inspect.pdf_objects import (
    Budget,
    Key,
    dictionary,
    entry,
    key_of,
    name,
    number,
    raw_items,
    resolve,
)

_DYNAMIC_RENDER: Final = re.compile(rb"<dynamicRender[^>]{0,200}>\s*required\b")
_PACKET_BYTES: Final = 8_388_608


def form_fields(catalog: DictionaryObject, budget: Budget) -> list[object]:
    """Collect every node of the field tree, loops and shared nodes once.

    They come as they stand in the tree, most as references.

    Each node carries what it inherits of `/FT` and `/V` only if it says so
    itself; a signature's field and its widget are one node or parent and kid.

    Raises:
        DocumentRefusedError: `PDF_TOO_COMPLEX`, when the budget is used up.
    """
    found: list[object] = []
    seen: set[Key] = set()
    todo = list(raw_items(entry(dictionary(catalog, "/AcroForm"), "/Fields")))
    while todo:
        budget.take()
        raw = todo.pop()
        key = key_of(raw)
        if key is not None and key in seen:
            continue
        if key is not None:
            seen.add(key)
        node = resolve(raw)
        if isinstance(node, DictionaryObject):
            found.append(raw)
            todo.extend(raw_items(entry(node, "/Kids")))
    return found


def count_signatures(fields: Sequence[object]) -> int:
    """Count the fields that hold a signature, document timestamps among them."""
    return sum(1 for raw in fields if _holds_signature(resolve(raw)))


def _holds_signature(node: object) -> bool:
    """Say whether a field's own value is a signature dictionary."""
    value = dictionary(node, "/V")
    if value is None:
        return False
    # The type may be inherited, so the value's own look counts as well.
    return name(node, "/FT") == "/Sig" or "/ByteRange" in value


def certification_level(catalog: DictionaryObject) -> int | None:
    """P of the document's certification signature, None when it has none.

    Source: ISO 32000-2, 12.8.2.2 (P is 2 where it is left out).
    """
    signature = dictionary(dictionary(catalog, "/Perms"), "/DocMDP")
    if signature is None:
        return None
    for raw in raw_items(entry(signature, "/Reference")):
        reference = resolve(raw)
        if name(reference, "/TransformMethod") == "/DocMDP":
            level = number(entry(dictionary(reference, "/TransformParams"), "/P"))
            # An odd level forbids at least what the strictest one forbids.
            return 2 if level is None else int(level) if level in {1, 2, 3} else 1
    return 2


def leaves_appearances_open(catalog: DictionaryObject) -> bool:
    """Say whether readers are to draw the fields as they like.

    Source: ISO 32000-2, 12.7.3 (NeedAppearances, which signed files should not set).
    """
    needs = entry(dictionary(catalog, "/AcroForm"), "/NeedAppearances")
    return isinstance(needs, BooleanObject) and needs.value


def has_usage_rights(catalog: DictionaryObject) -> bool:
    """Say whether a signature grants rights to whoever has Adobe Reader.

    Source: ISO 32000-2, 12.8.6 (UR3); PDF Reference 1.5, 8.7.1 (UR).
    """
    granted = dictionary(catalog, "/Perms")
    return any(dictionary(granted, key) is not None for key in ("/UR3", "/UR"))


def has_xfa(catalog: DictionaryObject) -> bool:
    """Say whether the form has an XFA description."""
    return entry(dictionary(catalog, "/AcroForm"), "/XFA") is not None


def is_xfa_dynamic(
    catalog: DictionaryObject, pages: Sequence[Page], *, has_content: bool
) -> bool:
    """Say whether the pages are made by the form, not by the PDF.

    A dynamic form says so itself, or has neither content nor a field to show:
    what a signer would see is then not what the file holds.
    """
    needs = entry(catalog, "/NeedsRendering")
    if isinstance(needs, BooleanObject) and needs.value:
        return True
    if any(_DYNAMIC_RENDER.search(packet) for packet in _packets(catalog)):
        return True
    shown = any(isinstance(entry(p.node, "/Annots"), ArrayObject) for p in pages)
    return not has_content and not shown


def _packets(catalog: DictionaryObject) -> Iterator[bytes]:
    """Data of the XFA packets: one stream, or names and streams in turn."""
    xfa = entry(dictionary(catalog, "/AcroForm"), "/XFA")
    raws = raw_items(xfa) if isinstance(xfa, ArrayObject) else [xfa]
    for raw in raws:
        stream = resolve(raw)
        if isinstance(stream, StreamObject):
            yield stream.data[:_PACKET_BYTES]


def signature_marks(
    pages: Sequence[Page], fields: Sequence[object], budget: Budget
) -> tuple[SignatureMark, ...]:
    """Where signature fields are seen, found by the annotations of the pages.

    Args:
        pages: of the document.
        fields: from `form_fields`.
        budget: of steps.

    Returns:
        `MARKS_KEPT` of them at the most.

    Raises:
        DocumentRefusedError: `PDF_TOO_COMPLEX`, when the budget is used up.
    """
    if not any(_is_signature(resolve(raw)) for raw in fields):
        return ()
    marks: list[SignatureMark] = []
    for at, page in enumerate(pages, 1):
        for raw in raw_items(entry(page.node, "/Annots")):
            budget.take()
            widget = resolve(raw)
            # The field itself, or the one that it is a widget of.
            owner = dictionary(widget, "/Parent")
            if not _is_signature(widget) and not _is_signature(owner):
                continue
            rect = read_box(entry(widget, "/Rect"))
            if rect is not None and len(marks) < MARKS_KEPT:
                marks.append(SignatureMark(at, rect))
    return tuple(marks)


def _is_signature(node: object) -> bool:
    """Say whether a node is a signature field, be it signed or empty."""
    return name(node, "/FT") == "/Sig"
