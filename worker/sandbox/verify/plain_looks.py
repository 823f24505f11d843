"""Drawings of text fields that show their text alone; for confined jobs only.

The text of a drawing is compared with the value. That says what a reader shows if each
letter is painted, is where it is read, and nothing else is drawn. So the drawings that
are believed are those of a closed grammar, which the usual writers keep to: a
background, one border along the edges, a clip that cuts off no more than a margin, and
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
from typing import Any, Final

from pyhanko.pdf_utils.generic import (
    ArrayObject,
    FloatObject,
    IndirectObject,
    NumberObject,
    StreamObject,
)

from worker.sandbox.inspect.pdf_objects import (
    entry,
    number,
    plain_dictionary,
    raw_items,
    resolve,
)
from worker.sandbox.verify.field_lines import FieldLines, LineStyle
from worker.sandbox.verify.plain_fonts import draws_all, is_everywhere, is_read_alike
from worker.sandbox.verify.step_context import raw_entry

_MOST: Final = 64 * 1024
"""Longest content that is read, decoded."""
_FLATE: Final = "/FlateDecode"
_SPACE: Final = rb"[\0\t\n\f\r ]"
_END: Final = rb"(?=[\0\t\n\f\r ()<>\[\]/]|\Z)"
_TOKEN: Final = re.compile(
    rb"(?P<space>"
    + _SPACE
    # Programs read different values of numbers beyond 32 bits.
    + rb"++)|(?P<number>[+-]?(?:\d{1,7}(?:\.\d{0,10})?|\.\d{1,10}))"
    + _END
    + rb"|(?P<name>/[A-Za-z0-9_.+-]++)"
    + _END
    + rb"|(?P<operator>[A-Za-z]++\*?|['\"])"
    + _END
    + rb"|(?P<string>\((?:[^()\\\r]|\\[nrtbf()\\]|\\[0-3][0-7]{2})*\)"
    + rb"|<(?:[0-9A-Fa-f]{2})*>)|(?P<open>\[)|(?P<close>\])"
)
_ESCAPE: Final = re.compile(rb"\\([0-7]{3}|.)", re.DOTALL)
_ESCAPED: Final = {b"n": b"\n", b"r": b"\r", b"t": b"\t", b"b": b"\b", b"f": b"\f"}
_EDGE: Final = 4.0
"""Widest margin, border and line along an edge, in units of the drawing."""
_SHARE: Final = 0.8
"""Share of a side that a border covers at least."""
_POINTS_MAX: Final = 5
"""Longest path, of a frame that was closed."""
_CORNERS: Final = 4
_ENDS: Final = 3
"""Points of a line that was closed."""
_UNEQUAL: Final = 0.15
"""Most that a background is nearer to one edge than to another, as a share of the
widest margin."""
_BEYOND: Final = 0.01
"""Most that a line reaches beyond the box, which cuts it off; likewise."""
_DIVIDER_MOST: Final = 0.15
"""Widest line between cells, and farthest from its place, as a share of a cell."""
_LEAST_DIVIDER: Final = 0.6
"""Share of the height that a line between two cells covers at least."""
_SMALLEST: Final = 3.0
"""Smallest size of a letter on the page, in points."""
_AS_LARGE: Final = 0.9
"""Least size of a letter, as a share of the size in which Firefox shows it."""
_AUTOMATIC: Final = 9.0
_LINE_FACTOR: Final = 1.35
"""Largest letters of pdf.js where `/DA` has no size, and their share of the height."""
_TALLER: Final = 1.1
"""Least length of lines between cells, as a share of the letters' size."""
_FARTHEST: Final = 20_000.0
"""Greatest number of a box or a matrix, and of a place in a drawing."""
_UNEVEN: Final = 2.0
"""Most that a drawing is stretched in one direction and not in the other."""
_WIDEST: Final = 10_000.0
"""Most that a letter is moved away from the one before it, in thousandths of its size,
and that letters are spaced, in units."""
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
_UNSURE: Final = 0.3
"""By how much readers differ about the brightness of a colour in DeviceCMYK."""
_WHITE: Final = (1.0, 1.0)
_BLACK: Final = (0.0, 0.0)
# Upside down, 66 is 99.
_TURNS: Final = {(1, 0, 0, 1), (0, 1, -1, 0), (0, -1, 1, 0)}
_KEYS: Final = {
    "/Type", "/Subtype", "/FormType", "/BBox", "/Matrix", "/Resources", "/Name",
    "/Filter", "/Length", "/LastModified", "/PieceInfo", "/Metadata",
    "/StructParent", "/StructParents",
}  # fmt: skip
"""Entries of a form XObject that shows its content. Source: ISO 32000-2, table 93."""

