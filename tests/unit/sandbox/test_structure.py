"""Structural reader on files that are ambiguous in one way each."""

import hashlib
import re
import zlib
from collections.abc import Callable
from typing import Final

import pytest

from tests.support.documents import hostile_pdfs
from tests.support.documents.ambiguous_pdfs import (
    AMBIGUOUS,
    FREE,
    READ_ALIKE,
    READ_DIFFERENTLY,
    base,
    freed,
    of_linearized_length,
    pointing,
    stray,
    with_content,
    with_page,
)
from tests.support.documents.appended_revisions import Appended
from tests.support.documents.growth import MOST, growth
from tests.support.documents.hostile_pdfs import CONTENT, PAGE
from worker.sandbox.structure import (
    APPENDED_ONLY,
    AmbiguityKind,
    CheckedReader,
    Structure,
    read_structure,
)
from worker.sandbox.structure.ambiguity import AMBIGUITIES_MAX

BASE: Final = base()


def read(pdf: bytes) -> Structure:
    """Read a file as the verifier does, with pyHanko's reader where it opens."""
    try:
        opened = CheckedReader(pdf)
        if opened.encrypted:
            opened.decrypt("")
    except Exception:  # noqa: BLE001 (pyHanko raises anything for forged files)
        return read_structure(pdf)
    return read_structure(pdf, opened)


@pytest.mark.parametrize("name", AMBIGUOUS)
def test_appended_ambiguity_is_found_after_the_signed_bytes(name: str) -> None:
    """Each kind is found, and nothing of it is blamed on the signed revision."""
    make, kind = AMBIGUOUS[name]
    pdf = make()

    structure = read(pdf)

    assert kind in {one.kind for one in structure.ambiguities}
    assert structure.examined
    assert min(one.at for one in structure.ambiguities) >= len(BASE)
    assert max(one.at for one in structure.ambiguities) <= len(pdf)


def _held() -> bytes:
    revision = Appended(BASE)
    revision.hold(FREE, {3: PAGE, 91: b"[1 2]", 92: b"12"})
    return revision.stream(FREE + 3)


def _used_again() -> bytes:
    later = Appended(freed(1)())
    later.add(4, CONTENT, 1)
    later.add(3, PAGE.replace(b"/Contents 4 0 R", b"/Contents 4 1 R"))
    return later.table()


def _stranger() -> bytes:
    revision = with_content()
    revision.write(95, b"<<>>")
    return revision.table()


def _commented() -> bytes:
    revision = Appended(BASE)
    revision.out += b"% 4 0 obj << >> endobj\n\r\n \t% startxref\n"
    revision.add(4, CONTENT)
    return revision.table(end=b"\r\n \n")


def _measured() -> bytes:
    revision = with_content(CONTENT.replace(b"/Length 18", b"/Length 90 0 R"))
    revision.add(FREE, b"18")
    return revision.table()


def _shifted() -> bytes:
    pdf = hostile_pdfs.plain()
    moved = re.sub(
        rb"(\d{10})(?= 00000 n)", lambda one: b"%010d" % (int(one[1]) + 6), pdf
    )
    start = int(re.findall(rb"startxref\n(\d+)", pdf)[-1])
    return b"junk\r\n" + moved.replace(
        b"startxref\n%d" % start, b"startxref\n%d" % (start + 6)
    )


UNAMBIGUOUS: Final[dict[str, Callable[[], bytes]]] = {
    "plain": lambda: BASE,
    "new content": lambda: with_content().table(),
    "by a stream": lambda: with_content().stream(FREE),
    "in an object stream": _held,
    "equal values": lambda: with_page(b"/Rotate 0/Rotate  0").table(),
    "white space before the object": pointing(-1),
    "size": lambda: with_content().table().replace(b"/Size 1000", b"/Size 4"),
    "freed": freed(1),
    "freed and used again": _used_again,
    "offset 0": lambda: Appended(BASE).table(more=b"95 1\n0000000000 00000 n \n"),
    "undefined reference": lambda: with_page(b"/Thumb 95 0 R").table(),
    "unlisted stranger": _stranger,
    "comments": _commented,
    "indirect length": _measured,
    "hybrid": hostile_pdfs.hybrid,
    "carriage returns": lambda: with_content().table().replace(b" n \n", b" n \r"),
    "deeply nested text": lambda: with_page(b"/T(a(b(c(d\\)))))").table(),
    "bytes before": _shifted,
}


