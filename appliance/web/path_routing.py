"""Routes that follow from the path alone, whatever the `Host` header says.

Addresses of this service come from its settings and never from that header.
"""

import re
from collections.abc import Callable
from http import HTTPStatus
from typing import Final
from urllib.parse import quote

from quart import Quart, Response, request
from quart.globals import request_ctx
from quart.wrappers import BaseRequestWebsocket
from werkzeug.exceptions import NotFound
from werkzeug.routing import MapAdapter, RequestRedirect

from appliance.domain.errors import HEADER_MALFORMED, BadHeaderError

_LABEL: Final = r"[A-Za-z0-9_](?:[A-Za-z0-9_-]{0,61}[A-Za-z0-9_])?"
_HOST: Final = re.compile(
    rf"(?:{_LABEL}(?:\.{_LABEL})*\.?|\[[0-9A-Fa-f:.]{{2,45}}\])(?::[0-9]{{0,5}})?",
    re.ASCII,
)
_LONGEST: Final = 262
"""A name of 255 characters, a colon and a port."""
_ROUTED: Final = "localhost"
"""In place of the header, which the framework would parse, and fail at."""
_READING: Final = ("GET", "HEAD")


class PathRoutedApp(Quart):
    """An application whose routing reads no `Host` header."""

    def create_url_adapter(
        self, request: BaseRequestWebsocket | None
    ) -> MapAdapter | None:
        """Bind the routes to the path of a request.

        Args:
            request: None outside of a request.
        """
        if request is None:
            return super().create_url_adapter(None)
        return self.url_map.bind(
            _ROUTED,
            url_scheme=request.scheme,
            default_method=request.method,
            path_info=request.path,
            query_args=request.query_string.decode("latin-1"),
        )


def check_host(host: str) -> None:
    """Refuse what is neither a name nor an address; no header at all is right.

    Args:
        host: the header's value.

    Raises:
        BadHeaderError: it is malformed.

    Source: RFC 9112, 3.2; RFC 9110, 7.2; RFC 1035, 2.3.4 (labels of 63 octets).
    """
    if host and (len(host) > _LONGEST or not _HOST.fullmatch(host)):
        raise BadHeaderError("Host", HEADER_MALFORMED)


def unrouted(path: str) -> NotFound | None:
    """The answer to a path that begins with two slashes or has a NUL, else None.

    The framework leaves out all slashes but one, and so finds a route. A proxy's rule
    for `/healthz` would not see that `//healthz` is the same. Nothing that is stored
    has a NUL in its name: PostgreSQL fails where it is asked for such a text.

    Args:
        path: of the request, decoded, as it came.
    """
    return NotFound() if path.startswith("//") or "\0" in path else None


def slash_mended(
    fault: Exception, is_for_anybody: Callable[[str], bool]
) -> Response | None:
    """The way to a page whose address has a last slash too few, or one too many.

    It is relative. The framework would make it of the `Host` header and of the scheme
    of the connection: another one than the caller's behind a proxy, or of somebody
    else's choice. What stands in the query goes nowhere else.

    Args:
        fault: what the routing of the present request raised.
        is_for_anybody: tells of an endpoint whether it answers without a bearer: a
            slash too many is mended for people who typed it, not for programs.

    Returns:
        A redirection (308), or None where a slash is not the matter.
    """
    if isinstance(fault, RequestRedirect):
        last = quote(request.path.rpartition("/")[2])
        return _redirected(f"./{last}/")
    adapter, path = request_ctx.url_adapter, request.scope["path"]
    bare = path.rstrip("/")
    if (
        isinstance(fault, NotFound)
        and adapter is not None
        and bare
        and path == f"{bare}/"
        and request.method in _READING
        and adapter.test(bare, request.method)
    ):
        endpoint, _ = adapter.match(bare, request.method)
        if is_for_anybody(endpoint):
            return _redirected(f"../{quote(bare.rpartition('/')[2])}")
    return None


def _redirected(to: str) -> Response:
    query = request.query_string.decode("ascii", "replace")
    response = Response(b"", status=HTTPStatus.PERMANENT_REDIRECT)
    response.headers["Location"] = f"{to}?{query}" if query else to
    return response
