"""Widgets that honest later revisions draw; for confined jobs only."""

import re
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from pyhanko.pdf_utils.generic import (
    ArrayObject,
    DictionaryObject,
    IndirectObject,
    NullObject,
    PdfObject,
    StreamObject,
)
from pyhanko.pdf_utils.reader import PdfFileReader

from worker.sandbox.inspect.hidden_annotations import Rect
from worker.sandbox.inspect.pages import Page, read_box, walk_pages
from worker.sandbox.inspect.pdf_objects import (
    Budget,
    dictionary,
    entry,
    name,
    number,
    plain_dictionary,
    raw_items,
    resolve,
)
from worker.sandbox.verify.field_values import (
    FieldKind,
    inherited,
    kind_of,
    option_texts,
    values_of,
)
from worker.sandbox.verify.form_tree import full_name, partial_name
from worker.sandbox.verify.object_history import NEVER, ObjectHistory
from worker.sandbox.verify.plain_looks import (
    PlainLook,
    default_font,
    default_size,
    is_legible,
    own_look,
    plain_look,
)
from worker.sandbox.verify.step_context import raw_entry

_NODES: Final = 500_000
_CONTROLS: Final = re.compile(r"[\x00-\x1f]")
_HIDDEN: Final = 2
"""Annotation flag. Source: ISO 32000-2, table 167."""
_PASSWORD: Final = 1 << 13
_LINE_ENDS: Final = re.compile(r"\r\n|[\n\v\f\r\x85\u2028\u2029]")
_BY_POINTS: Final = {
    "/Line", "/Ink", "/Polygon", "/PolyLine", "/Highlight", "/Underline", "/StrikeOut",
    "/Squiggly", "/Redact",
}  # fmt: skip
_ICONS: Final = {"/Text", "/FileAttachment", "/Sound"}
_ICON: Final = 48.0
"""Side of the largest icon that a reader draws, in points."""
_EVERYWHERE: Final[Rect] = (-1e9, -1e9, 1e9, 1e9)
_COMB: Final = 1 << 24
"""Field flags. Source: ISO 32000-2, table 231."""


def later_widgets(
    reader: PdfFileReader, revision: int, filled: Collection[str] = ()
) -> dict[int, list[Rect]]:
    """Find the widgets that may be drawn differently since a revision.

    Several revisions of one file are cheaper by one `LaterWidgets`.

    Args:
        reader: the open file.
        revision: pyHanko's index of a revision.
        filled: exact full names of the fields that were filled in later.

    Returns:
        As `LaterWidgets.after`.
    """
    return LaterWidgets(reader).after(revision, filled)


@dataclass(frozen=True, slots=True)
class _Widget:
    """A widget that is shown on exactly one page."""

    page: int
    rect: Rect
    first: int
    """Revision that defined it."""
    placed: int
    """Revision since which it is in this place."""
    raw: IndirectObject
    """Reference to it."""

    def is_masked(self, revision: int, *, is_new: bool) -> bool:
        """Return whether changes in its place are its own.

        Args:
            revision: the one that was signed.
            is_new: True if its field was added later.
        """
        if self.first > revision:
            return True
        # A new field may not hide the widget of an older one, and no widget may move.
        return not is_new and self.placed <= revision


@dataclass(frozen=True, slots=True)
class LaterPlaces:
    """Rectangles in unrotated user space, by 1-based page."""

    marks: dict[int, list[Rect]] = field(default_factory=dict)
    """Widgets of signature fields that were added or signed later."""
    filled: dict[int, list[Rect]] = field(default_factory=dict)
    """Widgets of other fields that were filled in later."""

    def merged(self) -> dict[int, list[Rect]]:
        """Return all of them."""
        found = {page: [*rects] for page, rects in self.marks.items()}
        for page, rects in self.filled.items():
            found.setdefault(page, []).extend(rects)
        return found