@pytest.mark.parametrize("name", UNAMBIGUOUS)
def test_honest_structure_is_not_ambiguous(name: str) -> None:
    """Structure that all readers read alike, however odd."""
    structure = read(UNAMBIGUOUS[name]())

    assert [
        each for each in structure.ambiguities if each.kind not in APPENDED_ONLY
    ] == []
    assert structure.examined


def hiding(body: bytes) -> bytes:
    """Write an object that is not the content, with the content in it."""
    revision = with_content()
    revision.add(FREE, body)
    return revision.table()


_INNER: Final = b"\n4 0 obj\n" + CONTENT + b"\nendobj\n"
REPAIRED: Final[dict[str, tuple[bytes, AmbiguityKind]]] = {
    "in a stream": (
        b"<</Length %d>>stream\n%s\nendstream" % (len(_INNER), _INNER),
        AmbiguityKind.HIDDEN_OBJECT,
    ),
    "in a string": (b"(" + _INNER + b")", AmbiguityKind.HIDDEN_OBJECT),
    "in a string, trailer": (
        b"(trailer <</Root 9 0 R>>)",
        AmbiguityKind.HIDDEN_OBJECT,
    ),
    "in an object stream that no entry names": (
        b"<</Type/ObjStm/N 1/First 4/Length 10>>stream\n4 0 (text)\nendstream",
        AmbiguityKind.HIDDEN_OBJECT,
    ),
    "between objects, with a comment": (
        b"<<>>\nendobj\n4%\n0 obj\n" + CONTENT,
        AmbiguityKind.HIDDEN_OBJECT,
    ),
    "between objects, generation of six digits": (
        b"<<>>\nendobj\n4 000000 obj\n" + CONTENT,
        AmbiguityKind.HIDDEN_OBJECT,
    ),
    "between objects, number of twelve digits": (
        b"<<>>\nendobj\n000000000004 0 obj\n" + CONTENT,
        AmbiguityKind.HIDDEN_OBJECT,
    ),
    "between objects, trailer": (
        b"<<>>\nendobj\ntrailer\n<</Root 9 0 R>>\n91 0 obj\nnull",
        AmbiguityKind.HIDDEN_OBJECT,
    ),
    "between objects, a real number": (
        b"<<>>\nendobj\n4.0 0 obj\n" + CONTENT,
        AmbiguityKind.UNKNOWN_BYTES,
    ),
}


@pytest.mark.parametrize("name", READ_ALIKE)
def test_stream_that_readers_decode_alike_is_not_ambiguous(name: str) -> None:
    """Its header and its filter have one meaning."""
    assert read(READ_ALIKE[name]).ambiguities == ()


@pytest.mark.parametrize("name", READ_DIFFERENTLY)
def test_stream_that_readers_decode_differently_is_ambiguous(name: str) -> None:
    """By white space and digits of Python, or by filters and their parameters."""
    kinds = {one.kind for one in read(READ_DIFFERENTLY[name]).ambiguities}

    assert kinds & {AmbiguityKind.OBJECT_STREAM, AmbiguityKind.SYNTAX}


NAMES: Final = {
    "NUL": b"#00",
    "NUL within": b"#00b",
    "no digits": b"#5Z",
    "one digit": b"#5",
    "number sign": b"#",
    "80": b"\x80",
    "FF": b"b\xffb",
}


