"""Forgeries by form fields, signature fields and their widgets (findings S3, SSA)."""

from collections.abc import Callable
from typing import Final

from tests.support.documents.contract_pdf import HIGH, line
from tests.support.documents.forgery import PRICE, Collection, Make
from tests.support.documents.pdf_revisions import SignedFile
from tests.support.documents.signed_bases import makers

FIELDS: Final = Collection()
"""By name."""

_JUNK: Final = (
    b"<</Type/%s/Filter/Adobe.PPKLite/SubFilter/%s/ByteRange[0 0 0 0]/Contents<00>>>"
)


def _high(f: SignedFile) -> int:
    """Give the number of an object of the signed file that is the page's height.

    Raises:
        LookupError: there is none.
    """
    for number in range(1, f.free):
        if str(f.get(number)) == str(HIGH):
            return number
    raise LookupError


def has_height(f: SignedFile) -> bool:
    """Return whether a signed file has an object that is a number."""
    try:
        return _high(f) > 0
    except LookupError:
        return False


def _with_field(
    f: SignedFile,
    widget: bytes,
    *,
    name: bytes = b"Otra",
    kind: bytes = b"Sig",
    page: bool = True,
) -> bytes:
    """Append a field, numbered `f.free`, with a widget on page 1.

    Args:
        f: the signed file.
        widget: entries of the widget besides its kind; `f.free + 1` is a drawing.
        name: partial name.
        kind: value of `/FT`.
        page: list it among the page's annotations.
    """
    body = b"<</Type/Annot/Subtype/Widget/FT/%s/T%s/P %d 0 R%s>>" % (
        kind, f.string(f.free, name), f.page, widget,
    )  # fmt: skip
    objects = {
        f.free: body,
        f.free + 1: f.look(f.free + 1, PRICE),
        **f.form_with(f.free),
    }
    if page:
        annotations = f.listed("Annots", f.free)
        objects[f.page] = f.changed(f.page, {b"/Annots": annotations})
    return f.append(objects)


def _placed(rect: bytes) -> Make:
    """Append an empty signature field with an odd rectangle and an unused drawing."""
    return lambda f: _with_field(
        f, b"/F 4%s/AP<</N %d 0 R>>" % (rect, f.number("XObject", "Fm2"))
    )


_RECTS: Final = {
    "null": b"/Rect[0 null 300 400]",
    "boolean": b"/Rect[0 false 300 400]",
    "names": b"/Rect[/a/b 300 400]",
    "strings": b"/Rect[0 <> 300 400]",
    "three entries": b"/Rect[0 0 300]",
    "five entries": b"/Rect[0 0 300 400 0]",
    "huge numbers": b"/Rect[0 0 300 4e2]",
    "array in it": b"/Rect[0 [0] 300 400]",
    "negative area": b"/Rect[300 400 0 0]",
    "a real area": b"/Rect[0.0 0.0 300.0 400.0]",
    "small but drawn": b"/Rect[0 0 1 1]",
}


def _add_rects() -> None:
    for name, rect in _RECTS.items():
        FIELDS(f"new field: /Rect with {name}", "page 1 is covered")(_placed(rect))


_add_rects()


@FIELDS("new field: /Rect with a reference", "page 1 is covered", has_height)
def rect_reference(f: SignedFile) -> bytes:
    """Have the height be a number object of the signed file (S3)."""
    return _placed(b"/Rect[0 0 300 %d 0 R]" % _high(f))(f)


@FIELDS("new field: /Rect with four references", "page 1 is covered", has_height)
def rect_references(f: SignedFile) -> bytes:
    """Have each side be a reference, two of them to objects that do not exist."""
    high, none = _high(f), f.free + 50
    return _placed(b"/Rect[%d 0 R %d 0 R %d 0 R %d 0 R]" % (none, none, high, high))(f)


@FIELDS("new field: /Rect is a reference to an array", "page 1 is covered")
def rect_elsewhere(f: SignedFile) -> bytes:
    """Write the rectangle as an object of its own, in another revision."""
    number = f.free + 2
    again = SignedFile(f.append({number: b"[0 0 0 0]"}))
    made = SignedFile(_placed(b"/Rect %d 0 R" % number)(again))
    return made.append({number: b"[0 0 300 400]"})


