"""PDFs that nobody would send in good faith, made here byte by byte."""

import io
import re
import zlib
from collections.abc import Callable, Mapping

from pyhanko.pdf_utils.reader import PdfFileReader
from pyhanko.pdf_utils.writer import PdfFileWriter, copy_into_new_writer

Forgery = Callable[[bytes], bytes]
"""Makes a signed document a forged one, without moving any byte."""

PAGE = b"<</Type/Page/Parent 2 0 R/MediaBox[0 0 200 300]/Contents 4 0 R>>"
NO_MARKS = b"<</Type/XObject/Subtype/Form/BBox[0 0 9 9]/Length 0>>stream\n\nendstream"
CONTENT = b"<</Length 18>>stream\n0 0 100 100 re f 0 \nendstream"


def build(
    objects: Mapping[int, bytes], trailer: bytes = b"", apart: int | None = None
) -> bytes:
    """Write objects with a right cross-reference table; 1 is the catalog.

    Args:
        objects: by number; the numbers between them are listed as free.
        trailer: further entries.
        apart: number of one more object, `CONTENT`, with a subsection of its own.
    """
    out = bytearray(b"%PDF-1.7\n%\xe2\xe3\xcf\xd3\n")
    offsets = {}
    for number, body in objects.items():
        offsets[number] = len(out)
        out += b"%d 0 obj\n%s\nendobj\n" % (number, body)
    start, size = len(out), max(objects) + 1
    out += b"xref\n0 %d\n0000000000 65535 f \n" % size
    for number in range(1, size):
        offset = offsets.get(number)
        out += b"%010d %05d %s \n" % (
            offset or 0,
            0 if offset else 65535,
            b"n" if offset else b"f",
        )
    if apart is not None:
        out[start:start] = content = b"%d 0 obj\n%s\nendobj\n" % (apart, CONTENT)
        out += b"%d 1\n%010d 00000 n \n" % (apart, start)
        start, size = start + len(content), apart + 1
    out += b"trailer\n<</Size %d/Root 1 0 R%s>>\n" % (size, trailer)
    out += b"startxref\n%d\n%%%%EOF\n" % start
    return bytes(out)


def plain(catalog: bytes = b"", page: bytes = b"", **more: bytes) -> bytes:
    """One page of 200 by 300; entries may be added to catalog and page.

    Args:
        catalog: entries of the catalog.
        page: entries of the page.
        more: further objects, `o5` being object 5.
    """
    return build(
        {
            1: b"<</Type/Catalog/Pages 2 0 R" + catalog + b">>",
            2: b"<</Type/Pages/Kids[3 0 R]/Count 1>>",
            3: PAGE[:-2] + page + b">>",
            4: CONTENT,
            **{int(name[1:]): body for name, body in more.items()},
        }
    )


def annotated(*annotations: bytes, drawn: bool = False) -> bytes:
    """One page of 200 by 300 with annotations that have these entries.

    Args:
        annotations: entries of each.
        drawn: give all of them one appearance, which shows nothing.
    """
    first = 5
    last = first + len(annotations)
    look = b"/AP<</N %d 0 R>>" % last if drawn else b""
    numbers = range(first, last)
    fields = [
        b"%d 0 R" % number
        for number, entries in zip(numbers, annotations, strict=True)
        if b"/Widget" in entries
    ]
    return plain(
        b"/AcroForm<</Fields[%s]>>" % b" ".join(fields) if fields else b"",
        page=b"/Annots[%s]" % b" ".join(b"%d 0 R" % number for number in numbers),
        **{
            f"o{first + n}": b"<</Type/Annot%s%s>>" % (entries, look)
            for n, entries in enumerate(annotations)
        },
        **({f"o{last}": NO_MARKS} if drawn else {}),
    )


def kids(tree: bytes, count: int | None = None) -> bytes:
    """A page tree whose root has these kids; object 3 is a page, 2 the root."""
    return build(
        {
            1: b"<</Type/Catalog/Pages 2 0 R>>",
            2: b"<</Type/Pages/Kids[%s]%s>>"
            % (tree, b"" if count is None else b"/Count %d" % count),
            3: PAGE,
            4: CONTENT,
        }
    )


def boxed(box: bytes) -> bytes:
    """One page with just this for a MediaBox."""
    return build(
        {
            1: b"<</Type/Catalog/Pages 2 0 R>>",
            2: b"<</Type/Pages/Kids[3 0 R]/Count 1>>",
            3: b"<</Type/Page/Parent 2 0 R" + box + b">>",
        }
    )


