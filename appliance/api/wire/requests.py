"""The words of the REST API, in and out: the only place that spells them.

Reading is strict (exact types, ranges, no unknown names); writing is additive
to the spec. What is read becomes the core's own types at once.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Final

from pydantic import Field

from appliance.api.wire import combinations
from appliance.api.wire.fields import (
    Body,
    boolean,
    color,
    one_time_code,
    password,
    stamp_text,
    text,
    whole,
    whole_or_null,
    wholes,
    word,
)
from appliance.domain.documents.inspected import NAME_LENGTH
from appliance.domain.errors import ApplianceError, ErrorCode, FieldInvalidError
from appliance.domain.ids import (
    MAX_REQUEST_ID,
    BatchId,
    RequestBatchId,
    RequestId,
    is_id,
)
from appliance.domain.requests.request import SignCommand
from appliance.domain.requests.signing_batch import MOST_REQUESTS, SignBatch
from appliance.domain.signing_command import (
    OPTIONAL_FIELDS,
    PLACE_LENGTH,
    REASON_LENGTH,
    GivenParameters,
    SignParameters,
)
from appliance.domain.vocab import CuilDisplay, FontName, FontStyle, Restriction

REJECTION_LENGTH: Final = 500
LOGIN_LENGTH: Final = 320
_BATCH_ID = re.compile(r"[0-9a-f]{32}", re.ASCII)
_REQUEST_ID = re.compile(r"[1-9][0-9]{0,15}", re.ASCII)


PARAMETER_FIELDS: Final = (*SignParameters().to_wire(), *OPTIONAL_FIELDS)
SIGN_FIELDS: Final = ("solicitudId", *PARAMETER_FIELDS, "password")
BATCH_FIELDS: Final = ("solicitudIds", "loteId", *PARAMETER_FIELDS, "password")


_Ordinate = Annotated[
    int | None, whole_or_null(-MAX_REQUEST_ID, MAX_REQUEST_ID, along_with="x")
]
_Restriction = Annotated[Restriction | None, word(Restriction)]
_Reason = Annotated[str | None, stamp_text(REASON_LENGTH)]
_Place = Annotated[str | None, stamp_text(PLACE_LENGTH)]


class Parameters(Body):
    """The parameters of a signature; which of them were given counts.

    In the order in which faults are told.
    """

    KNOWN = PARAMETER_FIELDS
    KEYWORDS: ClassVar[Mapping[str, Any]] = combinations.both_or_neither(
        "x", "y", combinations.NUMBER
    )

    x: Annotated[int | None, whole_or_null(-MAX_REQUEST_ID, MAX_REQUEST_ID)] = None
    y: _Ordinate = Field(None, validate_default=True)
    font_color: Annotated[str | None, color()] = None
    font_name: Annotated[FontName | None, word(FontName)] = None
    font_size: Annotated[int | None, whole(4, 72)] = None
    font_style: Annotated[FontStyle | None, word(FontStyle)] = None
    page: Annotated[int | None, whole(1, MAX_REQUEST_ID)] = None
    zoom_percent: Annotated[int | None, whole(10, 400)] = None
    restriction: _Restriction = Field(None, alias="restriccion")
    visible: Annotated[bool | None, boolean()] = None
    field: Annotated[str | None, text(NAME_LENGTH)] = Field(None, alias="campo")
    reason: _Reason = Field(None, alias="motivo")
    place: _Place = Field(None, alias="lugar")
    cuil: Annotated[CuilDisplay | None, word(CuilDisplay)] = None
    qr: Annotated[bool | None, boolean()] = None
    logo: Annotated[bool | None, boolean()] = None

    def given(self, *without: str) -> GivenParameters:
        """What was given, without some fields, and the defaults of the rest."""
        given = self.model_fields_set & Parameters.model_fields.keys() - {*without}
        said = {n: value for n in given if (value := getattr(self, n)) is not None}
        return GivenParameters(SignParameters(**said), frozenset(said))


class _OneRequest(Body):
    solicitud_id: Annotated[int, whole(1, MAX_REQUEST_ID)]


class _SeveralRequests(Body):
    solicitud_ids: Annotated[list[int], wholes(1, MAX_REQUEST_ID, MOST_REQUESTS)]
    lote_id: Annotated[str | None, text(36)] = None


class _WholeBatch(Body):
    lote_id: Annotated[str, text(36)]


class SignBody(Parameters, _OneRequest):
    """The body of firmar."""

    # The fields of the last base come first.
    KNOWN = SIGN_FIELDS
    password: Annotated[bytes, password()]


class SignSeveralBody(Parameters, _SeveralRequests):
    """The body of firmar/lote that names requests."""

    KNOWN = BATCH_FIELDS
    password: Annotated[bytes, password()]


class SignBatchBody(Parameters, _WholeBatch):
    """The body of firmar/lote that names an integrator's batch."""

    KNOWN = BATCH_FIELDS
    password: Annotated[bytes, password()]


