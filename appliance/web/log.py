"""One wide event for each request, of listed fields and nothing else.

Query strings, bodies and headers are never logged: `clave`, passwords and
tokens travel there. Addresses of the log are routes, not paths.
"""

from typing import Final

import structlog
from quart import g, request

FIELDS: Final = frozenset(
    {
        "requestId",
        "method",
        "route",
        "status",
        "code",
        "ms",
        "bytes",
        "address",
        "integrator",
        "person",
        "solicitudId",
        "cause",
    }
)
"""All that an event may say. `cause` is the type of an unknown error."""

_log = structlog.stdlib.get_logger("rubrica.http")
EVENT: Final = "request"
GONE: Final = 499
"""Logged, never sent: the client left before the answer."""


def note(**fields: object) -> None:
    """Add fields to the present request's event; unlisted ones are a fault.

    Args:
        fields: among `FIELDS`.

    Raises:
        KeyError: a name that is not listed.
    """
    unlisted = fields.keys() - FIELDS
    if unlisted:
        raise KeyError(*sorted(unlisted))
    g.event = {**g.get("event", {}), **fields}


def cause(exc: Exception) -> None:
    """Write down an unknown error with its trace, under the request's id.

    Args:
        exc: what was raised.
    """
    note(cause=type(exc).__name__)
    _log.error("unknown_error", requestId=g.request_id, exc_info=exc)


def emit(ms: float, address: str) -> None:
    """Write the present request's event.

    Args:
        ms: time it took, in milliseconds.
        address: where it came from.
    """
    rule = request.url_rule
    event = {
        "requestId": g.request_id,
        "method": request.method if rule is not None else request.method[:16],
        "route": rule.rule if rule is not None else "(none)",
        "status": GONE,
        **g.get("event", {}),
        "ms": round(ms, 1),
        "address": address,
    }
    _log.info(EVENT, **event)