def many_pages(count: int) -> bytes:
    """As many pages, each an object of its own."""
    first = 5
    return build(
        {
            1: b"<</Type/Catalog/Pages 2 0 R>>",
            2: b"<</Type/Pages/MediaBox[0 0 9 9]/Count %d/Kids[%s]>>"
            % (count, b" ".join(b"%d 0 R" % (first + n) for n in range(count))),
            **{first + n: b"<</Type/Page/Parent 2 0 R>>" for n in range(count)},
        }
    )


def nested_arrays(depth: int = 100_000) -> bytes:
    """Arrays in arrays, where the catalog is read."""
    return plain(catalog=b"/Deep " + b"[" * depth + b"]" * depth)


def loop_of_previous() -> bytes:
    """Cross-references whose predecessor is themselves."""
    whole = plain()
    start = whole.rindex(b"xref\n", 0, whole.rindex(b"startxref"))
    return whole.replace(b"/Root 1 0 R>>", b"/Root 1 0 R/Prev %d>>" % start)


def catalog_of_itself() -> bytes:
    """A catalog that is a reference to itself."""
    return build({1: b"1 0 R", 2: b"<</Type/Pages/Kids[]/Count 0>>"})


def deep_tree(depth: int = 5_000) -> bytes:
    """A page at the end of a very long branch."""
    nodes = {
        number: b"<</Type/Pages/Kids[%d 0 R]/Count 1>>" % (number + 1)
        for number in range(2, depth)
    }
    page = b"<</Type/Page/MediaBox[0 0 9 9]>>"
    return build({1: b"<</Type/Catalog/Pages 2 0 R>>", **nodes, depth: page})


def _deflated(block: bytes, times: int) -> bytes:
    """As many copies of a block as one zlib stream, of which one is deflated."""
    deflate = zlib.compressobj(1, zlib.DEFLATED, -zlib.MAX_WBITS)
    # After a full flush nothing refers to what was before: the next copy is the same.
    part = deflate.compress(block) + deflate.flush(zlib.Z_FULL_FLUSH)
    check = 1
    for _ in range(times):
        check = zlib.adler32(block, check)
    return b"\x78\x01" + part * times + deflate.flush() + check.to_bytes(4, "big")


def xref_stream_bomb() -> bytes:
    """A cross-reference stream that unfolds to 300 MiB, twice deflated."""
    data = zlib.compress(_deflated(bytes(1_048_576), 300), 9)
    out = bytearray(b"%PDF-1.7\n")
    start = len(out)
    out += (
        b"1 0 obj\n<</Type/XRef/W[1 4 2]/Size 153391689/Root 2 0 R/Length %d"
        b"/Filter[/FlateDecode/FlateDecode]>>stream\n" % len(data)
    )
    out += data + b"\nendstream\nendobj\nstartxref\n%d\n%%%%EOF\n" % start
    return bytes(out)


def content_bomb(times: int = 1) -> bytes:
    """A page whose content unfolds to 300 MiB, once deflated or more often."""
    data = _deflated(b" " * 1_048_576, 300)
    for _ in range(times - 1):
        data = zlib.compress(data)
    filters = b"/FlateDecode" * times
    content = b"<</Filter[%s]/Length %d>>stream\n" % (filters, len(data))
    return build(
        {
            1: b"<</Type/Catalog/Pages 2 0 R>>",
            2: b"<</Type/Pages/Kids[3 0 R]/Count 1>>",
            3: PAGE,
            4: content + data + b"\nendstream",
        }
    )


def nested_drawings(depth: int = 12) -> bytes:
    """A page that draws a form ten times, which draws one ten times, and so on."""
    first = 5

    def form(number: int) -> bytes:
        below = b"/Resources<</XObject<</F %d 0 R>>>>" % (number + 1)
        drawing = b"/F Do " * 10 if number < first + depth else b"0 0 9 9 re f"
        head = b"<</Type/XObject/Subtype/Form/BBox[0 0 200 300]%s" % below
        return head + b"/Length %d>>stream\n%s\nendstream" % (len(drawing), drawing)

    return plain(
        page=b"/Resources<</XObject<</F 5 0 R>>>>",
        o4=b"<</Length 6>>stream\n/F Do \nendstream",
        **{f"o{number}": form(number) for number in range(first, first + depth + 1)},
    )


