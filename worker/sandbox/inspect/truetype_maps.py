"""Ways from a code, a character or a name to a glyph of a TrueType font program.

A map is asked for single codes and never unfolded: a font may claim four thousand
million of them in thirty bytes.

Source: OpenType 1.9, "cmap" and "post"; Apple TrueType Reference Manual, "post".
"""

import struct
from bisect import bisect_left
from collections.abc import Iterator
from itertools import chain, pairwise
from typing import Final

from worker.sandbox.inspect.latin_glyphs import NAMES, NOTHING

_LEAST: Final = 12
_ENTRY: Final = 16
_MOST_TABLES: Final = 64
_MOST_MAPS: Final = 32
_BYTE_MAP: Final = 262
"""Bytes of a map of format 0."""
_GROUP: Final = 12
_SEGMENTS: Final = 4
_GROUPS: Final = 12
"""Formats of maps."""
_MOST_GLYPHS: Final = 65_535
_POST_HEAD: Final = 32
_STANDARD_ORDER: Final = 0x10000
_OWN_ORDER: Final = 0x20000
_MOST_GROUPS: Final = 65_536
_HALVES: Final = 2
_FIRST_NAMES: Final = (NOTHING, "", "")
_LAST_NAMES: Final = """
    Lslash lslash Scaron scaron Zcaron zcaron brokenbar Eth eth Yacute yacute Thorn
    thorn minus multiply onesuperior twosuperior threesuperior onehalf onequarter
    threequarters franc Gbreve gbreve Idotaccent Scedilla scedilla Cacute cacute Ccaron
    ccaron dcroat
"""
_MACINTOSH: Final = bytes(chain(range(0x20, 0x7F), range(0x80, 0x100)))
_STANDARD: Final = (
    *_FIRST_NAMES,
    *(NAMES.get(each, "") for each in _MACINTOSH.decode("mac_roman")),
    *_LAST_NAMES.split(),
)
"""Names of the glyphs of the Macintosh in their order; empty if they are not Latin."""


class UnreadableFontError(Exception):
    """A font program, or a table of it, is not of the form that is read."""


class TrueTypeMaps:
    """Finds glyphs by the maps that a font program has.

    Args:
        program: the whole file.

    Raises:
        UnreadableFontError: it is none, or has a map of another format.
    """

    def __init__(self, program: bytes) -> None:
        self._program = program
        try:
            self._tables = dict(self._read_tables())
            self._maps = dict(self._read_maps())
            self._names = self._read_names()
        except (struct.error, IndexError) as exc:
            raise UnreadableFontError from exc

    @property
    def kinds(self) -> frozenset[tuple[int, int]]:
        """Platform and encoding of each map."""
        return frozenset(self._maps)

    def glyph(self, kind: tuple[int, int], code: int) -> int:
        """Number of a code's glyph; 0 where a map has none.

        Args:
            kind: platform and encoding, of `kinds`.
            code: of a character, or of the encoding.

        Raises:
            UnreadableFontError: the map is damaged.
        """
        at = self._maps[kind]
        try:
            return _READERS[self._short(at)](self._program, at, code)
        except (struct.error, IndexError) as exc:
            raise UnreadableFontError from exc

    def named(self, name: str) -> int | None:
        """Number of the first glyph of a name; None where names are not held."""
        return None if self._names is None else self._names.get(name, 0)

    def _short(self, at: int) -> int:
        value: int = struct.unpack_from(">H", self._program, at)[0]
        return value

    def _read_tables(self) -> Iterator[tuple[bytes, tuple[int, int]]]:
        """Offset and length of each table, by its tag."""
        count = min(self._short(4), _MOST_TABLES)
        for each in range(count):
            tag, _, at, size = struct.unpack_from(
                ">4sLLL", self._program, _LEAST + _ENTRY * each
            )
            yield tag, (at, size)

    def _read_maps(self) -> Iterator[tuple[tuple[int, int], int]]:
        if b"cmap" not in self._tables:
            return
        start, _ = self._tables[b"cmap"]
        count = self._short(start + 2)
        if count > _MOST_MAPS:
            raise UnreadableFontError
        for each in range(count):
            platform, encoding, offset = struct.unpack_from(
                ">HHL", self._program, start + 4 + 8 * each
            )
            at = start + offset
            form = self._short(at)
            if form not in _OTHERS:
                if form not in _READERS or not _is_ordered(self._program, form, at):
                    raise UnreadableFontError
                yield (platform, encoding), at

    def _read_names(self) -> dict[str, int] | None:
        """Number of each name's first glyph, by table "post" of version 1 or 2."""
        if b"post" not in self._tables:
            return None
        start, size = self._tables[b"post"]
        version = struct.unpack_from(">L", self._program, start)[0]
        if version == _STANDARD_ORDER:
            found = list(_STANDARD)
        elif version == _OWN_ORDER:
            found = self._own_names(start + _POST_HEAD, start + size)
        else:
            return None
        names: dict[str, int] = {}
        for glyph, name in enumerate(found):
            names.setdefault(name, glyph)
        return names

    def _own_names(self, at: int, end: int) -> list[str]:
        count = self._short(at)
        indices = struct.unpack_from(f">{count}H", self._program, at + 2)
        strings, at = [], at + 2 + 2 * count
        while at < min(end, len(self._program)):
            size = self._program[at]
            strings.append(self._program[at + 1 : at + 1 + size].decode("latin-1"))
            at += 1 + size
        known = (*_STANDARD, *strings)
        return [known[index] for index in indices]


