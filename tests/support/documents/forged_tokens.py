"""Forgeries by tokens that readers split in different ways (ISO 32000-2, 7.2).

Also objects that stand where only a reader that searches the file finds them.
"""

from collections.abc import Callable
from functools import partial
from typing import Final

from tests.support.documents.contract_pdf import stream
from tests.support.documents.forgery import (
    PRICE,
    Collection,
    has_table,
    is_readable,
    new_price,
    with_price,
)
from tests.support.documents.pdf_revisions import Row, SignedFile, table_of

TOKENS: Final = Collection()
"""By name."""

Body = Callable[[SignedFile], bytes]


def _page(body: Body, f: SignedFile) -> bytes:
    """Append page 1 with an odd body, and another price as `f.free`."""
    return f.append({f.page: body(f), **new_price(f)})


def _with(more: bytes) -> Body:
    """Write page 1 with bytes before its end; `%d` is the other price's number."""
    return lambda f: f.changed(f.page, more=more % f.free)


_BODIES: Final[dict[str, Body]] = {
    "stray reference after a value": lambda f: f.changed(
        f.page, {b"/Contents": b"%d 0 R %d 0 R" % (f.content, f.free)}
    ),
    "key without a value": lambda f: f.changed(
        f.page, {b"/Foo": b"", b"/Contents": b"%d 0 R" % f.free}
    ),
    "comment that ends with CR": _with(b"%% \r/Contents %d 0 R\n"),
    "comment that ends with LF CR": _with(b"%%\n\r/Contents %d 0 R\n"),
    "NUL in the key": _with(b"/Con\x00tents %d 0 R"),
    "NUL between tokens": _with(b"\x00/Contents\x00%d\x000\x00R\x00"),
    "key spelled in full with #": _with(b"/#43#6f#6e#74#65#6e#74#73 %d 0 R"),
    "NUL at the key's end": _with(b"/Contents#00 %d 0 R"),
    "NUL within a longer key": _with(b"/Contents#00x %d 0 R"),
    "white space of PDFium at the key's end": _with(b"/Contents\x80 %d 0 R"),
    "other white space of PDFium": _with(b"/Contents\xff %d 0 R"),
    "number sign before no digits": _with(b"/Content#5Z %d 0 R"),
    "dictionary that does not end": lambda f: f.changed(
        f.page, {b"/Contents": b"%d 0 R" % f.free}
    )[:-2],
    "reference with leading zeros": lambda f: f.changed(
        f.page, {b"/Contents": b"00%d 00 R" % f.free}
    ),
    "reference over several lines": _with(b"/Contents %d%%\n0%%\nR"),
    "string that is not balanced": _with(b"/Foo(\\) /Contents 9 0 R)/Contents %d 0 R"),
    "hexadecimal string with other digits": _with(b"/Foo<zz>/Contents %d 0 R"),
}


def _add_bodies() -> None:
    for name, body in _BODIES.items():
        TOKENS(f"token: {name}", "page 1 shows another price for some readers")(
            partial(_page, body)
        )


_add_bodies()


def _hidden(header: bytes, f: SignedFile) -> bytes:
    """Append the other content with an odd header, unlisted, after another object."""
    body = b"null\nendobj\n" + header % f.content + b"\n" + with_price(f)[f.content]
    return f.append({f.free: body})


_HEADERS: Final = {
    "header with leading zeros": b"000%d 00 obj",
    "header with tabs": b"%d\t0\tobj",
    "header with NUL": b"%d\x000\x00obj",
    "header with line ends": b"%d\r\n0\r\nobj",
    "header with a form feed": b"\x0c%d 0 obj",
}


def _add_headers() -> None:
    for name, header in _HEADERS.items():
        TOKENS(f"unlisted: {name}", "another price by repair")(partial(_hidden, header))


_add_headers()


@TOKENS("unlisted: between `endstream` and `endobj`", "another price by repair")
def before_endobj(f: SignedFile) -> bytes:
    """Put the object before the end of a stream object."""
    inner = f.stream(f.free, b"x") + b"\n%d 0 obj\n" % f.content
    return f.append({f.free: inner + with_price(f)[f.content]})


@TOKENS("unlisted: before a comment with a section", "another price by repair")
def between_section_and_end(f: SignedFile) -> bytes:
    """Put the object between the trailer and startxref."""
    made = f.append(new_price(f))
    at = made.rindex(b"startxref")
    hidden = b"%d 0 obj\n%s\nendobj\n" % (f.content, with_price(f)[f.content])
    return made[:at] + hidden + made[at:]


