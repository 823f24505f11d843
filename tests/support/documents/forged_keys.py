"""Forgeries by a key that a dictionary has twice.

ISO 32000-2, 7.3.7 leaves the value undefined: PDFium, pdf.js and qpdf take the last
one, pyHanko in its tolerant mode and poppler in part take the first one.
"""

from collections.abc import Callable, Mapping
from typing import Final

from tests.support.documents.contract_pdf import line
from tests.support.documents.forgery import (
    PRICE,
    Collection,
    Make,
    is_readable,
    new_price,
)
from tests.support.documents.pdf_revisions import Row, SignedFile

REPEATED_KEYS: Final = Collection()
"""By name."""

Extra = Callable[[SignedFile], Mapping[int, bytes]]


def _nothing(_: SignedFile) -> Mapping[int, bytes]:
    return {}


def _twice(
    number: Callable[[SignedFile], int],
    more: Callable[[SignedFile], bytes],
    extra: Extra = _nothing,
) -> Make:
    """Append an object as it is, with a second value for one key."""

    def make(f: SignedFile) -> bytes:
        return f.append({number(f): f.changed(number(f), more=more(f)), **extra(f)})

    return make


def _page(f: SignedFile) -> int:
    return f.page


def _font(f: SignedFile) -> Mapping[int, bytes]:
    return {f.free: b"<</Type/Font/Subtype/Type1/BaseFont/ZapfDingbats>>"}


def _cover(f: SignedFile) -> Mapping[int, bytes]:
    stamp = b"<</Type/Annot/Subtype/Stamp/F 4/Rect[0 0 300 400]/AP<</N %d 0 R>>>>"
    return {f.free: stamp % f.number("XObject", "Fm2")}


def price_tree(f: SignedFile, at: int) -> dict[int, bytes]:
    """Give a page tree of one page with another price, numbered from `at`."""
    return {
        at: b"<</Type/Pages/Kids[%d 0 R]/Count 1>>" % (at + 1),
        at + 1: b"<</Type/Page/Parent %d 0 R/MediaBox[0 0 300 400]/Contents %d 0 R"
        b"/Resources<</Font<</F1 %d 0 R>>>>>>" % (at, at + 2, f.number("Font", "F1")),
        at + 2: f.stream(at + 2, PRICE),
    }


_SIMPLE: Final[dict[str, tuple[str, Make]]] = {
    "page /Contents": (
        "page 1 shows another price",
        _twice(_page, lambda f: b"/Contents %d 0 R" % f.free, new_price),
    ),
    "page /Con#74ents": (
        "page 1 shows another price; the two keys differ in their spelling",
        _twice(_page, lambda f: b"/Con#74ents %d 0 R" % f.free, new_price),
    ),
    "page /MediaBox": (
        "page 1 is cut off below the price",
        _twice(_page, lambda _: b"/MediaBox[0 0 300 250]"),
    ),
    "page /Annots": (
        "page 1 is covered by a drawing of the signed file",
        _twice(_page, lambda f: b"/Annots[%d 0 R]" % f.free, _cover),
    ),
    "page /Resources": (
        "page 1 is shown in another font",
        _twice(_page, lambda f: b"/Resources<</Font<</F1 %d 0 R>>>>" % f.free, _font),
    ),
    "tree /Kids": (
        "page 1 and page 2 are exchanged",
        _twice(lambda f: f.tree, lambda f: b"/Kids[%d 0 R %d 0 R]" % (f.page2, f.page)),
    ),
    "tree /Resources": (
        "page 2, which inherits them, is shown in another font",
        _twice(
            lambda f: f.tree,
            lambda f: b"/Resources<</Font<</F1 %d 0 R>>>>" % f.free,
            _font,
        ),
    ),
    "catalog /Pages": (
        "another page tree is reached",
        _twice(
            lambda f: f.catalog,
            lambda f: b"/Pages %d 0 R" % f.free,
            lambda f: price_tree(f, f.free),
        ),
    ),
    "catalog /AcroForm": (
        "the form with the signatures is no longer reached",
        _twice(lambda f: f.catalog, lambda _: b"/AcroForm<</Fields[]>>"),
    ),
    "catalog /OCProperties": (
        "the layer with the annex is shown",
        _twice(
            lambda f: f.catalog,
            lambda f: (
                b"/OCProperties<</OCGs[%d 0 R]/D<</ON[%d 0 R]>>>>"
                % (f.number("Properties", "oc1"), f.number("Properties", "oc1"))
            ),
        ),
    ),
    "font /BaseFont": (
        "the text of both pages is shown in another font",
        _twice(lambda f: f.number("Font", "F1"), lambda _: b"/BaseFont/ZapfDingbats"),
    ),
    "text field /AP": (
        "the field shows a drawing of the signed file",
        _twice(
            lambda f: f.field("Nombre"),
            lambda f: b"/AP<</N %d 0 R>>" % f.number("XObject", "Fm2"),
        ),
    ),
    "text field /Rect": (
        "the field stands over the price",
        _twice(lambda f: f.field("Nombre"), lambda _: b"/Rect[20 290 250 330]"),
    ),
    "text field /V": (
        "the field has another value",
        _twice(
            lambda f: f.field("Nombre"),
            lambda f: b"/V" + f.string(f.field("Nombre"), b"Eva"),
        ),
    ),
    "signature field /V": (
        "the field holds another signature dictionary, which covers nothing",
        _twice(
            lambda f: f.signed_fields()[0],
            lambda f: b"/V %d 0 R" % f.free,
            lambda f: {
                f.free: b"<</Type/Sig/Filter/Adobe.PPKLite"
                b"/SubFilter/ETSI.CAdES.detached/ByteRange[0 0 0 0]/Contents<00>>>"
            },
        ),
    ),
    "signature field /Rect": (
        "the signature's mark stands over the price, drawn by the signed file",
        _twice(
            lambda f: f.signed_fields()[0],
            lambda f: (
                b"/F 4/Rect[0 0 300 400]/AP<</N %d 0 R>>" % f.number("XObject", "Fm2")
            ),
        ),
    ),
}


