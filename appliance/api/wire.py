"""The words of the REST API, in and out: the only place that spells them.

Reading is strict (exact types, ranges, no unknown names); writing is additive
to the spec. What is read becomes the core's own types at once.
"""

import re
import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Final, TypeVar

from appliance.domain.command import SignParameters
from appliance.domain.errors import ApplianceError, ErrorCode, FieldInvalidError
from appliance.domain.ids import MAX_REQUEST_ID, RequestId
from appliance.domain.request import SignCommand
from appliance.domain.vocab import FontName, FontStyle, Restriction

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
REASON_LENGTH: Final = 500
LOGIN_LENGTH: Final = 320
_HEX_COLOR = re.compile(r"#[0-9A-Fa-f]{6}", re.ASCII)
_REQUEST_ID = re.compile(r"[1-9][0-9]{0,15}", re.ASCII)
_CONTROL = re.compile(r"[\0-\x1f\x7f-\x9f]")
_Enum = TypeVar("_Enum", bound=StrEnum)


class _Fields:
    """A JSON object being read: hands out values of exactly one type each."""

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
            FieldInvalidError: missing, another type, out of range.
        """
        value = self._values.get(name, default)
        # bool is an int to Python, and 5.0 equals 5; neither is one here.
        if type(value) is not int or not low <= value <= high:
            raise FieldInvalidError(name, f"{low}..{high}")
        return value

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
        raise FieldInvalidError(name, [word.value for word in kind])

    def boolean(self, name: str, *, default: bool) -> bool:
        """True or false.

        Raises:
            FieldInvalidError: another type.
        """
        value = self._values.get(name, default)
        if not isinstance(value, bool):
            raise FieldInvalidError(name, ["true", "false"])
        return value

    def text(self, name: str, most: int) -> str:
        """A required string without control characters, trimmed.

        Raises:
            FieldInvalidError: missing, another type, empty, too long.
        """
        value = self._values.get(name)
        allowed = f"1..{most} characters"
        if not isinstance(value, str) or _CONTROL.search(value):
            raise FieldInvalidError(name, allowed)
        trimmed = value.strip()
        if not 1 <= len(trimmed) <= most:
            raise FieldInvalidError(name, allowed)
        return trimmed

    def password(self, name: str, least: int = PASSWORD_BYTES[0]) -> bytes:
        """A password: UTF-8 of its NFC form. The error never shows it.

        Raises:
            FieldInvalidError: missing, another type, too short, too long, NUL.
        """
        value = self._values.get(name)
        allowed = f"{least}..{PASSWORD_BYTES[1]} bytes"
        if not isinstance(value, str) or len(value) > PASSWORD_BYTES[1]:
            raise FieldInvalidError(name, allowed)
        encoded = unicodedata.normalize("NFC", value).encode()
        if b"\0" in encoded or not least <= len(encoded) <= PASSWORD_BYTES[1]:
            raise FieldInvalidError(name, allowed)
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
        raise FieldInvalidError(name, [*COLORS, "#RRGGBB"])


PARAMETER_FIELDS: Final = tuple(SignParameters().to_wire())
SIGN_FIELDS: Final = ("solicitudId", *PARAMETER_FIELDS, "password")


@dataclass(frozen=True, slots=True)
class Conditions:
    """What the headers of firmar say."""

    if_match: str | None = None
    idempotency_key: str | None = None


def sign_command(
    body: Mapping[str, object], conditions: Conditions, *, lenient: bool = False
) -> SignCommand:
    """Read the body of firmar.

    Args:
        body: the JSON object.
        conditions: from the headers.
        lenient: leave unknown names aside (`options` of a multipart body).

    Returns:
        The command, defaults filled in.

    Raises:
        FieldInvalidError: a value of another type or out of its range.
        ApplianceError: `FIELD_UNKNOWN`.

    Source: spec "Signing command body"; decisions "required fields of firmar".
    """
    fields = _Fields(body)
    if not lenient:
        fields.only(SIGN_FIELDS)
    return SignCommand(
        request=RequestId(fields.integer("solicitudId", 1, MAX_REQUEST_ID)),
        params=_sign_parameters(fields),
        password=fields.password("password"),
        if_match=conditions.if_match,
        idempotency_key=conditions.idempotency_key,
    )


def preview_parameters(body: Mapping[str, object]) -> SignParameters:
    """Read the body of vista-previa: the parameters of firmar alone.

    Args:
        body: the JSON object.

    Raises:
        FieldInvalidError: a value of another type or out of its range.
        ApplianceError: `FIELD_UNKNOWN`.

    Source: decisions "seeing before signing".
    """
    fields = _Fields(body)
    fields.only(PARAMETER_FIELDS)
    return _sign_parameters(fields)


def rejection(body: Mapping[str, object]) -> str:
    """Read the body of rechazar.

    Args:
        body: the JSON object.

    Returns:
        `motivo`, trimmed, 1 to 500 characters.

    Raises:
        FieldInvalidError: missing, another type, too long.
        ApplianceError: `FIELD_UNKNOWN`.
    """
    fields = _Fields(body)
    fields.only(("motivo",))
    return fields.text("motivo", REASON_LENGTH)


@dataclass(frozen=True, slots=True)
class Credentials:
    """The body of `POST /auth/login`."""

    user: str
    password: bytes

    def __repr__(self) -> str:
        """Show nothing of either."""
        return "Credentials(…)"


def credentials(body: Mapping[str, object]) -> Credentials:
    """Read the body of `POST /auth/login`.

    Args:
        body: the JSON object.

    Raises:
        FieldInvalidError: a value of another type or length.
        ApplianceError: `FIELD_UNKNOWN`.

    Source: decisions "login".
    """
    fields = _Fields(body)
    fields.only(("usuario", "password"))
    user = fields.text("usuario", LOGIN_LENGTH)
    # A short password is a wrong one here, told like any other.
    return Credentials(user, fields.password("password", least=1))


def one_time_code(body: Mapping[str, object]) -> tuple[str, str]:
    """Read the body of `POST /auth/otp`.

    Args:
        body: the JSON object.

    Returns:
        The login token and the code as typed, trimmed.

    Raises:
        FieldInvalidError: a value of another type or length.
        ApplianceError: `FIELD_UNKNOWN`.

    Source: decisions "login".
    """
    fields = _Fields(body)
    fields.only(("loginToken", "codigo"))
    return fields.text("loginToken", 256), fields.text("codigo", 64)


def password_change(body: Mapping[str, object]) -> tuple[bytes, bytes]:
    """Read the body of `POST /credenciales/clave`.

    Args:
        body: the JSON object.

    Returns:
        The signing password as it is, and as it shall be.

    Raises:
        FieldInvalidError: a value of another type or length.
        ApplianceError: `FIELD_UNKNOWN`.
    """
    fields = _Fields(body)
    fields.only(("password", "nueva"))
    return fields.password("password"), fields.password("nueva")


def request_id(text: str) -> RequestId:
    """Read `solicitudId` of an address.

    Args:
        text: the segment of the path.

    Raises:
        ApplianceError: `SOLICITUD_NOT_FOUND` for what can be no id, as for an
            id that is not there.
    """
    if not _REQUEST_ID.fullmatch(text) or int(text) > MAX_REQUEST_ID:
        raise ApplianceError(ErrorCode.SOLICITUD_NOT_FOUND)
    return RequestId(int(text))


def _sign_parameters(fields: _Fields) -> SignParameters:
    x, y = fields.coordinate("x"), fields.coordinate("y")
    if (x is None) != (y is None):
        missing = "x" if x is None else "y"
        raise FieldInvalidError(missing, "x and y come together")
    return SignParameters(
        font_color=fields.color("fontColor", "BLACK"),
        font_name=fields.word("fontName", FontName, FontName.SERIF),
        font_size=fields.integer("fontSize", 4, 72, 12),
        font_style=fields.word("fontStyle", FontStyle, FontStyle.PLAIN),
        page=fields.integer("page", 1, MAX_REQUEST_ID, 1),
        x=x,
        y=y,
        zoom_percent=fields.integer("zoomPercent", 10, 400, 100),
        restriction=fields.word("restriccion", Restriction, Restriction.NO_VALUE),
        visible=fields.boolean("visible", default=True),
    )