@TOKENS("section: within a stream", "another price by repair", is_readable)
def section_in_stream(f: SignedFile) -> bytes:
    """Have startxref point to an honest section within the bytes of a stream."""
    out, offsets = f.bodies({**with_price(f), **new_price(f)})
    table = b"xref\n%strailer\n<<%s>>\n" % (
        table_of({f.free: offsets[f.free]}), f.trailer(f.free + 2, f.previous),
    )  # fmt: skip
    holder = b"%d 0 obj\n%s\nendobj\n" % (f.free + 1, stream(table))
    start = len(out) + holder.index(table)
    return bytes(out + holder + b"startxref\n%d\n%%%%EOF\n" % start)


def _hidden_section(f: SignedFile, start: int) -> tuple[bytes, int]:
    """Write a section for another catalog, of numbers that no other section lists.

    Args:
        f: the signed file.
        start: offset at which the bytes will stand.

    Returns:
        The bytes, and the offset of the section.
    """
    tree, page, content, holder, section = range(f.free + 20, f.free + 25)
    bodies = [
        (f.catalog, f.changed(f.catalog, {b"/Pages": b"%d 0 R" % tree})),
        (tree, b"<</Type/Pages/Kids[%d 0 R]/Count 1>>" % page),
        (page, f.changed(f.page, {
            b"/Parent": b"%d 0 R" % tree, b"/Contents": b"%d 0 R" % content,
        })),
    ]  # fmt: skip
    out = bytearray(start)
    rows = [Row(each, 2, holder, index) for index, (each, _) in enumerate(bodies)]
    for number, body in (
        (content, f.stream(content, PRICE)),
        (holder, f.object_stream(holder, bodies)),
    ):
        rows.append(Row(number, 1, len(out)))
        out += b"%d 0 obj\n%s\nendobj\n" % (number, body)
    at = len(out)
    entries = f.trailer(section + 1, f.previous)
    made = f.with_stream(out, rows, entries, number=section)
    return made[start : made.rindex(b"startxref")], at


def _second_prev(key: bytes, f: SignedFile) -> bytes:
    """Name a section within a stream that nothing refers to by a key like /Prev."""
    start, made = 0, b""
    while not made or made.index(b"stream\n", len(f.pdf)) + 7 != start:
        start = made.index(b"stream\n", len(f.pdf)) + 7 if made else len(f.pdf)
        body, at = _hidden_section(f, start)
        made = f.append({f.free: stream(body)}, more=key + b" %d" % at)
    return made


for _name, _key in {"at its end": b"/Prev#00", "within": b"/Prev#00x"}.items():
    TOKENS(f"/Prev: a second one, NUL {_name}", "another price for poppler")(
        partial(_second_prev, _key)
    )


@TOKENS("/Prev: past a forged revision", "another price by repair")
def prev_past_forged(f: SignedFile) -> bytes:
    """Append a forged revision, and an honest one that leaves it out."""
    again = SignedFile(f.append(with_price(f)))
    return again.append(new_price(f), previous=f.previous)


@TOKENS("/Prev: a reference", "another price, or the signed one")
def prev_reference(f: SignedFile) -> bytes:
    """Write the place of the earlier section as an object."""
    at = f.free + 1
    return f.append(
        {**with_price(f), f.free: b"null", at: b"%d" % f.previous},
        trailer={b"/Prev": b"%d 0 R" % at},
        unlisted=[f.content],
    )  # fmt: skip


@TOKENS("/Prev: a real number", "another price by repair")
def prev_real(f: SignedFile) -> bytes:
    """Write the place of the earlier section with a fraction."""
    return f.append(
        {**with_price(f), **new_price(f)},
        trailer={b"/Prev": b"%d.5" % f.previous},
        unlisted=[f.content],
    )


@TOKENS("trailer: /Ro#6ft", "another catalog is reached")
def root_spelled(f: SignedFile) -> bytes:
    """Name a second catalog by another spelling of the key."""
    number = f.free + 1
    catalog = f.changed(f.catalog, {b"/Pages": b"%d 0 R" % (number + 1)})
    page = f.changed(
        f.page,
        {b"/Contents": b"%d 0 R" % f.free, b"/Parent": b"%d 0 R" % (number + 1)},
    )
    return f.append(
        {
            **new_price(f),
            number: catalog,
            number + 1: b"<</Type/Pages/Count 1/Kids[%d 0 R]>>" % (number + 2),
            number + 2: page,
        },
        more=b"/Ro#6ft %d 0 R" % number,
    )


