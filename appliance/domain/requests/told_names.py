"""How an integrator reads what happened: in `historia`, and in webhooks."""

from collections.abc import Iterable, Mapping
from typing import Final

from appliance.domain.vocab import EventKind

EVENT_NAMES: Final[Mapping[EventKind, str]] = {
    EventKind.REQUEST_CREATED: "creada",
    EventKind.REQUEST_TURN: "turno",
    EventKind.REQUEST_VIEWED: "vista",
    EventKind.REQUEST_CHANGED: "modificada",
    EventKind.REQUEST_REMINDED: "recordada",
    EventKind.REQUEST_REJECTED: "rechazada",
    EventKind.REQUEST_CANCELLED: "cancelada",
    EventKind.REQUEST_EXPIRED: "vencida",
    EventKind.REQUEST_RETURNED: "devuelta",
    EventKind.REQUEST_FAILED: "fallida",
    EventKind.REQUEST_SIGNED: "firmada",
    EventKind.DOCUMENT_RAISED: "nivel_elevado",
}
"""Of what became of a request: all that `historia` has."""
CHANGED_NAMES: Final[Mapping[str, str]] = {
    "reference": "referencia",
    "is_unique": "referenciaUnica",
    "metadata": "metadatos",
    "language": "idioma",
    "message": "mensaje",
    "expires": "vence",
}
"""Of what its integrator may change of a process."""
_MEMBERS: Final = {
    "documentSha256": "sha256",
    "sha256": "sha256",
    "originalSha256": "sha256Original",
    "predecessor": "anterior",
    "reason": "motivo",
    "level": "nivel",
    "version": "version",
    "fields": "campos",
    "batch": "loteId",
    "reference": "referencia",
    "total": "total",
    "states": "estados",
    "faults": "errores",
    "code": "codigo",
    "session": "sesionId",
    "origin": "origen",
    "key": "claveId",
    "endpoint": "webhookId",
    "since": "desde",
    "person": "personaId",
    "days": "dias",
    "notAfter": "vence",
}
_TIMES: Final = frozenset({"desde", "vence"})


def told_names(members: Iterable[str]) -> list[str]:
    """Names by which integrators read members of an event's detail.

    Args:
        members: of the audit's, as `TOLD` has them.
    """
    return [_MEMBERS[name] for name in members]


def told_members(detail: Mapping[str, object]) -> dict[str, object]:
    """What is told of an event, as integrators read it.

    Args:
        detail: those members of the audit's that `TOLD` names.
    """
    # A later version may have told more, of which there is no saying how it is called.
    told = {_MEMBERS[name]: detail[name] for name in detail if name in _MEMBERS}
    for name in _TIMES & told.keys():
        told[name] = str(told[name]).replace("+00:00", "Z")
    if isinstance(fields := told.get("campos"), list):
        told["campos"] = [CHANGED_NAMES.get(name, name) for name in fields]
    return told
