"""One wide event for each request, of listed fields and nothing else.

Query strings, bodies and headers are never logged: `clave`, passwords and
tokens travel there. Addresses of the log are routes, not paths.
"""

import traceback
from http import HTTPStatus
from typing import Final

import structlog
from quart import g, request

from appliance.metrics import metrics
from appliance.web.error_text import error_text

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
        "session",
        "person",
        "user",
        "solicitudId",
        "proceso",
        "documentoId",
        "webhook",
        "entrega",
        "lote",
        "firmadas",
        "fallidas",
        "credential",
        "cause",
        "pageError",
        "pageReference",
    }
)
"""All that an event may say. `cause` is the type of an unknown error."""

_log = structlog.stdlib.get_logger("rubrica.http")
EVENT: Final = "request"
UNKNOWN: Final = "unknown_error"
_PROBES: Final = frozenset({"/healthz", "/readyz", "/metrics"})
GONE: Final = 499
"""Logged, never sent: the client left before the answer."""
_METHODS: Final = frozenset(
    {"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"}
)
_MS: Final = 1000


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
    """Write down an unknown error and where it came from, under the request's id.

    Args:
        exc: what was raised.
    """
    note(cause=type(exc).__name__)
    _log.error(UNKNOWN, requestId=g.request_id, trace=trace(exc))


def trace(exc: BaseException) -> str:
    """Tell where an error came from, with its text as far as it quotes no value.

    Args:
        exc: what was raised; its causes are told too, the first one first.
    """
    told = []
    link: BaseException | None = exc
    while link is not None:
        frames = traceback.extract_tb(link.__traceback__)
        lines = [f"{f.filename}:{f.lineno} in {f.name}: {f.line}" for f in frames]
        name = f"{type(link).__module__}.{type(link).__name__}"
        text = error_text(link)
        told.append("\n  ".join([f"{name}: {text}" if text else name, *lines]))
        link = link.__cause__ or link.__context__
    return "\n".join(reversed(told))


def emit(ms: float, address: str) -> None:
    """Write the present request's event, and count it.

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
    route, method, status = event["route"], event["method"], event["status"]
    # Labels are our words, whatever the client said.
    metrics.HTTP_REQUESTS.labels(
        route,
        method if method in _METHODS else "other",
        str(GONE) if status == GONE else f"{status // 100}xx",
    ).inc()
    metrics.HTTP_SECONDS.labels(route).observe(ms / _MS)
    is_probe = rule is not None and rule.rule in _PROBES
    if is_probe and status == HTTPStatus.OK:
        # Asked every few seconds for years: what is well is not worth a line.
        _log.debug(EVENT, **event)
    elif status == HTTPStatus.INTERNAL_SERVER_ERROR:
        _log.error(EVENT, **event)
    else:
        _log.info(EVENT, **event)
