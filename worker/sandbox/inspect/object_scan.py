"""Goes once through all objects of a file, as qpdf reads them.

What cannot be looked at is told as well: who prepares a file that holds something back
can also see to it that it cannot be read.
"""

import io
import re
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

import pikepdf

from appliance.domain.documents.inspected import FindingKind
from appliance.domain.errors import DocumentRefusedError, ErrorCode
from worker.sandbox.inspect.drawn_differently import find_drawn_differently
from worker.sandbox.inspect.external_content import ExternalContent
from worker.sandbox.inspect.pages import Page
from worker.sandbox.inspect.pdf_objects import key_of
from worker.sandbox.inspect.scattered_actions import ScatteredActions
from worker.sandbox.inspect.unembedded_fonts import lacks_programs

_CPU_S: Final = 1.0
"""As long as a file's objects are looked through."""
_CHECKED_EACH: Final = 64
"""Objects between two looks at the clock."""
_PAGE_TYPES: Final = (pikepdf.Name.Page, pikepdf.Name.Template)
# By qpdf's words: the object was read all the same, or is a stream, or a page shown.
_READ_ANYWAY: Final = re.compile(
    r"stream length|/Length key|stream keyword|expected endstream|expected endobj"
    r"|has offset 0|: kid \d|number of objects|whitespace seen before xref"
)


@dataclass(slots=True)
class ObjectScan:
    """What the objects of a file say."""

    found: set[FindingKind] = field(default_factory=set)
    lacks_programs: bool = False
    """A font of something that is drawn may be one that is not embedded."""
    is_external: bool = False
    """Something is shown that is not in the file."""


def scan_objects(
    pdf: bytes, pages: Sequence[Page], known: set[FindingKind]
) -> ObjectScan:
    """Look at each object of a file, for as long as a second of CPU.

    Args:
        pdf: the whole file; encrypted with the empty password at the most.
        pages: of the document.
        known: what was found already.

    Raises:
        DocumentRefusedError: `PDF_EXTERNAL_CONTENT`.
    """
    scan = ObjectScan()
    try:
        with pikepdf.open(io.BytesIO(pdf), suppress_warnings=True) as opened:
            _scan(opened, pages, known, scan)
    except MemoryError:
        raise
    except Exception:  # noqa: BLE001 (broken objects raise anything)
        scan.found.add(FindingKind.UNEXAMINED_PARTS)
    if scan.is_external:
        raise DocumentRefusedError(ErrorCode.PDF_EXTERNAL_CONTENT)
    return scan


def _scan(
    opened: pikepdf.Pdf,
    pages: Sequence[Page],
    known: set[FindingKind],
    scan: ObjectScan,
) -> None:
    """Fill in what is found."""
    streams, actions = ExternalContent(), ScatteredActions(known)
    _look_through(opened, pages, (streams, actions), scan.found)
    scan.found |= actions.judge(opened)
    scan.is_external, has_alternates = streams.judge(opened)
    if has_alternates:
        scan.found.add(FindingKind.ALTERNATE_IMAGES)
    # What qpdf cannot read it warns of, and takes for null.
    said = [str(warning) for warning in opened.get_warnings()]
    if not all(_READ_ANYWAY.search(warning) for warning in said):
        scan.found.add(FindingKind.UNEXAMINED_PARTS)
    try:
        # Last, as it makes qpdf mend the page tree, and say so.
        scan.lacks_programs = lacks_programs(opened)
    except (pikepdf.PdfError, ValueError, TypeError, RuntimeError):
        scan.lacks_programs = True  # the pages have the last word
    scan.found |= find_drawn_differently(opened)


def _look_through(
    opened: pikepdf.Pdf,
    pages: Sequence[Page],
    takers: tuple[ExternalContent, ScatteredActions],
    found: set[FindingKind],
) -> None:
    """Find pages that are none of the document's, and hand on streams and all else."""
    streams, actions = takers
    shown = {key_of(page.ref) for page in pages}
    until = time.process_time() + _CPU_S
    for count, each in enumerate(opened.objects):
        if count % _CHECKED_EACH == 0 and time.process_time() > until:
            found.add(FindingKind.UNEXAMINED_PARTS)
            break
        try:
            if isinstance(each, pikepdf.Stream):
                streams.take(each)
            elif _is_page(each) and each.objgen not in shown:
                found.add(FindingKind.UNSHOWN_PAGES)
            actions.take(each)
        except (pikepdf.PdfError, ValueError, TypeError):
            # An odd one keeps none of the others from being looked at.
            found.add(FindingKind.UNEXAMINED_PARTS)


def _is_page(each: pikepdf.Object) -> bool:
    return isinstance(each, pikepdf.Dictionary) and each.get("/Type") in _PAGE_TYPES
