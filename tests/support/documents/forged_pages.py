"""Forgeries by revisions that are right in form and change what a page shows.

Among them are those that hide behind what may follow a signature: validation data,
metadata, and object numbers that the signed revision refers to and does not define.
"""

from collections.abc import Callable
from functools import partial
from typing import Final

from tests.support.documents.contract_pdf import line
from tests.support.documents.forgery import (
    PRICE,
    Collection,
    Make,
    is_readable,
    new_price,
    with_price,
)
from tests.support.documents.pdf_revisions import SignedFile

PAGES: Final = Collection()
"""By name."""

_XMP: Final = b'<x:xmpmeta xmlns:x="adobe:ns:meta/"/>'


def _page(change: Callable[[SignedFile], dict[bytes, bytes | None]]) -> Make:
    """Append page 1 with other entries."""
    return lambda f: f.append({f.page: f.changed(f.page, change(f))})


def _tree(change: Callable[[SignedFile], dict[bytes, bytes | None]]) -> Make:
    """Append the root of the page tree with other entries."""
    return lambda f: f.append({f.tree: f.changed(f.tree, change(f))})


_SIMPLE: Final[dict[str, tuple[str, Make]]] = {
    "content changed": (
        "page 1 shows another price",
        lambda f: f.append(with_price(f)),
    ),
    "content replaced": (
        "page 1 refers to other content",
        lambda f: f.append(
            {
                f.page: f.changed(f.page, {b"/Contents": b"%d 0 R" % f.free}),
                **new_price(f),
            }
        ),
    ),
    "content added": (
        "page 1 has a second content stream",
        lambda f: f.append(
            {
                f.page: f.changed(
                    f.page, {b"/Contents": b"[%d 0 R %d 0 R]" % (f.content, f.free)}
                ),
                **new_price(f),
            }
        ),
    ),
    "content of page 2 on page 1": (
        "page 1 shows what page 2 shows",
        _page(lambda f: {b"/Contents": b"%d %d R" % f.get(f.page2).Contents.objgen}),
    ),
    "content removed": ("page 1 is empty", _page(lambda _: {b"/Contents": None})),
    "page rotated": ("page 1 is turned", _page(lambda _: {b"/Rotate": b"90"})),
    "page cropped": (
        "page 1 shows its lower half",
        _page(lambda _: {b"/CropBox": b"[0 0 300 200]"}),
    ),
    "page enlarged": (
        "page 1 is larger",
        _page(lambda _: {b"/MediaBox": b"[-100 -100 400 500]"}),
    ),
    "page unit": (
        "page 1 is twice as large",
        _page(lambda _: {b"/UserUnit": b"2"}),
    ),
    "page action": (
        "opening page 1 runs a script",
        _page(
            lambda f: {
                b"/AA": b"<</O<</S/JavaScript/JS%s>>>>"
                % f.string(f.page, b"app.alert(1)")
            }
        ),
    ),
    "page 1 again in the place of page 2": (
        "page 2 is gone",
        _tree(lambda f: {b"/Kids": b"[%d 0 R %d 0 R]" % (f.page, f.page)}),
    ),
    "page removed": (
        "page 2 is gone",
        _tree(lambda f: {b"/Kids": b"[%d 0 R]" % f.page, b"/Count": b"1"}),
    ),
    "pages exchanged": (
        "page 1 and page 2 are exchanged",
        _tree(lambda f: {b"/Kids": b"[%d 0 R %d 0 R]" % (f.page2, f.page)}),
    ),
    "inherited /Rotate": ("page 2 is turned", _tree(lambda _: {b"/Rotate": b"180"})),
    "inherited /MediaBox": (
        "page 2 is cut off",
        _tree(lambda _: {b"/MediaBox": b"[0 0 300 100]"}),
    ),
    "inherited /CropBox": (
        "both pages are cut off",
        _tree(lambda _: {b"/CropBox": b"[0 0 300 100]"}),
    ),
    "inherited /Resources": (
        "page 2 is shown in another font",
        lambda f: f.append(
            {
                f.tree: f.changed(
                    f.tree, {b"/Resources": b"<</Font<</F1 %d 0 R>>>>" % f.free}
                ),
                f.free: b"<</Type/Font/Subtype/Type1/BaseFont/ZapfDingbats>>",
            }
        ),
    ),
    "font changed": (
        "the text of both pages is shown in another font",
        lambda f: f.append(
            {
                f.number("Font", "F1"): f.changed(
                    f.number("Font", "F1"), {b"/BaseFont": b"/ZapfDingbats"}
                )
            }
        ),
    ),
    "font encoding": (
        "the figure 1 is shown as 9",
        lambda f: f.append(
            {
                f.number("Font", "F1"): f.changed(
                    f.number("Font", "F1"),
                    {b"/Encoding": b"<</Differences[49/nine]>>"},
                )
            }
        ),
    ),
    "/ToUnicode alone": (
        "another price is searched, copied and read aloud",
        lambda f: f.append(
            {
                f.get(f.number("Font", "F1")).ToUnicode.objgen[0]: f.redrawn(
                    f.get(f.number("Font", "F1")).ToUnicode.objgen[0],
                    f.data(f.get(f.number("Font", "F1")).ToUnicode.objgen[0]).replace(
                        b"1 beginbfrange",
                        b"1 beginbfchar <31> <0039> endbfchar 1 beginbfrange",
                    ),
                )
            }
        ),
    ),
    "drawing changed": (
        "the green bar is another drawing",
        lambda f: f.append(
            {f.number("XObject", "Fm1"): f.look(f.number("XObject", "Fm1"), PRICE)}
        ),
    ),
    "drawing exchanged": (
        "the unused drawing is shown",
        _page(
            lambda f: {
                b"/Resources": f.entries(f.page)[b"/Resources"].replace(
                    b"/Fm1 %d 0 R" % f.number("XObject", "Fm1"),
                    b"/Fm1 %d 0 R" % f.number("XObject", "Fm2"),
                )
            }
        ),
    ),
    "layer's number is another kind": (
        "the layer with the annex is shown",
        lambda f: f.append({f.number("Properties", "oc1"): b"<</Type/None>>"}),
    ),
    "/ActualText": (
        "another price is read aloud",
        lambda f: f.append(_actual_text(f)),
    ),
    "parent tree": (
        "no structure belongs to page 1",
        lambda f: f.append(
            {f.qpdf.Root.StructTreeRoot.ParentTree.objgen[0]: b"<</Nums[]>>"}
        ),
    ),
    "stamp of the signed file": (
        "the stamp annotation shows another drawing",
        lambda f: f.append(_stamp_redrawn(f)),
    ),
}


