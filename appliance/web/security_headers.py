"""Headers that every answer carries, whatever made it."""

from collections.abc import Mapping

from quart import Response

_POLICY = "Content-Security-Policy"
_ALWAYS = {
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    _POLICY: "default-src 'none'; frame-ancestors 'none'",
    "Cross-Origin-Resource-Policy": "same-origin",
}
_OWN = frozenset({_POLICY, "Cross-Origin-Resource-Policy"})
"""Unless the answer brings its own: a page, or what a page may load."""
_UNFRAMED = "frame-ancestors 'none'"
_HSTS = "max-age=63072000"


def harden(response: Response, own: Mapping[str, str], *, https: bool) -> None:
    """Put the security headers on an answer.

    Args:
        response: changed in place; its own `Cache-Control`,
            `Content-Security-Policy` and `Cross-Origin-Resource-Policy` stand.
        own: the face's own, in place of the usual ones of the same name.
        https: the public address is https, so HSTS is told.

    Source: design §7.
    """
    for name, value in {**_ALWAYS, **own}.items():
        if name not in _OWN or name not in response.headers:
            response.headers[name] = value
    if _UNFRAMED in response.headers[_POLICY]:
        # For browsers that know no `frame-ancestors`; it cannot name origins.
        response.headers["X-Frame-Options"] = "DENY"
    if "Cache-Control" not in response.headers:
        response.headers["Cache-Control"] = "no-store"
    if https:
        response.headers["Strict-Transport-Security"] = _HSTS
    response.headers.pop("Server", None)
