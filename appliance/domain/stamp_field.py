"""The stamp of a signature in a field that the document has already.

The field's box rules: the stamp fills it, its text scaled down until it fits,
never up, from the top left corner. A field without a box is signed invisibly.

Source: decisions "campo"; ISO 32000-2, 12.7.5.5.
"""

from collections.abc import Sequence

from appliance.domain.command import SignParameters
from appliance.domain.document import Inspection, PageBox
from appliance.domain.errors import ApplianceError, ErrorCode
from appliance.domain.signature_fields import EmptyField
from appliance.domain.stamp import (
    MIN_TEXT_PT,
    PADDING_PT,
    StampLayout,
    natural_size,
    parse_color,
    place,
)


def lay_out(
    params: SignParameters, lines: Sequence[str], inspection: Inspection
) -> StampLayout | None:
    """Lay the stamp out, in the command's field or on its page.

    Args:
        params: the signing command's fields.
        lines: what `stamp_lines` made.
        inspection: of the document.

    Returns:
        The stamp, or None when it is not to be seen.

    Raises:
        ApplianceError: as `appliance.domain.stamp.place`;
            `SIGNATURE_FIELD_NOT_FOUND`.
    """
    if params.field is None:
        return place(params, lines, inspection.pages)
    field = inspection.signing.find(params.field)
    if field is None:
        raise ApplianceError(ErrorCode.SIGNATURE_FIELD_NOT_FOUND)
    return place_in_field(params, lines, inspection.pages, field)


def place_in_field(
    params: SignParameters,
    lines: Sequence[str],
    pages: Sequence[PageBox],
    field: EmptyField,
) -> StampLayout | None:
    """Lay the stamp out in a field's box; page, x and y of the command are unused.

    Raises:
        FieldInvalidError: not a colour.
    """
    color = parse_color(params.font_color)
    if not params.visible or field.page is None or field.rect is None:
        return None
    page = pages[field.page - 1]
    x, y, width, height = _as_seen(page, field.rect)
    zoom = params.zoom_percent / 100
    natural = natural_size(lines, params.font_name, params.font_style, params.font_size)
    scale = zoom * min(1, width / (natural[0] * zoom), height / (natural[1] * zoom))
    with_text = params.font_size * scale >= MIN_TEXT_PT
    return StampLayout(
        page=field.page,
        lines=tuple(lines) if with_text else (),
        font_name=params.font_name,
        font_style=params.font_style,
        font_size_pt=params.font_size * scale,
        color=color,
        padding_pt=PADDING_PT * scale,
        x=x,
        y=y,
        width=width,
        height=height,
        rect=field.rect,
        rotate=page.rotate,
    )


def _as_seen(
    page: PageBox, rect: tuple[float, float, float, float]
) -> tuple[float, float, float, float]:
    """A box of user space as a reader sees it: left, top, width, height.

    The other way of `appliance.domain.stamp.to_user_space`.
    """
    x0, y0, x1, y1 = rect
    if page.rotate == 90:  # noqa: PLR2004 (degrees)
        return y0 - page.y0, x0 - page.x0, y1 - y0, x1 - x0
    if page.rotate == 180:  # noqa: PLR2004 (degrees)
        return page.x1 - x1, y0 - page.y0, x1 - x0, y1 - y0
    if page.rotate == 270:  # noqa: PLR2004 (degrees)
        return page.y1 - y1, page.x1 - x1, y1 - y0, x1 - x0
    return x0 - page.x0, page.y1 - y1, x1 - x0, y1 - y0
