"""The shell of every HTTP face: closed by default, one shape of errors.

    app = create_app("rubrica.api", settings=settings, authenticate=tokens.verify)
    app.register_blueprint(blueprint)

Faces bring blueprints; what holds for all routes is here, so that a new route
is authenticated, logged, hardened and strict without doing anything for it.
"""

import secrets
import time
from collections.abc import Awaitable, Callable, Collection, Container, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from hypercorn.typing import ASGIReceiveCallable, ASGISendCallable, WebsocketScope
from quart import Quart, Response, g, request
from quart.globals import request_ctx
from quart.typing import ResponseReturnValue
from structlog.contextvars import bind_contextvars
from werkzeug.exceptions import MethodNotAllowed
from werkzeug.routing import BaseConverter

from appliance.admission.work_owner import STRANGERS, WORK_OWNER, WorkOwner
from appliance.domain.errors import (
    HEADER_OR_LENGTH,
    HEADER_REPEATED,
    HEADERS_TOO_MANY,
    ApplianceError,
    BadHeaderError,
    ErrorCode,
)
from appliance.domain.requests.request import Signer
from appliance.settings import Settings
from appliance.web import (
    auth,
    cors,
    i18n,
    problems,
    request_log,
    security_headers,
)
from appliance.web import body as bodies
from appliance.web.body import BoundedRequest, Budget, Limits
from appliance.web.pages import read_templates
from appliance.web.path_routing import (
    PathRoutedApp,
    check_host,
    slash_mended,
    unrouted,
)
from appliance.web.server.client_address import (
    Proxies,
    client_address,
    full_address,
)
from appliance.web.server.exchange import Exchange

_ONCE: Final = (
    "Authorization",
    "Content-Type",
    "Content-Length",
    "Content-Encoding",
    "If-Match",
    "Idempotency-Key",
    "X-Api-Key",
    "Origin",
    "Host",
)
"""Headers that may come once; two of one are two meanings."""
_HEADERS_AT_MOST = 100


class RefusedWebsocket:
    """Closes every WebSocket before it opens (the server answers 403).

    No face speaks WebSocket, and the framework would run request handlers
    without a request.

    Args:
        app: unused.
        scope: unused.
    """

    def __init__(self, app: Quart, scope: WebsocketScope) -> None:
        del app, scope

    async def __call__(
        self, receive: ASGIReceiveCallable, send: ASGISendCallable
    ) -> None:
        """Take the handshake and refuse it."""
        await receive()
        await send({"type": "websocket.close", "code": 1008, "reason": None})


class Digits(BaseConverter):
    """`<digits:name>` in a route: ASCII digits, of any number, as text.

    The framework's own `int` fails on numbers of more than 4,300 digits.
    """

    regex = "[0-9]+"


@dataclass(frozen=True, slots=True)
class HttpProfile:
    """What one face does in its own way; all else is the same for all."""

    url: str
    """Its public address."""
    admit: Callable[[bool], Awaitable[ResponseReturnValue | None]]
    """Called before every view with whether it is marked public; raises or
    answers for who may not go on."""
    refuse: Callable[[ApplianceError], Awaitable[Response]]
    """Makes the answer to an error."""
    headers: Mapping[str, str] = field(default_factory=dict)
    """Security headers, laid over those of every answer."""
    known: Container[str] = ()
    """Addresses from which somebody has proven who they are of late."""


def rest_face(settings: Settings) -> HttpProfile:
    """The face of programs: a bearer in, `application/problem+json` out.

    Args:
        settings: whose `web.base_url` is its address.
    """

    async def refuse(error: ApplianceError) -> Response:
        return problems.render(error, g.request_id, i18n.requested())

    return HttpProfile(settings.web.base_url, auth.admit, refuse)


def create_app(
    name: str,
    *,
    settings: Settings,
    authenticate: auth.Authenticate | None = None,
    face: HttpProfile | None = None,
) -> Quart:
    """Make a face without routes.

    Args:
        name: import name, for the framework.
        settings: limits, addresses, allowed origins.
        authenticate: turns a bearer into its person; without it, no bearer
            is anybody's.
        face: who is let in, and how errors look; `rest_face` if None.

    Returns:
        An application on which blueprints are registered.

    Source: design §7.
    """
    i18n.load()
    face = face or rest_face(settings)
    app: Quart = PathRoutedApp(name, static_folder=None)
    app.jinja_options = {"loader": read_templates(Path(app.root_path) / "templates")}
    limits = Limits(
        json=settings.web.body_limit_bytes,
        document=settings.documents.limit_bytes,
        timeout_s=settings.web.body_timeout_s,
        bodies=settings.web.bodies_limit_bytes,
    )
    app.request_class = BoundedRequest
    app.asgi_http_class = Exchange
    app.asgi_websocket_class = RefusedWebsocket
    app.config["RESPONSE_TIMEOUT"] = None
    # An address is or is not; of its last slash alone we remind: see `_slashed`.
    app.url_map.strict_slashes = True
    app.url_map.merge_slashes = False
    app.url_map.redirect_defaults = False
    app.url_map.converters["digits"] = Digits
    app.extensions["rubrica.limits"] = limits
    app.extensions["rubrica.budget"] = Budget(
        settings.web.bodies_limit_bytes, limits.multipart
    )
    app.extensions["rubrica.proxies"] = Proxies(
        settings.web.trusted_proxies or (), settings.web.client_address_header
    )
    app.extensions["rubrica.authenticate"] = authenticate or _nobody
    _install(app, settings, face)
    return app


