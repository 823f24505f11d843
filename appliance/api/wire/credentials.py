"""The words of the REST API for credentials, in and out."""

from datetime import datetime
from typing import Annotated, Final

from appliance.api.wire import answers, fields
from appliance.api.wire.representations import instant
from appliance.domain.errors import FieldInvalidError
from appliance.domain.keys.credentials import CredentialView
from appliance.domain.vocab import CredentialState, RevocationReason, VouchedBy
from appliance.pki.validation.certificate_rules import BYTES_AT_MOST

REASONS: Final = {
    "sin_especificar": RevocationReason.UNSPECIFIED,
    "clave_comprometida": RevocationReason.KEY_COMPROMISE,
    "cambio_de_datos": RevocationReason.AFFILIATION_CHANGED,
    "reemplazo": RevocationReason.SUPERSEDED,
    "cese_de_uso": RevocationReason.CESSATION_OF_OPERATION,
}
"""`motivo`: the reasons that a person may give. Source: RFC 5280, 5.3.1."""
STATES: Final = {
    CredentialState.ACTIVE: "vigente",
    CredentialState.SUPERSEDED: "reemplazada",
    CredentialState.REVOKING: "en_revocacion",
    CredentialState.REVOKED: "revocada",
}
"""`estado`; `vencida` where a credential in use is past its end."""
EXPIRED: Final = "vencida"
MODES: Final = {"wrapped": "envuelta", "resident": "residente"}
VOUCHED: Final = {
    VouchedBy.VOUCHED: "integrador",
    VouchedBy.OFFICER: "oficial",
    VouchedBy.EXTERNAL: "externa",
    VouchedBy.DEMO: "demo",
    VouchedBy.TEST: "prueba",
}
"""`acreditacion` (decisions "who may be certified")."""


class Revocation(fields.Body):
    """The body of revocar."""

    motivo: Annotated[str, fields.text(40)]


class Chain(fields.Body):
    """The body of cadena."""

    cadena: Annotated[str, fields.lines(BYTES_AT_MOST)]


class Password(fields.Body):
    """The body of csr."""

    password: Annotated[bytes, fields.password()]


def element(view: CredentialView, now: datetime) -> answers.Credential:
    """An element of `GET /credenciales`.

    Args:
        view: the credential.
        now: the time.
    """
    over = view.state is CredentialState.ACTIVE and now >= view.not_after
    reasons = {reason: word for word, reason in REASONS.items()}
    return {
        "id": view.id,
        "estado": EXPIRED if over else STATES[view.state],
        "modo": MODES.get(view.mode, view.mode),
        "algoritmo": view.algorithm,
        "titular": view.holder,
        "cuil": view.cuil,
        "emisor": view.issuer,
        "ca": "externa" if view.outside else "interna",
        "numeroDeSerie": view.serial,
        "desde": instant(view.not_before),
        "hasta": instant(view.not_after),
        "acreditacion": VOUCHED[view.vouched_by],
        "huella": view.sha256,
        "revocada": instant(view.revoked_at) if view.revoked_at else None,
        "motivo": None
        if view.reason is None
        else reasons.get(view.reason, "sin_especificar"),
    }


def reason(word: str) -> RevocationReason:
    """Read `motivo`.

    Args:
        word: as it came.

    Raises:
        FieldInvalidError: none of the words.
    """
    if word not in REASONS:
        raise FieldInvalidError("motivo", list(REASONS))
    return REASONS[word]
