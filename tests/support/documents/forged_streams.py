"""Forgeries by cross-reference streams, object streams and stream lengths.

Source: ISO 32000-2, 7.3.8.2, 7.5.7 and 7.5.8.
"""

import re
import zlib
from base64 import a85encode
from functools import partial
from typing import Final

from tests.support.documents.contract_pdf import line
from tests.support.documents.forgery import (
    PRICE,
    Collection,
    new_price,
    with_price,
)
from tests.support.documents.pdf_revisions import Row, SignedFile

STREAMS: Final = Collection()
"""By name."""


def _old(f: SignedFile) -> int:
    return f.offsets(f.content)[-1]


@STREAMS("xref stream: /Index ranges overlap", "another price, or the signed one")
def index_overlap(f: SignedFile) -> bytes:
    """List the content twice."""
    return f.append_rows(
        with_price(f),
        lambda at: [Row(f.content, 1, _old(f)), Row(f.content, 1, at[f.content])],
    )


@STREAMS("xref stream: /Index ranges overlap, new first", "another price")
def index_overlap_first(f: SignedFile) -> bytes:
    """List the content twice, the forged one first."""
    return f.append_rows(
        with_price(f),
        lambda at: [Row(f.content, 1, at[f.content]), Row(f.content, 1, _old(f))],
    )


@STREAMS("xref stream: entry of type 3", "page 1 is empty, or shows another price")
def type_three(f: SignedFile) -> bytes:
    """List the content with a type that is reserved."""
    return f.append_rows(with_price(f), lambda at: [Row(f.content, 3, at[f.content])])


@STREAMS("xref stream: type left out", "page 1 shows another price")
def type_left_out(f: SignedFile) -> bytes:
    """Have every entry be in use by default."""
    return f.append_rows(
        with_price(f), lambda at: [Row(f.content, 1, at[f.content])], widths=(0, 4, 2)
    )


@STREAMS("xref stream: /W of four numbers", "another price, or no file at all")
def four_widths(f: SignedFile) -> bytes:
    """Have the entries be longer than readers expect."""
    return f.append_rows(
        with_price(f),
        lambda at: [Row(f.content, 1, at[f.content])],
        widths=(1, 4, 2, 1),
    )


@STREAMS("xref stream: /Index too long", "another price, or no file at all")
def index_too_long(f: SignedFile) -> bytes:
    """Have the ranges name more entries than there are."""
    return f.append_rows(
        with_price(f),
        lambda at: [Row(f.content, 1, at[f.content])],
        index=b"%d 1 %d 9" % (f.content, f.free),
    )


@STREAMS("xref stream: /Index too short", "the signed price, or another one")
def index_too_short(f: SignedFile) -> bytes:
    """Have the ranges name fewer entries than there are."""
    return f.append_rows(
        with_price(f),
        lambda at: [
            Row(f.content - 1, 1, (f.offsets(f.content - 1) or [_old(f)])[-1]),
            Row(f.content, 1, at[f.content]),
        ],
        index=b"%d 1" % (f.content - 1),
    )


@STREAMS("xref stream: has the content's number", "page 1 is empty")
def xref_stream_is_content(f: SignedFile) -> bytes:
    """Give the stream the number of the content of page 1."""
    return f.append_rows({}, lambda _: [], number=f.content)


@STREAMS("xref stream: content entry of an object stream", "page 1 is empty")
def content_in_object_stream(f: SignedFile) -> bytes:
    """List the content in an object stream that does not exist."""
    return f.append_rows({}, lambda _: [Row(f.content, 2, f.free + 5, 0)])


def _forged_page(f: SignedFile) -> bytes:
    return f.changed(f.page, {b"/Contents": b"%d 0 R" % f.free})


def _held(f: SignedFile, holder: bytes, index: int = 0) -> bytes:
    """Append an object stream that holds page 1, and another price."""
    number = f.free + 1
    return f.append_rows(
        {**new_price(f), number: holder},
        lambda at: [
            Row(f.free, 1, at[f.free]),
            Row(number, 1, at[number]),
            Row(f.page, 2, number, index),
        ],
    )


@STREAMS("object stream: page 1", "page 1 shows another price")
def page_in_object_stream(f: SignedFile) -> bytes:
    """Hold the forged page in an object stream that is right in form."""
    number = f.free + 1
    return _held(f, f.object_stream(number, [(f.page, _forged_page(f))]))