Box = tuple[float, float, float, float]
_Point = tuple[float, float]
_Range = tuple[float, float]
"""Least and greatest brightness of a colour in any reader, 0 to 1."""
_Operand = float | str | bytes | int


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
    size: tuple[float, float] | None = None
    """Width and height of its box, as it stands on the page; None: it has none."""
    letters: float = 0.0
    """Size of its smallest letters."""
    default: float = 0.0
    """Size in which Firefox shows the value, in points; 0: as the field has room."""
    lines: int = 1
    """Number of lines of its text."""

    def fits(self, rect: Box) -> bool:
        """Return whether its letters can be read in a widget's rectangle.

        Firefox shows the value in a size of its own, and cuts what has no room: smaller
        letters have more of it.
        """
        if self.size is None:
            return True
        wide = (rect[2] - rect[0]) / self.size[0]
        high = (rect[3] - rect[1]) / self.size[1]
        smaller, greater = sorted((wide, high))
        room = min(rect[2] - rect[0], rect[3] - rect[1]) / _LINE_FACTOR
        shown = self.default or min(_AUTOMATIC, room)
        least = max(_SMALLEST, _AS_LARGE * shown)
        return self.letters * smaller >= least and greater <= _UNEVEN * smaller

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


def plain_look(drawing: object, cells: int = 0) -> PlainLook | None:
    """Read the drawing of a text field; None if it may show more than its text.

    Args:
        drawing: the form XObject.
        cells: of a comb, which may have lines between them; 0: the field is none.

    Raises:
        Exception: any, from objects that cannot be read.
    """
    box = _numbers(raw_entry(drawing, "/BBox"))
    if (
        not isinstance(drawing, StreamObject)
        or len(box) != 4  # noqa: PLR2004 (corners)
        or not drawing.keys() <= _KEYS
        or (content := plain_content(drawing, _MOST)) is None
    ):
        return None
    x0, x1 = sorted(box[::2])
    y0, y1 = sorted(box[1::2])
    wide, high = x1 - x0, y1 - y0
    turned = _turned(drawing)
    if wide <= 0 or high <= 0 or turned is None:
        return None
    reading = _Reading((x0, y0, x1, y1), FieldLines(cells))
    try:
        reading.read(content)
        fonts = frozenset(_unusual(drawing, reading.fonts, reading.codes))
    except _NotPlainError:
        return None
    margins = reading.margin / wide, reading.margin / high
    size = wide, high
    if max(margins) >= 0.5:  # noqa: PLR2004 (half)
        return None
    if turned:
        margins, size = margins[::-1], size[::-1]
    return PlainLook(
        margins, fonts, turned, size, reading.letters, lines=reading.text_lines
    )


def _turned(drawing: StreamObject) -> int | None:
    """Return the way that a drawing is turned; None if its matrix does more."""
    if "/Matrix" not in drawing:
        return 0
    matrix = tuple(_numbers(raw_entry(drawing, "/Matrix")))
    if len(matrix) != 6 or matrix[:4] not in _TURNS:  # noqa: PLR2004 (ISO 32000-2, 8.3.4)
        return None
    return int(matrix[1])


def _unusual(drawing: StreamObject, names: set[str], codes: set[int]) -> Iterator[int]:
    """Yield the numbers of the fonts that not every reader has.

    Raises:
        _NotPlainError: one is missing, is no object of its own, or lacks a code.
    """
    resources = plain_dictionary(drawing, "/Resources")
    if resources is None or not resources.keys() <= {"/Font", "/ProcSet", "/Encoding"}:
        raise _NotPlainError  # of default colour spaces, for one
    fonts = plain_dictionary(resources, "/Font")
    for each in names:
        if not draws_all(entry(fonts, each), codes):
            raise _NotPlainError
        yield from _numbers_of(raw_entry(fonts, each))


