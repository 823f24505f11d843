"""The stamp that the sandbox draws, and the logo in it."""

import base64
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from appliance.domain.appearance.details import Logo, LogoPicture
from appliance.domain.appearance.geometry import LogoFigure, QrFigure, TextRun
from appliance.domain.appearance.stamp import StampLayout
from appliance.domain.sandbox.messages import MessageInvalidError
from appliance.domain.text.untrusted_json import integer, text
from appliance.domain.vocab import FontName, FontStyle


def layout_to_json(layout: StampLayout) -> dict[str, Any]:
    """Write a stamp's layout; of a classic one as earlier versions do."""
    written = asdict(layout)
    if layout.frame_pt is None:
        del written["runs"], written["frame_pt"]
    return written


def layout_from_json(message: Mapping[str, Any]) -> StampLayout:
    """Read a stamp's layout.

    Raises:
        MessageInvalidError: a field is missing, unknown or of another type.
    """
    try:
        red, green, blue = (float(part) for part in message["color"])
        qr, logo = message["qr"], message["logo"]
        x0, y0, x1, y1 = (float(edge) for edge in message["rect"])
        return StampLayout(
            **{
                **message,
                "lines": tuple(text(line) for line in message["lines"]),
                "font_name": FontName(message["font_name"]),
                "font_style": FontStyle(message["font_style"]),
                "color": (red, green, blue),
                "rect": (x0, y0, x1, y1),
                "qr": None if qr is None else QrFigure(**qr),
                "logo": None if logo is None else LogoFigure(**logo),
                "runs": tuple(map(_run, message.get("runs", ()))),
            }
        )
    except (KeyError, TypeError, ValueError) as exc:
        raise MessageInvalidError from exc


def _run(message: Mapping[str, Any]) -> TextRun:
    """Read words of one size.

    Raises:
        KeyError: a field is missing.
        TypeError: one is unknown or of another type.
        ValueError: one has no such value.
    """
    return TextRun(
        **{
            **message,
            "text": text(message["text"]),
            "font_name": FontName(message["font_name"]),
            "font_style": FontStyle(message["font_style"]),
        }
    )


def picture_to_json(picture: LogoPicture) -> dict[str, Any]:
    """Write a logo with its pixels, small enough for a request."""
    logo = picture.logo
    return {
        "sha256": logo.sha256,
        "width": logo.width_px,
        "height": logo.height_px,
        "deflated": base64.b64encode(picture.deflated).decode(),
    }


def picture_from_json(message: Mapping[str, Any]) -> LogoPicture:
    """Read a logo with its pixels.

    Raises:
        MessageInvalidError: a field is missing or of another type.
    """
    try:
        logo = Logo(
            text(message["sha256"]),
            integer(message["width"]),
            integer(message["height"]),
        )
        deflated = base64.b64decode(message["deflated"], validate=True)
    except (KeyError, TypeError, ValueError) as exc:
        raise MessageInvalidError from exc
    return LogoPicture(logo, deflated)
