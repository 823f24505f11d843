"""Turns a picture into the pixels of a logo; runs in a confined job only.

Whatever else the file holds (metadata, profiles, what follows its end) stays here.
"""

import io
from typing import Final

from PIL import Image, ImageOps

from appliance.domain.appearance.details import LOGO_HEIGHT_PX, LOGO_WIDTH_PX
from appliance.domain.errors import DocumentRefusedError, ErrorCode

_SIDE_PX_MAX: Final = 4096


def logo_rows(content: bytes) -> tuple[int, int, bytes]:
    """Draw a picture as the stamps have it.

    Args:
        content: a PNG or JPEG file.

    Returns:
        Width and height in pixels, at most 400 by 200, and the rows from the top,
        RGB; what was transparent is white, since PDF/A-1 knows no transparency.

    Raises:
        DocumentRefusedError: `PICTURE_UNUSABLE`.
    """
    try:
        with Image.open(io.BytesIO(content), formats=("PNG", "JPEG")) as opened:
            # Its pixels are looked at only when they are few enough.
            is_small = max(opened.size) <= _SIDE_PX_MAX
            upright = (
                ImageOps.exif_transpose(opened).convert("RGBA") if is_small else None
            )
    except MemoryError:
        raise
    except Exception as exc:  # a crafted file raises anything
        reason = type(exc).__name__
        raise DocumentRefusedError(ErrorCode.PICTURE_UNUSABLE, reason) from exc
    if upright is None:
        raise DocumentRefusedError(ErrorCode.PICTURE_UNUSABLE, "too large")
    image = Image.new("RGBA", upright.size, "white")
    image.alpha_composite(upright)
    image = image.convert("RGB")
    image.thumbnail((LOGO_WIDTH_PX, LOGO_HEIGHT_PX), Image.Resampling.LANCZOS)
    return image.width, image.height, image.tobytes()
