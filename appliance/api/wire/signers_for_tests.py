"""The words of the test mode, in and out.

Source: docs/integration.md "Test mode".
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Final

from pydantic import Field

from appliance.api.wire import (
    backend_answers,
    combinations,
    fields,
    representations,
    requests,
    signers,
)
from appliance.api.wire.fields import Body, text, whole, word
from appliance.api.wire.orders import Language
from appliance.api.wire.processes import process_id
from appliance.api.wire.requests import REJECTION_LENGTH
from appliance.domain.errors import FieldInvalidError, FieldMissingError
from appliance.domain.ids import MAX_REQUEST_ID, ProcessId, RequestBatchId, RequestId
from appliance.domain.mail.mails import MailKind
from appliance.domain.people.identity import format_cuil, parse_cuil
from appliance.integration.test_mode.mails import MailForTests
from appliance.integration.test_mode.signers import (
    SignerForTestsOrder,
    SignerForTestsView,
)

MAIL_KINDS: Final = {
    MailKind.INVITATION: "invitacion",
    MailKind.REQUEST: "solicitud",
    MailKind.REMINDER: "recordatorio",
    MailKind.SIGNED: "firmado",
    MailKind.CANCELLED: "cancelada",
    MailKind.EXPIRED: "vencida",
    MailKind.ENROLLED: "alta",
    MailKind.CODES_SET: "codigos_nuevos",
    MailKind.PASSWORD_CHANGED: "clave_cambiada",
    MailKind.PASSWORD_LOCKED: "clave_bloqueada",
    MailKind.SIGNED_IN_ELSEWHERE: "ingreso_nuevo",
    MailKind.CERTIFIED: "certificado",
    MailKind.REVOKED: "revocado",
    MailKind.TEST: "prueba",
}
"""`tipo` of a mail."""
_Number = Annotated[int | None, whole(1, MAX_REQUEST_ID)]


class NewSignerForTests(Body):
    """Whom a backend wants to be made up."""

    name: Annotated[str | None, text(120)] = Field(None, alias="nombre")
    cuil: Annotated[str | None, fields.cuil()] = None
    email: Annotated[str | None, text(320)] = None
    language: Annotated[Language, word(Language)] = Field(Language.ES, alias="idioma")


class SignAsSigner(Body):
    """What a test signer is to sign: one of these."""

    KEYWORDS: ClassVar[Mapping[str, Any]] = combinations.exactly_one(
        "procesoId", "solicitudId", "loteId"
    )
    process: Annotated[str | None, text(36)] = Field(None, alias="procesoId")
    request: _Number = Field(None, alias="solicitudId")
    batch: Annotated[str | None, text(36)] = Field(None, alias="loteId")


class RejectAsSigner(Body):
    """What a test signer is to reject, one of these, and why."""

    KEYWORDS: ClassVar[Mapping[str, Any]] = combinations.exactly_one(
        "procesoId", "solicitudId"
    )
    process: Annotated[str | None, text(36)] = Field(None, alias="procesoId")
    request: _Number = Field(None, alias="solicitudId")
    reason: Annotated[str, text(REJECTION_LENGTH)] = Field("", alias="motivo")


@dataclass(frozen=True, slots=True)
class WholeBatch:
    """All of an integrator's batch, apart from a request, whose id is text too."""

    id: RequestBatchId


def order(body: Mapping[str, object]) -> SignerForTestsOrder:
    """Read whom a backend wants to be made up.

    Args:
        body: the JSON object; may be empty.

    Raises:
        FieldInvalidError: a value of another type or out of its range.
        ApplianceError: `FIELD_UNKNOWN`.
    """
    read = NewSignerForTests.read(body)
    return SignerForTestsOrder(
        name=read.name,
        cuil=None if read.cuil is None else parse_cuil(read.cuil),
        email=read.email,
        locale=read.language.value if "language" in read.model_fields_set else None,
    )


def to_sign(body: Mapping[str, object]) -> ProcessId | RequestId | WholeBatch:
    """Read what a test signer is to sign.

    Args:
        body: the JSON object.

    Raises:
        FieldMissingError: nothing is named.
        FieldInvalidError: a value of another type, or more than one.
        ApplianceError: `FIELD_UNKNOWN`, `SOLICITUD_NOT_FOUND`, `LOTE_NOT_FOUND`.
    """
    read = SignAsSigner.read(body)
    if read.batch is None:
        return _one(read.process, read.request)
    if read.process is not None or read.request is not None:
        raise FieldInvalidError("loteId", "one of procesoId, solicitudId, loteId")
    return WholeBatch(requests.request_batch_id(read.batch))


def to_reject(body: Mapping[str, object]) -> tuple[ProcessId | RequestId, str]:
    """Read what a test signer is to reject, and why.

    Args:
        body: the JSON object.

    Raises:
        FieldMissingError: nothing is named.
        FieldInvalidError: a value of another type, or more than one.
        ApplianceError: `FIELD_UNKNOWN`, `SOLICITUD_NOT_FOUND`.
    """
    read = RejectAsSigner.read(body)
    return _one(read.process, read.request), read.reason


def _one(process: str | None, request: int | None) -> ProcessId | RequestId:
    """The one that is named.

    Raises:
        FieldMissingError: none is.
        FieldInvalidError: both are.
        ApplianceError: `SOLICITUD_NOT_FOUND`.
    """
    if process is not None and request is not None:
        raise FieldInvalidError("solicitudId", "one of procesoId, solicitudId")
    if process is not None:
        return process_id(process)
    if request is None:
        raise FieldMissingError("procesoId")
    return RequestId(request)


def told(of: SignerForTestsView, lang: str) -> backend_answers.SignerForTests:
    """A test signer with all that a machine needs to act as them.

    Args:
        of: the signer.
        lang: of what is told.
    """
    state = signers.state(of.state, lang)
    return {
        "personaId": of.person.id,
        "cuil": format_cuil(of.person.cuil),
        "nombre": of.person.name,
        "email": of.email,
        "password": of.password,
        "claveFirma": of.sign_password,
        "totp": of.totp,
        "puedeFirmar": state["puedeFirmar"],
        "motivo": state["motivo"],
        "creado": representations.instant(of.created),
    }


def mail(of: MailForTests) -> backend_answers.MailForTests:
    """A mail as its recipient would read it.

    Args:
        of: the mail.
    """
    return {
        "correoId": of.id,
        "tipo": MAIL_KINDS[of.kind],
        "asunto": of.parts.subject,
        "texto": of.parts.text,
        "html": of.parts.html,
        "creado": representations.instant(of.created),
        "procesoId": of.process,
        "enlace": of.url,
    }
