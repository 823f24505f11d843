"""Forgeries by entries of the catalog and of the signature that certifies."""

from collections.abc import Callable
from functools import partial
from typing import Final

from tests.support.documents.contract_pdf import line
from tests.support.documents.forgery import PRICE, Applies, Collection, always
from tests.support.documents.pdf_revisions import SignedFile
from tests.support.documents.shadow_pdfs import second_document

CATALOG: Final = Collection()
"""By name."""

Entries = Callable[[SignedFile], dict[bytes, bytes | None]]


def _script(f: SignedFile) -> bytes:
    return b"<</S/JavaScript/JS%s>>" % f.string(f.catalog, b"app.alert(1)")


def _layer(f: SignedFile) -> int:
    return f.number("Properties", "oc1")


def _has(key: str) -> Applies:
    return lambda f: key in f.qpdf.Root


def _attached(f: SignedFile) -> dict[bytes, bytes | None]:
    return {
        b"/Names": b"<</EmbeddedFiles<</Names[%s %d 0 R]>>>>"
        % (f.string(f.catalog, b"annex.pdf"), f.free + 1)
    }


_SIMPLE: Final[dict[str, tuple[str, Entries, Applies]]] = {
    "/OCProperties switched": (
        "the layer with the annex is shown",
        lambda f: {
            b"/OCProperties": b"<</OCGs[%d 0 R]/D<</ON[%d 0 R]>>>>"
            % (_layer(f), _layer(f))
        },
        always,
    ),
    "/OCProperties removed": (
        "the layer with the annex is shown",
        lambda _: {b"/OCProperties": None},
        always,
    ),
    "/OpenAction": (
        "opening the file runs a script",
        lambda f: {b"/OpenAction": _script(f)},
        always,
    ),
    "/OpenAction to page 2": (
        "the file opens at page 2",
        lambda f: {b"/OpenAction": b"[%d 0 R/Fit]" % f.page2},
        always,
    ),
    "/AA": (
        "closing the file runs a script",
        lambda f: {b"/AA": b"<</WC%s>>" % _script(f)},
        always,
    ),
    "/Names with a script": (
        "opening the file runs a script",
        lambda f: {
            b"/Names": b"<</JavaScript<</Names[%s%s]>>>>"
            % (f.string(f.catalog, b"a"), _script(f))
        },
        always,
    ),
    "/Outlines": (
        "the bookmarks name another price",
        lambda f: {b"/Outlines": b"%d 0 R" % f.free, b"/PageMode": b"/UseOutlines"},
        always,
    ),
    "/PageLabels": (
        "the pages have other numbers",
        lambda _: {b"/PageLabels": b"<</Nums[0<</S/r/St 7>>]>>"},
        always,
    ),
    "/ViewerPreferences": (
        "the file is read from right to left, and prints one page",
        lambda _: {b"/ViewerPreferences": b"<</Direction/R2L/PrintPageRange[1 1]>>"},
        always,
    ),
    "/Dests": (
        "links lead to page 2",
        lambda f: {b"/Dests": b"<</precio[%d 0 R/Fit]>>" % f.page2},
        always,
    ),
    "/Lang": (
        "the text is read aloud in another language",
        lambda f: {b"/Lang": f.string(f.catalog, b"tlh")},
        always,
    ),
    "/StructTreeRoot removed": (
        "the text that is read aloud is gone",
        lambda _: {b"/StructTreeRoot": None},
        always,
    ),
    "/URI base": (
        "relative links lead elsewhere",
        lambda f: {
            b"/URI": b"<</Base%s>>" % f.string(f.catalog, b"https://example.org/")
        },
        always,
    ),
    "/Collection": (
        "the file is a portfolio and shows an attachment first",
        lambda f: {b"/Collection": b"<</View/T>>", **_attached(f)},
        always,
    ),
    "embedded file": (
        "the file has an attachment",
        _attached,
        always,
    ),
    "/NeedsRendering": (
        "readers with XFA show nothing but XFA",
        lambda _: {b"/NeedsRendering": b"true"},
        always,
    ),
    "/AcroForm removed": (
        "the signatures are gone",
        lambda _: {b"/AcroForm": None},
        always,
    ),
    "/AcroForm of its own": (
        "the form is another one, without fields",
        lambda _: {b"/AcroForm": b"<</Fields[]>>"},
        always,
    ),
    "/Perms removed": (
        "the file is no longer certified",
        lambda _: {b"/Perms": None},
        _has("/Perms"),
    ),
    "/Perms of another signature": (
        "another dictionary certifies the file",
        lambda f: {b"/Perms": b"<</DocMDP %d 0 R>>" % f.free},
        _has("/Perms"),
    ),
    "/Perms added": (
        "an approval signature certifies the file",
        lambda f: {
            b"/Perms": b"<</DocMDP %d 0 R>>" % f.get(f.signed_fields()[0]).V.objgen[0]
        },
        lambda f: "/Perms" not in f.qpdf.Root,
    ),
    "/Perms with usage rights": (
        "the file has rights that nothing proves",
        lambda f: {
            b"/Perms": b"<</UR3 %d 0 R>>" % f.get(f.signed_fields()[0]).V.objgen[0]
        },
        lambda f: "/Perms" not in f.qpdf.Root,
    ),
    "/DSS removed": (
        "the validation data are gone",
        lambda _: {b"/DSS": None},
        _has("/DSS"),
    ),
    "/DSS emptied": (
        "the validation data are gone",
        lambda _: {b"/DSS": b"<<>>"},
        _has("/DSS"),
    ),
    "/Requirements": (
        "readers without scripts refuse the file",
        lambda _: {b"/Requirements": b"[<</Type/Requirement/S/EnableJavaScripts>>]"},
        always,
    ),
    "/Legal": (
        "the file attests other content",
        lambda _: {b"/Legal": b"<</JavaScriptActions 0/NonEmbeddedFonts 0>>"},
        always,
    ),
    "/AF": (
        "the file has an associated file",
        lambda f: {b"/AF": b"[%d 0 R]" % (f.free + 1)},
        always,
    ),
}


