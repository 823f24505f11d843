"""Administrators: the list, and what one does to another."""

from typing import Any, Final

from quart import Blueprint, Response

from admin_ui import proof, session, words
from admin_ui.authenticator_entry import authenticator_entry
from admin_ui.core import core
from admin_ui.render import NONE, Faults, again, faults_of, go, page
from appliance.domain.errors import ApplianceError, ErrorCode

blueprint = Blueprint("administrators", __name__, url_prefix="/admin/administrators")
_STATES: Final = frozenset({ErrorCode.CONSOLE_USER_STATE})


@blueprint.get("")
async def show() -> Response:
    """`GET /admin/administrators`."""
    views = await core().console_users.list()
    return await page("administrators.html", views=views)


@blueprint.get("/<name>")
async def one(name: str) -> Response:
    """`GET /admin/administrators/{name}`."""
    view = await core().console_users.get(name)
    attacked = await core().failed_tries.attacked_user(name)
    return await page(
        "administrator.html", view=view, mine=_mine(name), attacked=attacked
    )


def _mine(name: str) -> bool:
    return session.current().user.name == name


async def _form(
    template: str, name: str, faults: Faults = NONE, **typed: str
) -> Response:
    """A page that asks for proof before something is done to an administrator."""
    view = await core().console_users.get(name)
    context: dict[str, Any] = {"view": view, "two": proof.needs_two(), **typed}
    if faults:
        return await again(template, faults, **context)
    return await page(template, faults=NONE, **context)


@blueprint.get("/<name>/disable")
async def ask_disable(name: str) -> Response:
    """`GET …/disable`: what it means."""
    return await _form("administrator_disable.html", name)


@blueprint.post("/<name>/disable")
async def disable(name: str) -> Response:
    """`POST …/disable`: shut out at once, after the own code."""
    faults = await proof.confirm()
    if faults:
        return await _form("administrator_disable.html", name, faults)
    try:
        await core().console_users.disable(session.actor(), name)
    except ApplianceError as exc:
        if exc.code not in _STATES:
            return await _form("administrator_disable.html", name, faults_of(exc))
    return go("administrators.one", name=name, done="administrator-disabled")


@blueprint.get("/<name>/enable")
async def ask_enable(name: str) -> Response:
    """`GET …/enable`: what it means."""
    return await _form("administrator_enable.html", name)


@blueprint.post("/<name>/enable")
async def enable(name: str) -> Response:
    """`POST …/enable`: let in again, after the own code.

    Raises:
        ApplianceError: `CONSOLE_USER_NOT_FOUND`.
    """
    faults = await proof.confirm()
    if faults:
        return await _form("administrator_enable.html", name, faults)
    try:
        await core().console_users.enable(session.actor(), name)
    except ApplianceError as exc:
        if exc.code not in _STATES:
            raise
    return go("administrators.one", name=name, done="administrator-enabled")


@blueprint.get("/<name>/sessions")
async def ask_end_sessions(name: str) -> Response:
    """`GET …/sessions`: what it means."""
    return await _form("administrator_sessions.html", name)


@blueprint.post("/<name>/sessions")
async def end_sessions(name: str) -> Response:
    """`POST …/sessions`: end them after the own code.

    One's own other sessions end without a code; the present one goes on.
    """
    mine = _mine(name)
    faults = NONE if mine else await proof.confirm()
    if faults:
        return await _form("administrator_sessions.html", name, faults)
    keep = session.token() if mine else ""
    await core().console_users.end_sessions(session.actor(), name, keep)
    if mine:
        return go("account.show", done="sessions-ended")
    return go("administrators.one", name=name, done="sessions-ended")


@blueprint.get("/<name>/tries")
async def ask_forget(name: str) -> Response:
    """`GET …/tries`: for somebody whom a stranger's guesses keep out."""
    return await _form("administrator_tries.html", name, address="")


@blueprint.post("/<name>/tries")
async def forget(name: str) -> Response:
    """`POST …/tries`: forget the wrong tries, after the own code."""
    address, faults = proof.known_address()
    faults = faults or await proof.confirm()
    if faults:
        typed = session.form().text("address")
        return await _form("administrator_tries.html", name, faults, address=typed)
    await core().failed_tries.forget_user(session.actor(), name, address)
    return go("administrators.one", name=name, done="forgotten")


@blueprint.get("/<name>/totp")
async def ask_totp(name: str) -> Response:
    """`GET …/totp`: for somebody whose telephone is lost."""
    return await _form("administrator_totp.html", name)


@blueprint.post("/<name>/totp")
async def reset_totp(name: str) -> Response:
    """`POST …/totp`: make a new one and show it, this once."""
    if _mine(name):
        return go("account.ask_totp")
    witness, faults = await proof.of_two()
    if faults:
        return await _form("administrator_totp.html", name, faults)
    made = await core().console_users.reset_totp(session.actor(), name, witness=witness)
    entry = authenticator_entry(made.totp_uri)
    return await page("administrator_totp_made.html", made=made, entry=entry)


@blueprint.get("/<name>/password")
async def ask_password(name: str) -> Response:
    """`GET …/password`: for somebody who forgot it."""
    return await _form("administrator_password.html", name)


@blueprint.post("/<name>/password")
async def set_password(name: str) -> Response:
    """`POST …/password`: set one that they change after."""
    if _mine(name):
        return go("account.ask_password")
    password, faults = new_password(name)
    if faults:
        faults = Faults({**faults.fields, **proof.incomplete_two()})
        return await _form("administrator_password.html", name, faults)
    witness, faults = await proof.of_two()
    if faults:
        return await _form("administrator_password.html", name, faults)
    await core().console_users.set_password(
        session.actor(), name, password, witness=witness
    )
    return go("administrators.one", name=name, done="password-set")


def new_password(name: str, *, present: bool = False) -> tuple[str, Faults]:
    """Read a new password that was typed twice; all that is wrong in its form.

    Args:
        name: of the administrator whose it will be.
        present: the form asks for the present password, too.
    """
    sent = session.form()
    password = sent.raw("password")
    wrong: dict[str, str] = {}
    if present and not sent.raw("present"):
        wrong["present"] = words.say("Write your present password.")
    try:
        core().console_users.check_password(password, name)
    except ApplianceError as exc:
        wrong |= faults_of(exc, {"password": "password"}).fields
    if password != sent.raw("again"):
        wrong["again"] = words.say("The two do not match.")
    # Only its form: a right code would be used up by a form that is refused.
    if wrong:
        wrong |= proof.incomplete_code()
    return password, Faults(wrong)
