"""Files that are ambiguous in one way each, made by appending one revision.

with upon(pdf):
forged = AMBIGUOUS["page with two contents"][0]()
"""

import functools
import zlib
from base64 import a85encode
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Final

from tests.support.documents import hostile_pdfs
from tests.support.documents.appended_revisions import Appended
from tests.support.documents.hostile_pdfs import CONTENT, PAGE
from tests.support.documents.software_signer import signed
from worker.sandbox.structure import AmbiguityKind

FREE: Final = 90
"""A number that the signed file does not have."""


@functools.cache
def _signed_page() -> bytes:
    return signed(hostile_pdfs.plain())


_BASE: Final[ContextVar[bytes | None]] = ContextVar("_BASE", default=None)


def base() -> bytes:
    """Return the file that is appended to: a signed page, unless `upon` says another.

    4 is the page's content and 3 the page.
    """
    return _BASE.get() or _signed_page()


@contextmanager
def upon(pdf: bytes) -> Iterator[None]:
    """Have files made by appending to another one, which has the same numbers."""
    token = _BASE.set(pdf)
    try:
        yield
    finally:
        _BASE.reset(token)


def with_page(entries: bytes) -> Appended:
    """Return a revision that writes the page with more entries."""
    revision = Appended(base())
    revision.add(3, PAGE[:-2] + entries + b">>")
    return revision


def with_content(body: bytes = CONTENT) -> Appended:
    """Return a revision that writes the page's content."""
    revision = Appended(base())
    revision.add(4, body)
    return revision


def nested_key() -> bytes:
    """Write a key twice in a dictionary of a dictionary."""
    return with_page(b"/Resources<</Font<</F 5 0 R/F 6 0 R>>>>").table()


def key_in_object_stream() -> bytes:
    """Write a key twice in an object stream."""
    revision = Appended(base())
    revision.hold(FREE, {3: PAGE[:-2] + b"/Contents 8 0 R>>"})
    return revision.stream(FREE + 1)


def overlapping_subsections() -> bytes:
    """List the content in two subsections."""
    revision = with_content()
    other = revision.write(FREE, CONTENT)
    return revision.table(more=b"4 1\n%010d 00000 n \n" % other)


def row_of(form: bytes) -> Callable[[], bytes]:
    """Return a maker of a file whose table has one row of this form."""

    def make() -> bytes:
        revision = Appended(base())
        at = revision.write(4, CONTENT)
        return revision.table(more=b"4 1\n" + form % at)

    return make


def pointing(shift: int) -> Callable[[], bytes]:
    """Return a maker of a file whose entry points beside its object."""

    def make() -> bytes:
        revision = Appended(base())
        revision.list(4, revision.write(4, CONTENT) + shift)
        return revision.table()

    return make


def without_offset() -> bytes:
    """List a live number at the offset 0."""
    revision = Appended(base())
    revision.list(4, 0)
    return revision.table()


def at_another_object() -> bytes:
    """List the page where another object is."""
    revision = with_content()
    revision.list(3, revision.write(FREE, PAGE))
    return revision.table()


def after_its_revision() -> bytes:
    """List an object that only a later revision writes."""
    revision = Appended(base())
    place = len(revision.out)
    revision.list(FREE, place + 1_000)
    first = revision.table()
    padded = first + b"%".ljust(place + 999 - len(first), b" ") + b"\n"
    later = Appended(padded)
    later.out += b"%d 0 obj\n<<>>\nendobj\n" % FREE
    later.add(FREE + 1, b"<<>>")
    return later.table()


def freed(generation: int) -> Callable[[], bytes]:
    """Return a maker of a file that frees the content."""

    def make() -> bytes:
        revision = Appended(base())
        revision.list(4, 0, generation, b"f")
        return revision.table()

    return make


def next_generation() -> bytes:
    """Write the content with the next generation, without freeing it."""
    revision = Appended(base())
    revision.add(4, CONTENT, 1)
    return revision.table()


def entry_with_another_generation() -> bytes:
    """List the content with another generation than it has."""
    revision = Appended(base())
    revision.list(4, revision.write(4, CONTENT, 3), 0)
    return revision.table()