@STREAMS("object stream: wrong index", "another price, by index or by number")
def wrong_index(f: SignedFile) -> bytes:
    """Have number and index of an entry name different objects."""
    number = f.free + 1
    bodies = [(f.page, f.changed(f.page)), (f.free + 7, _forged_page(f))]
    return _held(f, f.object_stream(number, bodies), 1)


@STREAMS("object stream: one number twice", "another price, or the signed one")
def number_twice(f: SignedFile) -> bytes:
    """Hold page 1 as signed and as forged."""
    number = f.free + 1
    bodies = [(f.page, f.changed(f.page)), (f.page, _forged_page(f))]
    return _held(f, f.object_stream(number, bodies))


@STREAMS("object stream: /Extends", "another price, or no page")
def extends(f: SignedFile) -> bytes:
    """Have the stream that an entry names extend the one with the page."""
    number, other = f.free + 1, f.free + 2
    base = f.object_stream(other, [(f.page, _forged_page(f))])
    named = f.object_stream(number, [(f.free + 7, b"null")], b"/Extends %d 0 R" % other)
    return f.append_rows(
        {**new_price(f), number: named, other: base},
        lambda at: [
            *(Row(each, 1, at[each]) for each in (f.free, number, other)),
            Row(f.page, 2, number, 0),
        ],
    )


@STREAMS("object stream: has the content's number", "page 1 shows another price")
def object_stream_is_content(f: SignedFile) -> bytes:
    """Have one stream be an object stream and the content of page 1.

    What stands before the first object is drawn; pyHanko's rule for object streams
    allows new ones.
    """
    lead = b"\n" + PRICE + b" Q Q \n"
    holder = f.object_stream(f.content, [(f.free, b"null")], lead=lead)
    return f.append_rows(
        {f.content: holder},
        lambda at: [Row(f.content, 1, at[f.content]), Row(f.free, 2, f.content, 0)],
    )


@STREAMS("object stream: holds the catalog's new pages", "another page tree")
def catalog_in_object_stream(f: SignedFile) -> bytes:
    """Hold a forged catalog and page in an object stream."""
    number, tree, page = f.free + 1, f.free + 2, f.free + 3
    bodies = [
        (f.catalog, f.changed(f.catalog, {b"/Pages": b"%d 0 R" % tree})),
        (tree, b"<</Type/Pages/Kids[%d 0 R]/Count 1>>" % page),
        (page, f.changed(f.page, {
            b"/Parent": b"%d 0 R" % tree, b"/Contents": b"%d 0 R" % f.free,
        })),
    ]  # fmt: skip
    # Strings of an object in an object stream are not encrypted; these have none.
    return f.append_rows(
        {**new_price(f), number: f.object_stream(number, bodies)},
        lambda at: [
            *(Row(each, 1, at[each]) for each in (f.free, number)),
            *(Row(each, 2, number, at_) for at_, (each, _) in enumerate(bodies)),
        ],
    )


def _other_pages(f: SignedFile) -> tuple[bytes, bytes, dict[int, bytes]]:
    """Give the catalog as signed, another one within a string, and what that shows."""
    tree, page, content = range(f.free, f.free + 3)
    forged = f.changed(f.catalog, {b"/Pages": b"%d 0 R" % tree})
    changes = {b"/Parent": b"%d 0 R" % tree, b"/Contents": b"%d 0 R" % content}
    objects = {
        tree: b"<</Type/Pages/Kids[%d 0 R]/Count 1>>" % page,
        page: f.changed(f.page, {**changes, b"/Annots": None}),
        content: f.stream(content, PRICE),
    }
    forged = forged.replace(b"(", b"[").replace(b")", b"]")
    return f.changed(f.catalog), forged, objects


def _catalog_again(f: SignedFile, objects: dict[int, bytes], holder: bytes) -> bytes:
    """Append an object stream with a string, and the catalog after it."""
    number = f.free + 3
    return f.append_rows(
        {**objects, number: holder},
        lambda at: [
            *(Row(each, 1, at[each]) for each in (*objects, number)),
            Row(f.free + 10, 2, number, 0),
            Row(f.catalog, 2, number, 1),
        ],
    )


