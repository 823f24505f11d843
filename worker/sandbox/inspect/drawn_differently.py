"""Finds content that common programs draw differently.

A contract that one program shows with a clause and another one without was shown to
nobody. What every program draws alike nobody knows; looked at is what is known to
differ: content outside a strict grammar (`content_grammar`), names without a resource
of their own, forms without what they need, and images whose entries contradict their
data; and fonts (`drawn_fonts`). Colours and overprinting are not looked at.

Source: ISO 32000-2, 7.8, 8.9 and 8.10.
"""

import time
import zlib
from collections.abc import Callable, Mapping
from typing import Any, Final

import pikepdf

from appliance.domain.documents.inspected import FindingKind
from worker.sandbox.inspect.content_grammar import ContentReading, shown_strings
from worker.sandbox.inspect.drawn_fonts import draws_by_one_glyph, is_plain_font
from worker.sandbox.inspect.drawn_images import demand_image
from worker.sandbox.inspect.drawn_resources import (
    demand_defaults,
    demand_form,
    demand_pattern,
    demand_shading,
    demand_space,
    demand_state,
)
from worker.sandbox.inspect.drawn_values import DoubtfulError, at
from worker.sandbox.inspect.masked_forms import MaskedForms

_CPU_S: Final = 1.0
"""As long as content is looked through."""
_MOST_BYTES: Final = 8_388_608
"""Content that is looked through, decoded."""
_CODED_BYTES: Final = 65_536
"""Coded content of another kind than deflate that is decoded whole."""
_KINDS: Final[dict[str, tuple[type[pikepdf.Object], ...]]] = {
    "/Font": (pikepdf.Dictionary,),
    "/ExtGState": (pikepdf.Dictionary,),
    "/XObject": (pikepdf.Stream,),
    "/Shading": (pikepdf.Dictionary, pikepdf.Stream),
    "/ColorSpace": (pikepdf.Name, pikepdf.Array),
    "/Pattern": (pikepdf.Dictionary, pikepdf.Stream),
}
_DIRECT: Final = (0, 0)
"""Number of an object that is none of its own."""


class _TooMuchError(Exception):
    """There is more content than is looked through."""


def find_drawn_differently(opened: pikepdf.Pdf) -> set[FindingKind]:
    """Look at everything that pages, forms, annotations, patterns and glyphs draw.

    Args:
        opened: the file.

    Returns:
        `DRAWN_DIFFERENTLY`; `UNEXAMINED_PARTS` for more than is looked through.
    """
    search = _Search(opened)
    try:
        search.run()
    except DoubtfulError:
        return {FindingKind.DRAWN_DIFFERENTLY}
    except (_TooMuchError, pikepdf.PdfError, ValueError, TypeError, RuntimeError):
        return {FindingKind.UNEXAMINED_PARTS}
    return set()