def _extra(f: SignedFile) -> dict[int, bytes]:
    """Give an outline, numbered `f.free`, and an attached file after it."""
    outline, spec, data = range(f.free, f.free + 3)
    item = f.free + 3
    return {
        outline: b"<</Type/Outlines/First %d 0 R/Last %d 0 R/Count 1>>" % (item, item),
        item: b"<</Title%s/Parent %d 0 R/Dest[%d 0 R/Fit]>>"
        % (f.string(item, b"Precio: 900.000"), outline, f.page2),
        spec: b"<</Type/Filespec/F%s/EF<</F %d 0 R>>>>"
        % (f.string(spec, b"annex.pdf"), data),
        data: f.stream(data, second_document(), b"/Type/EmbeddedFile"),
    }


def _with_entries(entries: Entries, f: SignedFile) -> bytes:
    return f.append({f.catalog: f.changed(f.catalog, entries(f)), **_extra(f)})


def _add_simple() -> None:
    for name, (change, entries, applies) in _SIMPLE.items():
        add = CATALOG(f"catalog: {name}", change, applies)
        add(partial(_with_entries, entries))


_add_simple()


@CATALOG("catalog: hide and replace", "another document is reached")
def hide_and_replace(f: SignedFile) -> bytes:
    """Have the catalog reach a page tree of its own (shadow attack)."""
    tree, page, content = range(f.free, f.free + 3)
    return f.append(
        {
            f.catalog: f.changed(f.catalog, {b"/Pages": b"%d 0 R" % tree}),
            tree: b"<</Type/Pages/Kids[%d 0 R]/Count 1>>" % page,
            page: f.changed(
                f.page,
                {b"/Parent": b"%d 0 R" % tree, b"/Contents": b"%d 0 R" % content},
            ),
            content: f.stream(content, PRICE),
        }
    )


@CATALOG("catalog: layer renamed to be printed", "print shows the annex")
def layer_usage(f: SignedFile) -> bytes:
    """Change the usage of the layer (ISO 32000-2, 8.11.4.4)."""
    layer = _layer(f)
    usage = b"<</Print<</PrintState/ON>>/View<</ViewState/ON>>>>"
    state = (
        b"<</OCGs[%d 0 R]/D<</AS[<</Event/View/Category[/View]/OCGs[%d 0 R]>>]>>>>"
        % (layer, layer)
    )
    return f.append(
        {
            layer: f.changed(layer, {b"/Usage": usage}),
            f.catalog: f.changed(f.catalog, {b"/OCProperties": state}),
        }
    )


