"""Calls from other origins' pages: a list of exact origins, bearer only.

Credentials (cookies) are never allowed, so a listed page can do nothing that
the token it holds could not do from anywhere.
"""

from collections.abc import Collection
from http import HTTPStatus
from typing import Final

from quart import Request, Response, g

PATHS: Final = ("/solicitudes", "/auth")
"""Where other origins may call (decisions "CORS")."""
_EXPOSED = (
    "Location, Link, Retry-After, X-Request-Id, ETag, Content-Disposition, "
    "Accept-Ranges, Content-Range"
)
_HEADERS = (
    "Authorization, Content-Type, Accept-Language, If-Match, Idempotency-Key, "
    "Range, If-Range"
)
_METHODS = "GET, HEAD, POST"
_MAX_AGE_S = 600


def allow(request: Request, response: Response, origins: Collection[str]) -> None:
    """Put the CORS headers on an answer, where its origin is listed.

    Args:
        request: whose `Origin` is looked at.
        response: changed in place.
        origins: exact origins (`web.cors_origins`); those of `open_to` come to them.

    Source: Fetch standard, "CORS protocol"; decisions "CORS".
    """
    path = request.path
    if not any(path == one or path.startswith(f"{one}/") for one in PATHS):
        return
    response.headers.add("Vary", "Origin")
    origin = request.headers.get("Origin")
    opened: Collection[str] = g.get("cors_origins", ())
    if origin is None or not (origin in origins or origin in opened):
        return
    response.headers["Access-Control-Allow-Origin"] = origin
    # What the page may read, it may read from its own origin's process too.
    response.headers["Cross-Origin-Resource-Policy"] = "cross-origin"
    if is_preflight(request):
        response.headers["Access-Control-Allow-Methods"] = _METHODS
        response.headers["Access-Control-Allow-Headers"] = _HEADERS
        response.headers["Access-Control-Max-Age"] = str(_MAX_AGE_S)
    else:
        response.headers["Access-Control-Expose-Headers"] = _EXPOSED


def open_to(origins: frozenset[str]) -> None:
    """Let pages of more origins read the present answer.

    Args:
        origins: exact; for this answer alone.
    """
    g.cors_origins = origins


def is_preflight(request: Request) -> bool:
    """Tell whether a request is a browser's question before the real one."""
    return (
        request.method == "OPTIONS"
        and "Access-Control-Request-Method" in request.headers
    )


def options(methods: Collection[str]) -> Response:
    """Answer OPTIONS: what the address can do, and nothing about anybody.

    Args:
        methods: that the address answers.
    """
    response = Response(b"", status=HTTPStatus.NO_CONTENT)
    response.headers["Allow"] = ", ".join(sorted(methods))
    del response.headers["Content-Type"]
    return response