@pytest.mark.parametrize("kind", NAMES)
@pytest.mark.parametrize("entry", [b"/A%s 1", b"/A/B%s", b"/A[/B%s]", b"/A<</B%s 1>>"])
def test_name_that_readers_end_differently_is_ambiguous(
    kind: str, entry: bytes
) -> None:
    """As a key or a value, within an array or a dictionary."""
    odd = with_page(entry.replace(b"%s", NAMES[kind]))

    assert AmbiguityKind.SYNTAX in {one.kind for one in read(odd.table()).ambiguities}


@pytest.mark.parametrize(
    "name", [b"/A#42 1", b"/A#c3#b1 1", b"/\xc3\xb1/x", b"/-.+*_ 1"]
)
def test_name_of_other_bytes_is_not_ambiguous(name: bytes) -> None:
    """Names of other languages, escaped or not, are read alike."""
    assert read(with_page(name).table()).ambiguities == ()


def test_linearized_length_of_an_appended_file_is_ambiguous() -> None:
    """Poppler and pdf.js read the first section of such a file, others the last."""
    made = of_linearized_length()
    kinds = {one.kind: one.at for one in read(made).ambiguities}

    assert kinds == {AmbiguityKind.LINEARIZED: made.rindex(b"startxref")}


@pytest.mark.parametrize("name", REPAIRED)
def test_what_only_a_repair_finds_is_reported(name: str) -> None:
    """Readers that search the whole file take these for objects."""
    body, kind = REPAIRED[name]

    assert kind in {each.kind for each in read(hiding(body)).ambiguities}


def test_hidden_objects_displace_no_other_finding() -> None:
    """An attached file has thousands of objects, and one key stands twice."""
    body = b"(" + b"4 0 obj " * 20_000 + b")"
    structure = read(hiding(body + b"\nendobj\n92 0 obj\n<</A 1/A 2>>"))

    assert structure.examined
    assert len(structure.ambiguities) <= 2 * AMBIGUITIES_MAX
    assert AmbiguityKind.HIDDEN_OBJECT in {each.kind for each in structure.ambiguities}


def test_stray_bytes_count_in_what_is_appended() -> None:
    """They are no doubt on what was signed."""
    kinds = {each.kind for each in read(stray()).ambiguities}

    assert kinds == {AmbiguityKind.UNKNOWN_BYTES}
    assert kinds <= APPENDED_ONLY


