"""The own account: password, authenticator app, sessions."""

from quart import Blueprint, Response

from admin_ui import proof, session
from admin_ui.authenticator_entry import authenticator_entry
from admin_ui.core import core
from admin_ui.pages.administrators import new_password
from admin_ui.render import NONE, Faults, again, faults_of, go, page
from appliance.domain.errors import ApplianceError
from appliance.domain.integrators.integrators import FactorOffer

blueprint = Blueprint("account", __name__, url_prefix="/admin/account")


@blueprint.get("")
async def show() -> Response:
    """`GET /admin/account`."""
    view = await core().console_users.get(session.current().user.name)
    return await page("account.html", view=view)


@blueprint.get("/password")
async def ask_password() -> Response:
    """`GET /admin/account/password`."""
    return await page("account_password.html", faults=NONE)


@blueprint.post("/password")
async def set_password() -> Response:
    """`POST /admin/account/password`: after the present one and a code."""
    password, faults = new_password(session.current().user.name, present=True)
    faults = faults or await proof.password_and_code()
    if faults:
        return await again("account_password.html", faults)
    await core().console_users.set_password(
        session.actor(),
        session.current().user.name,
        password,
        keep=session.token(),
    )
    return go("account.show", done="password-set")


@blueprint.get("/totp")
async def ask_totp() -> Response:
    """`GET /admin/account/totp`: password and present code come first."""
    return await page("account_totp.html", faults=NONE)


@blueprint.post("/totp")
async def offer_totp() -> Response:
    """`POST /admin/account/totp`: show a new one; it does not count yet."""
    faults = await proof.password_and_code()
    if faults:
        return await again("account_totp.html", faults)
    return await _offer(core().console_users.offer_totp(session.current()))


@blueprint.post("/totp/confirm")
async def take_totp() -> Response:
    """`POST /admin/account/totp/confirm`: a code of the new one makes it count."""
    sent = session.form()
    users, mine = core().console_users, session.current()
    offer = users.offered_totp(mine, sent.text("offer"))
    try:
        await users.take_totp(mine, offer.sealed, sent.text("code"), session.token())
    except ApplianceError as exc:
        return await _offer(offer, faults_of(exc, {"OTP_INVALID": "code"}))
    return go("account.show", done="phone-changed")


async def _offer(offer: FactorOffer, faults: Faults = NONE) -> Response:
    entry = authenticator_entry(offer.totp_uri)
    if faults:
        return await again("account_totp_new.html", faults, offer=offer, entry=entry)
    return await page("account_totp_new.html", faults=NONE, offer=offer, entry=entry)
