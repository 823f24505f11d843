"""Which representation a caller asks for (RFC 9110, 12.5.1)."""

from typing import Final

from quart import Response, request

from appliance.web.responses import OCTETS, PDF

_HTML: Final = "text/html"
_XHTML: Final = "application/xhtml+xml"
FILES: Final = frozenset(
    {
        PDF,
        "application/pem-certificate-chain",
        "application/x-pem-file",
        "application/pkix-cert",
        "application/pkix-crl",
        "application/ocsp-response",
        "application/timestamp-reply",
    }
)
"""Media types of files, which `application/octet-stream` may stand for."""


def prefers(media_type: str, over: str) -> bool:
    """Tell whether Accept names a type, and with more weight than another.

    A wildcard names nothing: most clients send one without meaning it.

    Args:
        media_type: the type asked about.
        over: the usual type.
    """
    weights = _named()
    weight = weights.get(media_type, 0.0)
    return weight > 0 and weight > weights.get(over, 0.0)


def wants_only(media_type: str) -> bool:
    """Tell whether Accept names this type and nothing else.

    Args:
        media_type: the type asked about.
    """
    return set(_named()) == {media_type}


async def as_octets(response: Response) -> Response:
    """Send a file as `application/octet-stream` to a caller that asks for that.

    Many generated clients know no other name for a file. Caches are told that the
    answer depends on Accept.

    Args:
        response: an answer of the API; all but those of `FILES` stay as they are.
    """
    media_type = response.mimetype
    if media_type not in FILES:
        return response
    if response.cache_control.public:
        response.vary.add("Accept")
    if prefers(OCTETS, over=media_type):
        response.headers["Content-Type"] = OCTETS
    return response


def wants_page() -> bool:
    """Tell whether a person's browser asks, to whom a page says more than JSON.

    HTML has to be all that Accept names, or be named with XHTML as browsers do: some
    HTTP libraries name `text/html` among others without meaning it. Who brings
    credentials is a program.
    """
    if "Authorization" in request.headers or "X-Api-Key" in request.headers:
        return False
    named = _named()
    if named.keys() - {_HTML, _XHTML} and _XHTML not in named:
        return False
    return named.get(_HTML, 0.0) > max(
        named.get("application/json", 0.0), named.get("application/problem+json", 0.0)
    )


def _named() -> dict[str, float]:
    """The ranges that Accept names, with their weights."""
    return {
        value.partition(";")[0].strip().lower(): quality
        for value, quality in request.accept_mimetypes
    }