def shared_length(streams: int) -> bytes:
    """Write streams whose length is one object, listed in many revisions."""
    revision = Appended(BASE)
    length = revision.add(FREE, b"18")
    for number in range(100, 100 + streams):
        body = CONTENT.replace(b"/Length 18", b"/Length %d 0 R" % FREE)
        revision.add(number, body)
    pdf = revision.table()
    for _ in range(streams // 10):
        again = Appended(pdf)
        again.list(FREE, length)
        pdf = again.table()
    return pdf


def replaced_streams(count: int) -> bytes:
    """List one object stream and its objects in many revisions."""
    revision = Appended(BASE)
    revision.hold(FREE, dict.fromkeys(range(100, 100 + count), b"1"))
    rows = dict(revision.entries)
    pdf = revision.stream(5_000)
    for number in range(count):
        again = Appended(pdf)
        again.entries = dict(rows)
        pdf = again.stream(5_001 + number)
    return pdf


def test_numbers_are_asked_by_revision() -> None:
    """A number that a later revision defines was not defined before it."""
    revision = Appended(BASE)
    revision.add(FREE, b"<<>>")
    second = revision.table()
    third = Appended(second)
    third.list(FREE, 0, 1, b"f")
    structure = read(third.table())

    assert not structure.is_defined(FREE, len(BASE))
    assert structure.is_defined(FREE, len(second))
    assert not structure.is_defined(FREE, len(third.table()))
    assert structure.is_defined(3, len(BASE))
    assert not structure.is_defined(95, len(second))


def test_numbers_in_object_streams_are_asked_by_revision() -> None:
    """A number in an object stream is defined from its revision on."""
    revision = Appended(BASE)
    revision.hold(FREE, {91: b"<<>>"})
    structure = read(revision.stream(FREE + 3))

    assert structure.is_defined(91, len(revision.out))
    assert not structure.is_defined(91, len(BASE))


def bomb() -> bytes:
    """Return a file with an object stream that unfolds to 300 MiB."""
    revision = Appended(BASE)
    deflate = zlib.compressobj(1)
    data = b"".join(deflate.compress(bytes(1_048_576)) for _ in range(300))
    data += deflate.flush()
    entries = b"/N 1/First 4/Filter/FlateDecode/Length %d" % len(data)
    revision.add(FREE, b"<</Type/ObjStm%s>>stream\n%s\nendstream" % (entries, data))
    revision.entries[91] = (2, FREE, 0)
    return revision.stream(FREE + 3)


def xref_bomb() -> bytes:
    """Return a file with cross-references that unfold to 300 MiB."""
    deflate = zlib.compressobj(1)
    data = b"".join(deflate.compress(bytes(1_048_576)) for _ in range(300))
    data += deflate.flush()
    pdf = b"%PDF-1.7\n"
    return pdf + (
        b"1 0 obj\n<</Type/XRef/W[1 4 2]/Size 44939946/Root 2 0 R/Length %d"
        b"/Filter/FlateDecode>>stream\n%s\nendstream\nendobj\n"
        b"startxref\n%d\n%%%%EOF\n" % (len(data), data, len(pdf))
    )


HOSTILE: Final[dict[str, Callable[[], bytes]]] = {
    "nested": hostile_pdfs.nested_arrays,
    "bomb in the objects": bomb,
    "bomb in the cross-references": xref_bomb,
    "many objects": lambda: hostile_pdfs.build(
        dict.fromkeys(range(1, 100_000), b"<<>>")
    ),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_file_is_given_up(name: str) -> None:
    """A file that exceeds the budget ends as not examined, never as an exception."""
    assert not read_structure(HOSTILE[name]()).examined


@pytest.mark.parametrize(
    "pdf",
    [
        b"",
        b"%PDF-1.7\n",
        b"startxref\n9\n%%EOF",
        hostile_pdfs.loop_of_previous(),
        hostile_pdfs.unknown_encryption(),
        hostile_pdfs.edited_xref(rb"0 5\n", b"0 999999999\n"),
        b"startxref " * 9_999,
        b"1 0 obj " * 9_999 + b"startxref 0 %%EOF",
    ],
)
def test_damaged_file_is_read_without_an_exception(pdf: bytes) -> None:
    """A file that is no PDF at all gives an answer as well."""
    read_structure(pdf)


def _unclosed(count: int) -> bytes:
    """Return many objects, each of which is a string without an end."""
    return _listed([b"(" for _ in range(count)])


def _listed(bodies: list[bytes]) -> bytes:
    return hostile_pdfs.build(dict(enumerate(bodies, 1)))


def _revisions(count: int) -> bytes:
    pdf = hostile_pdfs.plain()
    for number in range(count):
        revision = Appended(pdf)
        revision.add(FREE + number, b"<<>>")
        pdf = revision.table()
    return pdf


READERS: Final[dict[str, tuple[Callable[[int], bytes], int]]] = {
    "objects": (lambda n: _listed([b"<</A 1/B[1 2]>>"] * n), 4_000),
    "keys": (
        lambda n: _listed([b"<<" + b"".join(b"/K%d 1" % k for k in range(n)) + b">>"]),
        20_000,
    ),
    "equal keys": (lambda n: _listed([b"<<" + b"/K [1 2]" * n + b">>"]), 2_000),
    "numbers": (lambda n: _listed([b"[" + b"1 " * n + b"]"]), 100_000),
    "blanks": (lambda n: _listed([b"1" + b" " * n + b"1" + b" " * n]), 200_000),
    "garbage": (lambda n: hostile_pdfs.plain() + b"1 1 " * n, 50_000),
    "parentheses": (lambda n: _listed([b"(" * n + b")" * n]), 50_000),
    "revisions": (_revisions, 100),
    "hidden objects": (lambda n: hiding(b"(" + b"4 0 obj " * n + b")"), 20_000),
}


@pytest.mark.parametrize("name", READERS)
def test_time_grows_with_the_file(name: str) -> None:
    """Twice the input takes about twice the time."""
    make, size = READERS[name]
    made = {count: make(count) for count in (size, 2 * size)}

    assert growth(lambda n: read_structure(made[n]), size) < MOST


def _renumbered(count: int) -> bytes:
    """Free numbers and use them again, with as many revisions before and after."""
    pdf = BASE
    rounds = (0, b"n"), (1, b"f"), (1, b"n")
    for generation, kind in rounds:
        revision = Appended(pdf)
        for number in range(FREE, FREE + count):
            at = 0
            if kind == b"n":
                at = revision.write(number, b"null", generation)
            revision.list(number, at, generation, kind)
        pdf = revision.table()
        out, previous = bytearray(pdf), Appended(pdf).previous
        for _ in range(count):
            start = len(out)
            out += (
                b"xref\n0 1\n0000000000 65535 f \ntrailer\n"
                b"<</Size 999999/Root 1 0 R/Prev %d>>\nstartxref\n%d\n%%%%EOF\n"
                % (previous, start)
            )
            previous = start
        pdf = bytes(out)
    return pdf


def test_time_grows_with_objects_and_revisions() -> None:
    """Twice as many of both take about twice the time, not four times."""
    made = {count: _renumbered(count) for count in (200, 400)}

    assert read(made[200]).examined
    assert growth(lambda n: read(made[n]), 200) < MOST


@pytest.mark.parametrize(
    "pdf", [shared_length(1_000), replaced_streams(60)], ids=["length", "streams"]
)
def test_budget_bounds_what_is_listed_again_and_again(pdf: bytes) -> None:
    """A length of many streams, or an object stream, that many revisions list."""
    assert read_structure(pdf).examined
    assert not read_structure(pdf, steps=100_000).examined


def test_budget_bounds_what_is_read_again_and_again() -> None:
    """Strings that never end are scanned to the end of the file, each of them."""
    structure = read_structure(_unclosed(20_000), steps=300_000)

    assert not structure.examined


_PARTS: Final = (
    *(b"<<", b">>", b"[", b"(", b")", b"%", b"/", b"obj", b"endobj", b"stream\n"),
    *(b"endstream", b"xref\n", b"trailer", b"startxref\n", b"%%EOF", b"\0", b"\r"),
    *(b"/Prev 1", b"/Length 9", b"-1", b"99999999999", b"4 0 obj", b"0 1\n"),
)


def mutant(pdf: bytes, seed: int) -> bytes:
    """Change a few bytes after the signed ones; a seed gives the same file again."""
    numbers = hashlib.shake_128(b"%d" % seed).digest(64)
    out = bytearray(pdf)
    first = min(len(BASE), len(pdf) - 1)
    for at in range(1 + numbers[0] % 4):
        kind, part, length, *place = numbers[1 + 8 * at : 9 + 8 * at]
        where = first + int.from_bytes(bytes(place), "big") % (len(out) - first)
        change = _PARTS[part % len(_PARTS)]
        replaced = (0, len(change), length % 20 + 1)[kind % 3]
        out[where : where + replaced] = change if kind % 5 else b""
    return bytes(out)


@pytest.mark.parametrize(
    "seeds", [range(20), pytest.param(range(20, 400), marks=pytest.mark.long)]
)
def test_mutants_are_read_without_an_exception(seeds: range) -> None:
    """Every answer is within the file, and bounded."""
    for name, (make, _) in AMBIGUOUS.items():
        pdf = make()
        for seed in seeds:
            forged = mutant(pdf, seed)
            structure = read(forged)
            places = [one.at for one in structure.ambiguities]
            assert places == sorted(places), (name, seed)
            assert len(places) <= 2 * AMBIGUITIES_MAX, (name, seed)
            assert all(0 <= at <= len(forged) for at in places), (name, seed)
