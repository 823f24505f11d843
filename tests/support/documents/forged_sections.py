"""Forgeries by cross-reference sections that readers take in different ways.

Each hides another price from the readers that follow the section to the letter, or
from those that repair the file by searching it for objects (ISO 32000-2, 7.5.4).
"""

import re
from functools import partial
from typing import Final

from tests.support.documents.contract_pdf import stream
from tests.support.documents.forged_keys import forged_catalog, price_tree
from tests.support.documents.forgery import (
    Collection,
    has_table,
    is_readable,
    new_price,
    with_price,
)
from tests.support.documents.pdf_revisions import Offsets, Row, SignedFile, table_of

SECTIONS: Final = Collection()
"""By name."""


def _entries(form: bytes, f: SignedFile) -> bytes:
    """Append another price, its entry written in a form."""

    def table(at: Offsets) -> bytes:
        return b"%d 1\n" % f.content + form % at[f.content]

    return f.append(with_price(f), table=table)


_FORMS: Final = {
    "19 bytes": b"%010d 00000 n\n",
    "21 bytes": b"%010d 00000 n \r\n",
    "18 bytes": b"%010d 0000 n\n",
    "type x": b"%010d 00000 x \n",
    "type N": b"%010d 00000 N \n",
    "no zeros before the offset": b"%-10d 00000 n \n",
    "signed offset": b"+%09d 00000 n \n",
}


def _add_forms() -> None:
    for name, form in _FORMS.items():
        add = SECTIONS(f"entry: {name}", "page 1 shows another price")
        add(partial(_entries, form))


_add_forms()


def _old(f: SignedFile) -> int:
    return f.offsets(f.content)[-1]


@SECTIONS("section: number listed twice, new last", "another price, or the signed one")
def listed_twice(f: SignedFile) -> bytes:
    """List the signed content and then the forged one."""
    return f.append(
        with_price(f),
        table=lambda at: (
            b"%d 1\n%010d 00000 n \n%d 1\n%010d 00000 n \n"
            % (f.content, _old(f), f.content, at[f.content])
        ),
    )


@SECTIONS("section: number listed twice, new first", "another price, or the signed one")
def listed_twice_first(f: SignedFile) -> bytes:
    """List the forged content and then the signed one."""
    return f.append(
        with_price(f),
        table=lambda at: (
            b"%d 1\n%010d 00000 n \n%d 1\n%010d 00000 n \n"
            % (f.content, at[f.content], f.content, _old(f))
        ),
    )


@SECTIONS("section: overlapping subsections", "another price, or the signed one")
def overlapping(f: SignedFile) -> bytes:
    """List two numbers from the one before the content, and the content again."""
    first = f.content - 1

    def table(at: Offsets) -> bytes:
        places = f.offsets(first) or [_old(f)]
        return b"%d 2\n%010d 00000 n \n%010d 00000 n \n%d 1\n%010d 00000 n \n" % (
            first, places[-1], at[f.content], f.content, _old(f),
        )  # fmt: skip

    return f.append(with_price(f), table=table)


@SECTIONS("section: free and in use", "page 1 is empty, or shows another price")
def free_and_in_use(f: SignedFile) -> bytes:
    """List one number as free and as in use."""
    return f.append(
        with_price(f),
        table=lambda at: (
            b"%d 1\n%010d 00000 n \n%d 1\n0000000000 00001 f \n"
            % (f.content, at[f.content], f.content)
        ),
    )


@SECTIONS("section: too many entries counted", "another price, or no file at all")
def count_too_large(f: SignedFile) -> bytes:
    """Count three entries where there is one."""
    return f.append(
        with_price(f),
        table=lambda at: b"%d 3\n%010d 00000 n \n" % (f.content, at[f.content]),
    )


@SECTIONS("section: too few entries counted", "another price, or the signed one")
def count_too_small(f: SignedFile) -> bytes:
    """Count one entry where there are two, the second of which is the forged one."""
    return f.append(
        with_price(f),
        table=lambda at: (
            b"%d 1\n%010d 00000 n \n%010d 00000 n \n"
            % (
                f.content - 1,
                (f.offsets(f.content - 1) or [_old(f)])[-1],
                at[f.content],
            )
        ),
    )