@CATALOG("certification: a second one", "page 1 shows another price")
def second_certification(f: SignedFile) -> bytes:
    """Add a certification that permits more, and a change that it permits."""
    value, field = f.free, f.free + 1
    junk = (
        b"<</Type/Sig/Filter/Adobe.PPKLite/SubFilter/ETSI.CAdES.detached"
        b"/ByteRange[0 0 0 0]/Contents<00>/Reference[<</Type/SigRef"
        b"/TransformMethod/DocMDP/TransformParams<</Type/TransformParams/P 3/V/1.2>>"
        b">>]>>"
    )
    widget = (
        b"<</Type/Annot/Subtype/Widget/FT/Sig/T%s/F 132/Rect[0 0 0 0]/P %d 0 R"
        b"/V %d 0 R>>" % (f.string(field, b"Otra"), f.page, value)
    )
    perms = f.changed(f.catalog, {b"/Perms": b"<</DocMDP %d 0 R>>" % value})
    return f.append(
        {
            value: junk,
            field: widget,
            f.catalog: perms,
            f.page: f.changed(f.page, {b"/Annots": f.listed("Annots", field)}),
            **f.form_with(field),
        }
    )


@CATALOG("certification: P raised", "everything is permitted", _has("/Perms"))
def permission_raised(f: SignedFile) -> bytes:
    """Write the certification again with P = 3, and fill the field."""
    number = int(f.qpdf.Root.Perms.DocMDP.objgen[0])
    held = f.get(number)
    body = (
        b"<</Type/Sig/Filter/Adobe.PPKLite/SubFilter/ETSI.CAdES.detached"
        b"/ByteRange%s/Contents<%s>/Reference[<</Type/SigRef/TransformMethod/DocMDP"
        b"/TransformParams<</Type/TransformParams/P 3/V/1.2>>>>]>>"
        % (held.ByteRange.unparse(), bytes(held.Contents).hex().encode())
    )
    text = f.field("Nombre")
    entries = {b"/V": f.string(text, b"Eva"), b"/AP": b"<</N %d 0 R>>" % f.free}
    return f.append(
        {
            number: body,
            text: f.changed(text, entries),
            f.free: f.look(f.free, line(b"Eva", 2, 4), b"[0 0 120 20]"),
        }
    )


@CATALOG("catalog: /Extensions is a page", "page 1 shows another price")
def extensions_are_page(f: SignedFile) -> bytes:
    """Have the extensions be page 1, changed."""
    page = f.changed(f.page, {b"/Contents": b"%d 0 R" % f.free})
    catalog = f.changed(f.catalog, {b"/Extensions": b"%d 0 R" % f.page})
    return f.append({f.page: page, f.free: f.stream(f.free, PRICE), f.catalog: catalog})


@CATALOG("catalog: /MarkInfo is a font", "the text is shown in another font")
def mark_info_is_font(f: SignedFile) -> bytes:
    """Have the mark information be the font, changed."""
    font = f.number("Font", "F1")
    catalog = f.changed(f.catalog, {b"/MarkInfo": b"%d 0 R" % font})
    body = f.changed(font, {b"/BaseFont": b"/ZapfDingbats", b"/Marked": b"true"})
    return f.append({font: body, f.catalog: catalog})


@CATALOG("catalog: /Version lowered", "readers leave out what is newer")
def version_lowered(f: SignedFile) -> bytes:
    """Name a version without layers and object streams, and switch the layer."""
    entries = {
        b"/Version": b"/1.3",
        b"/OCProperties": b"<</OCGs[%d 0 R]/D<<>>>>" % _layer(f),
    }
    return f.append({f.catalog: f.changed(f.catalog, entries)})


@CATALOG("catalog: /Version below the header's", "some readers leave out what is newer")
def version_below_header(f: SignedFile) -> bytes:
    """Name the first version where the catalog names none."""
    return f.append({f.catalog: f.changed(f.catalog, {b"/Version": b"/1.0"})})


@CATALOG("catalog: /MarkInfo says no tags", "readers read out other text")
def marked_no_more(f: SignedFile) -> bytes:
    """Switch off the tags, by which the price is read out."""
    entries = {b"/MarkInfo": b"<</Marked false>>"}
    return f.append({f.catalog: f.changed(f.catalog, entries)})