def _is_ordered(program: bytes, form: int, at: int) -> bool:
    """Return whether a map's segments are in order, as readers search by halves."""
    if form == _SEGMENTS:
        ends = _ends(program, at)
        return all(one < other for one, other in pairwise(ends))
    if form != _GROUPS:
        return True
    count = struct.unpack_from(">L", program, at + 12)[0]
    if count > _MOST_GROUPS:
        return False
    numbers = struct.unpack_from(f">{3 * count}L", program, at + 16)
    bounds = [*zip(numbers[::3], numbers[1::3], strict=True)]
    return all(start <= end for start, end in bounds) and all(
        end < start for (_, end), (start, _) in pairwise(bounds)
    )


def _by_byte(program: bytes, at: int, code: int) -> int:
    return program[at + 6 + code] if code < _BYTE_MAP - 6 else 0


def _by_segment(program: bytes, at: int, code: int) -> int:
    """Look a code up in the first segment that ends at it or behind it."""
    ends = _ends(program, at)
    each, count = bisect_left(ends, code), len(ends)
    if each == count:
        return 0
    starts_at = at + 16 + 2 * count
    start, delta, offset = (
        struct.unpack_from(">H", program, starts_at + 2 * (count * row + each))[0]
        for row in range(3)
    )
    if start > code:
        return 0
    if not offset:
        return int(code + delta) & _MOST_GLYPHS
    place = starts_at + 2 * (count * 2 + each) + offset + 2 * (code - start)
    glyph = struct.unpack_from(">H", program, place)[0]
    return int(glyph + delta) & _MOST_GLYPHS if glyph else 0


def _ends(program: bytes, at: int) -> tuple[int, ...]:
    count = struct.unpack_from(">H", program, at + 6)[0] // _HALVES
    return struct.unpack_from(f">{count}H", program, at + 14)


def _by_array(program: bytes, at: int, code: int) -> int:
    first, count = struct.unpack_from(">HH", program, at + 6)
    if not first <= code < first + count:
        return 0
    return int(struct.unpack_from(">H", program, at + 10 + 2 * (code - first))[0])


def _by_group(program: bytes, at: int, code: int) -> int:
    count = struct.unpack_from(">L", program, at + 12)[0]
    low, high = 0, count
    while low < high:
        middle = (low + high) // 2
        start, end, glyph = struct.unpack_from(
            ">LLL", program, at + 16 + _GROUP * middle
        )
        if code < start:
            high = middle
        elif code > end:
            low = middle + 1
        else:
            return int(glyph + code - start)
    return 0


_READERS: Final = {
    0: _by_byte,
    _SEGMENTS: _by_segment,
    6: _by_array,
    _GROUPS: _by_group,
}
"""How maps are read, by their format."""
_OTHERS: Final = frozenset({14})
"""Formats of maps that lead from no code to a glyph."""
