"""States of facts, and the alerts that say what to do about them.

Bounds are those of docs/samples/rubrica-alerts.yaml, and an alert's name is its section
of docs/alerts.md.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Final


class State(StrEnum):
    """How something stands."""

    GOOD = "good"
    ATTENTION = "wait"
    BAD = "bad"
    UNKNOWN = "quiet"


_WORSE: Final = (State.BAD, State.ATTENTION, State.UNKNOWN, State.GOOD)
SEVERITIES: Final[Mapping[str, State]] = {
    "RubricaFiguresAway": State.BAD,
    "RubricaRoleDown": State.BAD,
    "RubricaFiguresRefused": State.ATTENTION,
    "RubricaVersionsDiffer": State.ATTENTION,
    "RubricaEventLoopLags": State.ATTENTION,
    "RubricaDescriptorsRunOut": State.ATTENTION,
    "RubricaQueueWaits": State.BAD,
    "RubricaRedisAway": State.ATTENTION,
    "RubricaHsmUnavailable": State.BAD,
    "RubricaHsmPinRefused": State.BAD,
    "RubricaHsmFaults": State.ATTENTION,
    "RubricaTsaFails": State.ATTENTION,
    "RubricaOutsideStatusFails": State.ATTENTION,
    "RubricaCrlOld": State.BAD,
    "RubricaOcspOld": State.BAD,
    "RubricaCertificateEnds": State.ATTENTION,
    "RubricaSignersEnd": State.ATTENTION,
    "RubricaLevelsBehind": State.ATTENTION,
    "RubricaDatabaseAway": State.BAD,
    "RubricaClockOff": State.BAD,
    "RubricaDiskFull": State.BAD,
    "RubricaBackupOld": State.ATTENTION,
    "RubricaAuditWrong": State.BAD,
    "RubricaPoolFull": State.ATTENTION,
    "RubricaWebhooksFail": State.ATTENTION,
    "RubricaMailFails": State.ATTENTION,
    "RubricaSignersRevoked": State.ATTENTION,
    "RubricaSoftwareHsm": State.ATTENTION,
    "RubricaDocumentDamaged": State.BAD,
}
"""State by alert: *critical* is bad, *warning* wants attention."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """How something stands, and by which alert; empty where nothing is to be done."""

    state: State
    alert: str = ""

    @property
    def is_trouble(self) -> bool:
        """True if it is bad or wants attention."""
        return self.state in {State.BAD, State.ATTENTION}


GOOD: Final = Verdict(State.GOOD)
UNKNOWN: Final = Verdict(State.UNKNOWN)


def alarm(alert: str) -> Verdict:
    """What an alert says.

    Args:
        alert: one of `SEVERITIES`.
    """
    return Verdict(SEVERITIES[alert], alert)


def by_urgency(state: State) -> int:
    """Sort key: what to look at first comes first.

    Args:
        state: any.
    """
    return _WORSE.index(state)


def worst(states: Iterable[State]) -> State:
    """The one that wants looking at first; good where there are none.

    Args:
        states: any.
    """
    return min(states, key=_WORSE.index, default=State.GOOD)


def worst_of(verdicts: Iterable[Verdict]) -> Verdict:
    """The verdict to look at first; good where there are none.

    Args:
        verdicts: any.
    """
    return min(verdicts, key=lambda each: by_urgency(each.state), default=GOOD)