@FIELDS("new field: drawn over the page, not signed", "page 1 is covered")
def field_drawn(f: SignedFile) -> bytes:
    """Add an empty signature field that shows another price (SSA)."""
    return _with_field(f, b"/F 4/Rect[0 0 300 400]/AP<</N %d 0 R>>" % (f.free + 1))


@FIELDS("new field: moved in another revision", "page 1 is covered")
def field_moved(f: SignedFile) -> bytes:
    """Add an invisible field, and give it a place and a drawing later."""
    again = SignedFile(_with_field(f, b"/F 132/Rect[0 0 0 0]"))
    shown = again.changed(
        f.free,
        {
            b"/Rect": b"[0 0 300 400]",
            b"/F": b"4",
            b"/AP": b"<</N %d 0 R>>" % (f.free + 1),
        },
    )
    return again.append({f.free: shown})


@FIELDS("new field: text", "page 1 is covered")
def text_field(f: SignedFile) -> bytes:
    """Add a text field that shows another price."""
    value = b"/V%s/DA%s" % (
        f.string(f.free, b"900.000"), f.string(f.free, b"/Helv 12 Tf"),
    )  # fmt: skip
    return _with_field(
        f, b"/F 4/Rect[0 0 300 400]%s/AP<</N %d 0 R>>" % (value, f.free + 1), kind=b"Tx"
    )


@FIELDS("new field: button with a script", "a click runs a script")
def button(f: SignedFile) -> bytes:
    """Add a push button over the whole page."""
    action = b"<</S/JavaScript/JS%s>>" % f.string(f.free, b"app.alert(1)")
    return _with_field(f, b"/F 4/Ff 65536/Rect[0 0 300 400]/A%s" % action, kind=b"Btn")


@FIELDS("new field: the name of the text field", "the text field has another value")
def same_name(f: SignedFile) -> bytes:
    """Add a signature field of the full name that a text field has (S12)."""
    return _with_field(
        f, b"/F 4/Rect[0 0 300 400]/AP<</N %d 0 R>>" % (f.free + 1), name=b"Nombre"
    )


@FIELDS("new field: the name of the signature", "two fields hold signatures")
def same_signature_name(f: SignedFile) -> bytes:
    """Add a field with the name and the value of the first signature."""
    first = f.signed_fields()[0]
    held = f.get(first)
    return _with_field(
        f,
        b"/F 4/Rect[0 0 300 400]/V %d %d R/AP<</N %d 0 R>>"
        % (*held.V.objgen, f.free + 1),
        name=bytes(held.T),
    )


@FIELDS("new field: holds the first signature again", "page 1 is covered")
def signature_twice(f: SignedFile) -> bytes:
    """Add a visible field whose value is the first signature's dictionary."""
    value = f.get(f.signed_fields()[0]).V.objgen
    return _with_field(
        f, b"/F 4/Rect[0 0 300 400]/V %d %d R/AP<</N %d 0 R>>" % (*value, f.free + 1)
    )


@FIELDS("new field: junk signature", "page 1 is covered")
def junk_signature(f: SignedFile) -> bytes:
    """Add a field with a signature that covers nothing."""
    again = SignedFile(f.append({f.free: _JUNK % (b"Sig", b"ETSI.CAdES.detached")}))
    return _with_field(
        again,
        b"/F 4/Rect[0 0 300 400]/V %d 0 R/AP<</N %d 0 R>>" % (f.free, again.free + 1),
    )


@FIELDS("new field: junk document timestamp", "page 1 is covered")
def junk_timestamp(f: SignedFile) -> bytes:
    """Add a field with a document timestamp that stamps nothing."""
    again = SignedFile(f.append({f.free: _JUNK % (b"DocTimeStamp", b"ETSI.RFC3161")}))
    return _with_field(
        again,
        b"/F 4/Rect[0 0 300 400]/V %d 0 R/AP<</N %d 0 R>>" % (f.free, again.free + 1),
    )


