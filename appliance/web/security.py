"""Headers that every answer carries, whatever made it."""

from collections.abc import Mapping

from quart import Response

_ALWAYS = {
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Content-Security-Policy": "default-src 'none'; frame-ancestors 'none'",
    "Cross-Origin-Resource-Policy": "same-origin",
    "X-Frame-Options": "DENY",
}
_POLICY = "Content-Security-Policy"
_OWN = frozenset({_POLICY, "Cross-Origin-Resource-Policy"})
_HSTS = "max-age=63072000"


def harden(response: Response, own: Mapping[str, str], *, https: bool) -> None:
    """Put the security headers on an answer.

    Args:
        response: changed in place; its own `Cache-Control`, CORP and
            `Content-Security-Policy` stand. Whoever sets a policy says there
            who may frame the page.
        own: the face's own, in place of the usual ones of the same name.
        https: the public address is https, so HSTS is told.

    Source: design §7.
    """
    laid = {**_ALWAYS, **own}
    if _POLICY in response.headers:
        del laid["X-Frame-Options"]
    for name, value in laid.items():
        if name not in _OWN or name not in response.headers:
            response.headers[name] = value
    if "Cache-Control" not in response.headers:
        response.headers["Cache-Control"] = "no-store"
    if https:
        response.headers["Strict-Transport-Security"] = _HSTS
    response.headers.pop("Server", None)
