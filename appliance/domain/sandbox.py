"""The words that sandbox and client say to each other; no I/O here.

One connection carries one job. A message is a 4-byte big-endian length, a JSON
object of that length, and the `binary` bytes that the object announces. The PDF
never travels in it: it comes as a sealed memfd beside the request's length.
"""

import base64
import json
import struct
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from enum import StrEnum
from typing import Any, Final

from appliance.domain import signature_fields
from appliance.domain.document import (
    Damage,
    FindingKind,
    Inspection,
    PageBox,
    SignatureMark,
    SignatureReport,
    VerificationReport,
)
from appliance.domain.errors import DocumentRefusedError, ErrorCode
from appliance.domain.signature_fields import SigningFacts
from appliance.domain.stamp import StampLayout
from appliance.domain.stamp_details import Logo, LogoPicture
from appliance.domain.stamp_parts import LogoFigure, QrFigure
from appliance.domain.vocab import FontName, FontStyle

LENGTH: Final = struct.Struct("!I")
"""The length before each JSON object."""
REQUEST_BYTES_MAX: Final = 1_048_576
"""JSON of a request: a layout, or the roots of a verification."""
ANSWER_BYTES_MAX: Final = 4_194_304
"""JSON of an answer: the boxes of 5,000 pages take a tenth of it."""
BINARY_BYTES_MAX: Final = 110_000_000
"""Bytes after an answer: a PNG of 4,000 by 4,000 pixels, or a repaired copy."""

_PARAM_CHARS: Final = 100

REFUSALS: Final = frozenset(
    {
        ErrorCode.DOCUMENT_EMPTY,
        ErrorCode.DOCUMENT_TOO_LARGE,
        ErrorCode.PAGE_OUT_OF_RANGE,
        ErrorCode.PDF_MALFORMED,
        ErrorCode.PDF_PASSWORD_NEEDED,
        ErrorCode.PDF_ENCRYPTED,
        ErrorCode.PDF_XFA,
        ErrorCode.PDF_NO_PAGES,
        ErrorCode.PDF_TOO_COMPLEX,
        ErrorCode.PICTURE_UNUSABLE,
    }
)
"""The codes by which the sandbox may refuse a document."""


class Operation(StrEnum):
    """What can be asked of the sandbox."""

    INSPECT = "inspect"
    REPAIR = "repair"
    RENDER = "render"
    VERIFY = "verify"
    PICTURE = "picture"
    PING = "ping"


class MessageInvalidError(ValueError):
    """A message that does not follow the protocol; never shown to anybody."""


def encode(message: Mapping[str, object]) -> bytes:
    """Write a JSON object with its length before it."""
    body = json.dumps(message, allow_nan=False, separators=(",", ":")).encode()
    return LENGTH.pack(len(body)) + body


def decode(body: bytes) -> dict[str, Any]:
    """Read the JSON object of a message.

    Raises:
        MessageInvalidError: it is not a JSON object.
    """
    try:
        message = json.loads(body)
    except (ValueError, RecursionError) as exc:
        raise MessageInvalidError from exc
    if not isinstance(message, dict):
        raise MessageInvalidError
    return message


def refusal_to_json(error: DocumentRefusedError) -> dict[str, object]:
    """Write a refusal."""
    return {
        "refused": error.code.value,
        "reason": error.reason[:200],
        "params": {
            name: value for name, value in error.params.items() if _is_plain(value)
        },
    }


def refusal_from_json(message: Mapping[str, Any]) -> DocumentRefusedError:
    """Read a refusal.

    Raises:
        MessageInvalidError: its code is not one of `REFUSALS`.
    """
    try:
        code = ErrorCode(message["refused"])
    except (ValueError, TypeError) as exc:
        raise MessageInvalidError from exc
    params, reason = message.get("params"), message.get("reason")
    if code not in REFUSALS or not isinstance(params, dict):
        raise MessageInvalidError
    kept = {name: value for name, value in params.items() if _is_plain(value)}
    return DocumentRefusedError(code, str(reason)[:200], params=kept)


def inspection_to_json(inspection: Inspection) -> dict[str, Any]:
    """Write an inspection; a page is a row of six numbers, a mark one of five."""
    return {
        **asdict(inspection),
        "pages": [
            [p.x0, p.y0, p.x1, p.y1, p.rotate, p.user_unit] for p in inspection.pages
        ],
        "marks": [[mark.page, *mark.rect] for mark in inspection.marks],
    }


def inspection_from_json(message: Mapping[str, Any]) -> Inspection:
    """Read an inspection, distrusting who wrote it.

    Raises:
        MessageInvalidError: a field is missing or of another type.
    """
    try:
        if not message["pages"]:
            raise MessageInvalidError
        return Inspection(
            size_bytes=_integer(message["size_bytes"]),
            pages=tuple(_page(row) for row in message["pages"]),
            findings=tuple(FindingKind(word) for word in message["findings"]),
            signatures=_integer(message["signatures"]),
            docmdp=_docmdp(message["docmdp"]),
            marks=tuple(_mark(row) for row in message["marks"]),
            signing=_signing(message["signing"], len(message["pages"])),
            inspector_version=_integer(message["inspector_version"]),
        )
    except (KeyError, TypeError, ValueError) as exc:
        raise MessageInvalidError from exc