@SECTIONS("section: subsection starts one number early", "another price by repair")
def start_off_by_one(f: SignedFile) -> bytes:
    """List the forged content under the number before it."""
    return f.append(
        with_price(f),
        table=lambda at: b"%d 1\n%010d 00000 n \n" % (f.content - 1, at[f.content]),
    )


def _shifted(f: SignedFile, by: int) -> bytes:
    return f.append(
        with_price(f),
        table=lambda at: b"%d 1\n%010d 00000 n \n" % (f.content, at[f.content] + by),
    )


@SECTIONS("offset: one byte late", "another price, or an empty page")
def offset_late(f: SignedFile) -> bytes:
    """Have the offset point behind the first digit."""
    return _shifted(f, 1)


@SECTIONS("offset: one byte early", "another price, or the signed one")
def offset_early(f: SignedFile) -> bytes:
    """Have the offset point to the line end before the object."""
    return _shifted(f, -1)


@SECTIONS("offset: into a comment before the object", "another price")
def offset_comment(f: SignedFile) -> bytes:
    """Have a comment stand between the offset and the object."""
    forged = with_price(f)
    note = b"%% %d 0 obj\n" % f.content
    return f.append(
        {
            f.free: b"null\nendobj\n"
            + note
            + b"%d 0 obj\n" % f.content
            + forged[f.content]
        },
        table=lambda at: (
            b"%d 1\n%010d 00000 n \n"
            % (f.content, at[f.free] + len(b"%d 0 obj\nnull\nendobj\n" % f.free))
        ),
    )


@SECTIONS("offset: to another object of the signed file", "the unused drawing")
def offset_to_other(f: SignedFile) -> bytes:
    """List the content at the place of the unused drawing."""
    other = f.offsets(f.number("XObject", "Fm2"))[-1]
    return f.append({}, table=lambda _: b"%d 1\n%010d 00000 n \n" % (f.content, other))


@SECTIONS("offset: page to page 2", "page 2 twice", has_table)
def offset_to_page2(f: SignedFile) -> bytes:
    """List page 1 at the place of page 2."""
    other = f.offsets(f.page2)[-1]
    return f.append({}, table=lambda _: b"%d 1\n%010d 00000 n \n" % (f.page, other))


@SECTIONS(
    "offset: to a superseded version",
    "the form is the one before the signature, which is gone",
    lambda f: len(f.offsets(f.form)) > 1,
)
def offset_to_superseded(f: SignedFile) -> bytes:
    """List the form at the place of its first version."""
    first = f.offsets(f.form)[0]
    return f.append({}, table=lambda _: b"%d 1\n%010d 00000 n \n" % (f.form, first))


@SECTIONS("offset: into a stream", "page 1 shows another price", is_readable)
def offset_into_stream(f: SignedFile) -> bytes:
    """Have the forged content stand within the bytes of another stream."""
    inner = b"\n%d 0 obj\n%s\nendobj\n" % (f.content, with_price(f)[f.content])
    holder = stream(inner)
    before = len(b"%d 0 obj\n" % f.free) + holder.index(inner) + 1
    return f.append(
        {f.free: holder},
        table=lambda at: (
            b"%d 1\n%010d 00000 n \n%d 1\n%010d 00000 n \n"
            % (f.content, at[f.free] + before, f.free, at[f.free])
        ),
    )


@SECTIONS("/Prev: one byte early", "another price by repair")
def prev_early(f: SignedFile) -> bytes:
    """Have readers that repair find an object that no section lists."""
    return f.append(
        {**with_price(f), **new_price(f)},
        unlisted=[f.content], previous=f.previous - 1,
    )  # fmt: skip


@SECTIONS("/Prev: one byte late", "another price by repair")
def prev_late(f: SignedFile) -> bytes:
    """Have readers that repair find an object that no section lists."""
    return f.append(
        {**with_price(f), **new_price(f)},
        unlisted=[f.content], previous=f.previous + 1,
    )  # fmt: skip


