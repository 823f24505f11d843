"""Processes of every role: by their signs of life in the record, and by figures."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from appliance.domain.signing.hsm_tasks import WorkerStatus
from appliance.keys.signing_hosts import ALIVE
from appliance.operations.metrics.facts import ProcessFact
from appliance.operations.metrics.verdicts import GOOD, Verdict, alarm, worst_of

BEATING: Final = ("signing", "chores", "api", "embed", "admin")
"""Roles that give the record signs of life; every installation has each of them."""
_ORDER: Final = (*BEATING, "sandbox")
_WELL: Final = frozenset({"ready", "none"})
_PIN: Final = "pin"


@dataclass(frozen=True, slots=True)
class ProcessRow:
    """A process, by its sign of life in the record, by its figures, or by both."""

    slot: str
    """`<role>/<host>/<number>`."""
    beat: WorkerStatus | None
    is_alive: bool
    figures: ProcessFact | None

    @property
    def role(self) -> str:
        """Its role."""
        return self.slot.partition("/")[0]

    @property
    def host(self) -> str:
        """Its host."""
        return self.slot.partition("/")[2].rpartition("/")[0]

    @property
    def verdict(self) -> Verdict:
        """State of the process, its HSM included."""
        found = [self.figures.verdict] if self.figures else []
        if self.beat is not None:
            found.append(_of_beat(self.beat, is_alive=self.is_alive))
        return worst_of(found)


def _of_beat(beat: WorkerStatus, *, is_alive: bool) -> Verdict:
    if not is_alive:
        return alarm("RubricaRoleDown")
    if beat.hsm in _WELL:
        return GOOD
    is_refused = beat.hsm == _PIN
    return alarm("RubricaHsmPinRefused" if is_refused else "RubricaHsmUnavailable")


def rows_of(
    beats: Iterable[WorkerStatus], figures: Iterable[ProcessFact], now: datetime
) -> list[ProcessRow]:
    """Processes by role, host and number.

    Args:
        beats: the last sign of life of each.
        figures: of the processes in reach.
        now: the time.
    """
    since = now - ALIVE
    left: dict[str, ProcessFact] = {each.slot: each for each in figures}
    rows = [
        ProcessRow(beat.slot, beat, beat.at >= since, left.pop(beat.slot, None))
        for beat in beats
    ]
    rows += [ProcessRow(slot, None, each.is_alive, each) for slot, each in left.items()]
    return sorted(rows, key=lambda row: (_order(row.role), row.slot))


def missing_roles(rows: Iterable[ProcessRow]) -> list[str]:
    """Roles without a process that was seen of late."""
    there = {row.role for row in rows}
    return [role for role in BEATING if role not in there]


def unseen_hosts(rows: Sequence[ProcessRow]) -> list[str]:
    """Hosts with a process that lives by the record and has no figures in reach.

    By process: another one's figures say of which host they are, and may lie.
    """
    unseen = (row for row in rows if row.beat and row.is_alive and not row.figures)
    return sorted({row.host for row in unseen})


def _order(role: str) -> int:
    return _ORDER.index(role) if role in _ORDER else len(_ORDER)
