"""Grammar of content streams that all programs read alike.

Programs differ in what they make of a number like `1e3`, of operands too many or too
few, of a name with a byte above 7F, of a `Q` without its `q`: one shows a text where
another shows none. Content within this grammar leaves them no choice. An expression
takes one statement after the other and goes back over none, so time is linear.

Source: ISO 32000-2, 7.2 to 7.3.5, 7.8.2, annex A; ISO 32000-1, annex C.2 (limits).
"""

import re
import zlib
from collections.abc import Iterator, Sequence
from typing import Final

_MOST_OPEN: Final = 64
"""States of graphics that are saved within one another."""
_LONGEST: Final = 32_767
"""Bytes of a statement; PDFium cuts longer strings."""
_IMAGES: Final = 1_000
_MOST_STATES: Final = 64
"""Names of states of graphics that are set at once."""

_W: Final = rb"[\0\t\n\f\r ]"
_E: Final = rb"(?=[\0\t\n\f\r ()<>\[\]/%]|\Z)"
_COMMENT: Final = rb"%[^\r\n]*+"
_S: Final = rb"(?:" + _W + rb"|" + _COMMENT + rb")*+"
_NUMBER: Final = rb"[+-]?(?:\d{1,9}(?:\.\d{0,40})?|\.\d{1,40})" + _E
_PART: Final = rb"\+?(?:0{0,8}1(?:\.0{0,40})?|0{1,9}(?:\.\d{0,40})?|\.\d{1,40})" + _E
"""From 0 to 1."""
_NAME: Final = rb"/[!\"$&'*-.0-;=?-Z\\^-z|~]{1,127}" + _E
# Each byte is of one alternative alone, or time would not be linear.
_RUN: Final = (
    rb"[^()\\]*+(?:\\(?:\D|[0-3][0-7]{2}|[0-7]{1,2}(?![0-7]))[^()\\]*+){0,32767}"
)


def _nested(inner: bytes) -> bytes:
    return rb"\(" + _RUN + rb"(?:" + inner + _RUN + rb"){0,1000}\)"


_LITERAL: Final = _nested(_nested(rb"\(" + _RUN + rb"\)"))
_HEX: Final = (
    rb"<(?:" + _W + rb"*+[0-9A-Fa-f]" + _W + rb"*+[0-9A-Fa-f]){0,16383}" + _W + rb"*+>"
)
_STRING: Final = rb"(?:" + _LITERAL + rb"|" + _HEX + rb")"
_PIECE: Final = rb"|".join((_W, _COMMENT, _STRING, _NUMBER))
_PIECES: Final = rb"\[(?:" + _PIECE + rb"){0,32767}\]"
_LENGTHS: Final = rb"(?=[^\]]*[1-9])(?:" + _W + rb"|(?!-)" + _NUMBER + rb"){0,255}\]"
_DASHES: Final = rb"\[(?:" + _W + rb"*+\]|" + _LENGTHS + rb")"
_WORD: Final = rb"(?:true|false|null)" + _E
_LEAF: Final = rb"(?:" + rb"|".join((_NAME, _NUMBER, _STRING, _WORD)) + rb")"
_LEAVES: Final = rb"\[(?:" + _S + _LEAF + rb"){0,1000}" + _S + rb"\]"


def _dictionary(*values: bytes) -> bytes:
    value = rb"(?:" + rb"|".join(values) + rb")"
    return rb"<<(?:" + _S + _NAME + _S + value + rb"){0,255}" + _S + rb">>"


_FLAT: Final = _dictionary(_LEAF, _LEAVES)
_PROPERTIES: Final = _dictionary(_LEAF, _LEAVES, _FLAT)
_VALUE: Final = rb"(?:" + rb"|".join((_LEAF, _LEAVES, _FLAT)) + rb")"
_PAIRS: Final = rb"(?:" + _S + _NAME + _S + _VALUE + rb"){0,20}"


def _numbers(count: int, kind: bytes = _NUMBER) -> bytes:
    return rb"(?:" + kind + _S + rb"){%d}" % count


