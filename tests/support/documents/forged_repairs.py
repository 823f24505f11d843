"""Forgeries that have a reader repair the file, and what only a repair finds.

The section is right for pyHanko and the structural reader. A number that is too large,
no `/Size` or a long line makes other readers search the whole file for objects. The
objects that they find then stand in streams, or have headers of an odd form. Each file
is longer than what qpdf reads again (`structure.reread`).
"""

from functools import partial
from typing import Final

from tests.support.documents.forgery import (
    PRICE,
    Collection,
    has_table,
    is_readable,
    with_price,
)
from tests.support.documents.pdf_revisions import Offsets, Row, SignedFile, table_of

REPAIRS: Final = Collection()
"""By name."""

_LONG: Final = 300_000


def _applies(f: SignedFile) -> bool:
    return has_table(f) and is_readable(f)


def _hidden(f: SignedFile) -> bytes:
    """Write the content of page 1 with another price, as an object."""
    return b"\n%d 0 obj\n%s\nendobj\n" % (f.content, with_price(f)[f.content])


def _evidence(f: SignedFile, data: bytes) -> dict[int, bytes]:
    """Give validation data, numbered `f.free`, and the catalog that refers to it."""
    entries = {b"/DSS": b"<</Type/DSS/Certs[%d 0 R]>>" % f.free}
    return {
        f.catalog: f.changed(f.catalog, entries),
        f.free: f.stream(f.free, data + b"0" * _LONG),
    }


def _rows(more: bytes, offsets: Offsets) -> bytes:
    return table_of(offsets) + more


_SUBSECTIONS: Final = {
    "free number of 2³¹": b"2147483648 1\n0000000000 00000 f \n",
    "free number of ten digits": b"9999999999 1\n0000000000 00000 f \n",
    "empty subsection at 2³²": b"4294967296 0\n",
}


def _by_stream(more: bytes, f: SignedFile) -> bytes:
    return f.append(_evidence(f, b"0" + _hidden(f)), table=partial(_rows, more))


def _by_size(size: bytes, f: SignedFile) -> bytes:
    return f.append(_evidence(f, b"0" + _hidden(f)), trailer={b"/Size": size})


def _by_header(header: bytes, f: SignedFile) -> bytes:
    """Write an object with an odd header between trailer and `startxref`."""
    made = f.append(
        _evidence(f, b""), table=partial(_rows, _SUBSECTIONS["free number of 2³¹"])
    )
    at = made.rindex(b"startxref")
    body = header % f.content + b"\n" + with_price(f)[f.content] + b"\nendobj\n"
    return made[:at] + body + made[at:]


_SIZES: Final = {"a real number": b"90.5", "a string": b"(90)", "2⁶⁷": b"9" * 20}
_HEADERS: Final = {
    "comment after the number": b"%d%%\n0 obj",
    "comment after the generation": b"%d 0%%\nobj",
    "generation of six digits": b"%d 000000 obj",
    "number of twelve digits": b"00000000000%d 0 obj",
}


def _add_simple() -> None:
    for name, more in _SUBSECTIONS.items():
        REPAIRS(f"repair: {name}", "another price", _applies)(partial(_by_stream, more))
    for name, size in _SIZES.items():
        REPAIRS(f"repair: /Size is {name}", "another price", _applies)(
            partial(_by_size, size)
        )
    for name, header in _HEADERS.items():
        REPAIRS(f"repair: header, {name}", "another price", _applies)(
            partial(_by_header, header)
        )


_add_simple()


@REPAIRS("repair: line of a subsection too long", "another price", _applies)
def long_line(f: SignedFile) -> bytes:
    """Have white space follow the numbers of a subsection."""

    def rows(offsets: Offsets) -> bytes:
        return table_of(offsets).replace(b"0 1\n", b"0 1%s\n" % (b" " * 300), 1)

    return f.append(_evidence(f, b"0" + _hidden(f)), table=rows)


@REPAIRS("repair: second trailer", "another document", _applies)
def second_trailer(f: SignedFile) -> bytes:
    """Write a trailer after the one of the section, for another catalog."""
    tree, page = f.free + 2, f.free + 3
    objects = _evidence(f, b"") | {
        f.free + 1: f.changed(f.catalog, {b"/Pages": b"%d 0 R" % tree}),
        tree: b"<</Type/Pages/Kids[%d 0 R]/Count 1>>" % page,
        page: f.changed(
            f.page,
            {b"/Parent": b"%d 0 R" % tree, b"/Contents": b"%d 0 R" % (f.free + 4)},
        ),
        f.free + 4: f.stream(f.free + 4, PRICE),
    }
    made = f.append(objects, table=partial(_rows, _SUBSECTIONS["free number of 2³¹"]))
    at = made.rindex(b"startxref")
    forged = b"trailer\n<</Size 99/Root %d 0 R>>\n" % (f.free + 1)
    return made[:at] + forged + made[at:]


@REPAIRS("section: stream with the number of the content", "page 1 is empty", _applies)
def numbered_as_content(f: SignedFile) -> bytes:
    """Give a cross-reference stream the content's number, and do not list it there."""
    # The stream's own row comes second, and is entered under another number.
    return f.append_rows(
        _evidence(f, b""),
        lambda offsets: [Row(number, 1, at) for number, at in offsets.items()],
        number=f.content,
        index=b"%d 1 900 1 %d 1" % (f.catalog, f.free),
    )