@TOKENS("trailer: /Root of generation 1", "another catalog by repair")
def root_generation(f: SignedFile) -> bytes:
    """Refer to the catalog by a generation that it does not have."""
    return f.append(with_price(f), root=b"%d 1 R" % f.catalog)


@TOKENS("startxref: 0", "another price by repair")
def startxref_zero(f: SignedFile) -> bytes:
    """Have readers search the file, with an object that no section lists."""
    made = f.append({**with_price(f), **new_price(f)}, unlisted=[f.content])
    return made[: made.rindex(b"startxref")] + b"startxref\n0\n%%EOF\n"


@TOKENS("startxref: behind the end", "another price by repair")
def startxref_behind(f: SignedFile) -> bytes:
    """Have readers search the file, with an object that no section lists."""
    made = f.append({**with_price(f), **new_price(f)}, unlisted=[f.content])
    return made[: made.rindex(b"startxref")] + b"startxref\n99999999\n%%EOF\n"


@TOKENS("section: keyword of another spelling", "another price by repair", has_table)
def section_keyword(f: SignedFile) -> bytes:
    """Write the keyword of the section with a digit before it."""
    made = f.append({**with_price(f), **new_price(f)}, unlisted=[f.content])
    at = made.rindex(b"xref\n0 1\n")
    return made[:at] + b"XREF" + made[at + 4 :]


def _stream_head(head: bytes, f: SignedFile) -> bytes:
    """Append page 1's content with an odd end of the keyword `stream`."""
    body = f.stream(f.content, PRICE).replace(b"stream\n", head, 1)
    return f.append({f.content: body})


_HEADS: Final = {
    "CR alone": b"stream\r",
    "blanks": b"stream  \n",
    "nothing": b"stream",
}


def _add_heads() -> None:
    for name, head in _HEADS.items():
        TOKENS(f"stream keyword: followed by {name}", "page 1 shows another price")(
            partial(_stream_head, head)
        )


_add_heads()


@TOKENS("length: a real number", "page 1 shows another price")
def real_length(f: SignedFile) -> bytes:
    """Write the length with a fraction that cuts the stream off."""
    return f.append({f.content: f.stream(f.content, PRICE, length=b"9.9")})


@TOKENS("object stream: within an object stream", "another price, or no page")
def nested_object_stream(f: SignedFile) -> bytes:
    """List page 1 in an object stream that itself is in an object stream."""
    inner, outer = f.free + 1, f.free + 2
    page = f.changed(f.page, {b"/Contents": b"%d 0 R" % f.free})
    held = f.object_stream(inner, [(f.page, page)])
    return f.append_rows(
        {**new_price(f), outer: f.object_stream(outer, [(inner, held)])},
        lambda at: [
            *(Row(each, 1, at[each]) for each in (f.free, outer)),
            Row(inner, 2, outer, 0),
            Row(f.page, 2, inner, 0),
        ],
    )


@TOKENS("object stream: /N too small", "another price, or no page")
def count_too_small(f: SignedFile) -> bytes:
    """Name page 1 behind the number of objects that the stream counts."""
    number = f.free + 1
    page = f.changed(f.page, {b"/Contents": b"%d 0 R" % f.free})
    holder = f.object_stream(number, [(f.free + 7, b"null"), (f.page, page)])
    holder = holder.replace(b"/N 2", b"/N 1", 1)
    return f.append_rows(
        {**new_price(f), number: holder},
        lambda at: [
            *(Row(each, 1, at[each]) for each in (f.free, number)),
            Row(f.page, 2, number, 1),
        ],
    )


@TOKENS(
    "trailer: encryption rewritten",
    "the key of the encryption is another one",
    lambda f: not is_readable(f) and f.qpdf.trailer.Encrypt.is_indirect,
)
def encryption_rewritten(f: SignedFile) -> bytes:
    """Define the encryption dictionary again, without ciphers."""
    number = int(f.qpdf.trailer.Encrypt.objgen[0])
    held = f.qpdf.trailer.Encrypt.unparse(resolved=True)
    plain = held.replace(b"/StmF /StdCF", b"/StmF /Identity")
    return f.append({number: plain})