def _add_simple() -> None:
    for name, (change, make) in _SIMPLE.items():
        REPEATED_KEYS(f"key twice: {name}", change)(make)


_add_simple()


@REPEATED_KEYS(
    "key twice: page /Contents, forged first", "readers that take the first are misled"
)
def contents_forged_first(f: SignedFile) -> bytes:
    """Put the forged value before the signed one."""
    page = f.changed(f.page)
    forged = b"<</Contents %d 0 R " % f.free + page[2:]
    return f.append({f.page: forged, **new_price(f)})


@REPEATED_KEYS("key twice: page /Contents, in an object stream", "another price")
def contents_in_object_stream(f: SignedFile) -> bytes:
    """Repeat the key of a page that stands in an object stream."""
    holder = f.free + 1
    page = f.changed(f.page, more=b"/Contents %d 0 R" % f.free)
    return f.append_rows(
        {**new_price(f), holder: f.object_stream(holder, [(f.page, page)])},
        lambda at: [
            Row(f.free, 1, at[f.free]),
            Row(holder, 1, at[holder]),
            Row(f.page, 2, holder, 0),
        ],
    )


@REPEATED_KEYS("key twice: nested /F1 of the fonts", "page 1 is shown in another font")
def nested_font(f: SignedFile) -> bytes:
    """Repeat a key two levels below the page."""
    page = f.changed(f.page)
    at = page.index(b"/F1 ")
    forged = (
        page[:at] + b"/F1 %d 0 R " % f.number("Font", "F1") + b"/F1 %d 0 R " % f.free
    )
    forged += page[page.index(b"R", at) + 1 :]
    return f.append({f.page: forged, **_font(f)})


@REPEATED_KEYS("key twice: nested /Fm1 of the drawings", "page 1 is covered")
def nested_drawing(f: SignedFile) -> bytes:
    """Repeat the name of a drawing in use, for the unused one."""
    page = f.changed(f.page)
    at = page.index(b"/Fm1 ")
    end = page.index(b"R", at) + 1
    again = b"/Fm1 %d 0 R" % f.number("XObject", "Fm2")
    return f.append({f.page: page[:end] + again + page[end:]})


@REPEATED_KEYS("key twice: drawing /BBox", "the green bar is no longer shown")
def drawing_box(f: SignedFile) -> bytes:
    """Repeat a key of a stream dictionary."""
    number = f.number("XObject", "Fm1")
    body = f.redrawn(number, f.data(number))
    return f.append({number: body.replace(b">>stream", b"/BBox[0 0 1 1]>>stream", 1)})


@REPEATED_KEYS("key twice: stream /Length", "page 1 shows another price")
def stream_length(f: SignedFile) -> bytes:
    """Have the second length take in another price."""
    old = f.data(f.content)
    body = f.stream(f.content, old + b"\n" + PRICE, length=b"%d/Length %d" % (
        len(old), len(f.cipher(f.content, old + b"\n" + PRICE)),
    ))  # fmt: skip
    return f.append({f.content: body})