@FIELDS("new field: widgets of their own", "page 1 is covered")
def several_widgets(f: SignedFile) -> bytes:
    """Add an invisible field with a second widget that is not (SSA)."""
    kids = [
        b"<</Type/Annot/Subtype/Widget/Parent %d 0 R/F 4/P %d 0 R%s>>"
        % (f.free, f.page, more)
        for more in (
            b"/Rect[0 0 0 0]",
            b"/Rect[0 0 300 400]/AP<</N %d 0 R>>" % f.number("XObject", "Fm2"),
        )
    ]
    field = b"<</FT/Sig/T%s/Kids[%d 0 R %d 0 R]>>" % (
        f.string(f.free, b"Otra"), f.free + 1, f.free + 2,
    )  # fmt: skip
    annotations = f.listed("Annots", f.free + 1, f.free + 2)
    return f.append(
        {
            f.free: field,
            f.free + 1: kids[0],
            f.free + 2: kids[1],
            f.page: f.changed(f.page, {b"/Annots": annotations}),
            **f.form_with(f.free),
        }
    )


@FIELDS("new field: appearance is a drawing of page 1", "the green bar is gone")
def appearance_is_drawing(f: SignedFile) -> bytes:
    """Have the new field's appearance be the number of a drawing of page 1."""
    number = f.number("XObject", "Fm1")
    body = f.look(number, PRICE)
    widget = (
        b"<</Type/Annot/Subtype/Widget/FT/Sig/T%s/F 4/P %d 0 R/Rect[9 9 20 20]"
        b"/AP<</N %d 0 R>>>>" % (f.string(f.free, b"Otra"), f.page, number)
    )
    annotations = f.listed("Annots", f.free)
    return f.append(
        {
            f.free: widget,
            number: body,
            f.page: f.changed(f.page, {b"/Annots": annotations}),
            **f.form_with(f.free),
        }
    )


@FIELDS("new field: /Rect is a line", "the price is struck through")
def rect_line(f: SignedFile) -> bytes:
    """Give a field without area a drawing; readers stroke a line of it."""
    return _placed(b"/Rect[10 305 200 305]")(f)


@FIELDS("document timestamp: drawn over the page", "page 1 is covered")
def timestamp_drawn(f: SignedFile) -> bytes:
    """Append a document timestamp with a drawing; a TSA stamps for anyone."""
    return makers().timestamped_by_hand(f.pdf, b"[0 0 300 400]", PRICE)


@FIELDS("signature: widget taken off the page", "the signature has no mark", lambda f: (
    b" %d 0 R" % f.signed_fields()[0]
    in f.get(f.page).Annots.unparse(resolved=True)
))  # fmt: skip
def widget_off_page(f: SignedFile) -> bytes:
    """Leave the first signature's widget out of the page's annotations."""
    notes = f.get(f.page).Annots.unparse(resolved=True)
    kept = notes.replace(b" %d 0 R" % _first(f), b"")
    return f.append({f.page: f.changed(f.page, {b"/Annots": kept})})


def _changed(
    number: Callable[[SignedFile], int],
    entries: Callable[[SignedFile], dict[bytes, bytes | None]],
) -> Make:
    """Append an object with other entries; `f.free` is a drawing."""
    return lambda f: f.append(
        {
            number(f): f.changed(number(f), entries(f)),
            f.free: f.look(f.free, PRICE),
        }
    )


def _text(f: SignedFile) -> int:
    return f.field("Nombre")


def _first(f: SignedFile) -> int:
    return f.signed_fields()[0]


