"""Headers that every answer carries, whatever made it."""

from quart import Response

_ALWAYS = {
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
}
_POLICY = "Content-Security-Policy"
_CLOSED = {
    _POLICY: "default-src 'none'; frame-ancestors 'none'",
    "X-Frame-Options": "DENY",
}
_OWN_ORIGIN = "Cross-Origin-Resource-Policy"
_HSTS = "max-age=63072000"


def harden(response: Response, *, https: bool) -> None:
    """Put the security headers on an answer.

    Args:
        response: changed in place; its own `Cache-Control`, CORP and
            `Content-Security-Policy` stand. Whoever sets a policy says there
            who may frame it.
        https: the public address is https, so HSTS is told.

    Source: design §7.
    """
    for name, value in _ALWAYS.items():
        response.headers[name] = value
    if _POLICY not in response.headers:
        for name, value in _CLOSED.items():
            response.headers[name] = value
    response.headers.setdefault(_OWN_ORIGIN, "same-origin")
    if "Cache-Control" not in response.headers:
        response.headers["Cache-Control"] = "no-store"
    if https:
        response.headers["Strict-Transport-Security"] = _HSTS
    response.headers.pop("Server", None)