def _actual_text(f: SignedFile) -> dict[int, bytes]:
    number = f.find(lambda each: "/ActualText" in each)
    text = f.string(number, b"Precio: 900.000")
    return {number: f.changed(number, {b"/ActualText": text})}


def _stamp(f: SignedFile) -> int:
    """Give the number of the one annotation of page 1 that is no field."""
    return f.find(lambda each: each.get("/Subtype") == "/Stamp")


def _stamp_redrawn(f: SignedFile) -> dict[int, bytes]:
    number = int(f.get(_stamp(f)).AP.N.objgen[0])
    return {number: f.look(number, PRICE)}


def _add_simple() -> None:
    for name, (change, make) in _SIMPLE.items():
        PAGES(f"page: {name}", change)(make)


_add_simple()


@PAGES("page: added", "page 3 shows another price")
def page_added(f: SignedFile) -> bytes:
    """Add a page."""
    kids = b"[%d 0 R %d 0 R %d 0 R]" % (f.page, f.page2, f.free + 1)
    page = f.changed(f.page2, {b"/Contents": b"%d 0 R" % f.free})
    return f.append(
        {
            **new_price(f),
            f.free + 1: page,
            f.tree: f.changed(f.tree, {b"/Kids": kids, b"/Count": b"3"}),
        }
    )


@PAGES("page: added in a nested tree", "page 2 is another page")
def page_nested(f: SignedFile) -> bytes:
    """Replace page 2 by a tree of its own number."""
    page = f.changed(
        f.page2, {b"/Contents": b"%d 0 R" % f.free, b"/Parent": b"%d 0 R" % f.page2}
    )
    return f.append(
        {
            **new_price(f),
            f.free + 1: page,
            f.page2: b"<</Type/Pages/Parent %d 0 R/Count 1/Kids[%d 0 R]>>"
            % (f.tree, f.free + 1),
        }
    )


def _annotation(kind: bytes, entries: Callable[[SignedFile], bytes]) -> Make:
    """Append an annotation of page 1."""

    def make(f: SignedFile) -> bytes:
        note = b"<</Type/Annot/Subtype/%s/F 4/P %d 0 R%s>>" % (kind, f.page, entries(f))
        annotations = f.listed("Annots", f.free)
        return f.append(
            {
                f.free: note,
                f.page: f.changed(f.page, {b"/Annots": annotations}),
                f.free + 1: f.look(f.free + 1, PRICE),
            }
        )

    return make