_SIMPLE: Final[dict[str, tuple[str, Make]]] = {
    "text field: moved": (
        "the field stands over the price",
        _changed(_text, lambda _: {b"/Rect": b"[20 290 250 330]"}),
    ),
    "text field: renamed": (
        "the value belongs to another name",
        _changed(_text, lambda f: {b"/T": f.string(_text(f), b"Precio")}),
    ),
    "text field: another kind": (
        "the field is a button",
        _changed(_text, lambda _: {b"/FT": b"/Btn", b"/Ff": b"65536"}),
    ),
    "text field: calculates": (
        "the field's value comes from a script",
        _changed(
            _text,
            lambda f: {
                b"/AA": b"<</F<</S/JavaScript/JS%s>>>>"
                % f.string(_text(f), b"event.value=900")
            },
        ),
    ),
    "text field: default value": (
        "a reset shows another value",
        _changed(_text, lambda f: {b"/DV": f.string(_text(f), b"Eva")}),
    ),
    "text field: flags": (
        "the field is hidden",
        _changed(_text, lambda _: {b"/F": b"2"}),
    ),
    "text field: appearance covers the page": (
        "the appearance's transparency group and box are the page's",
        _changed(
            _text,
            lambda f: {b"/Rect": b"[0 0 300 400]", b"/AP": b"<</N %d 0 R>>" % f.free},
        ),
    ),
    "check box: another export value": (
        "the box has a state that it did not have",
        _changed(
            lambda f: f.field("Acepto"),
            lambda f: {b"/AP": b"<</N<</Yes %d 0 R/Off %d 0 R>>>>" % (f.free, f.free)},
        ),
    ),
    "signature: field without its value": (
        "the signature is gone",
        _changed(_first, lambda _: {b"/V": None}),
    ),
    "signature: field shown over the page": (
        "the signature's mark covers page 1",
        _changed(
            _first,
            lambda f: {
                b"/Rect": b"[0 0 300 400]",
                b"/F": b"4",
                b"/AP": b"<</N %d 0 R>>" % f.free,
            },
        ),
    ),
    "signature: field's widget runs a script": (
        "a click on the mark runs a script",
        _changed(
            _first,
            lambda f: {
                b"/A": b"<</S/JavaScript/JS%s>>" % f.string(_first(f), b"app.alert(1)")
            },
        ),
    ),
}


def _add_simple() -> None:
    for name, (change, make) in _SIMPLE.items():
        FIELDS(name, change)(make)


_add_simple()


@FIELDS("signature: dictionary overwritten", "the signature covers fewer bytes")
def dictionary_overwritten(f: SignedFile) -> bytes:
    """Write the signature dictionary again under its number (spoofing)."""
    number = int(f.get(_first(f)).V.objgen[0])
    held = f.get(number)
    ranges = held.ByteRange.unparse()
    contents = bytes(held.Contents).hex().encode()
    # /Contents is not encrypted (ISO 32000-2, 7.6.2).
    body = (
        b"<</Type/Sig/Filter/Adobe.PPKLite/SubFilter/ETSI.CAdES.detached"
        b"/ByteRange%s/Contents<%s>/Name%s>>"
        % (ranges, contents, f.string(number, b"Otra persona"))
    )
    return f.append({number: body})


@FIELDS("signature: mark redrawn", "the mark shows another name", lambda f: (
    "/AP" in f.get(f.signed_fields()[0])
    and float(f.get(f.signed_fields()[0]).Rect[2]) > 0
))  # fmt: skip
def mark_redrawn(f: SignedFile) -> bytes:
    """Draw the appearance of the first signature again."""
    number = int(f.get(_first(f)).AP.N.objgen[0])
    return f.append({number: f.look(number, line(b"Eva", 9, 9), b"[0 0 99 40]")})


@FIELDS("signature: later one removed", "the second signature is gone", lambda f: (
    len(f.signed_fields()) > 1
))  # fmt: skip
def later_removed(f: SignedFile) -> bytes:
    """Leave the last signature's field out of the form."""
    last = f.signed_fields()[-1]
    fields = f.qpdf.Root.AcroForm.Fields.unparse(resolved=True)
    kept = fields.replace(b"%d 0 R" % last, b"")
    return f.append({f.form: f.changed(f.form, {b"/Fields": kept})})


def _fields_without(f: SignedFile, number: int) -> bytes:
    fields = f.qpdf.Root.AcroForm.Fields.unparse(resolved=True)
    return f.changed(f.form, {b"/Fields": fields.replace(b" %d 0 R" % number, b"")})


@FIELDS("form: text field left out", "the field is gone from the form")
def field_left_out(f: SignedFile) -> bytes:
    """Leave the text field out of the form, not of the page."""
    return f.append({f.form: _fields_without(f, _text(f))})