def _numbers_of(raw: object) -> list[int]:
    """Return the number of a font that not every reader has; empty for any other.

    Raises:
        _NotPlainError: readers may draw its letters differently.
    """
    if is_everywhere(resolve(raw)):
        return []
    if not isinstance(raw, IndirectObject) or not is_read_alike(resolve(raw)):
        raise _NotPlainError
    return [raw.idnum]


def own_look(font: object) -> PlainLook | None:
    """Return what readers draw by themselves in a font; None if they may differ.

    Args:
        font: as it stands in the form's resources.
    """
    try:
        return PlainLook((0.0, 0.0), frozenset(_numbers_of(font)))
    except _NotPlainError:
        return None


def _numbers(raw: object) -> list[float]:
    """Return an array of direct numbers; empty for any other."""
    items = [*raw_items(raw)]
    if not all(isinstance(each, NumberObject | FloatObject) for each in items):
        return []
    found = [number(each) for each in items]
    return [each for each in found if each is not None and abs(each) <= _FARTHEST]


_LINE_STYLE: Final = LineStyle()


@dataclass(frozen=True, slots=True)
class _State:
    """Graphics state, as far as a plain drawing may set it."""

    fill: _Range = _BLACK
    stroke: LineStyle = _LINE_STYLE
    is_clipped: bool = False
    size: float = 0.0
    """Of the font."""
    leading: float = 0.0
    moved: _Point = (0.0, 0.0)


