"""The frame's page: who may frame it, and what it starts from.

A known session's page may be framed by its integrator's origins and nobody else,
also after its time. An unknown token gets words without any script, which anybody
may frame: there is nothing in it.

Source: spec "Iframe embedding"; decisions "expired or unknown token", "reload of
the frame"; research "Iframe: security headers".
"""

import re
from functools import partial
from http import HTTPStatus
from typing import Final

from quart import Blueprint, Response, g, render_template, request

from appliance.domain.appearance.png import logo_png
from appliance.domain.errors import ApplianceError, ErrorCode
from appliance.domain.integrators.integrators import FramePage, PageKind
from appliance.domain.text.urls import read_address
from appliance.web import brand, i18n, problems, request_log
from appliance.web.auth import public
from appliance.web.content_negotiation import wants_page
from appliance.web.server.client_address import client_address
from embed.core import core

blueprint = Blueprint("page", __name__)

_POLICY: Final = (
    "default-src 'none'; script-src 'self'; style-src 'self'; "
    "img-src 'self' blob: data:; font-src 'self'; connect-src 'self'; "
    "worker-src 'self'; base-uri 'none'; form-action 'none'; object-src 'none'; "
    "frame-ancestors {ancestors}"
)
_INERT: Final = (
    "default-src 'none'; style-src 'self'; img-src data:; base-uri 'none'; "
    "form-action 'none'; frame-ancestors *"
)
_PERMISSIONS: Final = (
    "camera=(self), microphone=(self), clipboard-read=(self), clipboard-write=(self), "
    "accelerometer=(), autoplay=(), display-capture=(), encrypted-media=(), "
    "fullscreen=(), geolocation=(), gyroscope=(), hid=(), magnetometer=(), midi=(), "
    "payment=(), picture-in-picture=(), publickey-credentials-get=(), "
    "screen-wake-lock=(), serial=(), usb=(), xr-spatial-tracking=()"
)
_FRAMED: Final = frozenset({"iframe", "frame", "embed", "object"})
_TOKEN_AT_MOST: Final = 256
_SHA256 = re.compile(r"[0-9a-f]{64}", re.ASCII)
_FOREVER: Final = "public, max-age=31536000, immutable"
_ISOLATED: Final = "require-corp"


@blueprint.get("/")
@public
async def home() -> Response:
    """`GET /`: what this address is, for a person who typed it.

    Raises:
        ApplianceError: `NOT_FOUND`, for a program.
    """
    if not wants_page():
        raise ApplianceError(ErrorCode.NOT_FOUND)
    return await _by_itself(HTTPStatus.OK)


@blueprint.get("/embed/")
@public
async def frame() -> Response:
    """`GET /embed/?sessionToken=` and, after a reload, `?s=`: the page."""
    token = request.args.get("sessionToken")
    if token is None and "s" not in request.args and wants_page():
        return await _by_itself(HTTPStatus.UNAUTHORIZED)
    page = await core().sessions.page(
        token[:_TOKEN_AT_MOST] if token is not None else None,
        request.args.get("s", "")[:_TOKEN_AT_MOST],
    )
    if page.kind is PageKind.UNKNOWN:
        return await _unknown()
    request_log.note(integrator=page.integrator_code)
    if token is not None:
        core().served.add(page.session_public_id)
    await _note_around(page, with_token=token is not None)
    html = await render_template(
        "frame.html",
        page=page,
        initial=_initial(page.integrator_name),
        modules=core().assets.modules,
        **_words(),
        boot=_boot(page, is_reloaded=token is None),
    )
    ancestors = " ".join(page.origins) or "'none'"
    # The contract's answer to an expired token; the page says it to its host too.
    expired = page.kind is PageKind.EXPIRED
    status = HTTPStatus.UNAUTHORIZED if expired else HTTPStatus.OK
    return _page(html, _POLICY.format(ancestors=ancestors), status)


def _initial(name: str) -> str:
    """What stands for an integrator without a logo: the first letter or digit."""
    return next((char for char in name if char.isalnum()), "·").upper()


def _words() -> dict[str, object]:
    """What every template of ours needs."""
    chosen = request.args.get("lang", "")
    lang = chosen if chosen in i18n.LANGUAGES else i18n.requested()
    return {
        "lang": lang,
        "t": partial(i18n.translate, lang),
        "base": core().assets.base,
    }


async def _words_alone(template: str, status: int, **values: object) -> Response:
    """A page that says something and does nothing: it needs no session."""
    settings = core().settings
    words = _words()
    html = await render_template(
        template,
        home=settings.web.base_url,
        installation=settings.installation,
        environment=settings.environment.value,
        mark=brand.MARK,
        **words,
        **values,
    )
    response = _page(html, _INERT, status)
    response.headers["Content-Language"] = str(words["lang"])
    return response


