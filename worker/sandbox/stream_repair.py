"""Writes streams of a repaired copy without filters; in a confined job only.

Where programs decode a stream differently, the copy has what it is decoded to. Which
streams these are is found in the copy as it will be read: by the structural reader.

Source: ISO 32000-2, 7.3.8 and 7.4.
"""

import io
from collections.abc import Callable
from typing import Any, Final

import pikepdf

from worker.sandbox.structure import CheckedReader, read_structure
from worker.sandbox.structure.filters import LOSSLESS
from worker.sandbox.tree_repair import mend_resources

_STEPS: Final = 2_000_000
_OTHER_FILTERS: Final = ("/F", "/DP")


def mend_streams(
    copy: bytes, save: Callable[[pikepdf.Pdf, io.BytesIO], None]
) -> bytes | None:
    """Write streams anew that programs decode differently, as far as that can be done.

    Args:
        copy: a file that qpdf wrote.
        save: writes it.

    Returns:
        The file with other streams; None where nothing was wrong, or nothing is known.
    """
    out = io.BytesIO()
    with pikepdf.open(
        io.BytesIO(copy), suppress_warnings=True, inherit_page_attributes=False
    ) as again:
        opened = None
        if again.is_encrypted:
            opened = CheckedReader(copy)
            opened.decrypt("")
        drawn = read_structure(
            copy,
            opened,
            steps=_STEPS,
            appended_from=len(copy),
            follow=_contents(again),
        ).drawn
        if drawn is None or not (drawn.odd or drawn.odd_resources):
            return None
        for number in drawn.odd:
            _unfold(again.get_object(number, 0))
        for number in drawn.odd_resources:
            mend_resources(again.get_object(number, 0))
        save(again, out)
    return out.getvalue()


def _contents(opened: pikepdf.Pdf) -> set[int]:
    """Return the numbers of the streams that are pages' content."""
    found = set()
    for page in opened.pages:
        value = page.obj.get("/Contents")
        listed = value.as_list() if isinstance(value, pikepdf.Array) else [value]
        found |= {each.objgen[0] for each in listed if isinstance(each, pikepdf.Stream)}
    return found


def _unfold(stream: Any) -> None:
    """Give a stream the data that its filters give; one that has none stays as it is.

    Of the abbreviated keys of inline pictures none counts: PDFium reads none.
    """
    if not isinstance(stream, pikepdf.Stream):
        return
    for key in _OTHER_FILTERS:
        if key in stream:
            del stream[key]
    try:
        data = stream.read_bytes(LOSSLESS)
    except (pikepdf.PdfError, RuntimeError):
        return
    stream.write(data)