@dataclass(slots=True)
class _Reading:
    """Reading of one content stream.

    Args:
        box: of the drawing.
        lines: that it has had so far: none.
    """

    box: Box
    lines: FieldLines
    margin: float = 0.0
    fonts: set[str] = field(default_factory=set)
    text_lines: int = 0
    codes: set[int] = field(default_factory=set)
    """Bytes of the texts."""
    _state: _State = _State()
    _saved: list[_State] = field(default_factory=list)
    _below: _Range = _WHITE
    """Of the background."""
    _colour: _Range | None = None
    """Of the text."""
    letters: float = _FARTHEST
    """Size of the smallest letters, in units of the drawing."""
    _rects: list[Box] = field(default_factory=list)
    _points: list[_Point] = field(default_factory=list)
    """Current path; a line is no rectangle."""
    _clips: bool = False
    _in_text: bool = False
    _scale: float = 1.0
    _has_text: bool = False
    _begins_line: bool = True
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
            elif kind == "string":
                operands.append(text)
            elif kind != "space":
                operands.append(_Bracket(kind == "open"))
        is_over = not (operands or self._saved or self._in_text)
        # A line as high as a letter is a letter.
        is_taller = self.lines.shortest >= _TALLER * self.letters or not self._has_text
        if not (is_over and is_taller and self.lines.show_nothing()):
            raise _NotPlainError

    def _run(self, operator: str, operands: Sequence[_Operand]) -> None:
        """Carry out one operator.

        Raises:
            _NotPlainError: it is none of a plain drawing, or is out of place.
        """
        form, run = _OPERATORS.get(operator, (None, None))
        if form is None or run is None:
            raise _NotPlainError
        kinds = "".join(map(_kind, operands))
        # Poppler has one current point for paths and text.
        is_apart = self._in_text and operator in _PATHS
        if is_apart or re.fullmatch(form, kinds) is None:
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
        self._demand(max(map(abs, parts)) <= _FARTHEST)
        aside, up = self._state.moved
        moved = aside + parts[4], up + parts[5]
        self._state = replace(self._state, moved=moved)

    def mode(self, mode: float) -> None:
        self._demand(mode == 0)

    def line_width(self, width: float) -> None:
        self._demand(width >= 0)
        self._stroke(width=width)

    def stroke_colour(self, *parts: float) -> None:
        _brightness(parts)
        self._stroke(colour=parts)

    def dash(self, *parts: _Operand) -> None:
        """Take solid lines; dashes read as points of a number."""
        self._demand(sum(isinstance(each, float) for each in parts) == 1)

    def _stroke(self, **changes: Any) -> None:
        stroke = replace(self._state.stroke, **changes)
        self._state = replace(self._state, stroke=stroke)

    def font(self, font: str, size: float) -> None:
        is_same = font in self.fonts and size == self._state.size
        self._demand(is_same or not self._has_text)
        self.fonts.add(font)
        self._state = replace(self._state, size=size)

    def begin_text(self) -> None:
        self._demand(not self._in_text and not self._has_text)
        if self._clips:
            self.end_path()  # which pypdf leaves out; readers do not clip then
        self._demand(not self._rects and not self._points)
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
        self._demand(not self._has_text and -_KERNING / 1000 <= more <= _WIDEST / 10)

    def leading(self, down: float) -> None:
        self._state = replace(self._state, leading=down)

    def move_text(self, aside: float, up: float) -> None:
        """Go to a line below, or on to the next letter of the same line."""
        self._demand(self._in_text and max(abs(aside), abs(up)) <= _FARTHEST)
        size = self._state.size
        if not self._has_text or -up >= _LINE * size:
            self._begins_line = True
            self._aside = 0
            self._of_line.clear()
        else:
            # That its letters follow those before is found by their boxes.
            self._demand(up == 0 and aside >= _NARROWEST * size)
            self._aside += aside
        self._shown.clear()

    def move_and_lead(self, aside: float, up: float) -> None:
        self.leading(-up)
        self.move_text(aside, up)

    def next_line(self) -> None:
        self.move_text(0, -self._state.leading)

    def stretch(self, share: float) -> None:
        self._demand(50 <= share <= 200)  # noqa: PLR2004 (per cent)

    def show(self, *parts: _Operand) -> None:
        """Show text that can be seen, once in each place."""
        colour = self._state.fill
        moves = [each for each in parts if isinstance(each, float)]
        self._demand(
            self._in_text
            and _contrasts(colour, self._below)
            and self._colour in {None, colour}
            and all(-_WIDEST <= each <= _KERNING for each in moves)
        )
        self._colour = colour
        self.letters = min(self.letters, self._state.size * self._scale)
        strings = [each for each in parts if isinstance(each, bytes)]
        self.codes.update(*map(_codes, strings))
        text = b"".join(each[1:-1] for each in strings)
        self.text_lines += self._begins_line and bool(text)
        self._begins_line &= not text
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
        self.margin = max(self.margin, *self._gaps(self._rects[0]))
        self._demand(self.margin <= 2 * _EDGE)
        self._state = replace(self._state, is_clipped=True)
        self._clear()

    def fill(self) -> None:
        """Fill the background, before there are lines."""
        self._demand(self._may_paint() and self.lines.are_none())
        self._take_rectangle()
        # Of several areas of one path some are holes.
        self._demand(len(self._rects) == 1 and not self._points)
        gaps = self._gaps(self._rects[0])
        # A strip of what is below would be a line.
        self._demand(max(gaps) <= min(self._edge, min(gaps) + _UNEQUAL * self._edge))
        self.margin = max(self.margin, *gaps)
        self._below = self._state.fill
        self._clear()

    def stroke(self) -> None:
        """Draw a border along the edges, below the text."""
        style = self._state.stroke
        self._demand(self._may_paint() and style.width <= self._edge)
        for x0, y0, x1, y1 in self._rects:
            corners = ((x0, y0), (x1, y0), (x1, y1), (x0, y1), (x0, y0))
            for start, to in pairwise(corners):
                self._take_border(start, to)
        self._demand(len(self._points) != 1)
        if len(self._points) == _ENDS and self._points[2] == self._points[0]:
            self._points.pop()
        if (cell := self._divided_cell()) is not None:
            length = abs(self._points[0][1] - self._points[1][1])
            self.lines.after_cell(cell, style, length)
            self._points = []
        for start, to in pairwise(self._points):
            self._take_border(start, to)
        ends = [end for x0, y0, x1, y1 in self._rects for end in ((x0, y0), (x1, y1))]
        reach = max(map(self._reach, [*ends, *self._points]), default=0.0)
        self.margin = max(self.margin, reach + style.width / 2)
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

    def _may_paint(self) -> bool:
        """Return whether areas and lines are below the text, and not cut off."""
        is_cut = self._clips or self._state.is_clipped
        return not self._has_text and not is_cut

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

    def _gaps(self, rect: Box) -> list[float]:
        """Return the distances of a rectangle's sides from the edges, inwards."""
        low = (one - other for one, other in zip(rect[:2], self.box[:2], strict=True))
        high = (other - one for one, other in zip(rect[2:], self.box[2:], strict=True))
        return [max(each, 0.0) for each in (*low, *high)]

    def _reach(self, point: _Point) -> float:
        """Return the distance of a point from the nearest edge."""
        return min(
            abs(at - edge)
            for at, along in zip(point, (0, 1), strict=True)
            for edge in (self.box[along], self.box[along + 2])
        )

    def _divided_cell(self) -> int | None:
        """Return after which cell of a comb the path is a line; None if it is none."""
        points, cells = self._points, self.lines.cells
        if cells <= 1 or len(points) != 2:  # noqa: PLR2004 (ends)
            return None
        wide, high = self._sides
        start, to = points
        at = (start[0] - self.box[0]) * cells / wide
        is_between = (
            start[0] == to[0]
            and self._state.stroke.width * cells <= _DIVIDER_MOST * wide
            and abs(at - round(at)) <= _DIVIDER_MOST
            and abs(start[1] - to[1]) >= _LEAST_DIVIDER * high
            and all(map(self._is_within, points))
        )
        return round(at) if is_between else None

    def _is_within(self, point: _Point) -> bool:
        """Return whether nothing cuts off what is drawn there."""
        x0, y0, x1, y1 = self.box
        far = _BEYOND * self._edge
        return x0 - far <= point[0] <= x1 + far and y0 - far <= point[1] <= y1 + far

    def _take_border(self, start: _Point, to: _Point) -> None:
        """Take a line that goes along one edge, for nearly all of it."""
        edge = self._edge_along(start, to)
        if edge is None or not (self._is_within(start) and self._is_within(to)):
            raise _NotPlainError
        self.lines.at_edge(edge, self._state.stroke)

    def _edge_along(self, start: _Point, to: _Point) -> int | None:
        """Return along which edge a line goes, for nearly all of it; None: along none.

        Its number is that of the coordinate in a box.
        """
        for along, is_near in enumerate(self._along(start, to)):
            first, last = self.box[along], self.box[along + 2]
            reach = min(max(start[along], to[along]), last)
            reach -= max(min(start[along], to[along]), first)
            if is_near and reach >= _SHARE * (last - first):
                across = 1 - along
                middle = (self.box[across] + self.box[across + 2]) / 2
                return across + 2 * (start[across] > middle)
        return None

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