async def refuse(error: ApplianceError) -> Response:
    """Answer to an error: a page for a person's browser, else the usual problem.

    Args:
        error: raised anywhere at this address.
    """
    problem = problems.render(error, g.request_id, i18n.requested())
    if request.method not in {"GET", "HEAD"} or not wants_page():
        return problem
    return await _words_alone(
        "not_there.html",
        problem.status_code,
        error=error,
        reference=g.request_id,
    )


def _boot(page: FramePage, *, is_reloaded: bool) -> dict[str, object]:
    """What the page's modules start from; nothing of it is secret."""
    assets = core().assets
    return {
        "kind": page.kind.value,
        "session": page.session_public_id,
        # The token was stripped from the address: the frame was loaded again.
        "isReloaded": is_reloaded,
        "integrator": page.integrator_name,
        "origins": list(page.origins),
        "environment": page.environment.value,
        "prefix": page.event_prefix,
        "language": i18n.requested(),
        "maxDocumentBytes": core().settings.documents.limit_bytes,
        "statics": assets.base,
        "pdfjs": f"{assets.base}/pdfjs",
        "home": core().settings.web.base_url,
        "help": core().settings.help_url,
        "revocation": core().settings.revocation_url,
        "installation": core().settings.installation,
        "contact": core().settings.contact,
        "contactHref": core().settings.contact_href,
        "mailed": core().settings.mail.is_on,
    }


async def _by_itself(status: HTTPStatus) -> Response:
    """What the frame says to who opens it outside of a site, without a session."""
    return await _words_alone("by_itself.html", status)


async def _unknown() -> Response:
    return await _words_alone("unknown.html", HTTPStatus.UNAUTHORIZED)


def _page(html: str, policy: str, status: int) -> Response:
    response = Response(html, status=int(status))
    response.headers["Content-Type"] = "text/html; charset=utf-8"
    response.headers["Content-Security-Policy"] = policy
    response.headers["Content-Language"] = i18n.requested()
    response.headers["Permissions-Policy"] = _PERMISSIONS
    response.headers["X-Robots-Tag"] = "noindex, nofollow"
    # Hosts that isolate themselves can frame only what is isolated too.
    response.headers["Cross-Origin-Embedder-Policy"] = _ISOLATED
    response.headers["Cross-Origin-Resource-Policy"] = "cross-origin"
    return response


async def _note_around(page: FramePage, *, with_token: bool) -> None:
    """Note whose page frames this one, as far as the browser tells.

    A browser refuses a frame without a word to us: only here can an integrator
    learn that an origin of theirs is not registered. Anybody can write those headers,
    so only who has the token of a live session is noted, and not often; the console
    shows it as what it is, unverified.
    """
    if page.kind is not PageKind.LIVE:
        return
    if request.headers.get("Sec-Fetch-Dest", "") not in _FRAMED:
        return
    parts = read_address(request.headers.get("Referer", ""))
    if parts is None or parts.scheme not in {"http", "https"} or not parts.hostname:
        return
    origin = f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}".lower()
    if origin == core().settings.web.iframe_url:
        return
    if origin in page.origins:
        await core().sessions.note_seen(page.integrator_code, origin)
    elif with_token and core().tried.admits(client_address(), page.session_public_id):
        await core().sessions.note_blocked(page.integrator_code, origin)


@blueprint.get("/embed/logo/<sha256>.png")
@public
async def logo(sha256: str) -> Response:
    """`GET /embed/logo/{sha256}.png`: a logo, bounded when it was taken in."""
    found = None
    if _SHA256.fullmatch(sha256):
        found = await core().logos.picture(sha256)
    if found is None:
        return Response(b"", status=HTTPStatus.NOT_FOUND)
    response = Response(logo_png(found), content_type="image/png")
    response.headers["Cache-Control"] = _FOREVER
    return response


@blueprint.get("/embed/v/<version>/<path:name>")
@public
async def asset(version: str, name: str) -> Response:
    """`GET /embed/v/…`: a file that the page loads."""
    assets = core().assets
    found = assets.files.get(name) if version == assets.version else None
    if found is None:
        return Response(b"", status=HTTPStatus.NOT_FOUND)
    packed = found.packed if request.accept_encodings["gzip"] > 0 else None
    response = Response(found.content if packed is None else packed)
    response.headers["Content-Type"] = found.media_type
    response.headers["Cache-Control"] = _FOREVER
    response.headers["Vary"] = "Accept-Encoding"
    # A worker of an isolated page must say that it is isolated too.
    response.headers["Cross-Origin-Embedder-Policy"] = _ISOLATED
    if found.policy is not None:
        response.headers["Content-Security-Policy"] = found.policy
    if packed is not None:
        response.headers["Content-Encoding"] = "gzip"
    return response
