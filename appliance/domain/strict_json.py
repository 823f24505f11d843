"""JSON read strictly: what two readers could understand differently is refused.

Python's own reader takes NaN, repeated names, lone surrogates and any depth;
here one text has one meaning or none. Used for bodies and for token parts.
"""

import json
import math
import re
from typing import Final

from appliance.domain.errors import ApplianceError, ErrorCode

MAX_DEPTH: Final = 32
"""Deepest nesting of objects and arrays (decisions "Limits")."""
MAX_NUMBER_LENGTH: Final = 4300
"""Longest number, in characters; beyond it Python's own int refuses."""

# Possessive, and a string that never ends is one match: each character is looked at
# once. Else `"\"\"\"…` is searched anew from each of its quotes: an hour for 1 MiB.
_MARKS = re.compile(r'"(?:[^"\\]++|\\.)*+"?|[\[\]{}]', re.DOTALL)
_NOT_TEXT = re.compile("[\ud800-\udfff\0]")


def parse(raw: bytes) -> object:
    """Read one JSON text.

    Args:
        raw: UTF-8 without a byte order mark.

    Returns:
        The value, of plain Python types; every number is finite.

    Raises:
        ApplianceError: `JSON_INVALID`: not JSON, not UTF-8, a byte order mark,
            a lone surrogate, NUL, NaN or an infinity, a name twice in one
            object, a number of more than 4,300 characters, or deeper than 32.

    Source: RFC 8259; RFC 7493 (I-JSON); decisions "errors", "Limits".
    """
    try:
        text = raw.decode("utf-8")
    except UnicodeDecodeError as exc:
        raise ApplianceError(ErrorCode.JSON_INVALID) from exc
    _check_depth(text)
    try:
        value: object = json.loads(
            text,
            object_pairs_hook=_object,
            parse_int=_integer,
            parse_float=_float,
            parse_constant=_refuse,
        )
    except ValueError as exc:
        raise ApplianceError(ErrorCode.JSON_INVALID) from exc
    # Only an escape can bring these in: raw ones fail above.
    if "\\u" in text:
        _check_text(value)
    return value


def parse_object(raw: bytes) -> dict[str, object]:
    """Read one JSON object.

    Args:
        raw: as for `parse`.

    Raises:
        ApplianceError: `BODY_NOT_OBJECT`: nothing, or another value; `JSON_INVALID`.
    """
    if not raw.strip(b" \t\r\n"):
        raise ApplianceError(ErrorCode.BODY_NOT_OBJECT)
    value = parse(raw)
    if not isinstance(value, dict):
        raise ApplianceError(ErrorCode.BODY_NOT_OBJECT)
    return value


def _check_depth(text: str) -> None:
    """Refuse deep nesting before a recursive reader meets it.

    Raises:
        ApplianceError: `JSON_INVALID`.
    """
    if text.count("[") + text.count("{") <= MAX_DEPTH:
        return
    depth = 0
    for mark in _MARKS.finditer(text):
        match mark[0]:
            case "[" | "{":
                depth += 1
            case "]" | "}":
                depth -= 1
        if depth > MAX_DEPTH:
            raise ApplianceError(ErrorCode.JSON_INVALID)


def _check_text(value: object) -> None:
    """Refuse lone surrogates and NUL anywhere, names included.

    Raises:
        ApplianceError: `JSON_INVALID`.
    """
    if isinstance(value, str):
        if _NOT_TEXT.search(value):
            raise ApplianceError(ErrorCode.JSON_INVALID)
    elif isinstance(value, dict):
        for name, member in value.items():
            _check_text(name)
            _check_text(member)
    elif isinstance(value, list):
        for member in value:
            _check_text(member)


def _object(pairs: list[tuple[str, object]]) -> dict[str, object]:
    members = dict(pairs)
    if len(members) != len(pairs):
        msg = "a name stands twice in one object"
        raise ValueError(msg)
    return members


def _integer(text: str) -> int:
    if len(text) > MAX_NUMBER_LENGTH:
        msg = "a number is too long"
        raise ValueError(msg)
    return int(text)


def _float(text: str) -> float:
    value = float(text)
    if len(text) > MAX_NUMBER_LENGTH or not math.isfinite(value):
        msg = "a number is too long or too large"
        raise ValueError(msg)
    return value


def _refuse(text: str) -> object:
    msg = f"{text} is not JSON"
    raise ValueError(msg)