@FIELDS("form: text field deleted", "the field is gone")
def field_deleted(f: SignedFile) -> bytes:
    """Leave the text field out of the form and of the page."""
    notes = f.get(f.page).Annots.unparse(resolved=True)
    kept = notes.replace(b" %d 0 R" % _text(f), b"")
    return f.append(
        {
            f.form: _fields_without(f, _text(f)),
            f.page: f.changed(f.page, {b"/Annots": kept}),
        }
    )


@FIELDS("form: /NeedAppearances with other defaults", "readers draw the field again")
def need_appearances(f: SignedFile) -> bytes:
    """Have readers draw each field again, in white."""
    return f.append(
        {
            f.form: f.changed(
                f.form,
                {
                    b"/NeedAppearances": b"true",
                    b"/DA": f.string(f.form, b"/Helv 99 Tf 1 g"),
                },
            )
        }
    )


@FIELDS("form: font of its resources changed", "the field is shown in another font")
def form_font(f: SignedFile) -> bytes:
    """Change the font object that the appearance of the text field uses."""
    number = int(f.qpdf.Root.AcroForm.DR.Font.Helv.objgen[0])
    return f.append({number: f.changed(number, {b"/BaseFont": b"/ZapfDingbats"})})


@FIELDS("form: XFA added", "readers with XFA show another form")
def xfa_added(f: SignedFile) -> bytes:
    """Add an XFA form (ISO 32000-1, 12.7.8)."""
    xdp = b'<xdp:xdp xmlns:xdp="http://ns.adobe.com/xdp/"><template/></xdp:xdp>'
    return f.append(
        {
            f.free: f.stream(f.free, xdp),
            f.form: f.changed(f.form, {b"/XFA": b"%d 0 R" % f.free}),
        }
    )


@FIELDS("form: order of calculation", "scripts run in another order")
def calculation_order(f: SignedFile) -> bytes:
    """Add an order of calculation with a field that did not calculate."""
    return f.append({f.form: f.changed(f.form, {b"/CO": b"[%d 0 R]" % _text(f)})})


def _permits_nothing(f: SignedFile) -> bool:
    """Return whether a file is certified with P = 1."""
    perms = f.qpdf.Root.get("/Perms")
    if perms is None:
        return False
    return any(
        int(each.TransformParams.get("/P", 2)) == 1
        for each in perms.DocMDP.Reference.as_list()
    )


def _locks(f: SignedFile) -> bool:
    """Return whether a signature locks the field `Nombre`."""
    return any("/Lock" in f.get(each) for each in f.signed_fields())


def _is_closed(f: SignedFile) -> bool:
    return _permits_nothing(f) or _locks(f)


@FIELDS(
    "filled: where it is forbidden", "the text field shows another name", _is_closed
)
def filled(f: SignedFile) -> bytes:
    """Fill the text field in, value and appearance."""
    drawn = f.look(f.free, line(b"Eva", 2, 4), b"[0 0 120 20]")
    entries = {b"/V": f.string(_text(f), b"Eva"), b"/AP": b"<</N %d 0 R>>" % f.free}
    return f.append({f.free: drawn, _text(f): f.changed(_text(f), entries)})


@FIELDS("filled: box where it is forbidden", "the box is checked", _permits_nothing)
def box_filled(f: SignedFile) -> bytes:
    """Check the box."""
    box = f.field("Acepto")
    return f.append({box: f.changed(box, {b"/V": b"/Yes", b"/AS": b"/Yes"})})


@FIELDS("lock: lowered", "the text field is no longer locked", _locks)
def lock_lowered(f: SignedFile) -> bytes:
    """Write the lock of a signed field again, for a field that does not exist."""
    number = int(f.get(_first(f)).Lock.objgen[0])
    lock = b"<</Type/SigFieldLock/Action/Include/Fields[%s]>>" % f.string(number, b"x")
    return f.append({number: lock})


@FIELDS("lock: lowered, and the field filled", "the field has another value", _locks)
def lock_lowered_and_filled(f: SignedFile) -> bytes:
    """Lower the lock first, and fill the field in another revision."""
    return filled(SignedFile(lock_lowered(f)))


@FIELDS("lock: removed", "the text field is no longer locked", _locks)
def lock_removed(f: SignedFile) -> bytes:
    """Leave the lock out of a signed field."""
    first = _first(f)
    return f.append({first: f.changed(first, {b"/Lock": None})})