class _Search:
    """One pass over a file's content.

    Args:
        opened: the file.
    """

    def __init__(self, opened: pikepdf.Pdf) -> None:
        self._opened = opened
        self._until = time.process_time() + _CPU_S
        self._left = _MOST_BYTES
        self._seen = pikepdf.ObjectSet()
        self._masked = MaskedForms()
        self._shown: dict[tuple[int, int], tuple[pikepdf.Object, list[bytes]]] = {}

    def run(self) -> None:
        """Look at each stream of content with the resources that it has.

        Raises:
            DoubtfulError: something may be drawn differently.
            _TooMuchError: not all could be looked at.
        """
        for scope in self._opened.content_scopes():
            if time.process_time() > self._until:
                raise _TooMuchError
            self._look(scope)
        self._masked.demand_none()
        for font, written in self._shown.values():
            if time.process_time() > self._until:
                raise _TooMuchError
            self._demand_glyphs(font, written)

    def _look(self, scope: pikepdf.ContentScope) -> None:
        is_page = scope.kind == "page"
        parts = self._parts(scope.content) if is_page else [scope.content]
        reading = ContentReading([self._decoded(each) for each in parts])
        if not reading.is_plain:
            raise DoubtfulError
        used = reading.names
        if not is_page and scope.kind != "glyph":
            demand_form(scope.content, scope.kind)
            # Programs differ in whose resources one without its own uses.
            if used and "/Resources" not in scope.content:
                raise DoubtfulError
        if scope.resources is not None:
            demand_defaults(at(scope.resources, "/ColorSpace"))
        for category, name in used:
            self._demand_resource(scope.resources, category, name)
        self._masked.note(scope.content, scope.resources, reading)
        for font, written in reading.shown.items():
            self._note_shown(scope.resources, font, written)

    def _note_shown(
        self, resources: pikepdf.Object | None, name: str | None, written: list[bytes]
    ) -> None:
        """Keep what is shown in a font until everything is known."""
        # Programs differ in what a form takes over from where it is drawn.
        if name is None or resources is None:
            raise DoubtfulError
        font = resources["/Font"][name]
        number = font.objgen
        if number == _DIRECT:
            self._demand_glyphs(font, written)
        else:
            self._shown.setdefault(number, (font, []))[1].extend(written)

    @staticmethod
    def _demand_glyphs(font: Any, written: list[bytes]) -> None:
        strings = (each for one in written for each in shown_strings(one))
        if not draws_by_one_glyph(font, strings):
            raise DoubtfulError

    def _parts(self, page: pikepdf.Object) -> list[pikepdf.Object]:
        content = at(page, "/Contents")
        if content is None:
            return []
        parts = [*content] if isinstance(content, pikepdf.Array) else [content]
        if not all(isinstance(each, pikepdf.Stream) for each in parts):
            raise DoubtfulError
        return parts

    def _decoded(self, stream: pikepdf.Object) -> bytes:
        """Decode a stream, as far as there is room."""
        coding, parms = at(stream, "/Filter"), at(stream, "/DecodeParms")
        if isinstance(coding, pikepdf.Array) and len(coding) == 1:
            coding = coding[0]
        if coding is None or (isinstance(coding, pikepdf.Array) and not len(coding)):
            data = stream.read_raw_bytes()
        elif coding == pikepdf.Name.FlateDecode and parms is None:
            data = _inflated(stream.read_raw_bytes(), self._left)
        elif len(stream.read_raw_bytes()) > _CODED_BYTES:
            raise _TooMuchError
        else:
            try:
                data = stream.read_bytes()
            except pikepdf.PdfError as exc:
                raise DoubtfulError from exc
        self._left -= len(data)
        if self._left < 0:
            raise _TooMuchError
        return data

    def _demand_resource(
        self, resources: pikepdf.Object | None, category: str, name: str
    ) -> None:
        """Demand that a name has what it stands for among a stream's own resources.

        Raises:
            DoubtfulError: it has not.
        """
        if resources is None or isinstance(resources, pikepdf.Stream):
            raise DoubtfulError
        held = resources.get(category)
        if not isinstance(held, pikepdf.Dictionary) or isinstance(held, pikepdf.Stream):
            raise DoubtfulError
        found = held.get(name)
        if found is None or not isinstance(found, _KINDS[category]):
            raise DoubtfulError
        if category != "/XObject":
            if category in _DEMANDS and self._seen.add(found):
                _DEMANDS[category](found)
            return
        kind = at(found, "/Subtype")
        if kind == pikepdf.Name.Image:
            if self._seen.add(found):
                demand_image(found)
        elif kind != pikepdf.Name.Form:
            raise DoubtfulError


def _inflated(data: bytes, most: int) -> bytes:
    """Inflate data to their end.

    Raises:
        DoubtfulError: they are damaged, or cut off.
        _TooMuchError: they are longer.
    """
    inflater = zlib.decompressobj()
    try:
        out = inflater.decompress(data, most + 1)
    except zlib.error as exc:
        raise DoubtfulError from exc
    if len(out) > most:
        raise _TooMuchError
    if not inflater.eof:
        raise DoubtfulError
    return out


def _demand_font(font: Any) -> None:
    if not is_plain_font(font):
        raise DoubtfulError


_DEMANDS: Final[Mapping[str, Callable[[Any], None]]] = {
    "/ExtGState": demand_state,
    "/ColorSpace": demand_space,
    "/Pattern": demand_pattern,
    "/Shading": demand_shading,
    "/Font": _demand_font,
}
