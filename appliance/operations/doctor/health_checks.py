"""What the health report has of the record, for `rubrica doctor`."""

from collections.abc import Iterator, Sequence
from typing import Final

from appliance.operations.installation_checks import Finding, answer_of
from appliance.operations.metrics.verdicts import State
from appliance.operations.status import MARKS, REMEDY, UNSEEN

_SECTIONS: Final = ("waiting", "delivery", "published", "certificates", "tsas")
"""Sections that no other part of `rubrica doctor` looks at."""
HEALTH: Final = ("status", *(f"--only={each}" for each in _SECTIONS))
"""Words of the command."""
_FOUND: Final = frozenset({0, 1})


def look_at_health(command: Sequence[str]) -> Iterator[Finding]:
    """Yield the troubles of the health report, and what it could not look at.

    Args:
        command: line of `rubrica status`.
    """
    done = answer_of(command)
    if done.returncode not in _FOUND:
        told = done.stderr.strip().splitlines() or [f"status {done.returncode}"]
        yield Finding(told[-1], "rubrica status")
        return
    for line in done.stdout.splitlines():
        mark, _, rest = line.partition(" ")
        what, _, remedy = rest.strip().partition(REMEDY)
        if mark in MARKS.values():
            yield Finding(what, remedy, is_warning=mark == MARKS[State.ATTENTION])
        elif mark == UNSEEN:
            yield Finding(what, remedy, is_unseen=True)
