"""The page for people who cannot sign: what they will lose, and how to ask for help.

Plain HTML that needs no script. Whoever asks reads the same answer, known or not.
"""

from collections.abc import Mapping
from http import HTTPStatus
from typing import Final, cast

from quart import Blueprint, Response, current_app, request

from appliance.admission.address_rates import AddressRate
from appliance.api import pages
from appliance.api.core import core
from appliance.domain.errors import ApplianceError, FieldInvalidError
from appliance.domain.people.identity import typed_cuil
from appliance.domain.vocab import HelpTopic
from appliance.identity.help_requests import WITHDRAW
from appliance.settings import HELP_PATH
from appliance.web import forms
from appliance.web.auth import public
from appliance.web.server.client_address import client_address

blueprint = Blueprint("ayuda", __name__)

RATE: Final = "rubrica.ayuda.rate"
"""Where the application keeps what each address asks."""
TOPICS: Final[dict[str, HelpTopic]] = {
    "contrasena": HelpTopic.PASSWORD,
    "telefono": HelpTopic.PHONE,
    "ambos": HelpTopic.BOTH,
    "bloqueo": HelpTopic.LOCKED,
    "otro": HelpTopic.OTHER,
}
"""Topics by the form's `motivo`."""
_SAID: Final = {
    "contrasena": "I forgot my signing password",
    "telefono": "I do not have my phone",
    "ambos": "Both: neither the password nor the phone",
    "bloqueo": "My signing password is locked",
    "otro": "I cannot sign for another reason",
}
"""The same, as msgids."""
_FAULTS: Final = {
    "motivo": "Choose an option from the list.",
    "cuil": "Write a CUIL with the correct last digit, such as 20-26756539-3.",
    "correo": "Write an e-mail address, such as name@example.com.",
}
_LONGEST_EMAIL: Final = 254
_LONGEST_CODE: Final = 64


@blueprint.route(HELP_PATH, methods=["GET", "POST"])
@public
async def ask() -> Response:
    """`/ayuda`: what is lost and what stays, and the form; by POST, what was typed.

    `?motivo=` chooses a topic beforehand. The answer to a right form is the same for
    everybody.

    Raises:
        ApplianceError: what the form cannot mend, for `refuse`.
    """
    if request.method != "POST":
        return _form({"motivo": request.args.get("motivo", "")}, {})
    sent = await forms.read()
    typed = {name: sent.text(name) for name in _FAULTS}
    faults = _faults(typed)
    if faults:
        return _form(typed, faults)
    _count()
    topic = TOPICS[typed["motivo"]]
    await core().help_requests.ask(typed_cuil(typed["cuil"]), typed["correo"], topic)
    return pages.show(
        "ayuda_hecha.html", HTTPStatus.OK, mailed=core().settings.mail.is_on
    )


@blueprint.route(f"{HELP_PATH}{WITHDRAW}<code>", methods=["GET", "POST"])
@public
async def withdraw(code: str) -> Response:
    """`/ayuda/retirar/{code}`: the link in the mail; POST alone withdraws.

    A program that follows the links of mails changes nothing.

    Raises:
        ApplianceError: for `refuse`.
    """
    _count()
    code = code[:_LONGEST_CODE]
    if request.method == "POST":
        done = await core().help_requests.withdraw(code)
        return _withdrawal("done" if done else "over")
    is_open = await core().help_requests.is_withdrawable(code)
    return _withdrawal("open" if is_open else "over")


@blueprint.errorhandler(ApplianceError)
async def refuse(error: ApplianceError) -> Response:
    """Say in words, on a page, what a person cannot mend in the form.

    Args:
        error: raised by a view of this page.
    """
    is_withdrawal = request.endpoint == f"{blueprint.name}.{withdraw.__name__}"
    return pages.refuse(error, "ayuda_error.html", is_withdrawal=is_withdrawal)


def _count() -> None:
    """Count a call of this address.

    Raises:
        ApplianceError: `RATE_LIMITED`.
    """
    cast("AddressRate", current_app.extensions[RATE]).count(client_address())


def _faults(typed: Mapping[str, str]) -> dict[str, str]:
    """All that is wrong at once."""
    wrong = set()
    if typed["motivo"] not in TOPICS:
        wrong.add("motivo")
    try:
        typed_cuil(typed["cuil"])
    except FieldInvalidError:
        wrong.add("cuil")
    name, at, host = typed["correo"].partition("@")
    if not (name and at and host) or len(typed["correo"]) > _LONGEST_EMAIL:
        wrong.add("correo")
    return {name: _FAULTS[name] for name in _FAULTS if name in wrong}


def _form(typed: Mapping[str, str], errors: Mapping[str, str]) -> Response:
    return pages.show(
        "ayuda.html",
        HTTPStatus.UNPROCESSABLE_ENTITY if errors else HTTPStatus.OK,
        topics=_SAID,
        chosen=typed["motivo"],
        cuil=typed.get("cuil", ""),
        email=typed.get("correo", "")[:_LONGEST_EMAIL],
        errors=errors,
    )


def _withdrawal(state: str) -> Response:
    status = HTTPStatus.NOT_FOUND if state == "over" else HTTPStatus.OK
    return pages.show("ayuda_retirar.html", status, state=state)