@dataclass(frozen=True, slots=True)
class FieldLook:
    """Texts that a field may show, and the places where it shows one."""

    title: str
    """Full name."""
    expected: tuple[str, ...]
    """Texts that mean its value; empty for a button, which shows a state."""
    is_secret: bool
    """A password, which shows one sign for each of its characters."""
    places: tuple[tuple[int, Rect], ...]
    """1-based page and rectangle of each widget."""
    is_placed: bool
    """False if readers may not agree on the place of a widget."""
    drawings: tuple[PlainLook | None, ...] = ()
    """Of each widget; None if it may show more than its text."""
    font_since: int = NEVER
    """Last revision that defined a font which it is drawn with and not every reader
    has."""


@dataclass(slots=True)
class _Field:
    """A terminal field of the form."""

    title: str
    number: int
    kind: str | None
    """Field type, such as `/Tx`; None: it has none."""
    node: PdfObject | None
    is_placed: bool = True
    """False if readers may not agree on the place of a widget."""
    signed: int | None = None
    """Revision in which it got its value; None for an empty one."""
    widgets: list[_Widget] = field(default_factory=list)

    @property
    def is_signature(self) -> bool:
        """True for a signature field."""
        return self.kind == "/Sig"


class LaterWidgets:
    """Widgets of the signature fields and filled fields of one file.

    A widget counts if it is an object of its own, stands on one page only, and its
    `/Rect` is four direct finite numbers with an area. Readers agree on the place of
    such a one alone.

    Args:
        reader: the open file.
        history: revisions of its objects; None: read here.

    Source: ISO 32000-2, 12.5.2, 12.7.4 and 12.7.5.5.
    """

    def __init__(
        self, reader: PdfFileReader, history: ObjectHistory | None = None
    ) -> None:
        self._reader = reader
        self._history = history or ObjectHistory(reader)
        self._budget = Budget(_NODES)
        self._pages: Sequence[Page] = ()
        self._is_read = True
        try:
            self._fields = self._read_fields()
        except Exception:  # noqa: BLE001 (hostile objects raise anything)
            self._fields = []
            self._is_read = False

    def after(
        self, revision: int, filled: Collection[str] = ()
    ) -> dict[int, list[Rect]]:
        """Find the widgets that may be drawn differently since a revision.

        Args:
            revision: pyHanko's index of a revision.
            filled: exact full names of the fields that were filled in later.

        Returns:
            Rectangles x0 < x1, y0 < y1 in unrotated user space, by 1-based page:
            widgets of signature fields that were added or signed after the revision,
            and of the fields that are named. Nothing if the form cannot be read.
        """
        return self.later(revision, filled).merged()

    def later(self, revision: int, filled: Collection[str]) -> LaterPlaces:
        """Find the same as `after`, marks and filled fields apart.

        Args:
            revision: pyHanko's index of a revision.
            filled: full names of the fields that were filled in later.
        """
        found = LaterPlaces()
        for each in self._fields:
            is_new = self._history.first(each.number) > revision
            is_later = each.is_signature and (
                is_new if each.signed is None else each.signed > revision
            )
            is_filled = not each.is_signature and each.title in filled
            of_kind = found.filled if is_filled else found.marks
            for widget in each.widgets if is_later or is_filled else ():
                if widget.is_masked(revision, is_new=is_new):
                    of_kind.setdefault(widget.page, []).append(widget.rect)
        return found

    @property
    def is_read(self) -> bool:
        """True unless the form cannot be read."""
        return self._is_read

    def of_form(self) -> dict[int, list[Rect]]:
        """Return the places of all widgets of fields, by 1-based page."""
        found: dict[int, list[Rect]] = {}
        for each in self._fields:
            for widget in each.widgets:
                found.setdefault(widget.page, []).append(widget.rect)
        return found

    def annotations(self, page: int) -> Sequence[Rect]:
        """Return the rectangles of all annotations of a page.

        Args:
            page: 1-based.

        Raises:
            Exception: any, from objects that cannot be read.
        """
        if not 1 <= page <= len(self._pages):
            return ()
        raws = raw_items(entry(self._pages[page - 1].node, "/Annots"))
        boxes = (read_box(entry(resolve(raw), "/Rect")) for raw in raws)
        return [each for each in boxes if each is not None]

    def filled(self, names: Collection[str]) -> list[FieldLook]:
        """Return what fields should show, and where.

        Args:
            names: full names of the fields.
        """
        found = []
        for each in self._fields:
            if each.title not in names or each.is_signature:
                continue
            widgets = [one for one in each.widgets if not _is_hidden(one.raw)]
            places = tuple((widget.page, widget.rect) for widget in widgets)
            secret = int(number(inherited(each.node, "/Ff")) or 0) & _PASSWORD
            texts = _expected(each.node)
            cells = _cells(each.node)
            drawings = tuple(
                self._drawing(one, cells, texts) for one in widgets if texts
            )
            fonts = (font for plain in drawings if plain for font in plain.fonts)
            found.append(
                FieldLook(
                    each.title,
                    texts,
                    bool(secret),
                    places,
                    each.is_placed,
                    drawings,
                    max(map(self._history.newest, fonts), default=NEVER),
                )
            )
        return found

    def _drawing(
        self, widget: _Widget, cells: int, texts: Sequence[str]
    ) -> PlainLook | None:
        """Read the drawing of a text; None if it may show more than its text."""
        try:
            node = resolve(widget.raw)
            looks = plain_dictionary(node, "/AP")
            drawing = entry(looks, "/N")
            if looks is None and entry(node, "/AP") is not None:
                return None
            if self._is_below(widget) or _is_upside_down(node):
                return None
            if drawing is None:
                return self._own_look(node, texts)
            defaults = inherited(node, "/DA") or entry(self._form(), "/DA") or ""
            size = default_size(str(defaults))
            look = plain_look(drawing, cells)
        except Exception:  # noqa: BLE001 (hostile objects raise anything)
            return None
        lines = max(len(_LINE_ENDS.findall(text.rstrip())) for text in texts)
        # In a low field Firefox shows the first of them.
        if look is None or look.lines <= lines:
            return None
        return replace(look, default=size)

    def _form(self) -> object:
        return dictionary(self._reader.root, "/AcroForm")

    def _own_look(self, node: object, texts: Sequence[str]) -> PlainLook | None:
        """Return what readers draw of a text by themselves; None: they may differ."""
        form = self._form()
        defaults = str(inherited(node, "/DA") or entry(form, "/DA") or "")
        ground = [number(each) for each in raw_items(entry(entry(node, "/MK"), "/BG"))]
        font = default_font(defaults)
        fonts = plain_dictionary(plain_dictionary(form, "/DR"), "/Font")
        if (
            font is None
            or any(_CONTROLS.search(text) for text in texts)
            or not is_legible(defaults, [each for each in ground if each is not None])
        ):
            return None
        return own_look(raw_entry(fonts, font))

    def _is_below(self, widget: _Widget) -> bool:
        """Return whether other annotations may be drawn over a widget, or below it.

        Poppler draws annotations in their order, and widgets with the others. Those
        with a drawing are drawn below a widget by all readers alike.
        """
        annotations = raw_items(entry(self._pages[widget.page - 1].node, "/Annots"))
        is_after = False
        for raw in annotations:
            self._budget.take()
            if isinstance(raw, IndirectObject) and raw.idnum == widget.raw.idnum:
                is_after = True
                continue
            other = resolve(raw)
            if (is_after or not _has_drawing(other)) and _may_cover(other):
                box = _reached(other)
                if box and _share(box, widget.rect):
                    return True
        return False

    def _read_fields(self) -> list[_Field]:
        """Read the terminal fields that have widgets.

        Raises:
            Exception: any, from objects that cannot be read.
        """
        places = self._places()
        found = []
        for title, kind, raw, widgets in self._terminal():
            at = _Field(title, raw.idnum, kind, resolve(raw))
            if at.is_signature:
                # Of several marks of one signature, readers would show them all, and
                # only one is the signer's.
                if len(widgets) > 1 or not self._was_signature(at.number):
                    continue
                at.signed = self._signed(at.number)
            for each in widgets:
                widget = self._widget(each, places)
                if widget is not None:
                    at.widgets.append(widget)
                elif each.idnum in places:
                    rect = entry(resolve(each), "/Rect")
                    at.is_placed &= places[each.idnum] > 0 and _has_no_area(rect)
            if at.widgets or not at.is_placed:
                found.append(at)
        return found

    def _widget(self, raw: IndirectObject, places: dict[int, int]) -> _Widget | None:
        """Read a widget; None if readers may not agree on its place.

        Raises:
            Exception: any, from objects that cannot be read.
        """
        page, rect = places.get(raw.idnum), _direct_rect(resolve(raw))
        if not page or rect is None:
            return None
        first = placed = self._history.first(raw.idnum)
        if len(self._history.revisions(raw.idnum)) > 1:
            had: Rect | None = None
            for revision, node in self._versions(raw.idnum):
                if (has := _direct_rect(node)) != had:
                    had, placed = has, revision
        return _Widget(page, rect, first, placed, raw)

    def _places(self) -> dict[int, int]:
        """Return the page of each annotation; 0 for one that is shown repeatedly.

        Raises:
            Exception: any, from objects that cannot be read.
        """
        places: dict[int, int] = {}
        self._pages = walk_pages(self._reader.root, _NODES).pages
        for at, page in enumerate(self._pages, 1):
            for raw in raw_items(entry(page.node, "/Annots")):
                self._budget.take()
                if isinstance(raw, IndirectObject):
                    places[raw.idnum] = 0 if raw.idnum in places else at
        return places

    def _terminal(
        self,
    ) -> Iterator[tuple[str, str | None, IndirectObject, list[IndirectObject]]]:
        """Yield full name, type, reference and widgets of each terminal field.

        Raises:
            DocumentRefusedError: past the budget.
        """
        form = dictionary(self._reader.root, "/AcroForm")
        todo: list[tuple[object, str, str | None]] = [
            (raw, "", None) for raw in raw_items(entry(form, "/Fields"))
        ]
        seen: set[int] = set()
        while todo:
            self._budget.take()
            raw, above, kind = todo.pop()
            node = resolve(raw)
            if not isinstance(raw, IndirectObject) or raw.idnum in seen:
                continue
            seen.add(raw.idnum)
            title = full_name(above, partial_name(node))
            kind = name(node, "/FT") or kind
            kids = list(raw_items(entry(node, "/Kids")))
            below = [kid for kid in kids if "/T" in _keys(resolve(kid))]
            if below:
                todo.extend((kid, title, kind) for kid in below)
            elif kids:
                widgets = [
                    kid for kid in kids
                    if isinstance(kid, IndirectObject)
                    # Any other annotation shows no value.
                    and name(resolve(kid), "/Subtype") in {None, "/Widget"}
                ]  # fmt: skip
                yield title, kind, raw, widgets
            else:
                yield title, kind, raw, [raw]

    def _was_signature(self, number: int) -> bool:
        """Return whether a field never was of another type."""
        return all(
            name(node, "/FT") in {None, "/Sig"} for _, node in self._versions(number)
        )

    def _signed(self, number: int) -> int | None:
        """Return the first revision in which a field has a value; None: none has."""
        found = []
        for revision, node in self._versions(number):
            raw = node.raw_get("/V") if "/V" in node else None
            if isinstance(raw, IndirectObject):
                first = self._history.first(raw.idnum)
                found.append(max(revision, first))
            elif raw is not None and not isinstance(raw, NullObject):
                found.append(revision)
        return min(found, default=None)

    def _versions(self, number: int) -> Iterator[tuple[int, DictionaryObject]]:
        """Yield the dictionaries that an object was, with their revisions."""
        reference = self._history.reference(number)
        for revision in self._history.revisions(number):
            self._budget.take()
            if self._reader.xrefs.get_historical_ref(reference, revision) is None:
                continue
            node = self._reader.get_object(reference, revision)
            if isinstance(node, DictionaryObject):
                yield revision, node