@SECTIONS("/Prev: missing", "another price by repair")
def prev_missing(f: SignedFile) -> bytes:
    """Have the last section be the only one."""
    return f.append(with_price(f), previous=None)


@SECTIONS("/Prev: to itself", "another price, or no file at all")
def prev_loop(f: SignedFile) -> bytes:
    """Have the section follow itself."""
    made = f.append(with_price(f), classic=True)
    start = len(made) - len(made[made.rindex(b"\nxref\n") + 1 :])
    digits = len(b"%d" % f.previous)
    if len(b"%d" % start) > digits:
        made = f.append(with_price(f), classic=True, previous=10**digits)
        start = made.rindex(b"\nxref\n") + 1
    head, _, tail = made.rpartition(b"/Prev ")
    return head + b"/Prev %d" % start + tail[len(b"%d" % start) :]


@SECTIONS(
    "/Prev: past the section of the signature",
    "another price, and the signature is gone",
    lambda f: "/Prev" in f.qpdf.trailer,
)
def prev_past(f: SignedFile) -> bytes:
    """Have the section follow the one before the signature."""
    earlier = int(re.findall(rb"/Prev (\d+)", f.pdf)[-1])
    return f.append(with_price(f), previous=earlier)


@SECTIONS("startxref: one byte late", "another price by repair")
def startxref_late(f: SignedFile) -> bytes:
    """Have readers that repair find an object that no section lists."""
    return f.append({**with_price(f), **new_price(f)}, unlisted=[f.content], shift=1)


@SECTIONS("startxref: one byte early", "another price by repair")
def startxref_early(f: SignedFile) -> bytes:
    """Have readers that repair find an object that no section lists."""
    return f.append({**with_price(f), **new_price(f)}, unlisted=[f.content], shift=-1)


@SECTIONS("startxref: the signed one after the forged", "another price by repair")
def startxref_old(f: SignedFile) -> bytes:
    """Point back to the signed section behind a forged one."""
    return f.append(
        with_price(f), end=b"%%%%EOF\nstartxref\n%d\n%%%%EOF\n" % f.previous
    )


@SECTIONS(
    "startxref: the forged one before the signed, no end between", "another price"
)
def startxref_two(f: SignedFile) -> bytes:
    """Write two values in one end."""
    return f.append(with_price(f), end=b"startxref\n%d\n%%%%EOF\n" % f.previous)


@SECTIONS("end: objects after it", "another price by repair")
def objects_after_end(f: SignedFile) -> bytes:
    """Put an object behind the last end marker."""
    return f.pdf + b"\n%d 0 obj\n%s\nendobj\n" % (f.content, with_price(f)[f.content])


@SECTIONS("end: objects after a new revision", "another price by repair")
def objects_after_revision(f: SignedFile) -> bytes:
    """Put an object behind an honest revision."""
    more = b"%d 0 obj\n%s\nendobj\n" % (f.content, with_price(f)[f.content])
    return f.append(new_price(f)) + more


@SECTIONS("end: a second file", "the other file by repair")
def second_file(f: SignedFile) -> bytes:
    """Put another whole file behind the signed one."""
    plain = SignedFile(f.pdf)
    body = b"%%PDF-1.7\n%d 0 obj\n%s\nendobj\n" % (
        plain.content, with_price(plain)[plain.content],
    )  # fmt: skip
    trailer = b"trailer\n<</Root %d 0 R/Size %d>>\n" % (f.catalog, f.free)
    return f.pdf + body + trailer + b"startxref\n0\n%%EOF\n"


@SECTIONS("end: no marker", "page 1 shows another price")
def no_end_marker(f: SignedFile) -> bytes:
    """Leave out the end marker of a forged revision."""
    return f.append(with_price(f), end=b"")


