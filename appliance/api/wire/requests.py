"""The words of the REST API, in and out: the only place that spells them.

Reading is strict (exact types, ranges, no unknown names); writing is additive
to the spec. What is read becomes the core's own types at once.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from appliance.api.wire.fields import Fields
from appliance.domain.errors import ApplianceError, ErrorCode, FieldInvalidError
from appliance.domain.ids import MAX_REQUEST_ID, BatchId, RequestId
from appliance.domain.requests.batch import MOST_REQUESTS, SignBatch
from appliance.domain.requests.request import SignCommand
from appliance.domain.requests.signing_command import (
    OPTIONAL_FIELDS,
    PLACE_LENGTH,
    REASON_LENGTH,
    SignParameters,
)
from appliance.domain.signature_fields import NAME_LENGTH
from appliance.domain.vocab import CuilDisplay, FontName, FontStyle, Restriction

REJECTION_LENGTH: Final = 500
LOGIN_LENGTH: Final = 320
_BATCH_ID = re.compile(r"[0-9a-f]{32}", re.ASCII)
_REQUEST_ID = re.compile(r"[1-9][0-9]{0,15}", re.ASCII)


PARAMETER_FIELDS: Final = (*SignParameters().to_wire(), *OPTIONAL_FIELDS)
SIGN_FIELDS: Final = ("solicitudId", *PARAMETER_FIELDS, "password")
BATCH_FIELDS: Final = ("solicitudIds", *PARAMETER_FIELDS, "password")


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
    fields = Fields(body)
    if not lenient:
        fields.only(SIGN_FIELDS)
    return SignCommand(
        request=RequestId(fields.integer("solicitudId", 1, MAX_REQUEST_ID)),
        params=_sign_parameters(fields),
        password=fields.password("password"),
        if_match=conditions.if_match,
        idempotency_key=conditions.idempotency_key,
    )


def sign_batch(body: Mapping[str, object], conditions: Conditions) -> SignBatch:
    """Read the body of firmar/lote.

    Args:
        body: the JSON object.
        conditions: from the headers.

    Returns:
        The command, defaults filled in.

    Raises:
        FieldInvalidError: a value of another type or out of its range.
        ApplianceError: `FIELD_UNKNOWN`; `BAD_HEADER` for an If-Match, which can
            mean one document alone.

    Source: decisions "several at once".
    """
    if conditions.if_match is not None:
        raise ApplianceError(ErrorCode.BAD_HEADER)
    fields = Fields(body)
    fields.only(BATCH_FIELDS)
    wanted = fields.integers("solicitudIds", 1, MAX_REQUEST_ID, MOST_REQUESTS)
    return SignBatch(
        requests=tuple(RequestId(request) for request in wanted),
        params=_sign_parameters(fields),
        password=fields.password("password"),
        idempotency_key=conditions.idempotency_key,
    )


def batch_id(text: str) -> BatchId:
    """Read the id of a batch in an address.

    Args:
        text: the segment of the path.

    Raises:
        ApplianceError: `LOTE_NOT_FOUND` for what can be no id, as for an id that
            is not there.
    """
    if not _BATCH_ID.fullmatch(text):
        raise ApplianceError(ErrorCode.LOTE_NOT_FOUND)
    return BatchId(text)


def preview_parameters(body: Mapping[str, object]) -> SignParameters:
    """Read the body of vista-previa: the parameters of firmar alone.

    Args:
        body: the JSON object.

    Raises:
        FieldInvalidError: a value of another type or out of its range.
        ApplianceError: `FIELD_UNKNOWN`.

    Source: decisions "seeing before signing".
    """
    fields = Fields(body)
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
    fields = Fields(body)
    fields.only(("motivo",))
    return fields.text("motivo", REJECTION_LENGTH)


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
    fields = Fields(body)
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
    fields = Fields(body)
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
    fields = Fields(body)
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


def _sign_parameters(fields: Fields) -> SignParameters:
    x, y = fields.coordinate("x"), fields.coordinate("y")
    if (x is None) != (y is None):
        missing = "x" if x is None else "y"
        raise FieldInvalidError(missing, "x and y come together", "integer")
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
        field=fields.optional_text("campo", NAME_LENGTH),
        reason=fields.optional_text("motivo", REASON_LENGTH),
        place=fields.optional_text("lugar", PLACE_LENGTH),
        cuil=(
            fields.word("cuil", CuilDisplay, CuilDisplay.WHOLE)
            if fields.given("cuil")
            else None
        ),
        qr=fields.boolean("qr", default=True) if fields.given("qr") else None,
        logo=fields.boolean("logo", default=True) if fields.given("logo") else None,
    )