def _codes(string: bytes) -> bytes:
    """Return what a string stands for, of those that the grammar has."""
    if string.startswith(b"<"):
        return bytes.fromhex(string[1:-1].decode("ascii"))
    return _ESCAPE.sub(_unescaped, string[1:-1])


def _unescaped(found: "re.Match[bytes]") -> bytes:
    sign = found[1]
    return bytes([int(sign, 8)]) if sign.isdigit() else _ESCAPED.get(sign, sign)


def _brightness(parts: Sequence[float]) -> _Range:
    """Return the brightness of a colour in DeviceGray, DeviceRGB or DeviceCMYK.

    Raises:
        _NotPlainError: a part of it is beyond 0 to 1, which readers take differently.
    """
    if any(not 0 <= each <= 1 for each in parts):
        raise _NotPlainError
    unsure = 0.0
    if len(parts) == 4:  # noqa: PLR2004 (CMYK)
        black = parts[3]
        unsure = _UNSURE if any(parts[:3]) else 0.0
        parts = [1 - min(1.0, each + black) for each in parts[:3]]
    if len(parts) == 1:
        parts = [parts[0]] * 3
    red, green, blue = parts
    found = 0.3 * red + 0.59 * green + 0.11 * blue
    return found - unsure, found + unsure


def _contrasts(one: _Range, other: _Range) -> bool:
    """Return whether two colours differ in brightness in every reader."""
    return max(one[0] - other[1], other[0] - one[1]) >= _CONTRAST