def odd_reference() -> bytes:
    """Refer to a generation that the content never had."""
    return with_page(b"/Thumb 4 2 R").table()


def first_generation_of_a_number_without_it() -> bytes:
    """Refer to generation 0 of an object of generation 5."""
    revision = Appended(base())
    revision.add(FREE, CONTENT, 5)
    revision.add(3, PAGE[:-2] + b"/Thumb 90 0 R>>")
    return revision.table()


def used_again_under_its_reference() -> bytes:
    """Free the content, and use its number again; the page refers to it still."""
    later = Appended(freed(1)())
    later.add(4, CONTENT, 1)
    return later.table()


def wrong_index() -> bytes:
    """List the page at the index of another object."""
    revision = Appended(base())
    revision.hold(FREE, {3: PAGE, 91: b"<<>>"})
    revision.entries[3] = (2, FREE, 1)
    return revision.stream(FREE + 2)


def missing_in_stream() -> bytes:
    """List the page in a stream without it."""
    revision = Appended(base())
    revision.hold(FREE, {91: b"<<>>"})
    revision.entries[3] = (2, FREE, 5)
    return revision.stream(FREE + 2)


def overlapping_in_stream() -> bytes:
    """Begin an object of a stream within the one before it."""
    revision = Appended(base())
    revision.hold(FREE, {3: PAGE, 91: b"<<>>"}, header=b"3 0 91 9")
    return revision.stream(FREE + 2)


def held(header: bytes = b"3 0", entries: bytes = b"") -> bytes:
    """Hold the page in an object stream.

    Args:
        header: of the stream, in place of the right one.
        entries: of its dictionary, in place of those of Flate; its rows have a
            predictor if they name one.
    """
    head = header + b" "
    data = head + PAGE + b" "
    if b"Predictor" in entries:
        data = b"\0" + data
        entries = entries.replace(b"/Columns 0", b"/Columns %d" % (len(data) - 1))
    packed = zlib.compress(data)
    if b"85" in entries:
        packed = a85encode(data) + b"~>"
    elif b"Hex" in entries:
        packed = data.hex().encode() + b">"
    elif b"/FlateDecode/FlateDecode" in entries:
        packed = zlib.compress(packed)
    elif b"Fl" not in entries and entries:
        packed = data
    revision = Appended(base())
    revision.add(
        FREE,
        b"<</Type/ObjStm/N 1/First %d%s/Length %d>>stream\n%s\nendstream"
        % (len(head), entries or _FLATE, len(packed), packed),
    )
    revision.entries[3] = (2, FREE, 0)
    return revision.stream(FREE + 2)