_STATEMENTS: Final = (
    _numbers(2) + rb"(?:[ml]|T[dD]|d0)",
    _numbers(6) + rb"(?:cm?|Tm|d1)",
    _numbers(4) + rb"(?:re|[vy])",
    rb"(?P<mark>q|Q|BT|ET)",
    rb"(?:[hfFnsS]|[fBbW]\*|[BbW]|T\*|EMC|BX|EX)",
    rb"(?P<pieces>" + _PIECES + rb")" + _S + rb"TJ",
    rb"(?P<string>" + _STRING + rb")" + _S + rb"(?:Tj|')",
    rb"(?P<font>" + _NAME + rb")" + _S + _numbers(1) + rb"Tf",
    rb"(?P<name>" + _NAME + rb")" + _S + rb"(?P<operator>gs|Do|sh|cs|CS|scn|SCN)",
    _NAME + _S + rb"(?:ri|BMC|MP)",
    _NAME + _S + rb"(?:" + _NAME + rb"|" + _PROPERTIES + rb")" + _S + rb"(?:BDC|DP)",
    _numbers(3, _PART) + rb"(?:rg|RG)",
    _numbers(1, _PART) + rb"[gG]",
    _numbers(4, _PART) + rb"[kK]",
    rb"(?!-)" + _numbers(1) + rb"w",
    rb"[0-2]" + _E + _S + rb"[Jj]",
    rb"(?P<mode>[0-7])" + _E + _S + rb"Tr",
    _numbers(1) + rb"(?:[Mi]|T[cwzLs])",
    _DASHES + _S + _numbers(1) + rb"d",
    _numbers(2) + rb"(?P<spaced>" + _STRING + rb")" + _S + rb"\"",
    rb"(?:" + _NUMBER + _S + rb"){1,32}(?:scn?|SCN?)",
    rb"(?:" + _NUMBER + _S + rb"){1,32}(?P<colour>" + _NAME + rb")" + _S
    + rb"(?:scn|SCN)",
    rb"BI(?P<entries>" + _PAIRS + rb")" + _S + rb"ID" + _W
    + rb"(?P<data>.*?)" + _W + rb"(?P<image>EI)",
)  # fmt: skip
_STATEMENT: Final = re.compile(
    _S + rb"(?:(?:" + rb"|".join(_STATEMENTS) + rb")" + _E + rb"|\Z)", re.DOTALL
)
_OPERANDS: Final = re.compile(_S + rb"(?:" + _NUMBER + _S + rb"){0,32}\Z")
_KEY: Final = re.compile(_S + rb"(" + _NAME + rb")" + _S + rb"(" + _VALUE + rb")")
_SHOWN: Final = frozenset({"pieces", "string", "spaced"})
"""Groups of what statements show."""
_UNPAINTED: Final = b"3"
"""Rendering mode of text that is neither filled nor stroked (ISO 32000-2, 9.3.6)."""
_WRITTEN: Final = re.compile(
    _COMMENT + rb"|\((?P<literal>" + _LITERAL[2:-2] + rb")\)|(?P<hex>" + _HEX + rb")"
)
_ESCAPED: Final = re.compile(rb"\\(?:([0-7]{1,3})|\r\n|(.))|\r\n?", re.DOTALL)
_ESCAPES: Final = dict(zip(b"nrtbf\r\n", (*b"\n\r\t\b\f", None, None), strict=True))
_CODE_MOST: Final = 255
_LONG: Final = {
    b"/Width": b"/W",
    b"/Height": b"/H",
    b"/ColorSpace": b"/CS",
    b"/BitsPerComponent": b"/BPC",
    b"/Filter": b"/F",
    b"/DecodeParms": b"/DP",
    b"/Decode": b"/D",
    b"/ImageMask": b"/IM",
    b"/Interpolate": b"/I",
}
_COMPONENTS: Final = {
    b"/G": 1,
    b"/DeviceGray": 1,
    b"/RGB": 3,
    b"/DeviceRGB": 3,
    b"/CMYK": 4,
    b"/DeviceCMYK": 4,
}
_CATEGORIES: Final = {
    b"gs": "/ExtGState",
    b"Do": "/XObject",
    b"sh": "/Shading",
    b"cs": "/ColorSpace",
    b"CS": "/ColorSpace",
    b"scn": "/Pattern",
    b"SCN": "/Pattern",
}
_BUILT_IN: Final = frozenset({"/DeviceGray", "/DeviceRGB", "/DeviceCMYK", "/Pattern"})
"""Colour spaces that need no resource. Source: ISO 32000-2, 8.6.8."""