_DRAWN: Final = b"/Rect[0 0 300 400]/AP<</N %d 0 R>>"
_NOTES: Final[dict[str, Callable[[SignedFile], bytes]]] = {
    "FreeText": lambda f: (
        b"/Contents%s/DA%s"
        % (f.string(f.free, b"900.000"), f.string(f.free, b"/Helv 40 Tf 1 0 0 rg"))
        + _DRAWN % (f.free + 1)
    ),
    "Stamp": lambda f: _DRAWN % f.number("XObject", "Fm2"),
    "Highlight": lambda _: (
        b"/C[0 0 0]/Rect[20 290 150 320]/QuadPoints[20 320 150 320 20 290 150 290]"
    ),
    "Redact": lambda f: _DRAWN % (f.free + 1),
    "Square": lambda f: b"/Rect[10 290 250 330]/IC[1 1 1]" + _DRAWN[18:] % (f.free + 1),
    "Popup": lambda f: b"/Open true/Rect[20 290 250 390]/Parent %d 0 R" % f.free,
    "Link": lambda f: (
        b"/Rect[0 0 300 400]/Border[0 0 9]/A<</S/URI/URI%s>>"
        % f.string(f.free, b"https://example.org/")
    ),
    "Link with a script": lambda f: (
        b"/Rect[0 0 300 400]/A<</S/JavaScript/JS%s>>"
        % f.string(f.free, b"app.alert(1)")
    ),
    "Watermark": lambda f: _DRAWN % (f.free + 1),
    "FileAttachment": lambda f: (
        b"/Rect[20 290 40 320]/FS<</Type/Filespec/F%s>>"
        % f.string(f.free, b"annex.pdf")
        + _DRAWN[18:] % (f.free + 1)
    ),
    "Ink": lambda f: b"/InkList[[20 290 250 330]]/C[1 0 0]" + _DRAWN % (f.free + 1),
}


def _add_notes() -> None:
    for kind, entries in _NOTES.items():
        PAGES(f"annotation: {kind}", "page 1 is covered or leads elsewhere")(
            _annotation(kind.split()[0].encode(), entries)
        )


_add_notes()


@PAGES("annotation: removed", "the stamp of the signed file is gone")
def annotation_removed(f: SignedFile) -> bytes:
    """Leave the stamp out of the page's annotations."""
    notes = f.get(f.page).Annots.unparse(resolved=True)
    kept = notes.replace(b" %d 0 R" % _stamp(f), b"")
    return f.append({f.page: f.changed(f.page, {b"/Annots": kept})})


@PAGES("annotation: hidden", "the stamp of the signed file is gone")
def annotation_hidden(f: SignedFile) -> bytes:
    """Set the flag that hides the stamp."""
    number = _stamp(f)
    return f.append({number: f.changed(number, {b"/F": b"2"})})


@PAGES("annotation: on page 2", "page 2 is covered")
def annotation_page2(f: SignedFile) -> bytes:
    """Give page 2 its first annotation."""
    note = b"<</Type/Annot/Subtype/Stamp/F 4/P %d 0 R" % f.page2
    note += _DRAWN % f.number("XObject", "Fm2") + b">>"
    page = f.changed(f.page2, {b"/Annots": b"[%d 0 R]" % f.free})
    return f.append({f.free: note, f.page2: page})


@PAGES("validation data: is the content", "page 1 shows another price")
def dss_is_content(f: SignedFile) -> bytes:
    """List the content of page 1, changed, as a certificate of the DSS."""
    dss = b"<</Certs[%d 0 R]>>" % f.content
    return f.append({**with_price(f), f.catalog: f.changed(f.catalog, {b"/DSS": dss})})


@PAGES("validation data: VRI is the page", "page 1 shows another price")
def vri_is_page(f: SignedFile) -> bytes:
    """Have the entry of a signature in the DSS be page 1, changed."""
    page = f.changed(
        f.page,
        {b"/Contents": b"%d 0 R" % f.free, b"/Cert": b"[%d 0 R]" % f.free},
    )
    dss = b"<</Certs[%d 0 R]/VRI<</%s %d 0 R>>>>" % (f.free, b"0A" * 20, f.page)
    return f.append(
        {
            f.page: page,
            **new_price(f),
            f.catalog: f.changed(f.catalog, {b"/DSS": dss}),
        }
    )


@PAGES("validation data: with a new page", "page 3 shows another price")
def dss_with_page(f: SignedFile) -> bytes:
    """Add a page and validation data in one revision."""
    at = f.free + 1
    dss = b"<</Certs[%d 0 R]>>" % (f.free + 2)
    kids = b"[%d 0 R %d 0 R %d 0 R]" % (f.page, f.page2, at)
    return f.append(
        {
            **new_price(f),
            at: f.changed(f.page2, {b"/Contents": b"%d 0 R" % f.free}),
            f.free + 2: f.stream(f.free + 2, b"\x30\x00"),
            f.tree: f.changed(f.tree, {b"/Kids": kids, b"/Count": b"3"}),
            f.catalog: f.changed(f.catalog, {b"/DSS": dss}),
        }
    )


