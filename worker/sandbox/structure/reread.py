"""Comparison with what pyHanko and qpdf reach.

pyHanko judges what was changed after a signature. If it reads an old object where other
readers read a new one, or none, a change escapes it. qpdf is a reader of another make
that has the same objects to show. It reports no places, so their content is compared.
"""

import io
import re
from collections.abc import Callable, Mapping
from typing import Final

import pikepdf
from pyhanko.pdf_utils.generic import Reference
from pyhanko.pdf_utils.reader import PdfFileReader
from pyhanko.pdf_utils.xref import ObjStreamRef

from worker.sandbox.structure.ambiguity import AmbiguityKind, Findings, Steps
from worker.sandbox.structure.history import History, Listing, in_use
from worker.sandbox.structure.sections import Entry
from worker.sandbox.structure.tokens import BLANK, TEXT, after_blanks

_STEPS_EACH: Final = 2
QPDF_BYTES_MAX: Final = 104_857_600
QPDF_OBJECTS_MAX: Final = 60
"""Limits of what qpdf reads again: an object takes about 35 microseconds. The latest
revisions come first, for they are what a forger adds."""
_HEADER: Final = b"%PDF-"
_ADDED: Final = {b"/Type", b"/Catalog"}
"""Names that qpdf adds to a catalog without them."""
_ESCAPE: Final = re.compile(rb"#([0-9A-Fa-f]{2})")
# qpdf writes strings and reals in its own way: names, references and integers are kept.
_PART: Final = re.compile(
    TEXT
    + rb"|<[0-9A-Fa-f\0\t\n\f\r ]*+>|%[^\r\n]*+|[+-]?\d*\.\d*"
    + rb"|(/[^\0\t\n\f\r ()<>\[\]{}/%]*+|\d++"
    + BLANK
    + rb"++\d++"
    + BLANK
    + rb"++R|\d++)"
)

Content = Callable[[Entry], tuple[bytes, bytes | None] | None]
"""Bytes of an object's value, and of its stream; None if they are not known."""


def compare_places(
    pdf: bytes,
    opened: PdfFileReader,
    history: History,
    findings: Findings,
    steps: Steps,
) -> None:
    """Report objects that pyHanko finds in another place.

    Args:
        pdf: the whole file.
        opened: the file as pyHanko reads it.
        history: entries of every number.
        findings: takes the differences.
        steps: budget of the whole file.

    Raises:
        UsedUpError: the budget is used up.
    """
    newest = _newest_revisions(opened)
    for number, listings in history.items():
        generations = _generations(listings)
        steps.take(_STEPS_EACH + len(listings) * max(len(generations), 1))
        entry = listings[-1].entry
        for generation in generations:
            try:
                # pyHanko searches each section, from the newest one on. Those that do
                # not list the number are left out.
                place = opened.xrefs.get_historical_ref(
                    Reference(number, generation, opened), newest[number]
                )
            except KeyError:
                place = None
            here: object = None
            if entry.kind == 1 and entry.detail == generation and entry.where:
                here = entry.where
            elif entry.kind == 2:  # noqa: PLR2004 (in an object stream)
                here = ObjStreamRef(entry.where, entry.detail)
            if isinstance(place, int) and place:
                place = after_blanks(pdf, place)
            if (place or None) != here:
                words = f"pyHanko reads object {number} from another place"
                kind = AmbiguityKind.REREAD_DIFFERS
                at = _introduced(history, entry, place)
                findings.add(kind, at if at < len(pdf) else entry.at, number, words)


def _newest_revisions(opened: PdfFileReader) -> dict[int, int]:
    """Return the last revision in which pyHanko finds a number listed."""
    newest: dict[int, int] = {}
    for revision in range(opened.xrefs.total_revisions):
        section = opened.xrefs.get_xref_data(revision)
        parts = [section]
        if section.hybrid is not None:
            parts.append(section.hybrid.xref_data)
        for data in parts:
            for listed in (data.freed, data.xrefs_in_objstm, data.standard_xrefs):
                newest |= dict.fromkeys(listed, revision)
    return newest


