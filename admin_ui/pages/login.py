"""Signing in and out, and the language."""

from http import HTTPStatus

from quart import Blueprint, Response, g, redirect, request, url_for

from admin_ui import kept_form, session, words
from admin_ui.core import core
from admin_ui.render import NONE, Faults, go, page
from appliance.domain.errors import ApplianceError, ErrorCode
from appliance.identity.console_login import SignIn
from appliance.web import i18n
from appliance.web.auth import public
from appliance.web.server.client_address import client_address

blueprint = Blueprint("login", __name__, url_prefix="/admin")
_EXPECTED = frozenset({ErrorCode.LOGIN_FAILED, ErrorCode.RATE_LIMITED})


@blueprint.get("/login")
@public
async def show() -> Response:
    """`GET /admin/login`."""
    if g.console is not None:
        return go("home.show")
    return await _form(NONE, "", request.args.get("next", ""))


@blueprint.post("/login")
@public
async def enter() -> Response:
    """`POST /admin/login`: name, password and code together.

    Raises:
        ApplianceError: what is not the form's fault.
    """
    sent = session.form()
    name, wanted = sent.text("name"), sent.text("next")
    typed = SignIn(name, sent.raw("password"), sent.text("code"))
    try:
        made = await core().console.sign_in(typed, client_address())
    except ApplianceError as exc:
        if exc.code not in _EXPECTED:
            raise
        return await _refused(exc, name, wanted)
    response = redirect(session.local_path(wanted), HTTPStatus.SEE_OTHER)
    session.remember(response, made.token)  # type: ignore[arg-type]  # Quart's own
    return response  # type: ignore[return-value]  # Quart's own


async def _refused(exc: ApplianceError, name: str, wanted: str) -> Response:
    """One answer for a wrong name, password or code."""
    limited = exc.code is ErrorCode.RATE_LIMITED
    told = (
        words.error(exc)
        if limited
        else words.say("The name, the password or the code is wrong. Check all three.")
    )
    status = (
        HTTPStatus.TOO_MANY_REQUESTS if limited else HTTPStatus.UNPROCESSABLE_ENTITY
    )
    response = await _form(Faults(general=told), name, wanted, status)
    if limited:
        response.headers["Retry-After"] = str(exc.extras.get("retryAfter", 60))
    return response


async def _form(
    faults: Faults, name: str, wanted: str, status: HTTPStatus = HTTPStatus.OK
) -> Response:
    return await page(
        "login.html",
        status,
        faults=faults,
        name=name,
        wanted=wanted,
        over=bool(g.get("session_over")),
        late=kept_form.outcome(),
    )


@blueprint.post("/logout")
async def leave() -> Response:
    """`POST /admin/logout`."""
    await core().console.sign_out(request.cookies.get(session.COOKIE, ""))
    response = go("login.show")
    session.forget(response)
    # Nothing of what was shown stays behind in this browser.
    response.headers["Clear-Site-Data"] = '"cache"'
    return response


@blueprint.post("/language")
@public
async def choose_language() -> Response:
    """`POST /admin/language`: Spanish or English from now on.

    Raises:
        ApplianceError: `FIELD_INVALID`.
    """
    sent = session.form()
    chosen = sent.text("lang")
    if chosen not in i18n.LANGUAGES:
        raise ApplianceError(ErrorCode.FIELD_INVALID, params={"field": "lang"})
    back = sent.text("back")
    where = back if back == url_for("login.show") else session.local_path(back)
    response: Response = redirect(where, HTTPStatus.SEE_OTHER)  # type: ignore[assignment]  # Quart's own
    response.set_cookie(
        words.LANGUAGE_COOKIE,
        chosen,
        max_age=31_536_000,
        path="/",
        secure=True,
        httponly=True,
        samesite="Strict",
    )
    return response