@PAGES("metadata: is the content", "page 1 is empty", is_readable)
def metadata_is_content(f: SignedFile) -> bytes:
    """Have the content of page 1 be the new metadata."""
    body = f.stream(f.content, _XMP, b"/Type/Metadata/Subtype/XML")
    catalog = f.changed(f.catalog, {b"/Metadata": b"%d 0 R" % f.content})
    return f.append({f.content: body, f.catalog: catalog})


@PAGES("/Info: is the font", "the text is shown in another font")
def info_is_font(f: SignedFile) -> bytes:
    """Have the font, changed, be the document's information."""
    font = f.number("Font", "F1")
    return f.append(
        {font: f.changed(font, {b"/BaseFont": b"/ZapfDingbats"})},
        trailer={b"/Info": b"%d 0 R" % font},
    )


@PAGES("/Info: is the page", "page 1 shows another price")
def info_is_page(f: SignedFile) -> bytes:
    """Have page 1, changed, be the document's information."""
    page = f.changed(f.page, {b"/Contents": b"%d 0 R" % f.free})
    return f.append(
        {f.page: page, **new_price(f)}, trailer={b"/Info": b"%d 0 R" % f.page}
    )


def is_dangling(f: SignedFile) -> bool:
    """Return whether a file refers to the objects 5000 to 5003."""
    return b"5000 0 R" in f.pdf


_DANGLING: Final[dict[str, tuple[str, Callable[[SignedFile], dict[int, bytes]]]]] = {
    "drawing": (
        "page 1 is covered",
        lambda f: {5000: f.look(5000, PRICE)},
    ),
    "content": (
        "page 2 shows another price",
        lambda f: {5001: f.stream(5001, PRICE)},
    ),
    "font": (
        "page 1 shows a text in another font",
        lambda _: {5002: b"<</Type/Font/Subtype/Type1/BaseFont/ZapfDingbats>>"},
    ),
    "appearance": (
        "page 1 is covered",
        lambda f: {5003: f.look(5003, PRICE)},
    ),
}


def _defined(objects: Callable[[SignedFile], dict[int, bytes]], f: SignedFile) -> bytes:
    return f.append(objects(f))


def _add_dangling() -> None:
    for name, (change, objects) in _DANGLING.items():
        add = PAGES(f"dangling: {name} defined", change, is_dangling)
        add(partial(_defined, objects))


_add_dangling()


@PAGES("dangling: defined as validation data", "page 1 is covered", is_dangling)
def dangling_validation_data(f: SignedFile) -> bytes:
    """Define the drawing, and list it as a certificate of the DSS."""
    dss = b"<</Certs[5000 0 R]>>"
    catalog = f.changed(f.catalog, {b"/DSS": dss})
    return f.append({5000: f.look(5000, PRICE), f.catalog: catalog})


@PAGES("dangling: defined in two revisions", "page 1 is covered", is_dangling)
def dangling_two_revisions(f: SignedFile) -> bytes:
    """Define the drawing as null, and then as a drawing."""
    again = SignedFile(f.append({5000: b"null"}))
    return again.append({5000: again.look(5000, PRICE)})


@PAGES("two steps: a drawing comes and is used", "page 1 is covered")
def two_steps(f: SignedFile) -> bytes:
    """Add an object that nothing refers to, and refer to it in another revision."""
    again = SignedFile(f.append({f.free: f.look(f.free, PRICE)}))
    note = b"<</Type/Annot/Subtype/Stamp/F 4" + _DRAWN % f.free + b">>"
    annotations = again.listed("Annots", again.free)
    return again.append(
        {
            again.free: note,
            again.page: again.changed(again.page, {b"/Annots": annotations}),
        }
    )


@PAGES("two steps: validation data becomes content", "page 1 shows another price")
def validation_data_then_content(f: SignedFile) -> bytes:
    """Add a stream as validation data, and show it in another revision."""
    dss = b"<</Certs[%d 0 R]>>" % f.free
    again = SignedFile(
        f.append({**new_price(f), f.catalog: f.changed(f.catalog, {b"/DSS": dss})})
    )
    page = again.changed(again.page, {b"/Contents": b"%d 0 R" % f.free})
    return again.append({again.page: page})


@PAGES("two steps: content changed and changed back, but for its end", "one line more")
def changed_and_back(f: SignedFile) -> bytes:
    """Change the content, and write it again with another line."""
    again = SignedFile(f.append(with_price(f)))
    data = f.data(f.content) + b"\n" + line(b"Cuota: 50", 20, 330)
    return again.append({again.content: again.stream(again.content, data)})