def _introduced(history: History, entry: Entry, place: object) -> int:
    """Return the later of an entry and of the place where pyHanko finds its object."""
    if isinstance(place, ObjStreamRef):
        holder = history.entry(place.obj_stream_id)
        place = None if holder is None or holder.kind != 1 else holder.where
    return max(entry.at, place) if isinstance(place, int) else entry.at


def compare_contents(
    pdf: bytes, end_at: int, history: History, content: Content, findings: Findings
) -> None:
    """Report objects that qpdf reads otherwise, in a file of moderate size.

    Names, references, integers and the content of streams are compared.

    Args:
        pdf: the whole file, which is not encrypted.
        end_at: offset of the last `startxref`.
        history: entries of every number.
        content: gives an object as the structural reader reads it.
        findings: takes the differences.
    """
    # qpdf counts offsets from the header, wherever it is.
    if len(pdf) > QPDF_BYTES_MAX or not pdf.startswith(_HEADER):
        return
    latest = [
        (listings[-1].rank, number, listings[-1].entry)
        for number, listings in history.items()
        if in_use(listings[-1].entry)
    ]
    latest.sort(key=lambda one: one[0], reverse=True)
    used = {number: entry for _, number, entry in latest[:QPDF_OBJECTS_MAX]}
    kind = AmbiguityKind.REREAD_DIFFERS
    try:
        with pikepdf.open(
            io.BytesIO(pdf), suppress_warnings=True, inherit_page_attributes=False
        ) as again:
            for number, entry in used.items():
                # qpdf does not see what the table of a hybrid file hides.
                here = None if number in history.hidden else content(entry)
                if here is not None and not _is_same(again, number, used, here):
                    words = f"qpdf reads another object {number}"
                    findings.add(kind, entry.at, number, words)
            said = [str(one) for one in again.get_warnings()]
    except MemoryError:
        raise
    except Exception:  # noqa: BLE001 (qpdf raises anything for damaged objects)
        findings.add(kind, end_at, None, "qpdf cannot read the file")
        return
    if any("reconstruct" in one for one in said):
        words = "qpdf cannot use the cross-references"
        findings.add(kind, end_at, None, words)


def _is_same(
    again: pikepdf.Pdf,
    number: int,
    used: Mapping[int, Entry],
    here: tuple[bytes, bytes | None],
) -> bool:
    """Return whether qpdf's object has the same names, references and integers."""
    entry = used[number]
    generation = entry.detail if entry.kind == 1 else 0
    other: object = again.get_object(number, generation)
    value, stream = here
    if isinstance(other, pikepdf.Stream):
        if stream is None or other.read_raw_bytes() != stream:
            return False
        other = other.stream_dict
    elif stream is not None:
        return False
    if not isinstance(other, pikepdf.Object):
        # A plain value, which is Python's.
        return (other is None) == (value.strip() == b"null")
    ours, theirs = _parts(value), _parts(other.unparse(resolved=True))
    if theirs - ours <= _ADDED:
        theirs &= ours
    # qpdf leaves out entries that are null, or refer to no object.
    return theirs == ours or (theirs < ours and _has_null(again, value, ours))


def _has_null(again: pikepdf.Pdf, value: bytes, parts: set[bytes]) -> bool:
    """Return whether a part of an object is null (ISO 32000-2, 7.3.10)."""
    references = (one.split() for one in parts if one.endswith(b"R"))
    return b"null" in value or any(
        again.get_object(int(one[0]), int(one[1])) is None
        for one in references
        if one[0].isdigit()
    )


def _parts(value: bytes) -> set[bytes]:
    """Return the names, references and integers of an object."""
    found = {b" ".join(one.split()) for one in _PART.findall(value) if one}
    return {
        _ESCAPE.sub(lambda code: bytes([int(code[1], 16)]), one)
        if one[:1] == b"/"
        else b" ".join(part.lstrip(b"0") or b"0" for part in one.split())
        for one in found
    }


def _generations(listings: list[Listing]) -> set[int]:
    """Return the generations that a number ever had."""
    return {
        one.entry.detail if one.entry.kind == 1 else 0
        for one in listings
        if in_use(one.entry)
    }
