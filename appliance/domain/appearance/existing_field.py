"""The stamp of a signature in a field that the document has already.

The field's box rules: the stamp fills it, its text scaled down until it fits,
never up, from the top left corner. A field without a box is signed invisibly.

Source: decisions "campo"; ISO 32000-2, 12.7.5.5.
"""

from collections.abc import Sequence
from datetime import datetime

from appliance.domain.appearance.details import PLAIN, StampDetails
from appliance.domain.appearance.geometry import arrange
from appliance.domain.appearance.layout import as_seen
from appliance.domain.appearance.stamp import (
    MIN_TEXT_PT,
    StampLayout,
    parse_color,
    place,
)
from appliance.domain.appearance.text import StampSigner, all_lines
from appliance.domain.documents import Inspection, PageBox
from appliance.domain.errors import ApplianceError, ErrorCode
from appliance.domain.requests.signing_command import SignParameters
from appliance.domain.signature_fields import EmptyField


def lay_out(
    params: SignParameters,
    signer: StampSigner,
    at: datetime,
    inspection: Inspection,
    details: StampDetails = PLAIN,
) -> StampLayout | None:
    """Lay the stamp out, in the command's field or on its page.

    Args:
        params: the signing command's fields.
        signer: whom it names.
        at: the signing time, aware.
        inspection: of the document.
        details: what it shows besides.

    Returns:
        The stamp, or None when it is not to be seen.

    Raises:
        ApplianceError: as `appliance.domain.appearance.stamp.place`;
            `SIGNATURE_FIELD_NOT_FOUND`.
    """
    lines = all_lines(params, signer, at, is_cuil_masked=details.is_cuil_masked)
    if params.field is None:
        return place(params, lines, inspection.pages, inspection.marks, details)
    field = inspection.signing.find(params.field)
    if field is None:
        raise ApplianceError(ErrorCode.SIGNATURE_FIELD_NOT_FOUND)
    return place_in_field(params, lines, inspection.pages, field, details)


def place_in_field(
    params: SignParameters,
    lines: Sequence[str],
    pages: Sequence[PageBox],
    field: EmptyField,
    details: StampDetails = PLAIN,
) -> StampLayout | None:
    """Lay the stamp out in a field's box; page, x and y of the command are unused.

    Raises:
        FieldInvalidError: not a colour.
    """
    color = parse_color(params.font_color)
    if not params.visible or field.page is None or field.rect is None:
        return None
    page = pages[field.page - 1]
    left, top, right, bottom = as_seen(page, field.rect)
    width, height = right - left, bottom - top
    style = params.font_name, params.font_style
    natural = arrange(lines, *style, params.font_size, details)
    zoom = params.zoom_percent / 100
    scale = min(zoom, width / natural.width, height / natural.height)
    drawn = natural.scaled(scale)
    has_content = params.font_size * scale >= MIN_TEXT_PT
    return StampLayout(
        page=field.page,
        lines=tuple(lines) if has_content else (),
        font_name=params.font_name,
        font_style=params.font_style,
        font_size_pt=params.font_size * scale,
        color=color,
        text_x=drawn.text_x,
        text_y=drawn.text_y,
        x=left,
        y=top,
        width=width,
        height=height,
        rect=field.rect,
        rotate=page.rotate,
        qr=drawn.qr if has_content else None,
        logo=drawn.logo if has_content else None,
    )
