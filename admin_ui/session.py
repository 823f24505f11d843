"""Who is at the console: a cookie, and proof that the console's own page asks.

The cookie is `__Host-`: bound to this host and to secure transport. A change
needs more: the browser's word that one of our pages sends it, and the token
that each of our forms carries.
"""

from dataclasses import fields
from http import HTTPStatus
from typing import TYPE_CHECKING, Final, TypeVar
from urllib.parse import quote, urlencode

from quart import Response, current_app, g, redirect, request, url_for
from quart.typing import ResponseReturnValue
from werkzeug.exceptions import HTTPException

from admin_ui.core import core
from appliance.domain.errors import ApplianceError, ErrorCode
from appliance.domain.integrators.integrators import ConsoleSession
from appliance.domain.text.urls import read_address
from appliance.web import body, forms, request_log

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

COOKIE: Final = "__Host-rubrica-console"
CSRF_FIELD: Final = "csrf"
CSRF_HEADER: Final = "X-CSRF-Token"
_SAFE: Final = frozenset({"GET", "HEAD", "OPTIONS"})
_UPLOADS = "__uploads__"
_IN_ADDRESSES: Final = "/?#[]@!$&'()*+,;=:%"
"""What stands in an address as it is (RFC 3986, 2.2), and what is quoted already."""
_View = TypeVar("_View")
_Typed = TypeVar("_Typed", bound="DataclassInstance")


def uploads(view: _View) -> _View:
    """Mark a view whose form brings files.

    Args:
        view: the view; a route decorator goes above this mark.
    """
    setattr(view, _UPLOADS, True)
    return body.brings_document(view)


async def admit(public: bool) -> ResponseReturnValue | None:  # noqa: FBT001 (Face.admit)
    """Let a request to a view through, or answer in its place.

    Args:
        public: whether the view needs nobody signed in.

    Raises:
        ApplianceError: `ORIGIN_REFUSED`, `CSRF_REFUSED`, and those of a form
            that cannot be read.

    Source: design §7; research "/admin".
    """
    changing = request.method not in _SAFE
    if changing:
        _check_origin()
    g.console = await _signed_in()
    if g.console is None and not public:
        return _to_login()
    if g.console is not None:
        body.hold_as({f"user {g.console.user.name}": body.PARTY_PART})
    if changing:
        view = current_app.view_functions.get(request.endpoint or "")
        g.form = await forms.read(files=getattr(view, _UPLOADS, False))
        if g.console is not None:
            _check_csrf(g.console, g.form)
    return None


def current() -> ConsoleSession:
    """The session of the administrator who is asking."""
    session: ConsoleSession = g.console
    return session


def actor() -> str:
    """The administrator who is asking, as the audit names them."""
    return current().user.actor


def token() -> str:
    """The cookie's value of the present request."""
    return request.cookies.get(COOKIE, "")


def form() -> forms.Form:
    """The form of the present request, checked to come from a page of ours."""
    sent: forms.Form = g.form
    return sent


def typed(fields_of: type[_Typed]) -> _Typed:
    """Read the text fields of the present request's form.

    A page passes the same class to its template on GET and after a fault, so that
    the template finds every field on both.

    Args:
        fields_of: dataclass whose fields are all `str` and named as in the form; its
            defaults are the values of the form before it is filled in.
    """
    sent = form()
    return fields_of(**{each.name: sent.text(each.name) for each in fields(fields_of)})


async def _signed_in() -> ConsoleSession | None:
    """Whose cookie this is; nobody's when it is over or unknown.

    Raises:
        ApplianceError: `STORE_UNAVAILABLE`.
    """
    token = request.cookies.get(COOKIE, "")
    if not token:
        return None
    try:
        session = await core().console.by_token(token, active=not is_partial())
    except ApplianceError as exc:
        if exc.code not in {ErrorCode.TOKEN_INVALID, ErrorCode.TOKEN_EXPIRED}:
            raise
        g.session_over = True
        return None
    request_log.note(user=session.user.name)
    return session


async def known() -> ConsoleSession | None:
    """Whose cookie this is, where a page only looks different by it."""
    try:
        return await _signed_in()
    except ApplianceError:
        return None


def _check_origin() -> None:
    """Demand the browser's word that a page of the console itself asks.

    Raises:
        ApplianceError: `ORIGIN_REFUSED`.

    Source: Fetch Metadata, "Sec-Fetch-Site"; Fetch, "Origin header".
    """
    site = request.headers.get("Sec-Fetch-Site")
    origin = request.headers.get("Origin")
    ours = core().settings.web.admin_url
    if site is None and origin is None:
        raise ApplianceError(ErrorCode.ORIGIN_REFUSED, params={"url": ours})
    if site not in {None, "same-origin"} or origin not in {None, ours}:
        raise ApplianceError(ErrorCode.ORIGIN_REFUSED, params={"url": ours})


def _check_csrf(session: ConsoleSession, sent: forms.Form) -> None:
    """Demand the token that each form of this session carries.

    Raises:
        ApplianceError: `CSRF_REFUSED`.
    """
    shown = request.headers.get(CSRF_HEADER) or sent.raw(CSRF_FIELD)
    if not core().console.is_own_form(session, shown):
        raise ApplianceError(ErrorCode.CSRF_REFUSED)


def _to_login() -> ResponseReturnValue:
    """Send a browser to the sign-in, and back here after it."""
    address = url_for("login.show")
    if page := asked_page():
        address += "?" + urlencode({"next": page})
    if not is_partial():
        return redirect(address, HTTPStatus.SEE_OTHER)
    # A script follows redirects silently and would show the login in a corner.
    response = Response(b"", status=HTTPStatus.UNAUTHORIZED)
    response.headers["HX-Redirect"] = address
    return response


def asked_page() -> str:
    """The page that the browser shows or wants; empty where it does not tell.

    Of a form that was sent, and of a part of a page, it is the page they stand in.
    """
    if request.method == "GET" and not is_partial():
        return request.full_path.rstrip("?")
    shown = request.headers.get("HX-Current-URL") or request.headers.get("Referer", "")
    ours = core().settings.web.admin_url
    path = shown.removeprefix(ours).partition("#")[0]
    if not shown.startswith(f"{ours}/admin/"):
        return ""
    try:
        current_app.url_map.bind("").match(path.partition("?")[0], method="GET")
    except HTTPException:
        return ""
    return path


def is_partial() -> bool:
    """Whether a script asks for a part of a page."""
    return request.headers.get("HX-Request") == "true"


def local_path(text: str) -> str:
    """An address within the console, or the home page for any other.

    Args:
        text: where somebody wants to go after signing in.
    """
    parts = read_address(text)
    plain = text.isprintable() and "\\" not in text
    if parts is None or parts.scheme or parts.netloc or not plain:
        return url_for("home.show")
    if not text.startswith("/admin/"):
        return url_for("home.show")
    # A header carries ASCII alone.
    return quote(text, safe=_IN_ADDRESSES)


def remember(response: Response, token: str) -> None:
    """Give the browser its session.

    Args:
        response: changed in place.
        token: of the session.
    """
    # No Max-Age: it goes with the browser, and is over on the server anyway.
    response.set_cookie(
        COOKIE, token, path="/", secure=True, httponly=True, samesite="Strict"
    )


def forget(response: Response) -> None:
    """Take the session from the browser.

    Args:
        response: changed in place.
    """
    response.delete_cookie(
        COOKIE, path="/", secure=True, httponly=True, samesite="Strict"
    )