@FIELDS("filled: the locked field under another name", "another value", _locks)
def locked_renamed(f: SignedFile) -> bytes:
    """Rename the locked field and fill it in."""
    names = {b"/T": f.string(_text(f), b"Otro"), b"/V": f.string(_text(f), b"Eva")}
    return f.append({_text(f): f.changed(_text(f), names)})


_NO_MARKS: Final = {
    "Line": b"/L[10 306 200 306]/C[1 0 0]/BS<</W 3>>",
    "PolyLine": b"/Vertices[10 290 200 290 200 330]/C[1 0 0]/BS<</W 3>>",
    "Polygon": b"/Vertices[10 290 200 290 200 330 10 330]/IC[1 1 1]/C[1 1 1]",
    "Ink": b"/InkList[[10 290 200 290 200 330]]/C[1 0 0]/BS<</W 3>>",
    "Highlight": b"/QuadPoints[10 330 200 330 10 290 200 290]/C[1 0 0]",
    "StrikeOut": b"/QuadPoints[10 330 200 330 10 290 200 290]/C[1 0 0]",
    "FreeText": b"/Contents(900.000)/DA(/Helv 24 Tf 1 0 0 rg)",
    "Text": b"/Contents(Precio: 900.000)/Open true/Name/Comment",
    "Link": b"/Border[0 0 4]/Dest[0/Fit]",
}
"""Annotations that draw by other entries than /Rect and /AP."""


def _no_mark(kind: str, entries: bytes, *, kid: bool) -> Make:
    """Append an empty signature field whose mark is another kind of annotation.

    Args:
        kind: value of `/Subtype`.
        entries: of the annotation.
        kid: make it a kid of the field.
    """

    def make(f: SignedFile) -> bytes:
        mark = f.free + 1 if kid else f.free
        own = b"/FT/Sig/T%s" % f.string(f.free, b"Otra")
        above = b"/Parent %d 0 R" % f.free if kid else own
        objects = {f.free: b"<<%s/Kids[%d 0 R]>>" % (own, mark)} if kid else {}
        objects[mark] = b"<</Type/Annot/Subtype/%s/F 4/P %d 0 R/Rect[0 0 0 0]%s%s>>" % (
            kind.encode(), f.page, above, entries,
        )  # fmt: skip
        notes = f.changed(f.page, {b"/Annots": f.listed("Annots", mark)})
        return f.append({**objects, f.page: notes, **f.form_with(f.free)})

    return make


for _kind, _entries in _NO_MARKS.items():
    for _is_kid in (False, True):
        FIELDS(
            f"new field: {'its kid' if _is_kid else 'it'} is a {_kind}",
            "the page shows something else",
        )(_no_mark(_kind, _entries, kid=_is_kid))


@FIELDS("new field: a file below its lock", "the file has another attachment")
def attached_by_lock(f: SignedFile) -> bytes:
    """Hold an attachment by a key of the lock, and show it by the annotation."""
    attached = f.stream(f.free + 1, b"otro anexo", b"/Type/EmbeddedFile")
    lock = b"/Lock<</Type/SigFieldLock/Action/Include/Fields[]/X %d 0 R>>"
    shown = b"/FS<</Type/Filespec/F(a.pdf)/EF<</F %d 0 R>>>>"
    body = b"<</Type/Annot/Subtype/FileAttachment/FT/Sig/T%s/Rect[0 0 0 0]%s%s>>" % (
        f.string(f.free, b"Otra"), lock % (f.free + 1), shown % (f.free + 1),
    )  # fmt: skip
    notes = f.changed(f.page, {b"/Annots": f.listed("Annots", f.free)})
    objects = {f.free: body, f.free + 1: attached, f.page: notes}
    return f.append({**objects, **f.form_with(f.free)})


@FIELDS("new field: an entry of layers", "the mark is shown in some readers")
def mark_in_layer(f: SignedFile) -> bytes:
    """Put the mark of an empty field in the layer of the page."""
    layer = f.get(f.page).Resources.Properties.oc1.objgen[0]
    return _with_field(f, b"/F 4/Rect[0 0 0 0]/OC %d 0 R" % layer)
