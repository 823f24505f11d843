"""Images whose entries and data say the same.

Source: ISO 32000-2, 8.9.
"""

from collections.abc import Mapping
from typing import Any, Final

import pikepdf

from worker.sandbox.inspect.drawn_values import DoubtfulError, are_numbers, at, items
from worker.sandbox.inspect.image_headers import read_jpeg, read_jpx

_INDEXED: Final = 4
_ABBREVIATED: Final = ("/W", "/H", "/CS", "/BPC", "/DP", "/D", "/IM", "/I")
_COMPONENTS: Final = {"/DeviceGray": 1, "/DeviceRGB": 3, "/DeviceCMYK": 4}
_SPACES: Final = frozenset(_COMPONENTS)
_JPEG: Final = "/DCTDecode"
_JPX: Final = "/JPXDecode"
_FAX: Final = "/CCITTFaxDecode"
_FAX_COLUMNS: Final = 1728
_JPEG_BITS: Final = 8
_END_OF_JPEG: Final = b"\xff\xd9"
_LAST_BYTES: Final = 64


def demand_image(image: pikepdf.Object) -> None:
    """Demand that an image's entries and its data say the same.

    Raises:
        DoubtfulError: they do not.

    Source: ISO 32000-2, 8.9.5.
    """
    if any(key in image for key in _ABBREVIATED):
        raise DoubtfulError
    width, height = at(image, "/Width"), at(image, "/Height")
    if type(width) is not int or type(height) is not int or min(width, height) < 1:
        raise DoubtfulError
    coding, parms = _coding(image)
    is_mask = at(image, "/ImageMask") is True
    _demand_masks(image, is_mask=is_mask)
    components = 1 if is_mask else _demand_colours(image, coding)
    decode = at(image, "/Decode")
    if decode is not None and not are_numbers(decode, 2 * (components or 0)):
        raise DoubtfulError
    if "/Filter" not in image:
        bits = 1 if is_mask else at(image, "/BitsPerComponent")
        if components is not None and type(bits) is int:
            row = (width * bits * components + 7) // 8
            if len(image.read_raw_bytes()) < row * height:
                raise DoubtfulError
    elif coding in {_JPEG, _JPX}:
        _demand_picture(image, str(coding), parms, (width, height, components))
    elif coding == _FAX:
        _demand_fax(parms, width, height)


def _demand_colours(image: pikepdf.Object, coding: object) -> int | None:
    """Demand a colour space that needs no resource; give its number of components.

    Returns:
        None where that is not plain to see.
    """
    space = at(image, "/ColorSpace")
    if space is None and coding != _JPX:
        raise DoubtfulError
    if isinstance(space, pikepdf.Name) and str(space) not in _SPACES:
        raise DoubtfulError
    return _components(space)


def _coding(image: pikepdf.Object) -> tuple[object, Mapping[str, object]]:
    """The one filter of an image, and its parameters, if they have the same shape.

    Returns:
        None for the filter where there is none, or more.
    """
    coding, parms = at(image, "/Filter"), at(image, "/DecodeParms")
    if isinstance(coding, pikepdf.Array):
        if len(coding) != 1:
            return None, {}
        if parms is not None and not (
            isinstance(parms, pikepdf.Array) and len(parms) == 1
        ):
            raise DoubtfulError
        coding, parms = coding[0], None if parms is None else parms[0]
    if parms is not None and not isinstance(parms, pikepdf.Dictionary):
        raise DoubtfulError
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
        raise DoubtfulError
    if size[2] is not None and not header.may_have(size[2]):
        raise DoubtfulError
    if coding == _JPX:
        if at(image, "/SMaskInData", 0) != 0:
            raise DoubtfulError
    elif (
        _END_OF_JPEG not in data[-_LAST_BYTES:]
        or "/ColorTransform" in parms
        or at(image, "/BitsPerComponent", _JPEG_BITS) != _JPEG_BITS
    ):
        raise DoubtfulError


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
        raise DoubtfulError


def _demand_masks(image: pikepdf.Object, *, is_mask: bool) -> None:
    """Demand one mask at most, of the kind that its key asks for."""
    soft, hard = at(image, "/SMask"), at(image, "/Mask")
    if is_mask and at(image, "/BitsPerComponent", 1) != 1:
        raise DoubtfulError
    if soft is not None:
        if (
            is_mask
            or hard is not None
            or not isinstance(soft, pikepdf.Stream)
            or at(soft, "/ColorSpace") != pikepdf.Name.DeviceGray
            or "/SMask" in soft
            or "/Mask" in soft
        ):
            raise DoubtfulError
    elif isinstance(hard, pikepdf.Array):
        if len(hard) % 2 or not all(type(each) is int for each in items(hard)):
            raise DoubtfulError
    elif hard is not None and not (
        isinstance(hard, pikepdf.Stream) and at(hard, "/ImageMask") is True
    ):
        raise DoubtfulError


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
            count = at(profile, "/N")
            return count if type(count) is int else None
    return None


def _demand_table(space: Any) -> None:
    """Demand that a table of colours has all of them (ISO 32000-2, 8.6.6.3)."""
    if len(space) != _INDEXED or type(space[2]) is not int:
        raise DoubtfulError
    table = space[3]
    if isinstance(table, pikepdf.String):
        size = len(bytes(table))
    elif isinstance(table, pikepdf.Stream) and "/Filter" not in table:
        size = len(table.read_raw_bytes())
    else:
        return
    if size < (_components(space[1]) or 1) * (space[2] + 1):
        raise DoubtfulError