class ContentReading:
    """Reads the streams that make up one content.

    Args:
        parts: decoded, in their order; each of whole statements, since programs differ
            in what they put between two.
    """

    def __init__(self, parts: Sequence[bytes]) -> None:
        self.names: set[tuple[str, str]] = set()
        """Categories and names of the resources that are asked for."""
        self.shown: dict[str | None, list[bytes]] = {}
        """What statements show, as it is written, by the name of the font; None if the
        content has chosen none. Without text that is not painted."""
        self.drawn: set[tuple[str, tuple[str, ...]]] = set()
        """Names of the objects that are drawn, each with those of the states that are
        set where it is, in the order in which they were."""
        self._font: str | None = None
        self._mode = b"0"
        self._states: tuple[str, ...] = ()
        self._saved: list[tuple[str | None, bytes, tuple[str, ...]]] = []
        self._in_text = False
        self._images = 0
        last = len(parts) - 1
        self.is_plain = all(
            self._read(part, is_last=at == last) for at, part in enumerate(parts)
        )
        """Whether programs have no choice in reading it."""

    def _read(self, part: bytes, *, is_last: bool) -> bool:
        at, match = 0, _STATEMENT.match
        while at < len(part):
            found = match(part, at)
            if found is None:
                # Nothing comes of operands that no operator follows.
                return is_last and _OPERANDS.match(part, at) is not None
            kind, start, at = found.lastgroup, at, found.end()
            if at - start > _LONGEST and kind != "image":
                return False
            if kind in _SHOWN:
                if self._mode != _UNPAINTED:
                    self.shown.setdefault(self._font, []).append(found[kind])
            elif kind is not None and not self._take(kind, found):
                return False
        return True

    def _take(self, kind: str, found: re.Match[bytes]) -> bool:
        """Take a statement that opens, closes, or uses something."""
        if kind == "mark":
            return self._mark(found["mark"])
        if kind == "image":
            self._images += 1
            return self._images <= _IMAGES and _is_image(
                found["entries"], found["data"]
            )
        if kind == "font":
            self._ask("/Font", found["font"])
            self._font = found["font"].decode("ascii")
        elif kind == "mode":
            self._mode = found["mode"]
        elif kind == "colour":
            self._ask("/Pattern", found["colour"])
        else:
            return self._use(found["operator"], found["name"])
        return True

    def _use(self, operator: bytes, name: bytes) -> bool:
        """Take a statement that names a resource."""
        self._ask(_CATEGORIES[operator], name)
        if operator == b"gs":
            state = name.decode("ascii")
            others = (each for each in self._states if each != state)
            self._states = (*others, state)
        elif operator == b"Do":
            self.drawn.add((name.decode("ascii"), self._states))
        return len(self._states) <= _MOST_STATES

    def _ask(self, category: str, name: bytes) -> None:
        asked = name.decode("ascii")
        if category != "/ColorSpace" or asked not in _BUILT_IN:
            self.names.add((category, asked))

    def _mark(self, mark: bytes) -> bool:
        """Say whether what is restored was saved, and text objects are not nested."""
        if mark == b"q":
            self._saved.append((self._font, self._mode, self._states))
            return len(self._saved) <= _MOST_OPEN
        if mark == b"Q":
            if not self._saved:
                return False
            self._font, self._mode, self._states = self._saved.pop()
        elif (mark == b"BT") == self._in_text:
            return False
        else:
            self._in_text = not self._in_text
        return True


def shown_strings(written: bytes) -> Iterator[bytes]:
    """Strings of what a statement shows (ISO 32000-2, 7.3.4).

    Args:
        written: of `ContentReading.shown`.
    """
    for each in _WRITTEN.finditer(written):
        literal, digits = each["literal"], each["hex"]
        if literal is not None:
            is_plain = b"\\" not in literal and b"\r" not in literal
            yield literal if is_plain else _ESCAPED.sub(_unescaped, literal)
        elif digits is not None:
            yield bytes.fromhex(digits[1:-1].replace(b"\0", b"").decode("ascii"))


def _unescaped(found: re.Match[bytes]) -> bytes:
    """Give the byte that an escape, or an end of a line, stands for."""
    octal, other = found[1], found[2]
    if octal is not None:
        return bytes([int(octal, 8) & _CODE_MOST])
    if other is None:
        return b"" if found[0].startswith(b"\\") else b"\n"
    code = _ESCAPES.get(other[0], other[0])
    return b"" if code is None else bytes([code])


def _is_image(entries: bytes, data: bytes) -> bool:
    """Return whether an inline image names each entry once, and has its data."""
    pairs = [(_LONG.get(key, key), value) for key, value in _KEY.findall(entries)]
    image = dict(pairs)
    if len(image) != len(pairs):
        return False
    coding = image.get(b"/F", b"").strip(b"[] \t\r\n\f\0")
    if coding:
        return _is_coded(coding, data)
    width, height = image.get(b"/W", b""), image.get(b"/H", b"")
    if not width.isdigit() or not height.isdigit():
        return False
    is_mask = image.get(b"/IM") == b"true"
    bits = b"1" if is_mask else image.get(b"/BPC", b"")
    space = image.get(b"/CS", b"")
    components = 1 if is_mask or space.startswith(b"[") else _COMPONENTS.get(space)
    if components is None or bits not in {b"1", b"2", b"4", b"8", b"16"}:
        return False
    row = (int(width) * int(bits) * components + 7) // 8
    return len(data) == row * int(height)


def _is_coded(coding: bytes, data: bytes) -> bool:
    """Return whether coded data end where their coding says.

    True of those whose end is not looked for.
    """
    if coding in {b"/AHx", b"/ASCIIHexDecode"}:
        return data.endswith(b">") and data.find(b">") == len(data) - 1
    if coding in {b"/A85", b"/ASCII85Decode"}:
        return data.endswith(b"~>") and data.find(b"~") == len(data) - 2
    if coding in {b"/Fl", b"/FlateDecode"}:
        inflater = zlib.decompressobj()
        try:
            inflater.decompress(data, 1 << 22)
        except zlib.error:
            return False
        return not inflater.unused_data.strip()
    return True
