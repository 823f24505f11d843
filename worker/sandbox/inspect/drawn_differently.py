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

from appliance.domain.documents import FindingKind
from worker.sandbox.inspect.content_grammar import ContentReading, shown_strings
from worker.sandbox.inspect.drawn_fonts import draws_by_one_glyph, is_plain_font
from worker.sandbox.inspect.image_headers import read_jpeg, read_jpx

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
_BOX: Final = 4
_INDEXED: Final = 4
_MATRIX: Final = 6
_ABBREVIATED: Final = ("/W", "/H", "/CS", "/BPC", "/DP", "/D", "/IM", "/I")
_COMPONENTS: Final = {"/DeviceGray": 1, "/DeviceRGB": 3, "/DeviceCMYK": 4}
_SPACES: Final = frozenset(_COMPONENTS)
_TRANSFERS: Final = ("/TR", "/TR2")
_NO_TRANSFER: Final = frozenset({"/Default", "/Identity"})
_CALIBRATED: Final = frozenset({"/ICCBased", "/CalGray", "/CalRGB"})
_JPEG: Final = "/DCTDecode"
_JPX: Final = "/JPXDecode"
_FAX: Final = "/CCITTFaxDecode"
_FAX_COLUMNS: Final = 1728
_JPEG_BITS: Final = 8
_END_OF_JPEG: Final = b"\xff\xd9"
_LAST_BYTES: Final = 64


class _TooMuchError(Exception):
    """There is more content than is looked through."""


class _DoubtfulError(Exception):
    """Programs may draw this differently."""


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
    except _DoubtfulError:
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
        self._shown: dict[tuple[int, int], tuple[pikepdf.Object, list[bytes]]] = {}

    def run(self) -> None:
        """Look at each stream of content with the resources that it has.

        Raises:
            _DoubtfulError: something may be drawn differently.
            _TooMuchError: not all could be looked at.
        """
        for scope in self._opened.content_scopes():
            if time.process_time() > self._until:
                raise _TooMuchError
            self._look(scope)
        for font, written in self._shown.values():
            if time.process_time() > self._until:
                raise _TooMuchError
            self._demand_glyphs(font, written)

    def _look(self, scope: pikepdf.ContentScope) -> None:
        is_page = scope.kind == "page"
        parts = self._parts(scope.content) if is_page else [scope.content]
        reading = ContentReading([self._decoded(each) for each in parts])
        if not reading.is_plain:
            raise _DoubtfulError
        used = reading.names
        if not is_page and scope.kind != "glyph":
            _demand_form(scope.content, scope.kind)
            # Programs differ in whose resources one without its own uses.
            if used and "/Resources" not in scope.content:
                raise _DoubtfulError
        if scope.resources is not None:
            _demand_defaults(_at(scope.resources, "/ColorSpace"))
        for category, name in used:
            self._demand_resource(scope.resources, category, name)
        for font, written in reading.shown.items():
            self._note_shown(scope.resources, font, written)

    def _note_shown(
        self, resources: pikepdf.Object | None, name: str | None, written: list[bytes]
    ) -> None:
        """Keep what is shown in a font until everything is known."""
        # Programs differ in what a form takes over from where it is drawn.
        if name is None or resources is None:
            raise _DoubtfulError
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
            raise _DoubtfulError

    def _parts(self, page: pikepdf.Object) -> list[pikepdf.Object]:
        content = _at(page, "/Contents")
        if content is None:
            return []
        parts = [*content] if isinstance(content, pikepdf.Array) else [content]
        if not all(isinstance(each, pikepdf.Stream) for each in parts):
            raise _DoubtfulError
        return parts

    def _decoded(self, stream: pikepdf.Object) -> bytes:
        """Decode a stream, as far as there is room."""
        coding, parms = _at(stream, "/Filter"), _at(stream, "/DecodeParms")
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
                raise _DoubtfulError from exc
        self._left -= len(data)
        if self._left < 0:
            raise _TooMuchError
        return data

    def _demand_resource(
        self, resources: pikepdf.Object | None, category: str, name: str
    ) -> None:
        """Demand that a name has what it stands for among a stream's own resources.

        Raises:
            _DoubtfulError: it has not.
        """
        if resources is None or isinstance(resources, pikepdf.Stream):
            raise _DoubtfulError
        held = resources.get(category)
        if not isinstance(held, pikepdf.Dictionary) or isinstance(held, pikepdf.Stream):
            raise _DoubtfulError
        found = held.get(name)
        if found is None or not isinstance(found, _KINDS[category]):
            raise _DoubtfulError
        if category != "/XObject":
            if category in _DEMANDS and self._seen.add(found):
                _DEMANDS[category](found)
            return
        kind = _at(found, "/Subtype")
        if kind == pikepdf.Name.Image:
            if self._seen.add(found):
                _demand_image(found)
        elif kind != pikepdf.Name.Form:
            raise _DoubtfulError


def _at(holder: pikepdf.Object, key: str, default: object = None) -> Any:
    """Return an entry: a Python value where it is a number or a word."""
    return holder.get(key, default)