def _install(app: Quart, settings: Settings, face: HttpProfile) -> None:
    """Hang what holds for every request on the application."""
    origins = frozenset(settings.web.cors_origins)
    https = face.url.startswith("https:")

    async def guard() -> ResponseReturnValue | None:
        _begin()
        # Until somebody is known by more: the address stands for who is there, also
        # where a page says what was wrong with a call's headers.
        address = f"address:{client_address()}"
        group = "" if client_address() in face.known else STRANGERS
        WORK_OWNER.set(WorkOwner(address, address, group))
        _check_headers()
        if (answer := unrouted(request.scope["path"])) is not None:
            request.routing_exception = answer
        if request.routing_exception is not None:
            return slash_mended(
                request.routing_exception,
                lambda endpoint: auth.is_public(app.view_functions.get(endpoint)),
            )
        if request.method == "OPTIONS" and request.url_rule is not None:
            # An address may have a rule for each of its methods.
            return cors.options(_methods_here())
        return await face.admit(
            auth.is_public(app.view_functions.get(request.endpoint or ""))
        )

    async def refuse(exc: Exception) -> Response:
        _begin()
        error = problems.of_exception(exc)
        if error.code is ErrorCode.INTERNAL:
            request_log.cause(exc)
        request_log.note(code=error.code.value)
        response = await face.refuse(error)
        _keep_allow(exc, response)
        return response

    async def finish(response: Response) -> Response:
        _begin()
        security_headers.harden(response, face.headers, https=https)
        cors.allow(request, response, origins)
        response.headers["X-Request-Id"] = g.request_id
        request_log.note(status=response.status_code, bytes=response.content_length)
        return response

    async def end(exc: BaseException | None) -> None:
        del exc
        _begin()
        bodies.release()
        request_log.emit((time.perf_counter() - g.began) * 1000, full_address())

    app.before_request(guard)
    app.register_error_handler(Exception, refuse)
    app.after_request(finish)
    app.teardown_request(end)


def _methods_here() -> Collection[str]:
    """What the present address answers."""
    adapter = request_ctx.url_adapter
    return () if adapter is None else list(adapter.allowed_methods())


def _check_headers() -> None:
    """Refuse headers that proxies and we could read differently.

    Raises:
        ApplianceError: `BAD_HEADER`: there are too many.
        BadHeaderError: one is repeated, or goes with none of the others.

    Source: RFC 9112, 6.1 and 6.3.
    """
    # As they came: the framework adds one of its own to its list.
    if len(tuple(request.scope["headers"])) > _HEADERS_AT_MOST:
        raise ApplianceError(
            ErrorCode.BAD_HEADER,
            params={"most": _HEADERS_AT_MOST},
            sentence=HEADERS_TOO_MANY,
        )
    headers = request.headers
    for name in _ONCE:
        if len(headers.getlist(name)) > 1:
            raise BadHeaderError(name, HEADER_REPEATED)
    check_host(headers.get("Host", ""))
    if "Transfer-Encoding" in headers and "Content-Length" in headers:
        raise BadHeaderError("Transfer-Encoding", HEADER_OR_LENGTH)


async def _nobody(bearer: str, named: object) -> Signer:
    """The person of a bearer where no bearer is anybody's.

    Raises:
        ApplianceError: `TOKEN_INVALID`, always.
    """
    del bearer, named
    raise ApplianceError(ErrorCode.TOKEN_INVALID)


def _begin() -> None:
    """Give the present request its id, once."""
    if "request_id" not in g:
        g.request_id = secrets.token_hex(12)
        # Each call is a task with a context of its own: it ends with it.
        bind_contextvars(requestId=g.request_id)
        g.began = time.perf_counter()


def _keep_allow(exc: Exception, response: Response) -> None:
    """Keep the Allow header of a 405 (RFC 9110, 15.5.6)."""
    if isinstance(exc, MethodNotAllowed) and exc.valid_methods:
        response.headers["Allow"] = ", ".join(sorted(exc.valid_methods))
