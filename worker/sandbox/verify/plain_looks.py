"""Drawings of text fields that show their text alone; for confined jobs only.

The text of a drawing is compared with the value. That says what a reader shows if each
letter is painted, is where it is read, and nothing else is drawn. So the drawings that
are believed are those of a closed grammar, which the usual writers keep to: a
background, a border along the edges, a clip that cuts off no more than a margin, and
text in a font that was signed, or that every reader has. Its lines go from top to
bottom, and its letters from left to right: a text is read in the order in which it was
written. Programs differ in where an operator ends (some read `0f` as a number and `f`),
so each token stands apart.

Source: ISO 32000-2, 8.2, 9.3, 9.4 and 12.7.4.3.
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Final

from pyhanko.pdf_utils.generic import (
    ArrayObject,
    FloatObject,
    IndirectObject,
    NumberObject,
    StreamObject,
)

from worker.sandbox.inspect.pdf_objects import (
    dictionary,
    entry,
    name,
    number,
    raw_items,
    resolve,
)
from worker.sandbox.verify.step_context import raw_entry

_MOST: Final = 64 * 1024
"""Longest content that is read, decoded."""
_FLATE: Final = "/FlateDecode"
_SPACE: Final = rb"[\0\t\n\f\r ]"
_END: Final = rb"(?=[\0\t\n\f\r ()<>\[\]/]|\Z)"
_TOKEN: Final = re.compile(
    rb"(?P<space>"
    + _SPACE
    + rb"++)|(?P<number>[+-]?(?:\d++\.?\d*+|\.\d++))"
    + _END
    + rb"|(?P<name>/[A-Za-z0-9_.+-]++)"
    + _END
    + rb"|(?P<operator>[A-Za-z]++\*?|['\"])"
    + _END
    + rb"|(?P<string>\((?:[^()\\\r]|\\[nrtbf()\\]|\\[0-7]{3})*+\)"
    + rb"|<(?:[0-9A-Fa-f]{2})*+>)|(?P<bracket>[\[\]])"
)
_EDGE: Final = 4.0
"""Widest margin, border and line along an edge, in units of the drawing."""
_SHARE: Final = 0.8
"""Share of a side that a background or a border covers at least."""
_POINTS_MAX: Final = 16
"""Longest path, of a bevel."""
_CORNERS: Final = 4
_SMALLEST: Final = 4.0
"""Smallest size of a letter, in units of the drawing."""
_KERNING: Final = 200.0
"""Most that a letter is moved towards the one before it, in thousandths of its size."""
_NARROWEST: Final = 0.5
"""Least distance of texts that are placed one by one, as a share of their size."""
_USUAL_WIDTH: Final = 0.4
"""Width of a byte of a text, escapes included, as a share of its size."""
_LINE: Final = 0.9
"""Least distance of lines, as a share of the letters' size."""
_CONTRAST: Final = 0.2
"""Least difference of brightness between letters and what is below them."""
_WHITE: Final = 1.0
# Upside down, 66 is 99.
_TURNS: Final = {(1, 0, 0, 1), (0, 1, -1, 0), (0, -1, 1, 0)}
_TEXT_FONTS: Final = frozenset(
    f"/{each}"
    for family in ("Helvetica", "Courier")
    for each in (family, *(f"{family}-{style}" for style in
                           ("Bold", "Oblique", "BoldOblique")))
) | {"/Times-Roman", "/Times-Bold", "/Times-Italic", "/Times-BoldItalic"}  # fmt: skip
"""Standard fonts of letters. Source: ISO 32000-1, 9.6.2.2."""

Box = tuple[float, float, float, float]
_Point = tuple[float, float]
_Operand = float | str | bytes


class _NotPlainError(ValueError):
    """A drawing has something else than the grammar has."""


@dataclass(frozen=True, slots=True)
class PlainLook:
    """A drawing that shows its text and nothing else.

    Args:
        margins: width along the left and right edges in which nothing may be shown, as
            a share of the width, and the same along the lower and upper edges; as the
            drawing stands on the page.
        fonts: numbers of the fonts that it draws with, but for those that every reader
            has.
    """

    margins: tuple[float, float]
    fonts: frozenset[int]
    turn: int = 0
    """1: its lines go up the page; -1: they go down."""

    def shown(self, rect: Box) -> Box:
        """Return the part of a widget's rectangle that shows anything."""
        wide = (rect[2] - rect[0]) * self.margins[0]
        high = (rect[3] - rect[1]) * self.margins[1]
        return rect[0] + wide, rect[1] + high, rect[2] - wide, rect[3] - high