def _signing(message: Mapping[str, Any], pages: int) -> SigningFacts:
    """Read what the fields of a document of so many pages allow.

    Raises:
        KeyError: a field is missing.
        TypeError: one is of another type.
        ValueError: one has a value that none can be.
    """
    facts = signature_fields.from_json(message)
    if any((field.page or 1) > pages for field in facts.empty):
        raise ValueError
    return facts


def damage_to_json(damage: Sequence[Damage]) -> dict[str, object]:
    """Write what was wrong with a repaired file."""
    return {"damage": [each.value for each in damage]}


def damage_from_json(message: Mapping[str, Any]) -> tuple[Damage, ...]:
    """Read what was wrong, distrusting who wrote it.

    Raises:
        MessageInvalidError: nothing was, or it is none of our words.
    """
    try:
        damage = tuple(sorted({Damage(word) for word in message["damage"]}))
    except (KeyError, TypeError, ValueError) as exc:
        raise MessageInvalidError from exc
    if not damage:
        raise MessageInvalidError
    return damage


def _page(row: list[Any]) -> PageBox:
    """Read one page.

    Raises:
        ValueError: it is no box, or not turned by quarters, or without a unit.
    """
    *edges, rotate, unit = row
    x0, y0, x1, y1 = (float(edge) for edge in edges)
    box = PageBox(x0, y0, x1, y1, _integer(rotate), float(unit))
    # Comparisons that a NaN fails, too.
    if not (x0 < x1 and y0 < y1 and rotate in {0, 90, 180, 270} and unit > 0):
        raise ValueError
    return box


def _mark(row: list[Any]) -> SignatureMark:
    """Read one mark.

    Raises:
        ValueError: it is no box.
    """
    page, *edges = row
    x0, y0, x1, y1 = (float(edge) for edge in edges)
    if not (x0 < x1 and y0 < y1):
        raise ValueError
    return SignatureMark(_integer(page), (x0, y0, x1, y1))


def report_to_json(report: VerificationReport) -> dict[str, Any]:
    """Write a verification report."""
    return asdict(report)


def report_from_json(message: Mapping[str, Any]) -> VerificationReport:
    """Read a verification report, distrusting who wrote it.

    Raises:
        MessageInvalidError: a field is missing or of another type.
    """
    try:
        return VerificationReport(
            signatures=tuple(_signature(entry) for entry in message["signatures"]),
            ends_at_eof=_boolean(message["ends_at_eof"]),
        )
    except (KeyError, TypeError, ValueError) as exc:
        raise MessageInvalidError from exc


def _signature(entry: Mapping[str, Any]) -> SignatureReport:
    """Read one signature."""
    signed_at, timestamp = entry["signed_at"], entry["timestamp"]
    return SignatureReport(
        field=_text(entry["field"]),
        signer=_text(entry["signer"]),
        signer_serial=_text(entry["signer_serial"]),
        signed_at=None if signed_at is None else _text(signed_at),
        intact=_boolean(entry["intact"]),
        trusted=_boolean(entry["trusted"]),
        covers_revision=_boolean(entry["covers_revision"]),
        only_ltv_follows=_boolean(entry["only_ltv_follows"]),
        docmdp=_docmdp(entry["docmdp"]),
        reason=_text(entry["reason"]),
        level=_text(entry["level"]),
        timestamp=None if timestamp is None else _text(timestamp),
        tsa=_text(entry["tsa"]),
    )


def layout_to_json(layout: StampLayout) -> dict[str, Any]:
    """Write a stamp's layout."""
    return asdict(layout)


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
                "lines": tuple(_text(line) for line in message["lines"]),
                "font_name": FontName(message["font_name"]),
                "font_style": FontStyle(message["font_style"]),
                "color": (red, green, blue),
                "rect": (x0, y0, x1, y1),
                "qr": None if qr is None else QrFigure(**qr),
                "logo": None if logo is None else LogoFigure(**logo),
            }
        )
    except (KeyError, TypeError, ValueError) as exc:
        raise MessageInvalidError from exc


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
            _text(message["sha256"]),
            _integer(message["width"]),
            _integer(message["height"]),
        )
        deflated = base64.b64decode(message["deflated"], validate=True)
    except (KeyError, TypeError, ValueError) as exc:
        raise MessageInvalidError from exc
    return LogoPicture(logo, deflated)


def _is_plain(value: object) -> bool:
    """Say whether a value may stand in a sentence."""
    return isinstance(value, int | str) and len(str(value)) <= _PARAM_CHARS


def _integer(value: object) -> int:
    """Demand an integer.

    Raises:
        TypeError: it is none.
    """
    if not isinstance(value, int) or isinstance(value, bool):
        raise TypeError
    return value


def _boolean(value: object) -> bool:
    """Demand a boolean.

    Raises:
        TypeError: it is none.
    """
    if not isinstance(value, bool):
        raise TypeError
    return value


def _text(value: object) -> str:
    """Demand a string.

    Raises:
        TypeError: it is none.
    """
    if not isinstance(value, str):
        raise TypeError
    return value


def _docmdp(value: object) -> int | None:
    """Demand P of a certification, or nothing.

    Raises:
        ValueError: it is neither.
    """
    if value is None:
        return None
    level = _integer(value)
    if level not in {1, 2, 3}:
        raise ValueError
    return level