class Rejection(Body):
    """The body of rechazar."""

    motivo: Annotated[str, text(REJECTION_LENGTH)]


class Login(Body):
    """The body of `POST /auth/login` (decisions "login")."""

    usuario: Annotated[str, text(LOGIN_LENGTH)]
    # A short password is a wrong one here, told like any other.
    password: Annotated[bytes, password(least=1)]


class OneTimeCode(Body):
    """The body of `POST /auth/otp`, its code as typed (decisions "login")."""

    login_token: Annotated[str, text(256)]
    codigo: Annotated[str, one_time_code()]


class PasswordChange(Body):
    """The body of `POST /credenciales/clave`: the signing password now and then."""

    password: Annotated[bytes, password()]
    nueva: Annotated[bytes, password()]


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
        The command.

    Raises:
        FieldInvalidError: a value of another type or out of its range.
        ApplianceError: `FIELD_UNKNOWN`.

    Source: spec "Signing command body"; decisions "required fields of firmar".
    """
    read = SignBody.read(body, lenient=lenient)
    return SignCommand(
        request=RequestId(read.solicitud_id),
        given=read.given(),
        password=read.password,
        if_match=conditions.if_match,
        idempotency_key=conditions.idempotency_key,
    )


def sign_batch(body: Mapping[str, object], conditions: Conditions) -> SignBatch:
    """Read the body of firmar/lote.

    Args:
        body: the JSON object.
        conditions: from the headers.

    Returns:
        The command.

    Raises:
        FieldInvalidError: a value of another type or out of its range; or both are.
        ApplianceError: `FIELD_UNKNOWN`; `LOTE_NOT_FOUND` for what can be no `loteId`.

    Source: decisions "several at once".
    """
    key = conditions.idempotency_key
    if "loteId" in body and "solicitudIds" not in body:
        whole = SignBatchBody.read(body)
        wanted = request_batch_id(whole.lote_id)
        return SignBatch((), whole.given(), whole.password, key, wanted)
    read = SignSeveralBody.read(body)
    if read.lote_id is not None:
        raise FieldInvalidError("loteId", "one of solicitudIds, loteId")
    requests = tuple(RequestId(request) for request in read.solicitud_ids)
    return SignBatch(requests, read.given(), read.password, key)


def request_batch_id(text: str) -> RequestBatchId:
    """Read the `loteId` of an integrator's batch.

    Args:
        text: of an address or a body.

    Raises:
        ApplianceError: `LOTE_NOT_FOUND` for what can be no id, as for an id that
            is not there.
    """
    if not is_id(text):
        raise ApplianceError(ErrorCode.LOTE_NOT_FOUND)
    return RequestBatchId(text)


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


def preview_parameters(body: Mapping[str, object]) -> GivenParameters:
    """Read the body of vista-previa: the parameters of firmar alone.

    Args:
        body: the JSON object.

    Raises:
        FieldInvalidError: a value of another type or out of its range.
        ApplianceError: `FIELD_UNKNOWN`.

    Source: decisions "seeing before signing".
    """
    return Parameters.read(body).given()


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