def _inflated(data: bytes, most: int) -> bytes:
    """Inflate data to their end.

    Raises:
        _DoubtfulError: they are damaged, or cut off.
        _TooMuchError: they are longer.
    """
    inflater = zlib.decompressobj()
    try:
        out = inflater.decompress(data, most + 1)
    except zlib.error as exc:
        raise _DoubtfulError from exc
    if len(out) > most:
        raise _TooMuchError
    if not inflater.eof:
        raise _DoubtfulError
    return out


def _demand_form(form: pikepdf.Object, kind: str) -> None:
    """Demand that a form, an appearance or a pattern has what it is drawn by.

    Raises:
        _DoubtfulError: it has not.

    Source: ISO 32000-2, 8.10.2 (table 93) and 8.7.3.2 (table 74).
    """
    if not _are_numbers(_at(form, "/BBox"), _BOX):
        raise _DoubtfulError
    if "/Matrix" in form and not _are_numbers(_at(form, "/Matrix"), _MATRIX):
        raise _DoubtfulError
    named = _at(form, "/Subtype")
    # Of an appearance many programs leave it out, and all draw it.
    if kind == "form" and named != pikepdf.Name.Form:
        raise _DoubtfulError


def _items(array: pikepdf.Object) -> list[Any]:
    return [*array]


def _are_numbers(value: object, count: int) -> bool:
    return (
        isinstance(value, pikepdf.Array)
        and len(value) == count
        and all(not isinstance(each, pikepdf.Object | bool) for each in _items(value))
    )


def _demand_image(image: pikepdf.Object) -> None:
    """Demand that an image's entries and its data say the same.

    Raises:
        _DoubtfulError: they do not.

    Source: ISO 32000-2, 8.9.5.
    """
    if any(key in image for key in _ABBREVIATED):
        raise _DoubtfulError
    width, height = _at(image, "/Width"), _at(image, "/Height")
    if type(width) is not int or type(height) is not int or min(width, height) < 1:
        raise _DoubtfulError
    coding, parms = _coding(image)
    is_mask = _at(image, "/ImageMask") is True
    _demand_masks(image, is_mask=is_mask)
    components = 1 if is_mask else _demand_colours(image, coding)
    decode = _at(image, "/Decode")
    if decode is not None and not _are_numbers(decode, 2 * (components or 0)):
        raise _DoubtfulError
    if "/Filter" not in image:
        bits = 1 if is_mask else _at(image, "/BitsPerComponent")
        if components is not None and type(bits) is int:
            row = (width * bits * components + 7) // 8
            if len(image.read_raw_bytes()) < row * height:
                raise _DoubtfulError
    elif coding in {_JPEG, _JPX}:
        _demand_picture(image, str(coding), parms, (width, height, components))
    elif coding == _FAX:
        _demand_fax(parms, width, height)


def _demand_colours(image: pikepdf.Object, coding: object) -> int | None:
    """Demand a colour space that needs no resource; give its number of components.

    Returns:
        None where that is not plain to see.
    """
    space = _at(image, "/ColorSpace")
    if space is None and coding != _JPX:
        raise _DoubtfulError
    if isinstance(space, pikepdf.Name) and str(space) not in _SPACES:
        raise _DoubtfulError
    return _components(space)


def _coding(image: pikepdf.Object) -> tuple[object, Mapping[str, object]]:
    """The one filter of an image, and its parameters, if they have the same shape.

    Returns:
        None for the filter where there is none, or more.
    """
    coding, parms = _at(image, "/Filter"), _at(image, "/DecodeParms")
    if isinstance(coding, pikepdf.Array):
        if len(coding) != 1:
            return None, {}
        if parms is not None and not (
            isinstance(parms, pikepdf.Array) and len(parms) == 1
        ):
            raise _DoubtfulError
        coding, parms = coding[0], None if parms is None else parms[0]
    if parms is not None and not isinstance(parms, pikepdf.Dictionary):
        raise _DoubtfulError
    return coding, {} if parms is None else dict(parms.items())


def _demand_picture(
    image: pikepdf.Object,
    coding: str,
    parms: Mapping[str, object],
    size: tuple[int, int, int | None],
) -> None:
    """Demand that a picture's own header says what the image's entries do.

    Args:
        image: with a filter of its own kind alone.
        coding: the filter.
        parms: its parameters.
        size: width, height, and components if they are known.
    """
    data = image.read_raw_bytes()
    header = read_jpeg(data) if coding == _JPEG else read_jpx(data)
    if header is None or (header.width, header.height) != size[:2]:
        raise _DoubtfulError
    if size[2] is not None and not header.may_have(size[2]):
        raise _DoubtfulError
    if coding == _JPX:
        if _at(image, "/SMaskInData", 0) != 0:
            raise _DoubtfulError
    elif (
        _END_OF_JPEG not in data[-_LAST_BYTES:]
        or "/ColorTransform" in parms
        or _at(image, "/BitsPerComponent", _JPEG_BITS) != _JPEG_BITS
    ):
        raise _DoubtfulError


