"""The words of people as an integrator's backend asks about them, in and out.

Source: docs/integration.md "Signers".
"""

from collections.abc import Mapping
from datetime import datetime
from typing import Annotated, Any, Final, cast

from pydantic import Field

from appliance.api.wire import backend_answers, representations
from appliance.api.wire.fields import Body, an_object, boolean, moment, text, word
from appliance.api.wire.orders import Language
from appliance.domain.errors import NOT_ENROLLED, ApplianceError, ErrorCode
from appliance.domain.people.identity import format_cuil
from appliance.domain.vocab import PersonState
from appliance.integration.signers import SignerState, Vouched, VouchOrder
from appliance.web import problems

_UNKNOWN: Final = "desconocida"
_STATES: Final = {
    PersonState.INVITED: "invitada",
    PersonState.ACTIVE: "activa",
    PersonState.DISABLED: "deshabilitada",
}


class CheckedIdentity(Body):
    """How somebody was identified, by whom and when."""

    method: Annotated[str, text(200)] = Field(alias="metodo")
    by: Annotated[str, text(120)] = Field(alias="responsable")
    checked: Annotated[datetime, moment()] = Field(alias="cuando")


class VouchBody(Body):
    """For whom an integrator answers."""

    name: Annotated[str, text(120)] = Field(alias="nombre")
    email: Annotated[str, text(320)]
    identity: Annotated[dict[str, Any], an_object(CheckedIdentity)] = Field(
        alias="identidad"
    )
    language: Annotated[Language, word(Language)] = Field(Language.ES, alias="idioma")
    wants_link: Annotated[bool, boolean()] = Field(default=False, alias="nuevoEnlace")
    by_mail: Annotated[bool, boolean()] = Field(default=False, alias="enviarInvitacion")


def vouch(cuil: str, body: Mapping[str, object]) -> VouchOrder:
    """Read for whom an integrator answers.

    Args:
        cuil: of the address, eleven digits.
        body: the JSON object.

    Raises:
        FieldMissingError: a field is not there.
        FieldInvalidError: a value of another type or out of its range.
        ApplianceError: `FIELD_UNKNOWN`.
    """
    read = VouchBody.read(body)
    identity = CheckedIdentity.read(read.identity, under="identidad.")
    return VouchOrder(
        cuil=cuil,
        name=read.name,
        email=read.email,
        method=identity.method,
        by=identity.by,
        checked=identity.checked,
        locale=read.language.value,
        wants_link=read.wants_link,
        by_mail=read.by_mail,
    )


def state_word(state: PersonState | None) -> str:
    """Return the word for how somebody stands.

    Args:
        state: theirs; None: they are not known.
    """
    return _UNKNOWN if state is None else _STATES[state]


def state(of: SignerState, lang: str) -> backend_answers.Signer:
    """Whether somebody can sign, and why not.

    Args:
        of: the person.
        lang: of what is told.
    """
    return {
        "cuil": format_cuil(of.cuil),
        "estado": state_word(of.state),
        "puedeFirmar": of.may_sign,
        "motivo": None if of.may_sign else _why(of, lang),
    }


def _why(of: SignerState, lang: str) -> backend_answers.WhyNot:
    refusals = {
        None: ApplianceError(ErrorCode.PERSON_NOT_FOUND),
        PersonState.INVITED: ApplianceError(
            ErrorCode.SIGNER_PENDING_APPROVAL, sentence=NOT_ENROLLED
        ),
    }
    refusal = of.refusal or refusals.get(
        of.state, ApplianceError(ErrorCode.CERTIFICATE_NOT_USABLE)
    )
    told = problems.members(refusal, lang)
    named = (("obstacle", "obstaculo"), ("since", "desde"))
    why = {
        "codigo": told["code"],
        "texto": told["detail"],
        **{wire: told[name] for name, wire in named if name in told},
    }
    return cast("backend_answers.WhyNot", why)


def vouched(made: Vouched, lang: str) -> backend_answers.VouchedSigner:
    """What a vouch came to.

    Args:
        made: it.
        lang: of what is told.
    """
    invitation = made.invitation
    return {
        **state(made.state, lang),
        # Whom it answers for is known from then on.
        "personaId": cast("str", made.state.person),
        "enlace": None if invitation is None else invitation.url,
        "enlaceVence": (
            None if invitation is None else representations.instant(invitation.until)
        ),
    }
