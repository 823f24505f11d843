"""Linearized files that a later revision makes as long as they say.

Source: ISO 32000-2, annex F.
"""

from typing import Final

import pytest

from tests.support.documents.appended_revisions import Appended
from tests.support.documents.hostile_pdfs import CONTENT, PAGE, build
from tests.support.documents.software_signer import signed
from worker.sandbox.structure import AmbiguityKind, read_structure

TOTAL: Final = 30_000
"""Length by the dictionary, greater than that of the signed file."""


def signed_file(length: bytes = b"%d" % TOTAL, key: bytes = b"L") -> bytes:
    """Sign a page whose first object is a linearization dictionary."""
    linear = b"<</Linearized 1/%s %s/H[0 0]/O 3/E 0/N 1/T 0>>" % (key, length)
    return signed(
        build(
            {
                9: linear,
                1: b"<</Type/Catalog/Pages 2 0 R>>",
                2: b"<</Type/Pages/Kids[3 0 R]/Count 1>>",
                3: PAGE,
                4: CONTENT,
            }
        )
    )


def grown(pdf: bytes, length: int) -> bytes:
    """Append a revision after which the file has a length."""

    def revision(size: int) -> bytes:
        appended = Appended(pdf)
        appended.add(90, b"(%s)" % (b"x" * size))
        return appended.table()

    grown = revision(length - len(revision(10_000)) + 10_000)
    assert len(grown) == length
    return grown


def found(pdf: bytes) -> list[int]:
    """Return the places of revisions that end where the dictionary says."""
    return [
        each.at
        for each in read_structure(pdf).ambiguities
        if each.kind is AmbiguityKind.LINEARIZED
    ]


@pytest.mark.parametrize(
    ("length", "key"),
    [(b"%d" % TOTAL, b"L"), (b"%d.0" % TOTAL, b"L"), (b"+%d" % TOTAL, b"L")],
)
def test_later_revision_may_not_reach_the_length(length: bytes, key: bytes) -> None:
    """A real number counts as Firefox reads it."""
    base = signed_file(length, key)
    assert found(base) == []
    places = found(grown(base, TOTAL))
    assert len(places) == 1
    assert places[0] >= len(base)


def test_another_length_is_not_ambiguous() -> None:
    """Readers ignore a dictionary with another length than the file."""
    assert found(grown(signed_file(), TOTAL + 3)) == []
    assert found(grown(signed_file(), TOTAL - 1)) == []


def test_revision_that_ended_there_counts_too() -> None:
    """Readers showed another file when that revision was the newest."""
    longer = grown(grown(signed_file(), TOTAL), TOTAL + 20_000)
    places = found(longer)
    assert len(places) == 1
    assert places[0] < TOTAL


def test_comments_before_the_first_object_are_no_object() -> None:
    """Readers skip comments before the dictionary."""
    base = signed_file().replace(b"%\xe2\xe3\xcf\xd3", b"%8 0 o", 1)
    assert found(grown(base, TOTAL)) != []


@pytest.mark.parametrize("part", ["long", "comment", "unended", "second"])
def test_dictionary_of_another_form_is_one(part: str) -> None:
    """Poppler reads a dictionary of any length, and skips comments in its header."""
    base = signed_file()
    start = base.index(b"9 0 obj")
    old = base[start : base.index(b"endobj", start) + 7]
    new = {
        "long": old.replace(b"/H[0", b"/Pad(%s)/H[0" % (b"x" * 2_100)),
        "comment": old.replace(b"9 0", b"9 %x\n0"),
        "unended": old.replace(b"endobj", b"      "),
        "second": old.replace(b"/L 3", b"/L 5/L 3"),
    }[part]
    # Whatever stands between the objects, a reader finds its first one.
    changed = base.replace(old, new, 1)
    assert changed != base
    assert found(grown(changed, TOTAL)) != []


ODD: Final = {
    "minus signs within the number": (b"/L 3", b"/L 3-"),
    "exponent": (b"/L 30000", b"/L 3e4"),
    "two numbers": (b"/L 30000", b"/L 30000 0"),
    "key with an escape": (b"/L 3", b"/#4C 3"),
    "name of its own with an escape": (b"/Linearized", b"/#4cinearized"),
    "word that is no token": (b"/L 3", b"/X abc/L 3"),
    "string": (b"/L 3", b"/X(a)/L 3"),
    "dictionary": (b"/L 3", b"/X<<>>/L 3"),
    "reference": (b"/L 30000", b"/L 4 0 R"),
    "vertical tab": (b"/L 3", b"/L\x0b3"),
    "number of the object": (b"9 0 obj", b"1-9 0 obj"),
    "generation": (b"9 0 obj", b"9 x obj"),
    "word before the object": (b"9 0 obj", b"x 9 0 obj"),
    "end": (b"/T 0>>", b"/T 0 >"),
}
"""What is written in place of what."""


@pytest.mark.parametrize("kind", ODD)
@pytest.mark.parametrize("listed", [True, False])
def test_dictionary_that_is_not_plain_is_ambiguous(
    kind: str,
    listed: bool,
) -> None:
    """Programs read different numbers there, whatever the length of the file."""
    old, new = ODD[kind]
    base = signed_file()
    start = base.index(b"9 0 obj")
    end = base.index(b"endobj", start)
    odd = base[start:end].replace(old, new, 1)
    assert odd != base[start:end]
    if not listed:
        odd = odd.replace(b"9 0 obj", b"95 0 obj")

    places = found(base[:start] + odd + base[end:])

    assert places == [0]


@pytest.mark.parametrize(
    "new", [b"/L 30000%x\n", b"/L 30000.0", b"/L\x0030000", b"\f/L 30000"]
)
def test_dictionary_with_blanks_and_comments_is_plain(new: bytes) -> None:
    """White space and comments stand between tokens."""
    base = signed_file()
    changed = base.replace(b"/L 30000", new, 1)

    assert changed != base
    assert found(changed) == []


@pytest.mark.parametrize("key", [b"/Linearized", b"/L#69nearized"])
def test_dictionary_within_the_header_line_is_ambiguous(key: bytes) -> None:
    """PDFium begins to read after nine bytes, where others read a comment."""
    line = b"%%PDF-1.7 9 0 obj<<%s 1/L 30000/H[0 0]/O 3/E 0/N 1/T 0>>\n" % key
    base = signed_file()
    old = base[: base.index(b"\n") + 1]

    assert found(line + base[len(old) :]) == [0]


def test_word_in_another_object_is_no_dictionary() -> None:
    """The first object can be read, and is another one."""
    base = signed_file().replace(b"/Linearized 1", b"/X(/Linearized)", 1)

    assert found(base) == []


def test_linearized_file_itself_is_not_ambiguous() -> None:
    """Its last startxref names the section after the dictionary, as readers do."""
    head = (
        b"%%PDF-1.7\n9 0 obj\n"
        b"<</Linearized 1/L %010d/H[0 0]/O 3/E 0/N 1/T 0>>\nendobj\n"
    )
    at = len(head % 0)
    tail = (
        b"xref\n0 0\ntrailer\n<</Size 1/Root 1 0 R>>\nstartxref\n0\n%%%%EOF\n"
        b"startxref\n%d\n%%%%EOF\n" % at
    )
    pdf = head % (at + len(tail)) + tail
    assert found(pdf) == []
