"""The page that revokes by PIN, for somebody who cannot sign in any more.

Plain HTML that needs no script. Whatever is not right of CUIL and PIN is told in
the same words.
"""

from collections.abc import Mapping
from http import HTTPStatus
from typing import Final

from quart import Blueprint, Response, request

from appliance.api import pages
from appliance.api.core import core
from appliance.api.wire import credentials as wire
from appliance.domain.errors import ApplianceError, ErrorCode, FieldInvalidError
from appliance.domain.people.identity import typed_cuil
from appliance.pki.revocation_pins import LONGEST_TYPED
from appliance.settings import REVOCATION_PATH
from appliance.web import forms, problems
from appliance.web.auth import public
from appliance.web.server.client_address import client_address

blueprint = Blueprint("revocar", __name__)

_REASONS: Final = {
    "clave_comprometida": "I lost my phone, or someone may know my passwords",
    "cambio_de_datos": "My details changed",
    "cese_de_uso": "I will not sign any more",
    "sin_especificar": "Another reason",
}
"""What a person may choose, as msgids by `motivo`."""
_FAULTS: Final = {
    "cuil": "Write a CUIL with the correct last digit, such as 20-26756539-3.",
    "pin": "Write the revocation PIN: 12 letters and digits.",
    "motivo": "Choose an option from the list.",
    "confirmo": "Confirm that you understand it.",
}
_MISSING: Final = {
    "cuil": "The CUIL is missing.",
    "pin": "The revocation PIN is missing.",
}


@blueprint.route(REVOCATION_PATH, methods=["GET", "POST"])
@public
async def revoke() -> Response:
    """`/revocar`: the form; by POST, what was typed."""
    if request.method == "POST":
        return await _revoke()
    return _form({}, {})


async def _revoke() -> Response:
    """Revoke, or show the form again with what is wrong.

    Raises:
        ApplianceError: what the form cannot mend, for `refuse`.
    """
    sent = await forms.read()
    typed = {name: sent.text(name) for name in _FAULTS}
    faults = _faults(typed)
    if faults:
        return _form(typed, faults)
    try:
        revoked = await core().self_revocation.revoke(
            typed["cuil"], typed["pin"], wire.reason(typed["motivo"]), client_address()
        )
    except ApplianceError as error:
        if error.code is not ErrorCode.REVOCATION_PIN_WRONG:
            raise
        status = problems.ANSWERS[error.code].status
        return _form(typed, {"pin": error.sentence}, status)
    return pages.show("revocar_hecha.html", HTTPStatus.OK, revoked=revoked)


@blueprint.errorhandler(ApplianceError)
async def refuse(error: ApplianceError) -> Response:
    """Say in words, on a page, what a person cannot mend in the form.

    Args:
        error: raised by a view of this page.
    """
    return pages.refuse(error, "revocar_error.html")


def _faults(typed: Mapping[str, str]) -> dict[str, str]:
    """All that is wrong at once, before anything is tried."""
    wrong = set()
    try:
        typed_cuil(typed["cuil"])
    except FieldInvalidError:
        wrong.add("cuil")
    if not 1 <= len(typed["pin"]) <= LONGEST_TYPED:
        wrong.add("pin")
    if typed["motivo"] not in _REASONS:
        wrong.add("motivo")
    if typed["confirmo"] != "si":
        wrong.add("confirmo")
    missing = {name: told for name, told in _MISSING.items() if not typed[name]}
    told = {**_FAULTS, **missing}
    return {name: told[name] for name in _FAULTS if name in wrong}


def _form(
    typed: Mapping[str, str],
    errors: Mapping[str, str],
    status: HTTPStatus | None = None,
) -> Response:
    """The form; the PIN is not sent back, being secret."""
    wrong = HTTPStatus.UNPROCESSABLE_ENTITY if errors else HTTPStatus.OK
    return pages.show(
        "revocar.html",
        status or wrong,
        cuil=typed.get("cuil", ""),
        chosen=typed.get("motivo") or "clave_comprometida",
        confirmed=bool(typed.get("confirmo")),
        reasons=_REASONS,
        errors=errors,
    )