def _expected(field: object) -> tuple[str, ...]:
    """Return the texts that mean a field's value; empty for a button.

    Of a list box that shows all its options no text tells the chosen one.
    """
    kind, values = kind_of(field), values_of(inherited(field, "/V"))
    if kind is FieldKind.TEXT:
        return (values[0] if values else "",)
    if kind is FieldKind.CHOICE:
        return ("".join(option_texts(field, values)),)
    return ()


def _may_cover(annotation: object) -> bool:
    """Return whether some reader draws an annotation, apart from other widgets.

    What PDFium draws over a widget is found by its pixels. Poppler and MuPDF draw more
    kinds of annotations without an appearance.
    """
    kind = name(annotation, "/Subtype")
    if kind in {"/Widget", "/Popup"}:
        return False
    is_drawn = entry(dictionary(annotation, "/AP"), "/N") is not None
    return kind != "/Link" or is_drawn or _is_framed(annotation)


def _is_framed(link: object) -> bool:
    """Return whether some reader draws the border of a link.

    Source: ISO 32000-2, tables 166 and 168 (it is 1 point wide by default).
    """
    widths = _widths(link)
    return not widths or any(widths)


def _widths(link: object) -> list[float]:
    """Return the widths of a link's border, by either entry."""
    border = [number(each) for each in raw_items(entry(link, "/Border"))]
    style = entry(entry(link, "/BS"), "/W")
    widths = [*border[2:3], *([] if style is None else [number(style)])]
    return [_ICON if each is None else each for each in widths]


