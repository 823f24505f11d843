"""Headers that every answer carries, whatever made it."""

from quart import Response

_ALWAYS = {
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
}
_CLOSED = {
    "Content-Security-Policy": "default-src 'none'; frame-ancestors 'none'",
    "Cross-Origin-Resource-Policy": "same-origin",
}
"""Unless the answer brings its own: a page, or what a page may load."""
_UNFRAMED = "frame-ancestors 'none'"
_HSTS = "max-age=63072000"


def harden(response: Response, *, https: bool) -> None:
    """Put the security headers on an answer.

    Args:
        response: changed in place; its own `Cache-Control`,
            `Content-Security-Policy` and `Cross-Origin-Resource-Policy` stand.
        https: the public address is https, so HSTS is told.

    Source: design §7.
    """
    for name, value in _ALWAYS.items():
        response.headers[name] = value
    for name, value in _CLOSED.items():
        response.headers.setdefault(name, value)
    if _UNFRAMED in response.headers["Content-Security-Policy"]:
        # For browsers that know no `frame-ancestors`; it cannot name origins.
        response.headers["X-Frame-Options"] = "DENY"
    if "Cache-Control" not in response.headers:
        response.headers["Cache-Control"] = "no-store"
    if https:
        response.headers["Strict-Transport-Security"] = _HSTS
    response.headers.pop("Server", None)