_FLATE: Final = b"/Filter/FlateDecode"
_PARAMETERS: Final = b"<</Predictor 15/Columns 0>>"
READ_ALIKE: Final = {
    "plain": held(),
    "no filter": held(entries=b"/Filter[]"),
    "short name": held(entries=b"/Filter/Fl"),
    "array": held(entries=b"/Filter[/FlateDecode]"),
    "array with blanks": held(entries=b"/Filter[ %x\n/FlateDecode\0]"),
    "array and array": held(
        entries=b"/Filter[/FlateDecode]/DecodeParms[%s]" % _PARAMETERS
    ),
    "name and dictionary": held(
        entries=b"/Filter/FlateDecode/DecodeParms" + _PARAMETERS
    ),
    "null": held(entries=_FLATE + b"/DecodeParms null"),
    "array of null": held(entries=b"/Filter[/FlateDecode]/DecodeParms[null]"),
    "null for an array": held(entries=b"/Filter[/FlateDecode]/DecodeParms null"),
    "array and no parameters": held(
        entries=b"/Filter[/FlateDecode]/DecodeParms<</Columns 1>>"
    ),
    "NUL in the header": held(b"3\x000"),
    "form feed in the header": held(b"3\x0c0"),
    "lines in the header": held(b"\r\n3\r\n0\t"),
}
READ_DIFFERENTLY: Final = {
    "vertical tab in the header": held(b"3\x0b0"),
    "no-break space in the header": held(b"3\xa00"),
    "file separator in the header": held(b"3\x1c0"),
    "digit of another script in the header": held("3 \u0660".encode()),
    "sign in the header": held(b"3 +0"),
    "underscore in the header": held(b"3 0_0"),
    "comment in the header": held(b"3 %x\n0"),
    "real number in the header": held(b"3 0.0"),
    "base 85": held(entries=b"/Filter/ASCII85Decode"),
    "short name of base 85": held(entries=b"/Filter/A85"),
    "hexadecimal": held(entries=b"/Filter/ASCIIHexDecode"),
    "two filters": held(entries=b"/Filter[/FlateDecode/FlateDecode]"),
    "array of an array": held(entries=b"/Filter[[/FlateDecode]]"),
    "vertical tab in the filter": held(entries=b"/Filter/FlateDecode\x0b"),
    "reference": held(entries=b"/Filter 3 0 R/X/Fl"),
    "array and dictionary": held(
        entries=b"/Filter[/FlateDecode]/DecodeParms" + _PARAMETERS
    ),
    "name and array": held(
        entries=b"/Filter/FlateDecode/DecodeParms[%s]" % _PARAMETERS
    ),
    "array of an array of parameters": held(
        entries=b"/Filter[/FlateDecode]/DecodeParms[[%s]]" % _PARAMETERS
    ),
    "more parameters than filters": held(
        entries=b"/Filter[/FlateDecode]/DecodeParms[%s null]" % _PARAMETERS
    ),
    "parameters in another key": held(entries=_FLATE + b"/DP" + _PARAMETERS),
}


def twice_in_stream() -> bytes:
    """Hold the page twice in one stream."""
    revision = Appended(base())
    header = b"3 0 3 %d" % (len(PAGE) + 1)
    revision.hold(FREE, {3: PAGE, 91: PAGE}, header=header)
    del revision.entries[91]
    return revision.stream(FREE + 2)


def stream_replaced_under_its_objects() -> bytes:
    """Replace an object stream, but not the entries of its objects."""
    revision = Appended(base())
    revision.hold(FREE, {3: PAGE})
    later = Appended(revision.stream(FREE + 2))
    later.hold(FREE, {91: PAGE[:-2] + b"/Rotate 90>>"})
    return later.stream(FREE + 3)


def second_object_in_stream() -> bytes:
    """Hold a page in a stream, and list another one."""
    revision = Appended(base())
    revision.hold(FREE, {3: PAGE, 91: b"<<>>"})
    revision.list(3, revision.write(3, PAGE))
    return revision.stream(FREE + 2)


def hybrid(table_kind: bytes, generation: int) -> Callable[[], bytes]:
    """Return a maker of a file whose table and stream both list the content."""

    def make() -> bytes:
        revision = Appended(base())
        at = revision.write(4, CONTENT)
        other = revision.write(4, CONTENT.replace(b"100 100", b"200 300"))
        revision.entries[4] = (1, other, 0)
        stream_at = len(revision.out)
        revision.stream(FREE, starts=False)
        where = at if table_kind == b"n" else 0
        row = b"4 1\n%010d %05d %s \n" % (where, generation, table_kind)
        return revision.table(more=row, trailer=b"/XRefStm %d" % stream_at)

    return make


def inside_another_object() -> bytes:
    """List an object that is the content of a stream."""
    revision = Appended(base())
    inner = b"4 0 obj\n%s\nendobj\n" % CONTENT
    at = revision.add(
        FREE, b"<</Length %d>>stream\n%s\nendstream" % (len(inner), inner)
    )
    revision.list(4, revision.out.index(b"4 0 obj", at + 10))
    return revision.table()


def unlisted() -> bytes:
    """Write the content without listing it."""
    revision = Appended(base())
    revision.write(4, CONTENT)
    revision.add(FREE, b"<<>>")
    return revision.table()


def pointing_at_the_revision_before() -> bytes:
    """Name the earlier section in `startxref`."""
    revision = with_content()
    return revision.table(shift=revision.previous - len(revision.out))


def of_two_the_older() -> bytes:
    """Leave the last revision out."""
    first = Appended(with_content().table())
    first.previous = Appended(base()).previous
    first.add(FREE, b"<<>>")
    return first.table()


