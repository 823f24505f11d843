"""Graphics states, colour spaces, patterns and forms that all programs draw by.

Source: ISO 32000-2, 8.4.5, 8.6, 8.7 and 8.10.
"""

from typing import Any, Final

import pikepdf

from worker.sandbox.inspect.drawn_values import (
    DoubtfulError,
    are_numbers,
    at,
    is_number,
    items,
)

_BOX: Final = 4
_MATRIX: Final = 6
_TRANSFERS: Final = ("/TR", "/TR2")
_NO_TRANSFER: Final = frozenset({"/Default", "/Identity"})
_COLOURED: Final = frozenset({1, 2})
_TILED: Final = frozenset({1, 2, 3})
_AXIAL: Final = 2
_RADIAL: Final = 3
_ENDS: Final = {_AXIAL: 4, _RADIAL: 6}
"""Coordinates of a shading of each type."""
_SHADINGS: Final = range(1, 8)
_CALIBRATED: Final = frozenset({"/ICCBased", "/CalGray", "/CalRGB"})


def demand_form(form: pikepdf.Object, kind: str) -> None:
    """Demand that a form, an appearance or a pattern has what it is drawn by.

    Raises:
        DoubtfulError: it has not.

    Source: ISO 32000-2, 8.10.2 (table 93) and 8.7.3.2 (table 74).
    """
    if not are_numbers(at(form, "/BBox"), _BOX):
        raise DoubtfulError
    if "/Matrix" in form and not are_numbers(at(form, "/Matrix"), _MATRIX):
        raise DoubtfulError
    named = at(form, "/Subtype")
    # Of an appearance many programs leave it out, and all draw it.
    if kind == "form" and named != pikepdf.Name.Form:
        raise DoubtfulError


def demand_state(state: Any) -> None:
    """Demand that a graphics state has nothing that some programs leave out.

    Source: ISO 32000-2, 8.4.5 (table 57), 11.6.5.2 (table 142) and 10.5.
    """
    if any(str(at(state, key, "/Default")) not in _NO_TRANSFER for key in _TRANSFERS):
        raise DoubtfulError
    for key in ("/ca", "/CA", "/LW"):
        if key in state and isinstance(at(state, key), pikepdf.Object | bool | None):
            raise DoubtfulError
    mask = at(state, "/SMask")
    if isinstance(mask, pikepdf.Dictionary) and (
        str(at(mask, "/S")) not in {"/Alpha", "/Luminosity"}
        or not isinstance(at(mask, "/G"), pikepdf.Stream)
        or at(mask, "/TR", "/Identity") != "/Identity"
    ):
        raise DoubtfulError


def demand_space(space: Any) -> None:
    """Demand that a colour space has no colorant that programs paint or leave out.

    Source: ISO 32000-2, 8.6.6.4 and 8.6.6.5.
    """
    if not isinstance(space, pikepdf.Array) or not len(space):
        return
    family = str(space[0])
    names = [space[1]] if family == "/Separation" and len(space) > 1 else []
    if family == "/DeviceN" and len(space) > 1:
        names = items(space[1]) if isinstance(space[1], pikepdf.Array) else []
    if any(each == "/None" for each in names):
        raise DoubtfulError


def demand_defaults(spaces: Any) -> None:
    """Demand that spaces in the place of those of a device are calibrated ones.

    Source: ISO 32000-2, 8.6.5.6.
    """
    if not isinstance(spaces, pikepdf.Dictionary):
        return
    for key in ("/DefaultGray", "/DefaultRGB", "/DefaultCMYK"):
        space = at(spaces, key)
        if space is not None and not (
            isinstance(space, pikepdf.Array)
            and len(space) > 1
            and str(space[0]) in _CALIBRATED
        ):
            raise DoubtfulError


def demand_pattern(pattern: Any) -> None:
    """Demand that a pattern has what it is drawn by.

    Raises:
        DoubtfulError: it has not.

    Source: ISO 32000-2, 8.7.3.1 (table 74) and 8.7.4.1 (table 75).
    """
    if not isinstance(pattern, pikepdf.Stream):
        if at(pattern, "/PatternType") != 2:  # noqa: PLR2004 (of shadings; table 75)
            raise DoubtfulError
        demand_shading(at(pattern, "/Shading"))
        return
    steps = [at(pattern, key) for key in ("/XStep", "/YStep")]
    if (
        at(pattern, "/PatternType") != 1
        or at(pattern, "/PaintType") not in _COLOURED
        or at(pattern, "/TilingType") not in _TILED
        or not isinstance(at(pattern, "/Resources"), pikepdf.Dictionary)
        or any(each in {None, 0} or not is_number(each) for each in steps)
    ):
        raise DoubtfulError


def demand_shading(shading: Any) -> None:
    """Demand that a shading has a space, and ends that are apart.

    Raises:
        DoubtfulError: it has not.

    Source: ISO 32000-2, 8.7.4.5 (tables 76 to 83).
    """
    if not isinstance(shading, pikepdf.Dictionary | pikepdf.Stream):
        raise DoubtfulError
    kind = at(shading, "/ShadingType")
    if kind not in _SHADINGS or "/ColorSpace" not in shading:
        raise DoubtfulError
    if kind > _RADIAL:
        if not isinstance(shading, pikepdf.Stream):
            raise DoubtfulError
        return
    if "/Function" not in shading:
        raise DoubtfulError
    if kind in _ENDS:
        ends = at(shading, "/Coords")
        half = _ENDS[kind] // 2
        if (
            not are_numbers(ends, _ENDS[kind])
            or items(ends)[:half] == items(ends)[half:]
        ):
            raise DoubtfulError