def plain_content(drawing: StreamObject, most: int) -> bytes | None:
    """Return the content of a drawing that all programs decode alike.

    Args:
        drawing: a form XObject.
        most: longest content, encoded and decoded.

    Returns:
        None if it is longer, or has another filter than Flate without parameters.
    """
    filters = entry(drawing, "/Filter")
    if isinstance(filters, ArrayObject) and len(filters) == 1:
        filters = resolve(filters.raw_get(0))
    if (
        str(filters or _FLATE) != _FLATE
        or {"/DecodeParms", "/DP", "/F", "/Fl"} & drawing.keys()
        or len(drawing.encoded_data) > most
    ):
        return None
    content: bytes = drawing.data
    return content if len(content) <= most else None


def plain_look(drawing: object) -> PlainLook | None:
    """Read the drawing of a text field; None if it may show more than its text.

    Args:
        drawing: the form XObject; None: readers draw the value by themselves.

    Raises:
        Exception: any, from objects that cannot be read.
    """
    if drawing is None:
        return PlainLook((0.0, 0.0), frozenset())
    box = _numbers(raw_entry(drawing, "/BBox"))
    if (
        not isinstance(drawing, StreamObject)
        or len(box) != 4  # noqa: PLR2004 (corners)
        or {"/OC", "/Group", "/Ref"} & drawing.keys()
        or (content := plain_content(drawing, _MOST)) is None
    ):
        return None
    x0, x1 = sorted(box[::2])
    y0, y1 = sorted(box[1::2])
    wide, high = x1 - x0, y1 - y0
    turned = _turned(drawing)
    if wide <= 0 or high <= 0 or turned is None:
        return None
    reading = _Reading((x0, y0, x1, y1))
    try:
        reading.read(content)
        fonts = frozenset(_unusual(drawing, reading.fonts))
    except _NotPlainError:
        return None
    margins = reading.margin / wide, reading.margin / high
    if max(margins) >= 0.5:  # noqa: PLR2004 (half)
        return None
    return PlainLook(margins[::-1] if turned else margins, fonts, turned)


def _turned(drawing: StreamObject) -> int | None:
    """Return the way that a drawing is turned; None if its matrix does more."""
    if "/Matrix" not in drawing:
        return 0
    matrix = tuple(_numbers(raw_entry(drawing, "/Matrix")))
    if len(matrix) != 6 or matrix[:4] not in _TURNS:  # noqa: PLR2004 (ISO 32000-2, 8.3.4)
        return None
    return int(matrix[1])


def _unusual(drawing: StreamObject, names: set[str]) -> Iterator[int]:
    """Yield the numbers of the fonts that not every reader has.

    Raises:
        _NotPlainError: one is missing, or is no object of its own.
    """
    fonts = dictionary(dictionary(drawing, "/Resources"), "/Font")
    for each in names:
        raw = raw_entry(fonts, each)
        font = resolve(raw)
        is_standard = (
            name(font, "/Subtype") == "/Type1"
            and name(font, "/BaseFont") in _TEXT_FONTS
            and entry(font, "/ToUnicode") is None
            and entry(font, "/FontDescriptor") is None
        )
        if is_standard:
            continue
        if not isinstance(raw, IndirectObject):
            raise _NotPlainError
        yield raw.idnum


def _numbers(raw: object) -> list[float]:
    """Return an array of direct numbers; empty for any other."""
    items = [*raw_items(raw)]
    if not all(isinstance(each, NumberObject | FloatObject) for each in items):
        return []
    return [found for each in items if (found := number(each)) is not None]


@dataclass(frozen=True, slots=True)
class _State:
    """Graphics state, as far as a plain drawing may set it."""

    fill: float = 0.0
    """Brightness, 0 to 1."""
    width: float = 1.0
    """Of lines."""
    size: float = 0.0
    """Of the font."""
    moved: _Point = (0.0, 0.0)