@REPEATED_KEYS("key twice: stream /Filter", "page 1 is empty or shows its text")
def stream_filter(f: SignedFile) -> bytes:
    """Have one reader decode what the other takes as it is."""
    body = f.stream(f.content, f.data(f.content), b"/Filter[]/Filter/ASCIIHexDecode")
    return f.append({f.content: body})


def forged_catalog(f: SignedFile) -> dict[int, bytes]:
    """Give another catalog, numbered `f.free`, that reaches another price."""
    catalog = f.changed(f.catalog, {b"/Pages": b"%d 0 R" % (f.free + 1)})
    return {f.free: catalog, **price_tree(f, f.free + 1)}


@REPEATED_KEYS("key twice: trailer /Root", "another catalog is reached")
def trailer_root(f: SignedFile) -> bytes:
    """Name two catalogs."""
    return f.append(forged_catalog(f), more=b"/Root %d 0 R" % f.free, classic=True)


@REPEATED_KEYS("key twice: trailer /Prev", "another price, or no file at all")
def trailer_prev(f: SignedFile) -> bytes:
    """Name two earlier sections, the second of which does not exist."""
    return f.append(new_price(f), more=b"/Prev 9", classic=True)


@REPEATED_KEYS("key twice: xref stream /Root", "another catalog is reached")
def xref_stream_root(f: SignedFile) -> bytes:
    """Name two catalogs in the dictionary of a cross-reference stream."""
    return f.append_rows(
        forged_catalog(f),
        lambda at: [Row(number, 1, offset) for number, offset in at.items()],
        more=b"/Root %d 0 R" % f.free,
    )


@REPEATED_KEYS("key twice: xref stream /Index", "page 1 shows another price")
def xref_stream_index(f: SignedFile) -> bytes:
    """Have the entries belong to other numbers by the second value."""
    data = {f.free: f.stream(f.free, PRICE)}
    first = b"%d 2" % f.free
    return f.append_rows(
        {f.content: f.stream(f.content, PRICE), **data},
        lambda at: [Row(f.free, 1, at[f.content])],
        index=first + b"]/Index[%d 1 %d 1" % (f.content, f.free + 1),
    )


@REPEATED_KEYS("key twice: catalog /Metadata", "other metadata", is_readable)
def catalog_metadata(f: SignedFile) -> bytes:
    """Refer to metadata and, in the same key, to a new page's content."""
    tree = price_tree(f, f.free)
    more = b"/Metadata %d 0 R/Pages %d 0 R" % (f.free + 2, f.free)
    return f.append({f.catalog: f.changed(f.catalog, more=more), **tree})


@REPEATED_KEYS("key twice: page /CropBox after /CropBox", "page 1 shows a corner alone")
def page_crop_box(f: SignedFile) -> bytes:
    """Write the default of a key, and then another value."""
    more = b"/CropBox[0 0 300 400]/CropBox[0 0 90 90]"
    return f.append({f.page: f.changed(f.page, more=more)})


@REPEATED_KEYS("key twice: new field's appearance", "page 1 is covered")
def new_field_appearance(f: SignedFile) -> bytes:
    """Add an invisible signature field whose second /Rect is the whole page."""
    widget = (
        b"<</Type/Annot/Subtype/Widget/FT/Sig/T%s/F 132/P %d 0 R/Rect[0 0 0 0]"
        b"/Rect[0 0 300 400]/AP<</N %d 0 R>>>>"
        % (f.string(f.free, b"Otra"), f.page, f.number("XObject", "Fm2"))
    )
    annotations = f.listed("Annots", f.free)
    return f.append(
        {
            f.free: widget,
            f.page: f.changed(f.page, {b"/Annots": annotations}),
            **f.form_with(f.free),
        }
    )


@REPEATED_KEYS("key twice: parameters of a filled field", "the text field shows more")
def appearance_stream_keys(f: SignedFile) -> bytes:
    """Repeat /Matrix in the appearance of the text field."""
    number = int(f.get(f.field("Nombre")).AP.N.objgen[0])
    box = b"/BBox[0 0 120 20]/BBox[0 0 300 400]"
    body = f.look(number, line(b"Eva", 2, 4), b"[0 0 9 9]")
    return f.append({number: body.replace(b"/BBox[0 0 9 9]", box)})