def _is_upside_down(widget: object) -> bool:
    """Return whether some readers turn a value by 180 degrees, where 66 is 99."""
    turn = entry(entry(widget, "/MK"), "/R")
    return turn is not None and (number(turn) or 0) % 360 == 180  # noqa: PLR2004 (degrees)


def _has_drawing(annotation: object) -> bool:
    """Return whether an annotation has an appearance, and all readers draw that alone.

    Poppler draws a link's border beside it.
    """
    if name(annotation, "/Subtype") == "/Link":
        return False
    drawings = entry(dictionary(annotation, "/AP"), "/N")
    if isinstance(drawings, StreamObject):
        return True
    state = name(annotation, "/AS")
    return state is not None and isinstance(entry(drawings, state), StreamObject)


def _reached(annotation: object) -> Rect | None:
    """Return where an annotation without a drawing may be drawn; None: nowhere.

    Lines go where their points are, and icons have a size of their own.
    """
    box = read_box(entry(annotation, "/Rect"))
    kind = name(annotation, "/Subtype")
    if kind in _BY_POINTS:
        return _EVERYWHERE
    more = _ICON if kind in _ICONS else 0.0
    if kind == "/Link":
        more = max(map(abs, _widths(annotation)), default=1.0)
    return box and (box[0] - more, box[1] - more, box[2] + more, box[3] + more)