@dataclass(slots=True)
class _Reading:
    """Reading of one content stream.

    Args:
        box: of the drawing.
    """

    box: Box
    margin: float = 0.0
    fonts: set[str] = field(default_factory=set)
    _state: _State = _State()
    _saved: list[_State] = field(default_factory=list)
    _below: float = _WHITE
    """Brightness of the background."""
    _rects: list[Box] = field(default_factory=list)
    _points: list[_Point] = field(default_factory=list)
    """Current path; a line is no rectangle."""
    _clips: bool = False
    _in_text: bool = False
    _scale: float = 1.0
    _leading: float = 0.0
    _has_text: bool = False
    _aside: float = 0.0
    """Where the text was placed last, from the beginning of its line."""
    _shown: list[bytes] = field(default_factory=list)
    """Texts since that place."""
    _of_line: dict[bytes, float] = field(default_factory=dict)
    """Where each text of the line was placed."""

    @property
    def _edge(self) -> float:
        """Width along the edges that is a border's."""
        return min(_EDGE, *(side / 4 for side in self._sides))

    @property
    def _sides(self) -> tuple[float, float]:
        return self.box[2] - self.box[0], self.box[3] - self.box[1]

    def read(self, content: bytes) -> None:
        """Read the content.

        Raises:
            _NotPlainError: it has something else than the grammar has.
        """
        operands: list[_Operand] = []
        at = 0
        while at < len(content):
            token = _TOKEN.match(content, at)
            if token is None:
                raise _NotPlainError
            at = token.end()
            kind, text = token.lastgroup, token[0]
            if kind == "operator":
                self._run(text.decode("ascii"), operands)
                operands = []
            elif kind == "number":
                operands.append(float(text))
            elif kind == "name":
                operands.append(text.decode("ascii"))
            elif kind != "space":
                operands.append(text)
        if operands or self._saved or self._in_text:
            raise _NotPlainError

    def _run(self, operator: str, operands: Sequence[_Operand]) -> None:
        """Carry out one operator.

        Raises:
            _NotPlainError: it is none of a plain drawing, or is out of place.
        """
        form, run = _OPERATORS.get(operator, (None, None))
        if form is None or run is None:
            raise _NotPlainError
        kinds = "".join(_KINDS[type(each)] for each in operands)
        if re.fullmatch(form, kinds) is None:
            raise _NotPlainError
        run(self, *operands)

    def save(self) -> None:
        self._demand(not self._in_text)
        self._saved.append(self._state)

    def restore(self) -> None:
        self._demand(bool(self._saved) and not self._in_text)
        self._state = self._saved.pop()

    def fill_colour(self, *parts: float) -> None:
        self._state = replace(self._state, fill=_brightness(parts))

    def move_all(self, *parts: float) -> None:
        """Move what follows; a scale or turn is none of a plain drawing."""
        self._demand(not self._in_text and parts[:4] == (1, 0, 0, 1))
        aside, up = self._state.moved
        moved = aside + parts[4], up + parts[5]
        self._state = replace(self._state, moved=moved)

    def mode(self, mode: float) -> None:
        self._demand(mode == 0)

    def line_width(self, width: float) -> None:
        self._state = replace(self._state, width=width)

    def font(self, font: str, size: float) -> None:
        self._demand(not self._has_text)
        self.fonts.add(font)
        self._state = replace(self._state, size=size)

    def begin_text(self) -> None:
        self._demand(not self._in_text and not self._has_text)
        self._in_text, self._scale = True, 1.0

    def end_text(self) -> None:
        self._demand(self._in_text)
        self._in_text = False

    def matrix(self, *parts: float) -> None:
        wide, up, aside, high = parts[:4]
        self._demand(not self._has_text and up == aside == 0 and wide == high > 0)
        self._demand(self._in_text)
        self._scale = wide

    def spacing(self, more: float) -> None:
        self._demand(not self._has_text and more >= -_KERNING / 1000)

    def leading(self, down: float) -> None:
        self._leading = down

    def move_text(self, aside: float, up: float) -> None:
        """Go to a line below, or on to the next letter of the same line."""
        self._demand(self._in_text)
        size = self._state.size
        if not self._has_text or -up >= _LINE * size:
            self._aside = 0
            self._of_line.clear()
        else:
            # That its letters follow those before is found by their boxes.
            self._demand(up == 0 and aside >= _NARROWEST * size)
            self._aside += aside
        self._shown.clear()

    def move_and_lead(self, aside: float, up: float) -> None:
        self._leading = -up
        self.move_text(aside, up)

    def next_line(self) -> None:
        self.move_text(0, -self._leading)

    def stretch(self, share: float) -> None:
        self._demand(50 <= share <= 200)  # noqa: PLR2004 (per cent)

    def show(self, *parts: _Operand) -> None:
        """Show text that can be seen, once in each place."""
        self._demand(
            self._in_text
            and self._state.size * self._scale >= _SMALLEST
            and abs(self._state.fill - self._below) >= _CONTRAST
            and all(each <= _KERNING for each in parts if isinstance(each, float))
        )
        text = b"".join(each[1:-1] for each in parts if isinstance(each, bytes))
        if not self._shown:
            # PDFium reads a text once that is drawn twice in nearly the same place.
            before = self._of_line.setdefault(text, self._aside)
            apart = self._aside - before
            is_apart = apart >= _USUAL_WIDTH * self._state.size * len(text)
            self._demand(before == self._aside or is_apart)
            self._of_line[text] = self._aside
        self._shown.append(text)
        self._has_text = True

    def show_next(self, text: bytes) -> None:
        self.next_line()
        self.show(text)

    def rect(self, x: float, y: float, wide: float, high: float) -> None:
        (x0, y0), (x1, y1) = self._placed(x, y), self._placed(x + wide, y + high)
        self._rects.append((min(x0, x1), min(y0, y1), max(x0, x1), max(y0, y1)))

    def move(self, x: float, y: float) -> None:
        self._demand(not self._points)
        self._points.append(self._placed(x, y))

    def line(self, x: float, y: float) -> None:
        self._demand(0 < len(self._points) < _POINTS_MAX)
        self._points.append(self._placed(x, y))

    def close(self) -> None:
        self._demand(len(self._points) > 1)
        if self._points[-1] != self._points[0]:
            self._points.append(self._points[0])

    def clip(self) -> None:
        self._clips = True

    def end_path(self) -> None:
        """Take a clip that leaves all but a margin."""
        self._take_rectangle()
        self._demand(self._clips and len(self._rects) == 1 and not self._points)
        inner = self._rects[0]
        cut = [one - other for one, other in zip(inner[:2], self.box[:2], strict=True)]
        cut += [one - other for one, other in zip(self.box[2:], inner[2:], strict=True)]
        self.margin = max(self.margin, *cut)
        self._demand(self.margin <= 2 * _EDGE)
        self._clear()

    def fill(self) -> None:
        """Fill the background, or a border's bevel."""
        self._demand(not self._has_text and not self._clips)
        self._take_rectangle()
        for each in self._rects:
            self._demand(self._covers(each))
            self._below = self._state.fill
        if self._points:
            self._demand(self._is_bevel([*self._points, self._points[0]]))
        self._clear()

    def stroke(self) -> None:
        """Draw a border along the edges, below the text."""
        self._demand(not self._has_text and not self._clips)
        self._demand(self._state.width <= self._edge)
        for x0, y0, x1, y1 in self._rects:
            corners = ((x0, y0), (x1, y0), (x1, y1), (x0, y1), (x0, y0))
            for start, to in pairwise(corners):
                self._demand(self._is_border(start, to))
        self._demand(len(self._points) != 1)
        for start, to in pairwise(self._points):
            self._demand(self._is_border(start, to))
        self._clear()

    def close_and_stroke(self) -> None:
        if self._points:
            self.close()
        self.stroke()

    def fill_and_stroke(self) -> None:
        rects, points = [*self._rects], [*self._points]
        self.fill()
        self._rects, self._points = rects, points
        self.close_and_stroke()

    def _placed(self, x: float, y: float) -> _Point:
        return x + self._state.moved[0], y + self._state.moved[1]

    def _take_rectangle(self) -> None:
        """Take a path for the rectangle that it is."""
        points = self._points
        if len(points) == _CORNERS + 1 and points[-1] == points[0]:
            points = points[:-1]
        xs, ys = ({each[along] for each in points} for along in (0, 1))
        sides = pairwise([*points, *points[:1]])
        if (
            len(points) == len(set(points)) == _CORNERS
            and len(xs) == len(ys) == 2  # noqa: PLR2004 (of a rectangle)
            and all(start[0] == to[0] or start[1] == to[1] for start, to in sides)
        ):
            self._rects.append((min(xs), min(ys), max(xs), max(ys)))
            self._points = []

    def _covers(self, rect: Box) -> bool:
        """Return whether a rectangle covers nearly all of the drawing."""
        sides = zip(rect[:2], rect[2:], self.box[:2], self.box[2:], strict=True)
        return all(
            min(to, last) - max(start, first) >= _SHARE * (last - first)
            for start, to, first, last in sides
        )

    def _is_bevel(self, points: Sequence[_Point]) -> bool:
        """Return whether an area lies along edges, for nearly all of them."""
        xs, ys = ([each[along] for each in points] for along in (0, 1))
        wide, high = self._sides
        area = sum(x0 * y1 - x1 * y0 for (x0, y0), (x1, y1) in pairwise(points)) / 2
        return (
            abs(area) <= 2 * self._edge * (wide + high)
            and self._covers((min(xs), min(ys), max(xs), max(ys)))
            and all(any(self._along(*each)) for each in pairwise(points))
        )

    def _is_border(self, start: _Point, to: _Point) -> bool:
        """Return whether a line goes along one edge, for nearly all of it."""
        near = self._along(start, to)
        for along, is_near in enumerate(near):
            first, last = self.box[along], self.box[along + 2]
            reach = min(max(start[along], to[along]), last)
            reach -= max(min(start[along], to[along]), first)
            if is_near and reach >= _SHARE * (last - first):
                return True
        return False

    def _along(self, start: _Point, to: _Point) -> tuple[bool, bool]:
        """Return whether a line is at a lower or upper edge, and whether at a side."""
        near = [
            any(
                abs(start[across] - edge) <= self._edge
                and abs(to[across] - edge) <= self._edge
                for edge in (self.box[across], self.box[across + 2])
            )
            for across in (1, 0)
        ]
        return near[0], near[1]

    def _clear(self) -> None:
        self._rects.clear()
        self._points = []
        self._clips = False

    def ignore(self, *_: _Operand) -> None:
        """Take what draws nothing by itself."""

    @staticmethod
    def _demand(holds: bool) -> None:  # noqa: FBT001 (a condition)
        if not holds:
            raise _NotPlainError