def _demand_fax(parms: Mapping[str, object], width: int, height: int) -> None:
    """Demand that a facsimile's parameters are those of its image.

    Source: ISO 32000-2, 7.4.6.
    """
    if (
        parms.get("/Columns", _FAX_COLUMNS) != width
        or parms.get("/Rows", 0) not in {0, height}
        or not isinstance(parms.get("/BlackIs1", False), bool)
        or type(parms.get("/K", 0)) is not int
        or parms.get("/EncodedByteAlign", False) is not False
    ):
        raise _DoubtfulError


def _demand_masks(image: pikepdf.Object, *, is_mask: bool) -> None:
    """Demand one mask at most, of the kind that its key asks for."""
    soft, hard = _at(image, "/SMask"), _at(image, "/Mask")
    if is_mask and _at(image, "/BitsPerComponent", 1) != 1:
        raise _DoubtfulError
    if soft is not None:
        if (
            is_mask
            or hard is not None
            or not isinstance(soft, pikepdf.Stream)
            or _at(soft, "/ColorSpace") != pikepdf.Name.DeviceGray
            or "/SMask" in soft
            or "/Mask" in soft
        ):
            raise _DoubtfulError
    elif isinstance(hard, pikepdf.Array):
        if len(hard) % 2 or not all(type(each) is int for each in _items(hard)):
            raise _DoubtfulError
    elif hard is not None and not (
        isinstance(hard, pikepdf.Stream) and _at(hard, "/ImageMask") is True
    ):
        raise _DoubtfulError


def _components(space: Any) -> int | None:
    """Number of a colour space's components; None where that is not plain to see."""
    if isinstance(space, pikepdf.Name):
        return _COMPONENTS.get(str(space))
    if not isinstance(space, pikepdf.Array) or not len(space):
        return None
    family = str(space[0])
    if family == "/Indexed":
        _demand_table(space)
    if family in {"/Indexed", "/CalGray", "/Separation"}:
        return 1
    if family in {"/CalRGB", "/Lab"}:
        return 3
    if family == "/ICCBased" and len(space) > 1:
        profile = space[1]
        if isinstance(profile, pikepdf.Stream):
            count = _at(profile, "/N")
            return count if type(count) is int else None
    return None


def _demand_table(space: Any) -> None:
    """Demand that a table of colours has all of them (ISO 32000-2, 8.6.6.3)."""
    if len(space) != _INDEXED or type(space[2]) is not int:
        raise _DoubtfulError
    table = space[3]
    if isinstance(table, pikepdf.String):
        size = len(bytes(table))
    elif isinstance(table, pikepdf.Stream) and "/Filter" not in table:
        size = len(table.read_raw_bytes())
    else:
        return
    if size < (_components(space[1]) or 1) * (space[2] + 1):
        raise _DoubtfulError


def _demand_state(state: Any) -> None:
    """Demand that a graphics state has nothing that some programs leave out.

    Source: ISO 32000-2, 8.4.5 (table 57), 11.6.5.2 (table 142) and 10.5.
    """
    if any(str(_at(state, key, "/Default")) not in _NO_TRANSFER for key in _TRANSFERS):
        raise _DoubtfulError
    for key in ("/ca", "/CA", "/LW"):
        if key in state and isinstance(_at(state, key), pikepdf.Object | bool | None):
            raise _DoubtfulError
    mask = _at(state, "/SMask")
    if isinstance(mask, pikepdf.Dictionary) and (
        str(_at(mask, "/S")) not in {"/Alpha", "/Luminosity"}
        or not isinstance(_at(mask, "/G"), pikepdf.Stream)
        or _at(mask, "/TR", "/Identity") != "/Identity"
    ):
        raise _DoubtfulError


def _demand_space(space: Any) -> None:
    """Demand that a colour space has no colorant that programs paint or leave out.

    Source: ISO 32000-2, 8.6.6.4 and 8.6.6.5.
    """
    if not isinstance(space, pikepdf.Array) or not len(space):
        return
    family = str(space[0])
    names = [space[1]] if family == "/Separation" and len(space) > 1 else []
    if family == "/DeviceN" and len(space) > 1:
        names = _items(space[1]) if isinstance(space[1], pikepdf.Array) else []
    if any(each == "/None" for each in names):
        raise _DoubtfulError


def _demand_defaults(spaces: Any) -> None:
    """Demand that spaces in the place of those of a device are calibrated ones.

    Source: ISO 32000-2, 8.6.5.6.
    """
    if not isinstance(spaces, pikepdf.Dictionary):
        return
    for key in ("/DefaultGray", "/DefaultRGB", "/DefaultCMYK"):
        space = _at(spaces, key)
        if space is not None and not (
            isinstance(space, pikepdf.Array)
            and len(space) > 1
            and str(space[0]) in _CALIBRATED
        ):
            raise _DoubtfulError


def _demand_font(font: Any) -> None:
    if not is_plain_font(font):
        raise _DoubtfulError


_DEMANDS: Final[Mapping[str, Callable[[Any], None]]] = {
    "/ExtGState": _demand_state,
    "/ColorSpace": _demand_space,
    "/Font": _demand_font,
}