def _share(one: Rect, other: Rect) -> bool:
    """Return whether two rectangles have an area in common."""
    wide = min(one[2], other[2]) - max(one[0], other[0])
    return wide > 0 and min(one[3], other[3]) > max(one[1], other[1])


def _cells(field: object) -> int:
    """Return the cells of a comb; 0 for any other field."""
    flags = int(number(inherited(field, "/Ff")) or 0)
    return int(number(inherited(field, "/MaxLen")) or 0) if flags & _COMB else 0


def _is_hidden(raw: IndirectObject) -> bool:
    """Return whether an annotation is shown nowhere; a later step may not show it."""
    return bool(int(number(entry(resolve(raw), "/F")) or 0) & _HIDDEN)


def _has_no_area(raw: object) -> bool:
    """Return whether a rectangle is four direct numbers without an area."""
    items = list(raw_items(raw))
    if any(isinstance(each, IndirectObject) for each in items):
        return False
    x0, y0, x1, y1 = [*map(number, items), None, None, None, None][:4]
    return len(items) == 4 and (x0 == x1 is not None or y0 == y1 is not None)  # noqa: PLR2004 (corners)


def _keys(node: object) -> Collection[str]:
    return node if isinstance(node, DictionaryObject) else ()


def _direct_rect(widget: object) -> Rect | None:
    """Return a widget's rectangle, if its four numbers are direct."""
    if not isinstance(widget, DictionaryObject) or "/Rect" not in widget:
        return None
    raw = widget.raw_get("/Rect")
    if not isinstance(raw, ArrayObject) or any(
        isinstance(item, IndirectObject) for item in raw_items(raw)
    ):
        return None
    return read_box(raw)