def looping() -> bytes:
    """Name the section itself in `/Prev`."""
    revision = with_content()
    return revision.table(prev=b"/Prev %d" % len(revision.out))


def sized(length: bytes) -> Callable[[], bytes]:
    """Return a maker of a file whose content has this `/Length`."""

    def make() -> bytes:
        return with_content(CONTENT.replace(b"/Length 18", length)).table()

    return make


def within_a_line() -> bytes:
    """Write a digit before the last `startxref`."""
    head, keyword, tail = with_content().table().rpartition(b"startxref")
    return head + b"8" + keyword + tail


def sized_trailer(entry: bytes) -> Callable[[], bytes]:
    """Return a maker of a file with another `/Size` in its last trailer."""
    return lambda: with_content().table().replace(b"/Size 1000", entry)


def numbered_as_content() -> bytes:
    """Write a cross-reference stream of number 4 that lists itself as another one."""
    revision = Appended(base())
    revision.add(FREE, b"<<>>")
    return revision.stream(FREE + 1).replace(b"\n91 0 obj", b"\n4 0 obj")


def hybrid_with_prev() -> bytes:
    """Write a stream at `/XRefStm` whose `/Prev` is not the trailer's."""
    revision = Appended(base())
    revision.add(3, PAGE)
    stream_at = len(revision.out)
    revision.stream(FREE, starts=False)
    revision.out = revision.out.replace(
        b"/Prev %d/Length" % revision.previous, b"/Prev %d/Length" % (stream_at - 9)
    )
    return revision.table(trailer=b"/XRefStm %d" % stream_at)


def of_linearized_length() -> bytes:
    """Append to a file whose first object gives the length that it then has."""
    revision = Appended(hostile_pdfs.plain(b"/Linearized 1/L 0000000000"))
    revision.add(4, CONTENT)
    made = revision.table()
    return made.replace(b"/L 0000000000", b"/L %010d" % len(made))


def stray() -> bytes:
    """Write a line of no object before the content."""
    revision = Appended(base())
    revision.out += b"a stray line\n"
    revision.add(4, CONTENT)
    return revision.table()


def hidden_after_length() -> bytes:
    """Write content after the first `endstream`."""
    body = b"<</Length 2>>stream\nq \nendstream\n0 0 9 9 re f\nendstream"
    return with_content(body).table()


def changed_length() -> bytes:
    """Change the object that a stream's `/Length` refers to."""
    revision = with_content(CONTENT.replace(b"/Length 18", b"/Length 90 0 R"))
    revision.add(FREE, b"18")
    later = Appended(revision.table())
    later.add(FREE, b"4")
    return later.table()


