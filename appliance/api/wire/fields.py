"""JSON objects of bodies, read strictly: exact types, ranges, no unknown names."""

import re
from collections.abc import Mapping
from enum import StrEnum
from typing import Final, TypeVar

from appliance.domain.errors import (
    ApplianceError,
    ErrorCode,
    FieldInvalidError,
    FieldMissingError,
)
from appliance.domain.ids import MAX_REQUEST_ID
from appliance.domain.text.unicode_nfc import nfc

COLORS: Final = (
    "BLACK",
    "BLUE",
    "CYAN",
    "DARK_GRAY",
    "GRAY",
    "GREEN",
    "LIGHT_GRAY",
    "MAGENTA",
    "ORANGE",
    "PINK",
    "RED",
    "WHITE",
    "YELLOW",
)
"""The java.awt.Color names (decisions "fontColor")."""
PASSWORD_BYTES: Final = (8, 1024)
_STRING: Final = "string"
_INTEGER: Final = "integer"
_BOOLEAN: Final = "boolean"
_ARRAY: Final = "array"
_HEX_COLOR = re.compile(r"#[0-9A-Fa-f]{6}", re.ASCII)
_CONTROL = re.compile(r"[\0-\x1f\x7f-\x9f]")
_Enum = TypeVar("_Enum", bound=StrEnum)


class Fields:
    """A JSON object being read: hands out values of exactly one type each.

    Args:
        values: the object.
    """

    def __init__(self, values: Mapping[str, object]) -> None:
        self._values = values

    def only(self, allowed: tuple[str, ...]) -> None:
        """Refuse names that are not known here.

        Raises:
            ApplianceError: `FIELD_UNKNOWN`, naming the first.
        """
        for name in self._values:
            if name not in allowed:
                shown = name[:64]
                raise ApplianceError(
                    ErrorCode.FIELD_UNKNOWN,
                    params={"field": shown},
                    extras={"field": shown, "allowed": list(allowed)},
                )

    def integer(
        self, name: str, low: int, high: int, default: int | None = None
    ) -> int:
        """A whole number in a range; required when there is no default.

        Raises:
            FieldMissingError: it is not there.
            FieldInvalidError: another type, out of range.
        """
        if default is None:
            self._demand(name, f"{low}..{high}", _INTEGER)
        value = self._values.get(name, default)
        # bool is an int to Python, and 5.0 equals 5; neither is one here.
        if type(value) is not int or not low <= value <= high:
            raise FieldInvalidError(name, f"{low}..{high}", _INTEGER)
        return value

    def integers(self, name: str, low: int, high: int, most: int) -> tuple[int, ...]:
        """A required list of whole numbers in a range, 1 to `most` of them.

        Raises:
            FieldMissingError: it is not there.
            FieldInvalidError: another type, empty, too long, out of range.
        """
        allowed = f"1..{most} of {low}..{high}"
        value = self._demand(name, allowed, _ARRAY)
        if not isinstance(value, list) or not 1 <= len(value) <= most:
            raise FieldInvalidError(name, allowed, _ARRAY)
        for element in value:
            if type(element) is not int or not low <= element <= high:
                raise FieldInvalidError(name, allowed, _ARRAY)
        return tuple(value)

    def coordinate(self, name: str) -> int | None:
        """A whole number of either sign, or None when absent or null.

        Raises:
            FieldInvalidError: another type, or beyond what JSON keeps exactly.
        """
        if self._values.get(name) is None:
            return None
        return self.integer(name, -MAX_REQUEST_ID, MAX_REQUEST_ID)

    def word(self, name: str, kind: type[_Enum], default: _Enum) -> _Enum:
        """One of a closed list of words, in its exact case.

        Raises:
            FieldInvalidError: anything else, with the list.
        """
        value = self._values.get(name, default.value)
        for word in kind:
            if word.value == value:
                return word
        raise FieldInvalidError(name, [word.value for word in kind], _STRING)

    def boolean(self, name: str, *, default: bool) -> bool:
        """True or false.

        Raises:
            FieldInvalidError: another type.
        """
        value = self._values.get(name, default)
        if not isinstance(value, bool):
            raise FieldInvalidError(name, ["true", "false"], _BOOLEAN)
        return value

    def given(self, name: str) -> bool:
        """Whether the field is there at all, be it null."""
        return name in self._values

    def text(self, name: str, most: int) -> str:
        """A required string without control characters, trimmed.

        Raises:
            FieldMissingError: it is not there.
            FieldInvalidError: another type, empty, too long.
        """
        allowed = f"1..{most} characters"
        value = self._demand(name, allowed, _STRING)
        if not isinstance(value, str) or _CONTROL.search(value):
            raise FieldInvalidError(name, allowed, _STRING)
        trimmed = value.strip()
        if not 1 <= len(trimmed) <= most:
            raise FieldInvalidError(name, allowed, _STRING)
        return trimmed

    def optional_text(self, name: str, most: int) -> str | None:
        """A string without control characters, trimmed, that may be left out.

        Raises:
            FieldInvalidError: another type, empty, too long.
        """
        return self.text(name, most) if name in self._values else None

    def lines(self, name: str, most: int) -> str:
        """A required string of several lines.

        Raises:
            FieldMissingError: it is not there.
            FieldInvalidError: another type, empty, too long.
        """
        allowed = f"1..{most} characters"
        value = self._demand(name, allowed, _STRING)
        if not isinstance(value, str) or not 1 <= len(value) <= most:
            raise FieldInvalidError(name, allowed, _STRING)
        return value

    def password(self, name: str, least: int = PASSWORD_BYTES[0]) -> bytes:
        """A password: UTF-8 of its NFC form. The error never shows it.

        Raises:
            FieldMissingError: it is not there.
            FieldInvalidError: another type, too short, too long, NUL.
        """
        allowed = f"{least}..{PASSWORD_BYTES[1]} bytes"
        value = self._demand(name, allowed, _STRING)
        if not isinstance(value, str) or len(value) > PASSWORD_BYTES[1]:
            raise FieldInvalidError(name, allowed, _STRING)
        encoded = (nfc(value, PASSWORD_BYTES[1]) or "").encode()
        if b"\0" in encoded or not least <= len(encoded) <= PASSWORD_BYTES[1]:
            raise FieldInvalidError(name, allowed, _STRING)
        return encoded

    def color(self, name: str, default: str) -> str:
        """A colour's name, or `#RRGGBB`, which becomes upper case.

        Raises:
            FieldInvalidError: anything else.
        """
        value = self._values.get(name, default)
        if isinstance(value, str):
            if value in COLORS:
                return value
            if _HEX_COLOR.fullmatch(value):
                return value.upper()
        raise FieldInvalidError(name, [*COLORS, "#RRGGBB"], _STRING)

    def _demand(self, name: str, allowed: str, kind: str) -> object:
        """The value of a field that must be there, be it null.

        Raises:
            FieldMissingError: it is not.
        """
        if name not in self._values:
            raise FieldMissingError(name, allowed, kind)
        return self._values[name]