class _Bracket(int):
    """Bracket of an array; true for the one that opens it."""


def _kind(operand: _Operand) -> str:
    """Return the letter of an operand's kind."""
    if isinstance(operand, _Bracket):
        return "[" if operand else "]"
    return {float: "n", str: "N", bytes: "s"}[type(operand)]


_DEFAULT_FONT: Final = re.compile(
    r"(/[A-Za-z0-9_.+-]+)[ \t\n\f\r]+([\d.]{1,8})[ \t\n\f\r]+Tf(?=[ \t\n\f\r]|\Z)"
)
_PART: Final = r"[\d.]{1,8}[ \t\n\f\r]+"
_DEFAULT_COLOUR: Final = re.compile(
    rf"((?:{_PART}(?=g)|(?:{_PART}){{3}}(?=rg)|(?:{_PART}){{4}}(?=k)))"
    r"(?:g|rg|k)(?=[ \t\n\f\r]|\Z)"
)


def default_size(defaults: str) -> float:
    """Return the size that `/DA` sets; 0: none, or an unclear one.

    Args:
        defaults: of the field, `/DA`.
    """
    found = _DEFAULT_FONT.findall(defaults)
    try:
        return float(found[0][1]) if len(found) == 1 else 0.0
    except ValueError:
        return 0.0


def default_font(defaults: str) -> str | None:
    """Return the name of the font that `/DA` sets, with its slash; None: it is unclear.

    Args:
        defaults: of the field, `/DA`.
    """
    found = _DEFAULT_FONT.findall(defaults)
    return found[0][0] if len(found) == 1 else None


def is_legible(defaults: str, ground: Sequence[float]) -> bool:
    """Return whether letters can be read that a form's reader draws by itself.

    Args:
        defaults: of the field, `/DA`.
        ground: colour of its background, of `/MK`; empty: white.

    Source: ISO 32000-2, 12.5.6.19 and 12.7.4.3.
    """
    sizes, colours = _DEFAULT_FONT.findall(defaults), _DEFAULT_COLOUR.findall(defaults)
    rest = _DEFAULT_COLOUR.sub("", _DEFAULT_FONT.sub("", defaults))
    if rest.strip(" \t\n\f\r") or len(sizes) > 1 or len(colours) > 1:
        return False
    try:
        size = float(sizes[0][1]) if sizes else 0.0
        parts = [float(each) for text in colours for each in text.split()]
        below = _brightness(ground) if len(ground) in {1, 3, 4} else _WHITE
        colour = _brightness(parts) if parts else _BLACK
    except ValueError:
        return False
    return (size == 0 or size >= _SMALLEST) and _contrasts(colour, below)


_PATHS: Final = frozenset(
    ("re", "m", "l", "h", "W", "W*", "n", "f", "f*", "S", "s", "B", "b")
)
_Run = Callable[..., None]
_OPERATORS: Final[Mapping[str, tuple[str, _Run]]] = {
    "q": ("", _Reading.save),
    "Q": ("", _Reading.restore),
    "BMC": ("N", _Reading.ignore),
    "EMC": ("", _Reading.ignore),
    "g": ("n", _Reading.fill_colour),
    "rg": ("nnn", _Reading.fill_colour),
    "k": ("nnnn", _Reading.fill_colour),
    "G": ("n", _Reading.stroke_colour),
    "RG": ("nnn", _Reading.stroke_colour),
    "K": ("nnnn", _Reading.stroke_colour),
    "cm": ("nnnnnn", _Reading.move_all),
    "w": ("n", _Reading.line_width),
    **dict.fromkeys(("J", "j", "M", "i"), ("n", _Reading.ignore)),
    "d": (r"\[n*\]n", _Reading.dash),
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
    "TJ": (r"\[[ns]*\]", _Reading.show),
}
"""Kinds of operands (n number, N name, s string, brackets), and what is done."""