AMBIGUOUS: Final[dict[str, tuple[Callable[[], bytes], AmbiguityKind]]] = {
    "page with two contents": (
        lambda: with_page(b"/Contents 90 0 R").table(),
        AmbiguityKind.REPEATED_KEY,
    ),
    "the same key escaped": (
        lambda: with_page(b"/#43ontents 90 0 R").table(),
        AmbiguityKind.REPEATED_KEY,
    ),
    "a key twice further in": (nested_key, AmbiguityKind.REPEATED_KEY),
    "a key twice in an object stream": (
        key_in_object_stream,
        AmbiguityKind.REPEATED_KEY,
    ),
    "two roots": (
        lambda: with_content().table(trailer=b"/Root 2 0 R"),
        AmbiguityKind.REPEATED_KEY,
    ),
    "two roots in a stream": (
        lambda: with_content().stream(FREE, trailer=b"/Root 2 0 R"),
        AmbiguityKind.REPEATED_KEY,
    ),
    "overlapping subsections": (overlapping_subsections, AmbiguityKind.LISTED_TWICE),
    "overlapping ranges": (
        lambda: with_content().stream(FREE, more=[(4, (1, 15, 0))]),
        AmbiguityKind.LISTED_TWICE,
    ),
    "row of 19 bytes": (row_of(b"%010d 00000 n\n"), AmbiguityKind.ENTRY_FORM),
    "row of another type": (row_of(b"%010d 00000 N \n"), AmbiguityKind.ENTRY_FORM),
    "row with a sign": (row_of(b"+%09d 00000 n \n"), AmbiguityKind.ENTRY_FORM),
    "row missing": (
        row_of(b"%010d 00000 n \n5 2\n0000000000 00000 f \n"),
        AmbiguityKind.ENTRY_FORM,
    ),
    "type 3 in a stream": (
        lambda: with_content().stream(FREE, more=[(91, (3, 15, 0))]),
        AmbiguityKind.ENTRY_FORM,
    ),
    "free entry at the head of a section from 1": (
        lambda: Appended(base()).table(more=b"1 1\n0000000000 00001 f \n"),
        AmbiguityKind.ENTRY_FORM,
    ),
    "two bytes before the object": (pointing(-2), AmbiguityKind.WRONG_OFFSET),
    "one byte into the object": (pointing(1), AmbiguityKind.WRONG_OFFSET),
    "at another object": (at_another_object, AmbiguityKind.WRONG_OFFSET),
    "no offset for a live number": (without_offset, AmbiguityKind.WRONG_OFFSET),
    "after its revision": (after_its_revision, AmbiguityKind.WRONG_OFFSET),
    "freed for ever": (freed(65_535), AmbiguityKind.WRONG_GENERATION),
    "freed with its own generation": (freed(0), AmbiguityKind.WRONG_GENERATION),
    "next generation without freeing": (
        next_generation,
        AmbiguityKind.WRONG_GENERATION,
    ),
    "entry of another generation": (
        entry_with_another_generation,
        AmbiguityKind.WRONG_GENERATION,
    ),
    "reference to a generation that never was": (
        odd_reference,
        AmbiguityKind.WRONG_GENERATION,
    ),
    "reference to generation 0 that never was": (
        first_generation_of_a_number_without_it,
        AmbiguityKind.WRONG_GENERATION,
    ),
    "used again": (used_again_under_its_reference, AmbiguityKind.WRONG_GENERATION),
    "object 0": (
        lambda: with_content().stream(FREE, more=[(0, (1, 15, 0))]),
        AmbiguityKind.ENTRY_FORM,
    ),
    "wrong index": (wrong_index, AmbiguityKind.OBJECT_STREAM),
    "not in the stream": (missing_in_stream, AmbiguityKind.OBJECT_STREAM),
    "objects of a stream overlap": (
        overlapping_in_stream,
        AmbiguityKind.OBJECT_STREAM,
    ),
    "twice in a stream": (twice_in_stream, AmbiguityKind.LISTED_TWICE),
    "stream replaced": (
        stream_replaced_under_its_objects,
        AmbiguityKind.OBJECT_STREAM,
    ),
    "second object in a stream": (
        second_object_in_stream,
        AmbiguityKind.UNLISTED_OBJECT,
    ),
    "table and stream": (hybrid(b"n", 0), AmbiguityKind.HYBRID_CONFLICT),
    "freed in the table": (hybrid(b"f", 1), AmbiguityKind.HYBRID_CONFLICT),
    "hidden in the table": (hybrid(b"f", 65_535), AmbiguityKind.HYBRID_CONFLICT),
    "inside a stream": (inside_another_object, AmbiguityKind.OVERLAP),
    "unlisted": (unlisted, AmbiguityKind.UNLISTED_OBJECT),
    "startxref early": (
        lambda: with_content().table(shift=-1),
        AmbiguityKind.INEXACT_STARTXREF,
    ),
    "startxref late": (
        lambda: with_content().table(shift=1),
        AmbiguityKind.INEXACT_STARTXREF,
    ),
    "startxref back": (
        pointing_at_the_revision_before,
        AmbiguityKind.INEXACT_STARTXREF,
    ),
    "integer of 19 digits": (
        lambda: with_content().table(trailer=b"/X " + b"9" * 19),
        AmbiguityKind.SYNTAX,
    ),
    "filter in /F": (
        lambda: with_content().stream(FREE, trailer=b"/F null"),
        AmbiguityKind.ENTRY_FORM,
    ),
    "no Size": (sized_trailer(b""), AmbiguityKind.INEXACT_PREV),
    "Size is real": (sized_trailer(b"/Size 90.5"), AmbiguityKind.INEXACT_PREV),
    "Size too large": (sized_trailer(b"/Size 9000000"), AmbiguityKind.INEXACT_PREV),
    "number too large": (
        lambda: with_content().table(more=b"4194305 1\n0000000000 00000 f \n"),
        AmbiguityKind.ENTRY_FORM,
    ),
    "number too large, of no entry": (
        lambda: with_content().table(more=b"4194305 0\n"),
        AmbiguityKind.ENTRY_FORM,
    ),
    "long line of a subsection": (
        lambda: with_content().table(more=b"95 1%s\n" % (b" " * 50)),
        AmbiguityKind.ENTRY_FORM,
    ),
    "object 0 in use": (
        lambda: with_content().table(more=b"0 1\n0000000000 65535 n \n"),
        AmbiguityKind.ENTRY_FORM,
    ),
    "stream numbered as the content": (
        numbered_as_content,
        AmbiguityKind.SECTION_NUMBER,
    ),
    "Prev of XRefStm": (hybrid_with_prev, AmbiguityKind.INEXACT_PREV),
    "Prev beside": (
        lambda: with_content().table(
            prev=b"/Prev %d" % (Appended(base()).previous - 1)
        ),
        AmbiguityKind.INEXACT_PREV,
    ),
    "Prev indirect": (
        lambda: with_content().table(prev=b"/Prev 90 0 R"),
        AmbiguityKind.INEXACT_PREV,
    ),
    "Prev of itself": (looping, AmbiguityKind.INEXACT_PREV),
    "XRefStm beside": (
        lambda: with_content().table(trailer=b"/XRefStm 17"),
        AmbiguityKind.INEXACT_PREV,
    ),
    "no Prev": (
        lambda: with_content().table(prev=b""),
        AmbiguityKind.SKIPPED_SECTION,
    ),
    "Prev leaves one out": (of_two_the_older, AmbiguityKind.SKIPPED_SECTION),
    "no root": (lambda: with_content().table(root=b""), AmbiguityKind.TRAILER),
    "direct root": (
        lambda: with_content().table(root=b"/Root<</Type/Catalog/Pages 2 0 R>>"),
        AmbiguityKind.TRAILER,
    ),
    "encrypted from now on": (
        lambda: with_content().table(trailer=b"/Encrypt 90 0 R"),
        AmbiguityKind.TRAILER,
    ),
    "bytes after the end": (
        lambda: with_content().table(end=b"4 0 obj<<>>endobj"),
        AmbiguityKind.NOT_AT_END,
    ),
    "a comment after the end": (
        lambda: with_content().table(end=b"% 4 0 obj"),
        AmbiguityKind.NOT_AT_END,
    ),
    "no end": (
        lambda: with_content().table().removesuffix(b"%%EOF\n"),
        AmbiguityKind.NOT_AT_END,
    ),
    "startxref in a comment": (
        lambda: with_content().table(end=b"%startxref\n15\n%%EOF\n"),
        AmbiguityKind.NOT_AT_END,
    ),
    "startxref within a line": (within_a_line, AmbiguityKind.NOT_AT_END),
    "shorter": (sized(b"/Length 2"), AmbiguityKind.STREAM_LENGTH),
    "longer": (sized(b"/Length 2000"), AmbiguityKind.STREAM_LENGTH),
    "no length": (sized(b""), AmbiguityKind.STREAM_LENGTH),
    "length of no object": (sized(b"/Length 95 0 R"), AmbiguityKind.STREAM_LENGTH),
    "length changed later": (changed_length, AmbiguityKind.STREAM_LENGTH),
    "second endstream": (hidden_after_length, AmbiguityKind.SYNTAX),
    "key without a value": (
        lambda: with_page(b"/Thumb/A/B").table(),
        AmbiguityKind.SYNTAX,
    ),
    "two values": (
        lambda: with_content(b"<</A 1>> <</A 2>>").table(),
        AmbiguityKind.SYNTAX,
    ),
}
"""Appended revisions: name, maker, and the kind that it has to be called."""