@SECTIONS("end: marker in a stream that is the end", "page 1 shows another price")
def end_in_stream(f: SignedFile) -> bytes:
    """Have the file end within a stream that holds the signed end."""
    made = f.append(with_price(f))
    tail = b"startxref\n%d\n%%%%EOF\n" % f.previous
    return made + b"%d 0 obj\n<</Length %d>>stream\n%s" % (f.free + 9, len(tail), tail)


@SECTIONS("end: comments after it", "the end is not where readers search it")
def comments_after_end(f: SignedFile) -> bytes:
    """Push a forged revision's end out of the last 1024 bytes."""
    return f.append(with_price(f)) + (b"%" + b" " * 98 + b"\n") * 20


@SECTIONS("unlisted: content", "another price by repair")
def unlisted_content(f: SignedFile) -> bytes:
    """Append an object of a listed number that the new section does not list."""
    return f.append({**with_price(f), **new_price(f)}, unlisted=[f.content])


@SECTIONS("unlisted: page, among validation data", "another price by repair")
def unlisted_page(f: SignedFile) -> bytes:
    """Hide another version of page 1 in a revision that adds validation data."""
    at = f.free + 1
    return f.append(
        {
            **new_price(f),
            f.page: f.changed(f.page, {b"/Contents": b"%d 0 R" % f.free}),
            at: f.stream(at, b"\x30\x00"),
            f.catalog: f.changed(f.catalog, {b"/DSS": b"<</Certs[%d 0 R]>>" % at}),
        },
        unlisted=[f.page],
    )


@SECTIONS("unlisted: object header spread over lines", "another price by repair")
def unlisted_spread(f: SignedFile) -> bytes:
    """Write the header of the unlisted object with comments and line ends."""
    body = b"null\nendobj\n%d%%\n0\r\nobj\n%s" % (f.content, with_price(f)[f.content])
    return f.append({f.free: body})


@SECTIONS("generation: object and entry of 1", "another price")
def other_generation(f: SignedFile) -> bytes:
    """Append the content with another generation."""
    return f.append(with_price(f), generation=1)


@SECTIONS("generation: entry of 0, object of 1", "another price")
def generation_of_object(f: SignedFile) -> bytes:
    """Have the object's header name another generation than its entry."""
    made = f.append(with_price(f), generation=1, classic=True)
    at = made.rindex(b" 00001 n")
    return made[:at] + b" 00000 n" + made[at + 8 :]


@SECTIONS("generation: page refers to generation 1", "another price")
def generation_reference(f: SignedFile) -> bytes:
    """Refer from page 1 to a generation of the content that is not listed."""
    page = f.changed(f.page, {b"/Contents": b"%d 1 R" % f.content})
    return f.append({f.page: page, **new_price(f)})


@SECTIONS("free: content", "page 1 is empty")
def free_content(f: SignedFile) -> bytes:
    """Free the content of page 1."""
    return f.append({}, freed=[f.content])


@SECTIONS("free: page 2", "page 2 is gone")
def free_page(f: SignedFile) -> bytes:
    """Free page 2."""
    return f.append({}, freed=[f.page2])


@SECTIONS("free: annotation", "the stamp of the signed file is gone")
def free_annotation(f: SignedFile) -> bytes:
    """Free the annotation of page 1 that is no field."""
    stamp = f.find(lambda each: each.get("/Subtype") == "/Stamp")
    return f.append({}, freed=[stamp])


@SECTIONS("free: signature field", "the signature's field is gone")
def free_signature(f: SignedFile) -> bytes:
    """Free the field of the first signature."""
    return f.append({}, freed=[f.signed_fields()[0]])


@SECTIONS("free: appearance of the text field", "the field is empty")
def free_appearance(f: SignedFile) -> bytes:
    """Free the appearance of the text field."""
    return f.append({}, freed=[f.get(f.field("Nombre")).AP.N.objgen[0]])


