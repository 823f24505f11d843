"""Finds text that the marks of later signatures take away; for confined jobs only.

A signature may show its mark anywhere, also over what others signed before it. That
leaves theirs valid, and what a reader shows is no longer what they saw.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from pyhanko.pdf_utils.generic import Reference
from pyhanko.pdf_utils.reader import PdfFileReader
from pyhanko.sign.validation import EmbeddedPdfSignature

from appliance.domain.documents import FindingKind
from worker.sandbox.inspect.hidden_annotations import Rect
from worker.sandbox.inspect.hidden_text import find_unseen_text
from worker.sandbox.inspect.pages import read_box, walk_pages
from worker.sandbox.inspect.pdf_objects import Key, entry, key_of, raw_items, resolve

_PAGES_MOST: Final = 500_000


def covers_signed_text(
    pdf: bytes,
    reader: PdfFileReader,
    signatures: Sequence[EmbeddedPdfSignature],
    places: Mapping[int, Sequence[Rect]],
) -> bool:
    """Return whether a later mark, or a field that was filled in, hides text.

    Args:
        pdf: the whole file.
        reader: the same, open.
        signatures: in the order they were made, document timestamps left out.
        places: of fields that were filled in, by 1-based page.

    Raises:
        DocumentRefusedError: its pages cannot be walked.
    """
    first = min((each.signed_revision for each in signatures), default=0)
    marks = {
        key
        for each in signatures
        if each.signed_revision > first
        for key in _marks_of(each)
    }
    covering = {page - 1: [*rects] for page, rects in places.items()}
    if marks:
        for at, page in enumerate(walk_pages(reader.root, _PAGES_MOST).pages):
            for raw in raw_items(entry(page.node, "/Annots")):
                rect = read_box(entry(resolve(raw), "/Rect"))
                if key_of(raw) in marks and rect is not None:
                    covering.setdefault(at, []).append(rect)
    return bool(covering) and (
        FindingKind.COVERED_TEXT in find_unseen_text(pdf, covering)
    )


def _marks_of(signature: EmbeddedPdfSignature) -> Iterator[Key]:
    """A field's annotations: itself, or its kids."""
    field = signature.sig_field
    if isinstance(at := field.container_ref, Reference):
        yield at.idnum, at.generation
    for raw in raw_items(entry(field, "/Kids")):
        if (key := key_of(raw)) is not None:
            yield key
