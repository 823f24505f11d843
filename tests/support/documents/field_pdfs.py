"""PDFs with fields of odd builds, for signatures most of them, made on the spot.

pdf = with_fields(Field("contrato.comprador", lock={"Action": "/All"}))
"""

import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from pikepdf import Array, Dictionary, Name, Object, Pdf, Stream, String

BOX: Final = (100.0, 100.0, 300.0, 180.0)
_READ_ONLY: Final = 1
_HELVETICA: Final = Dictionary(
    Type=Name.Font, Subtype=Name.Type1, BaseFont=Name.Helvetica
)


@dataclass(frozen=True)
class Field:
    """One empty signature field.

    Args:
        name: full; each part but the last is a node of its own.
        rects: a widget for each; none for a field without a widget on a page.
        merged: whether the one widget is the field's own dictionary.
        lock: of `/Lock`.
        seeds: of `/SV`.
        read_only: the flag of that name.
        hung: whether its widgets hang on the page.
    """

    name: str = "Firma"
    rects: Sequence[tuple[float, float, float, float]] = (BOX,)
    merged: bool = True
    lock: Mapping[str, Any] = field(default_factory=dict)
    seeds: Mapping[str, Any] = field(default_factory=dict)
    read_only: bool = False
    hung: bool = True
    flags: int = 4
    drawn: bytes = b""
    """Look of the widgets; none if empty."""
    typed_above: bool = False
    """The type is that of the topmost node."""


def with_fields(*fields: Field, rotate: int = 0, script: bool = False) -> bytes:
    """A page with those fields, and a script that runs when it is opened."""
    with Pdf.new() as pdf:
        page = pdf.add_blank_page(page_size=(595, 842))
        page.rotate(rotate, relative=False)
        page.obj.Annots = Array()
        tops: list[Object] = []
        inner: dict[str, Object] = {}
        for spec in fields:
            *above, last = spec.name.split(".")
            parent = None
            for depth, part in enumerate(above):
                path = ".".join(above[: depth + 1])
                node = inner.get(path)
                if node is None:
                    node = inner[path] = _node(pdf, part, parent, tops)
                parent = node
            node = _node(pdf, last, parent, tops)
            _add(pdf, page.obj, spec, node)
            if spec.typed_above:
                del node["/FT"]
                inner[above[0]].FT = Name.Sig
        if script:
            action = Dictionary(S=Name.JavaScript, JS=String("app.alert(1)"))
            pdf.Root.OpenAction = pdf.make_indirect(action)
        pdf.Root.AcroForm = pdf.make_indirect(Dictionary(Fields=Array(tops)))
        out = io.BytesIO()
        pdf.save(out)
    return out.getvalue()


def check_box_without_state() -> bytes:
    """A page with a check box that has looks for each state, and no `/AS`."""
    with Pdf.new() as pdf:
        page = pdf.add_blank_page(page_size=(595, 842))
        form = Dictionary(
            Type=Name.XObject, Subtype=Name.Form, BBox=Array([0, 0, 9, 9])
        )
        looks = {
            "/Yes": Stream(pdf, b"0 0 9 9 re f", form),
            "/Off": Stream(pdf, b"n", form),
        }
        box = pdf.make_indirect(
            Dictionary(
                Type=Name.Annot,
                Subtype=Name.Widget,
                FT=Name.Btn,
                T=String("Acepto"),
                F=4,
                Rect=Array([57, 715, 66, 724]),
                P=page.obj,
                AP=Dictionary(N=Dictionary(looks), D=Dictionary(looks)),
            )
        )
        page.obj.Annots = Array([box])
        pdf.Root.AcroForm = pdf.make_indirect(Dictionary(Fields=Array([box])))
        out = io.BytesIO()
        pdf.save(out)
    return out.getvalue()


def _node(pdf: Pdf, part: str, parent: Object | None, tops: list[Object]) -> Object:
    node = pdf.make_indirect(Dictionary(T=String(part)))
    if parent is None:
        tops.append(node)
    else:
        node.Parent = parent
        if "/Kids" not in parent:
            parent.Kids = Array()
        parent.Kids.append(node)
    return node


def _add(pdf: Pdf, page: Object, spec: Field, node: Object) -> None:
    """Make a node the field that is asked for."""
    node.FT = Name.Sig
    if spec.read_only:
        node.Ff = _READ_ONLY
    if spec.lock:
        node.Lock = pdf.make_indirect(_dictionary(spec.lock))
    if spec.seeds:
        node.SV = pdf.make_indirect(_dictionary(spec.seeds))
    if spec.merged and len(spec.rects) == 1:
        widgets = [node]
    else:
        widgets = [pdf.make_indirect(Dictionary(Parent=node)) for _ in spec.rects]
        node.Kids = Array(widgets)
    for widget, rect in zip(widgets, spec.rects, strict=True):
        widget.Type, widget.Subtype, widget.F = Name.Annot, Name.Widget, spec.flags
        widget.Rect = Array(list(rect))
        if spec.drawn:
            box = Array([0, 0, rect[2] - rect[0], rect[3] - rect[1]])
            form = Dictionary(Type=Name.XObject, Subtype=Name.Form, BBox=box)
            form.Resources = Dictionary(Font=Dictionary(F=_HELVETICA))
            widget.AP = Dictionary(N=Stream(pdf, spec.drawn, form))
        if spec.hung:
            widget.P = page
            page.Annots.append(widget)


def _dictionary(entries: Mapping[str, Any]) -> Dictionary:
    """A dictionary of plain values; a text with a slash before it is a name."""
    return Dictionary({f"/{key}": _value(one) for key, one in entries.items()})


def _value(one: Any) -> Any:
    if isinstance(one, Mapping):
        return _dictionary(one)
    if isinstance(one, list):
        return Array([_value(each) for each in one])
    if isinstance(one, str):
        return Name(one) if one.startswith("/") else String(one)
    return one