def _brightness(parts: Sequence[float]) -> float:
    """Return the brightness of a colour in DeviceGray, DeviceRGB or DeviceCMYK."""
    if len(parts) == 4:  # noqa: PLR2004 (CMYK)
        black = parts[3]
        parts = [1 - min(1.0, each + black) for each in parts[:3]]
    if len(parts) == 1:
        parts = [parts[0]] * 3
    red, green, blue = (min(max(each, 0.0), 1.0) for each in parts)
    return 0.3 * red + 0.59 * green + 0.11 * blue


_KINDS: Final[Mapping[type, str]] = {float: "n", str: "N", bytes: "s"}
_Run = Callable[..., None]
_OPERATORS: Final[Mapping[str, tuple[str, _Run]]] = {
    "q": ("", _Reading.save),
    "Q": ("", _Reading.restore),
    "BMC": ("N", _Reading.ignore),
    "EMC": ("", _Reading.ignore),
    "g": ("n", _Reading.fill_colour),
    "rg": ("nnn", _Reading.fill_colour),
    "k": ("nnnn", _Reading.fill_colour),
    "G": ("n", _Reading.ignore),
    "RG": ("nnn", _Reading.ignore),
    "K": ("nnnn", _Reading.ignore),
    "cm": ("nnnnnn", _Reading.move_all),
    "w": ("n", _Reading.line_width),
    **dict.fromkeys(("J", "j", "M", "i"), ("n", _Reading.ignore)),
    "d": ("sn*sn", _Reading.ignore),
    "re": ("nnnn", _Reading.rect),
    "m": ("nn", _Reading.move),
    "l": ("nn", _Reading.line),
    "W": ("", _Reading.clip),
    "W*": ("", _Reading.clip),
    "n": ("", _Reading.end_path),
    "f": ("", _Reading.fill),
    "f*": ("", _Reading.fill),
    "S": ("", _Reading.stroke),
    "s": ("", _Reading.close_and_stroke),
    "h": ("", _Reading.close),
    "B": ("", _Reading.fill_and_stroke),
    "b": ("", _Reading.fill_and_stroke),
    "BT": ("", _Reading.begin_text),
    "ET": ("", _Reading.end_text),
    "Tf": ("Nn", _Reading.font),
    "Tm": ("nnnnnn", _Reading.matrix),
    "Tc": ("n", _Reading.spacing),
    "Tw": ("n", _Reading.spacing),
    "Td": ("nn", _Reading.move_text),
    "TD": ("nn", _Reading.move_and_lead),
    "TL": ("n", _Reading.leading),
    "T*": ("", _Reading.next_line),
    "Tr": ("n", _Reading.mode),
    "Tz": ("n", _Reading.stretch),
    "Tj": ("s", _Reading.show),
    "'": ("s", _Reading.show_next),
    "TJ": ("s[ns]*", _Reading.show),
}
"""Kinds of operands (n number, N name, s string or bracket), and what is done."""
