"""Comparison with what pyHanko and qpdf reach.

pyHanko judges what was changed after a signature. If it reads an old object where other
readers read a new one, none, or one of another value, a change escapes it. qpdf is a
reader of another make that has the same objects to show. It reports no places, so their
values are compared.
"""

import io
from collections import defaultdict
from collections.abc import Callable, Sequence
from decimal import Decimal
from typing import Final

import pikepdf
from pyhanko.pdf_utils.generic import Reference
from pyhanko.pdf_utils.reader import PdfFileReader
from pyhanko.pdf_utils.xref import ObjStreamRef, XRefSectionData

from worker.sandbox.structure.ambiguity import (
    AmbiguityKind,
    Findings,
    Steps,
    UsedUpError,
)
from worker.sandbox.structure.checked_reader import (
    CheckedReader,
    ReadDifferentlyError,
)
from worker.sandbox.structure.history import History, Listing, in_use
from worker.sandbox.structure.sections import Entry, Section
from worker.sandbox.structure.tokens import after_blanks
from worker.sandbox.structure.values import ANY, Real, Value, value_at

_STEPS_EACH: Final = 2
QPDF_BYTES_MAX: Final = 104_857_600
QPDF_OBJECTS_MAX: Final = 60
"""Limits of what qpdf reads again: an object takes about 70 microseconds. All appended
objects count; the limit is one of the others, of the latest revisions first."""
_HEADER: Final = b"%PDF-"
_ADDED: Final[tuple[dict[str, Value], ...]] = ({}, {"/Type": "/Catalog"})
"""Entries that qpdf adds."""
_START: Final = b"startxref"
_END_BYTES: Final = 64
_BLANKS: Final = b"\0\t\n\f\r "
_BLANKS_MAX: Final = 4
_STEPS_A_VALUE: Final = 40
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
    listed_in = _listing_sections(opened)
    for number, listings in history.items():
        generations = _generations(listings)
        steps.take(_STEPS_EACH + len(listings) * max(len(generations), 1))
        entry = listings[-1].entry
        for generation in generations:
            ref = Reference(number, generation, opened)
            place = _place_in(listed_in[number], ref)
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


def _listing_sections(opened: PdfFileReader) -> dict[int, list[XRefSectionData]]:
    """Return the sections in which pyHanko finds each number listed, newest first."""
    found: dict[int, list[XRefSectionData]] = defaultdict(list)
    for revision in reversed(range(opened.xrefs.total_revisions)):
        section = opened.xrefs.get_xref_data(revision)
        parts = [section]
        if section.hybrid is not None:
            parts.append(section.hybrid.xref_data)
        numbers: set[int] = set()
        for data in parts:
            numbers.update(data.freed, data.xrefs_in_objstm, data.standard_xrefs)
        for number in numbers:
            found[number].append(section)
    return found


def _place_in(sections: Sequence[XRefSectionData], ref: Reference) -> object:
    """Return where pyHanko finds an object; None for a free or undefined one.

    pyHanko's own search asks all sections, those too that do not list the number. With
    many numbers and many sections its cost is quadratic.

    Args:
        sections: those that list the number, the newest first.
        ref: reference to the object.
    """
    for section in sections:
        try:
            return section.try_resolve(ref)
        except KeyError:
            continue
    return None


def _introduced(history: History, entry: Entry, place: object) -> int:
    """Return the later of an entry and of the place where pyHanko finds its object."""
    if isinstance(place, ObjStreamRef):
        holder = history.entry(place.obj_stream_id)
        place = None if holder is None or holder.kind != 1 else holder.where
    return max(entry.at, place) if isinstance(place, int) else entry.at


def compare_values(
    opened: CheckedReader,
    chain: Sequence[Section],
    begin: int,
    findings: Findings,
    steps: Steps,
) -> None:
    """Report appended objects, and trailers, that pyHanko reads otherwise.

    Args:
        opened: the file as pyHanko reads it.
        chain: sections, the oldest first.
        begin: offset at which the appended sections begin.
        findings: takes the differences.
        steps: budget of the whole file.

    Raises:
        UsedUpError: the budget is used up.
    """
    kind = AmbiguityKind.REREAD_DIFFERS
    for section, trailer in zip(chain, opened.trailers(), strict=False):
        if not opened.is_trailer(section.trailer, trailer):
            words = "pyHanko reads another trailer"
            findings.add(kind, section.trailer, None, words)
        if section.at < begin:
            continue
        for number, entry in section.entries.items():
            if not in_use(entry):
                continue
            steps.take(_STEPS_A_VALUE)
            try:
                opened.read_at(number, *_place(entry))
            except ReadDifferentlyError:
                words = f"pyHanko reads another object {number}"
                findings.add(kind, entry.at, number, words)
            except MemoryError:
                raise
            except Exception:  # noqa: BLE001, S112 (what needs the object fails on it)
                continue


def _place(entry: Entry) -> tuple[int, int | ObjStreamRef]:
    """Return the generation and the place of an object, as pyHanko has them."""
    if entry.kind == 1:
        return entry.detail, entry.where
    return 0, ObjStreamRef(entry.where, entry.detail)