def encrypted_with_mac() -> bytes:
    """The plain page, encrypted and protected by a MAC (ISO/TS 32004)."""
    writer = copy_into_new_writer(PdfFileReader(io.BytesIO(plain())))
    assert isinstance(writer, PdfFileWriter)
    writer.encrypt("owner", "", pdf_mac=True)
    out = io.BytesIO()
    writer.write(out)
    return out.getvalue()


def unknown_encryption() -> bytes:
    """A file encrypted by a handler that nobody knows."""
    return build(
        {
            1: b"<</Type/Catalog/Pages 2 0 R>>",
            2: b"<</Type/Pages/Kids[3 0 R]/Count 1>>",
            3: PAGE,
            4: CONTENT,
            5: b"<</Filter/Nobody.Knows/V 1>>",
        },
        trailer=b"/Encrypt 5 0 R/ID[<00><00>]",
    )


def xfa(template: bytes, catalog: bytes = b"") -> bytes:
    """A form described in XFA."""
    packet = b"<</Length %d>>stream\n%s\nendstream" % (len(template), template)
    form = b"/AcroForm<</Fields[]/XFA 5 0 R>>"
    return plain(catalog=form + catalog, o5=packet)


def empty_xfa() -> bytes:
    """An XFA form whose PDF page shows nothing."""
    return build(
        {
            1: b"<</Type/Catalog/Pages 2 0 R/AcroForm<</Fields[]/XFA 4 0 R>>>>",
            2: b"<</Type/Pages/Kids[3 0 R]/Count 1>>",
            3: b"<</Type/Page/Parent 2 0 R/MediaBox[0 0 9 9]>>",
            4: b"<</Length 6>>stream\n<xdp/>\nendstream",
        }
    )


def null_byte_range(signed: bytes) -> bytes:
    """A signature whose ByteRange is null."""
    return _overwrite(signed, rb"/ByteRange (\[[^\]]*\] *)", b"null")


def negative_byte_range(signed: bytes) -> bytes:
    """A signature whose ByteRange counts backwards."""
    return _overwrite(signed, rb"/ByteRange (\[[^\]]*\] *)", b"[0 -5 10 -7]")


def no_contents(signed: bytes) -> bytes:
    """A signature whose value is all zeros."""
    return re.sub(
        rb"(/Contents <)([0-9a-fA-F]+)(>)",
        lambda found: found[1] + b"0" * len(found[2]) + found[3],
        signed,
    )


def _overwrite(content: bytes, pattern: bytes, instead: bytes) -> bytes:
    """Replace the pattern's first group, keeping its length."""
    found = re.search(pattern, content)
    assert found is not None
    start, end = found.span(1)
    return content[:start] + instead.ljust(end - start) + content[end:]


def deep_fields(depth: int = 5_000) -> bytes:
    """A form whose fields lie one below the other."""
    first = 5
    nodes = {
        first + n: b"<</T(a)/Kids[%d 0 R]/Parent %d 0 R>>"
        % (first + n + 1, first + n - 1)
        for n in range(depth)
    }
    return build(
        {
            1: b"<</Type/Catalog/Pages 2 0 R/AcroForm<</Fields[5 0 R]>>>>",
            2: b"<</Type/Pages/Kids[3 0 R]/Count 1>>",
            3: PAGE,
            4: CONTENT,
            **nodes,
            first + depth: b"<</T(b)/FT/Tx>>",
        }
    )


def edited_xref(pattern: bytes, instead: bytes) -> bytes:
    """The plain page with its cross-references changed."""
    whole = plain()
    head, mark, tail = whole.rpartition(b"\nxref\n")
    changed = re.sub(pattern, instead, tail, count=1)
    assert changed != tail
    return head + mark + changed


def hybrid() -> bytes:
    """One page with a table for old programs and a stream for new ones."""
    head, _, tail = plain(o7=b"<<>>").rpartition(b"xref\n0 ")
    hidden = len(head)  # object 5, which the table calls free
    head += b"5 0 obj\n<</Length 0>>stream\n\nendstream\nendobj\n"
    start = len(head)
    row = bytes([1]) + hidden.to_bytes(4, "big") + bytes(1)
    head += (
        b"6 0 obj\n<</Type/XRef/W[1 4 1]/Index[5 1]/Size 8/Root 1 0 R/Length %d>>"
        b"stream\n%s\nendstream\nendobj\n" % (len(row), row)
    )
    tail = re.sub(rb"startxref\n\d+", b"startxref\n%d" % len(head), tail)
    tail = tail.replace(b"/Root 1 0 R", b"/Root 1 0 R/XRefStm %d" % start)
    return head + b"xref\n0 " + tail
