"""What PDF/A wants of a signature's widget besides its drawing.

Source: ISO 19005-1, 6.5.3, 6.7.11 and 6.9; ISO 19005-2, 6.2.4 and 6.3.3.
"""

import re
from collections.abc import Iterator
from typing import Final

from pyhanko.pdf_utils.generic import (
    ArrayObject,
    DictionaryObject,
    IndirectObject,
    NameObject,
    NumberObject,
    StreamObject,
    pdf_name,
)
from pyhanko.pdf_utils.incremental_writer import IncrementalPdfFileWriter

from appliance.domain.errors import DocumentRefusedError
from worker.pades.pdf.document import entry
from worker.pades.pdf.form_fields import SignatureField, signature_fields
from worker.pades.pdf.revision import refusing

BLANK: Final = "/Blank"
"""Name, among the resources of a stamp, of the drawing that draws nothing."""
_PART: Final = re.compile(rb"pdfaid:part(?:=[\"']|>)\s{0,8}([1-9])")
_METADATA_BYTES: Final = 1_000_000
_NO_CHANGES: Final = 1


def archival_part(root: DictionaryObject) -> str | None:
    """The part of PDF/A that a document says it conforms to, such as `1`.

    Args:
        root: the document's catalog.

    Returns:
        None where it says nothing of the kind, or its metadata cannot be read.
    """
    metadata = entry(root, "/Metadata", StreamObject)
    if metadata is None:
        return None
    try:
        with refusing():
            data = metadata.data
    except DocumentRefusedError:
        return None
    # XMP has a simple property as an element, or as an attribute of its description.
    found = _PART.search(data[:_METADATA_BYTES])
    return None if found is None else found[1].decode("ascii")


def has_output_intent(root: DictionaryObject) -> bool:
    """True if a document names the device that PDF/A colours are meant for."""
    intents = entry(root, "/OutputIntents", ArrayObject) or ArrayObject()
    return any(
        entry(intents[at], "/S", NameObject) == "/GTS_PDFA1"
        for at in range(len(intents))
    )


def leave_blank(revision: IncrementalPdfFileWriter, widget: DictionaryObject) -> None:
    """Give the widget of a signature that is not seen what its document wants of it.

    In PDF/A-1 every widget has an appearance; in other files this one needs none.

    Args:
        revision: the open file.
        widget: without an area.
    """
    drawing = blank_drawing(revision)
    if drawing is not None:
        widget[pdf_name("/AP")] = DictionaryObject({pdf_name("/N"): drawing})


def blank_drawing(revision: IncrementalPdfFileWriter) -> IndirectObject | None:
    """A drawing that draws nothing, where the document needs one.

    The first signature writes it, and whatever follows has the same: validators take
    a new drawing for a form that was filled in, which an earlier signature may forbid.

    Args:
        revision: the open file.

    Returns:
        Its reference. None: the document is not PDF/A-1, or an earlier signature of
        others might forbid it.
    """
    if archival_part(revision.root) != "1":
        return None
    fields = [*signature_fields(revision.root)]
    known = next((each for field in fields for each in _blanks_of(field)), None)
    if known is not None:
        return known
    if any(map(_may_forbid, fields)):
        return None
    entries = {
        pdf_name("/Type"): pdf_name("/XObject"),
        pdf_name("/Subtype"): pdf_name("/Form"),
        pdf_name("/BBox"): ArrayObject([NumberObject(0)] * 4),
        pdf_name("/Resources"): DictionaryObject(),
    }
    return revision.add_object(StreamObject(entries, stream_data=b""))


def _blanks_of(field: SignatureField) -> Iterator[IndirectObject]:
    """Drawings that draw nothing, of a field or among what its stamp needs."""
    for widget in field.widgets:
        looks = entry(widget, "/AP", DictionaryObject)
        stamp = entry(looks, "/N", StreamObject)
        resources = entry(stamp, "/Resources", DictionaryObject)
        drawings = entry(resources, "/XObject", DictionaryObject)
        for holder, key in ((looks, "/N"), (drawings, BLANK)):
            raw = holder.raw_get(key) if holder is not None and key in holder else None
            if isinstance(raw, IndirectObject) and _is_blank(
                entry(holder, key, object)
            ):
                yield raw


def _is_blank(drawing: object) -> bool:
    """True for a form without content or area."""
    if not isinstance(drawing, StreamObject):
        return False
    if entry(drawing, "/Subtype", NameObject) != "/Form":
        return False
    box = entry(drawing, "/BBox", ArrayObject) or ArrayObject()
    has_no_area = [box[at] for at in range(len(box))] == [0, 0, 0, 0]
    return has_no_area and entry(drawing, "/Length", int) == 0


def _may_forbid(field: SignatureField) -> bool:
    """True if a signature locks fields, or permits no changes."""
    references = entry(field.value, "/Reference", ArrayObject) or ArrayObject()
    for at in range(len(references)):
        method = entry(references[at], "/TransformMethod", NameObject)
        parameters = entry(references[at], "/TransformParams", DictionaryObject)
        if method == "/FieldMDP" or entry(parameters, "/P", int) == _NO_CHANGES:
            return True
    return False