def compare_contents(
    pdf: bytes,
    opened: CheckedReader | None,
    history: History,
    content: Content,
    begin: int,
    findings: Findings,
    steps: Steps,
) -> None:
    """Report objects of the last revision that qpdf reads otherwise.

    All appended objects are compared, and some of the others.

    Args:
        pdf: the whole file.
        opened: the same, opened; None: the file is not encrypted.
        history: entries of every number.
        content: gives an object as the structural reader reads it.
        begin: offset at which the appended sections begin.
        findings: takes the differences.
        steps: budget of the whole file.

    Raises:
        UsedUpError: the file cannot be compared, or the budget is used up.
    """
    if len(pdf) > QPDF_BYTES_MAX:
        raise UsedUpError
    if not pdf.startswith(_HEADER):
        # qpdf counts offsets from the header. pyHanko opens no such file, so that
        # nothing in it is answered with yes.
        return
    latest = [
        (listings[-1].rank, number, listings[-1].entry)
        for number, listings in history.items()
        if in_use(listings[-1].entry)
    ]
    latest.sort(key=lambda one: one[0], reverse=True)
    used = {
        number: entry
        for at, (_, number, entry) in enumerate(latest)
        if at < QPDF_OBJECTS_MAX or entry.at >= begin
    }
    steps.take(_STEPS_A_VALUE * len(used))
    kind = AmbiguityKind.REREAD_DIFFERS
    others: list[int] = []
    # A file that ends in more blanks is repaired for their sake.
    end = pdf[-_END_BYTES:].rstrip(_BLANKS)
    at = len(pdf) - 1 if len(end) < _END_BYTES - _BLANKS_MAX else pdf.rfind(_START)
    try:
        with pikepdf.open(
            io.BytesIO(pdf), suppress_warnings=True, inherit_page_attributes=False
        ) as again:
            for number, entry in used.items():
                # qpdf does not see what the table of a hybrid file hides.
                here = None if number in history.hidden else content(entry)
                if here is not None and not _is_same(
                    again, opened, number, entry, here
                ):
                    others.append(number)
            said = [str(one) for one in again.get_warnings()]
    except (MemoryError, UsedUpError):
        raise
    except Exception:  # noqa: BLE001 (qpdf raises anything for damaged objects)
        findings.add(kind, at, None, "qpdf cannot read the file")
        return
    if any("reconstruct" in one for one in said):
        # Whatever it reads then is not what the entries say.
        words = "qpdf cannot use the cross-references"
        findings.add(kind, at, None, words)
        return
    for number in others:
        words = f"qpdf reads another object {number}"
        findings.add(kind, used[number].at, number, words)


def _is_same(
    again: pikepdf.Pdf,
    opened: CheckedReader | None,
    number: int,
    entry: Entry,
    here: tuple[bytes, bytes | None],
) -> bool:
    """Return whether qpdf's object has the same value, and its stream the same bytes.

    Args:
        again: the file as qpdf reads it.
        opened: the file as pyHanko reads it, which decrypts it; None: it is not
            encrypted.
        number: of the object.
        entry: its entry.
        here: the object as the structural reader reads it.
    """
    generation = entry.detail if entry.kind == 1 else 0
    other: object = again.get_object(number, generation)
    bare, stream = here
    try:
        value, _ = value_at(bare, 0)
        if opened is not None:
            value, plain = opened.decrypted_value(number, *_place(entry))
    except ValueError:
        return True  # what needs the object fails on it
    if isinstance(other, pikepdf.Stream):
        raw = other.read_raw_bytes()
        if stream is None or raw not in {stream, plain if opened else stream}:
            return False
        other = other.stream_dict
    elif stream is not None:
        return False
    if isinstance(other, pikepdf.Object):
        other, _ = value_at(other.unparse(resolved=True), 0)
    elif isinstance(other, Decimal):
        other = float(other)
    return _are_equal(again, value, other)


def _are_equal(again: pikepdf.Pdf, ours: Value, theirs: Value) -> bool:
    """Return whether two values are equal, of which the second one is qpdf's.

    qpdf leaves out entries that are null, or refer to no object (7.3.10), and adds a
    missing /Type to the catalog.
    """
    if ours is ANY:
        return True
    if isinstance(ours, dict) and isinstance(theirs, dict):
        added = {key: theirs[key] for key in theirs.keys() - ours.keys()}
        return added in _ADDED and all(
            _are_equal(again, value, theirs.get(key)) for key, value in ours.items()
        )
    if isinstance(ours, list) and isinstance(theirs, list):
        return len(ours) == len(theirs) and all(
            _are_equal(again, *pair) for pair in zip(ours, theirs, strict=True)
        )
    if isinstance(ours, tuple) and theirs is None:
        return again.get_object(*ours) is None
    if isinstance(ours, Real) or isinstance(theirs, Real):
        return float(ours) == float(theirs)
    return type(ours) is type(theirs) and bool(ours == theirs)


def _generations(listings: list[Listing]) -> set[int]:
    """Return the generations that a number ever had."""
    return {
        one.entry.detail if one.entry.kind == 1 else 0
        for one in listings
        if in_use(one.entry)
    }