@SECTIONS("hybrid: /XRefStm overrides an entry", "another price, or the signed one")
def hybrid_overrides(f: SignedFile) -> bytes:
    """List the content in the table as signed, and in the stream as forged."""
    out, at = f.bodies(with_price(f))
    start = len(out)
    out = bytearray(
        f.with_stream(
            out,
            [Row(f.content, 1, at[f.content])],
            f.trailer(f.free + 1, None),
            number=f.free,
            end=b"",
        )
    )
    # The stream of a hybrid file has no end of its own (ISO 32000-2, 7.5.8.4).
    del out[out.rindex(b"startxref") :]
    table = len(out)
    out += b"xref\n%strailer\n<<%s/XRefStm %d>>\nstartxref\n%d\n%%%%EOF\n" % (
        table_of({f.content: _old(f)}), f.trailer(f.free + 1, f.previous), start, table,
    )  # fmt: skip
    return bytes(out)


@SECTIONS("hybrid: /XRefStm lists what the table does not", "another price")
def hybrid_hidden(f: SignedFile) -> bytes:
    """List the forged content in the hidden section alone."""
    out, at = f.bodies(with_price(f))
    start = len(out)
    rows = [Row(f.content, 1, at[f.content])]
    entries = f.trailer(f.free + 1, None)
    out = bytearray(f.with_stream(out, rows, entries, number=f.free, end=b""))
    del out[out.rindex(b"startxref") :]
    table = len(out)
    out += b"xref\n0 1\n0000000000 65535 f \ntrailer\n<<%s/XRefStm %d>>\n" % (
        f.trailer(f.free + 1, f.previous), start,
    )  # fmt: skip
    return bytes(out + b"startxref\n%d\n%%%%EOF\n" % table)


@SECTIONS("trailer: new /Root", "another catalog is reached")
def new_root(f: SignedFile) -> bytes:
    """Append another catalog with another page tree."""
    return f.append(forged_catalog(f), root=b"%d 0 R" % f.free)


@SECTIONS("trailer: direct /Root", "another catalog, or no file at all")
def direct_root(f: SignedFile) -> bytes:
    """Write the catalog into the trailer itself."""
    tree = f.free
    catalog = f.changed(f.catalog, {b"/Pages": b"%d 0 R" % tree})
    return f.append(price_tree(f, tree), root=catalog)


@SECTIONS("trailer: no /Root", "another catalog by repair")
def no_root(f: SignedFile) -> bytes:
    """Leave out the catalog, with another one for readers that search."""
    return f.append(forged_catalog(f), trailer={b"/Root": None})


@SECTIONS("trailer: /Encrypt added", "no text at all, or no file", is_readable)
def encrypt_added(f: SignedFile) -> bytes:
    """Name an encryption that the signed bytes do not have."""
    handler = b"<</Filter/Standard/V 1/R 2/Length 40/P -4/O<%s>/U<%s>>>" % (
        b"28" * 32,
        b"4e" * 32,
    )
    return f.append({f.free: handler}, trailer={b"/Encrypt": b"%d 0 R" % f.free})


@SECTIONS("trailer: /Encrypt removed", "no text at all", lambda f: not is_readable(f))
def encrypt_removed(f: SignedFile) -> bytes:
    """Leave out the encryption that the signed bytes have."""
    return f.append({f.free: b"null"}, trailer={b"/Encrypt": None})


@SECTIONS(
    "trailer: /ID changed",
    "the key of the encryption is another one",
    lambda f: not is_readable(f) and f.qpdf.encryption.R == 4,
)
def id_changed(f: SignedFile) -> bytes:
    """Change the identifier that an encryption key is made from."""
    other = b"[<%s><%s>]" % (b"0b" * 16, b"0b" * 16)
    return f.append({f.free: b"null"}, trailer={b"/ID": other})


@SECTIONS(
    "trailer: a second one after the first", "another catalog by repair", has_table
)
def second_trailer(f: SignedFile) -> bytes:
    """Put another trailer behind an honest section."""
    made = f.append(forged_catalog(f))
    at = made.rindex(b"startxref")
    other = b"trailer\n<<%s>>\n" % f.trailer(f.free + 9, None, b"%d 0 R" % f.free)
    return made[:at] + other + made[at:]
