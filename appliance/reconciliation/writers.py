"""Roles that recorded an event which is another role's."""

from datetime import timedelta
from typing import Final

from appliance.database.row_policies import GUARDED
from appliance.domain.audit.reconciliation import Check, Event, Finding

SKEW: Final = timedelta(seconds=10)
"""Most that the clocks of two hosts that are ready differ: 5 s each from the
database's."""
_GUARDED: Final[dict[str, frozenset[str]]] = {
    kind.value: frozenset(role.removeprefix("rubrica-") for role in roles)
    for roles, kinds in GUARDED.items()
    for kind in kinds
}


def wrong_writer(event: Event) -> Finding | None:
    """Return a finding if a role recorded an event that is another role's.

    Args:
        event: any.
    """
    allowed = _GUARDED.get(event.kind)
    if allowed is None or event.roles <= allowed:
        return None
    reason = f"{event.kind} was recorded by {event.role}"
    if event.db_user is not None:
        reason += f", as {event.db_user}"
    return event.finding(Check.WRONG_WRITER, reason)