@STREAMS("object stream: vertical tabs in base 85", "another page tree")
def base_85_with_tabs(f: SignedFile) -> bytes:
    """Have the data move by 4 bytes for each 5 tabs that are digits to a reader."""
    good, forged, objects = _other_pages(f)
    groups = -(-(len(forged) + 2) // 4)
    start = 20 + 4 * groups
    text = (b"(" + b" " * 19 + forged).ljust(start - 2) + b")\n"
    head = b"%d 0 %d %d " % (f.free + 10, f.catalog, start)
    head = head.ljust(-(-len(head) // 4) * 4)
    data = head + text + good + b"\n"
    cut = len(head) + 4
    body = a85encode(data[:cut]) + b"\x0b" * (5 * groups) + a85encode(data[cut:])
    entries = b"/Type/ObjStm/N 2/Filter/ASCII85Decode/First %d" % len(head)
    return _catalog_again(f, objects, f.stream(f.free + 3, body + b"~>", entries))


def _with_rows(shape: bytes, f: SignedFile) -> bytes:
    """Have the data begin a byte later for each row, without the predictor."""
    good, forged, objects = _other_pages(f)
    columns, first = 900, 60
    rows = len(forged) + 8
    text_at = rows * columns + 10
    start = text_at + rows + 1
    head = b"%d 0 %d %d " % (f.free + 10, f.catalog, start - first)
    data = (head.ljust(first) + b"(").ljust(text_at) + forged + b")"
    data = data.ljust(start) + good + b"\n"
    packed = zlib.compress(
        b"".join(
            b"\0" + data[at : at + columns].ljust(columns)
            for at in range(0, len(data), columns)
        ),
        9,
    )
    entries = b"/Type/ObjStm/N 2/First %d" % first + shape % columns
    return _catalog_again(f, objects, f.stream(f.free + 3, packed, entries))


_SHAPES: Final = {
    "array of filters, one dictionary": (
        b"/Filter[/FlateDecode]/DecodeParms<</Predictor 15/Columns %d>>"
    ),
    "one filter, array of dictionaries": (
        b"/Filter/FlateDecode/DecodeParms[<</Predictor 15/Columns %d>>]"
    ),
}
for _name, _shape in _SHAPES.items():
    STREAMS(f"object stream: {_name}", "another page tree")(partial(_with_rows, _shape))


@STREAMS("length: direct, too short", "the signed price, or another one")
def length_too_short(f: SignedFile) -> bytes:
    """Have the length end before another price."""
    old = f.data(f.content)
    return f.append(
        {f.content: f.stream(f.content, old + b"\n" + PRICE, length=b"%d" % len(old))}
    )


@STREAMS("length: direct, too long", "the signed price, or another one")
def length_too_long(f: SignedFile) -> bytes:
    """Have the length take in a second `endstream` and another price."""
    old = f.cipher(f.content, f.data(f.content))
    more = b"\nendstream\nendobj\n%%\n" + PRICE
    body = b"<</Length %d>>stream\n%s\nendstream" % (len(old + more), old + more)
    return f.append({f.content: body})


@STREAMS("length: indirect, wrong", "the signed price, or another one")
def length_indirect(f: SignedFile) -> bytes:
    """Have the length be an object with another value."""
    old = f.data(f.content)
    body = f.stream(f.content, old + b"\n" + PRICE, length=b"%d 0 R" % f.free)
    return f.append({f.content: body, f.free: b"%d" % len(old)})


@STREAMS("length: undefined", "the signed price, or another one")
def length_undefined(f: SignedFile) -> bytes:
    """Have the length be an object that does not exist."""
    body = f.stream(f.content, PRICE, length=b"%d 0 R" % (f.free + 5))
    return f.append({f.content: body, f.free: b"null"})


@STREAMS("length: negative", "the signed price, or another one")
def length_negative(f: SignedFile) -> bytes:
    """Have the length be below zero."""
    return f.append({f.content: f.stream(f.content, PRICE, length=b"-1")})


@STREAMS(
    "length: redefined later",
    "the green bar of the signed file is cut off",
    lambda f: re.search(rb"/Length \d+ 0 R", f.pdf) is not None,
)
def length_redefined(f: SignedFile) -> bytes:
    """Give another value to the number that a signed stream has for its length."""
    found = re.search(rb"/Length (\d+) 0 R", f.pdf)
    assert found is not None
    return f.append({int(found[1]): b"9"})


@STREAMS("stream: content in an external file", "page 1 is empty, or shows the file")
def external_file(f: SignedFile) -> bytes:
    """Have the content of page 1 stand in another file (7.3.8.1)."""
    name = f.string(f.content, b"precio.txt")
    return f.append({f.content: f.stream(f.content, b"", b"/F%s" % name)})


@STREAMS("stream: form data of the text field", "the text field shows another name")
def appearance_redrawn(f: SignedFile) -> bytes:
    """Draw the appearance of the text field again in place, over its box."""
    number = int(f.get(f.field("Nombre")).AP.N.objgen[0])
    return f.append({number: f.look(number, line(b"Eva", 2, 4), b"[0 0 120 20]")})
