"""A figure of this process, as Prometheus would read it.

    before = figure("chores", "rubrica_record_up")

What is read went the whole way: through what is handed over, and what is taken of it.
"""

from collections.abc import Iterable
from datetime import UTC, datetime, timedelta

from appliance.metrics.metrics_file import snapshot
from appliance.operations.metrics.facts import Facts, facts
from appliance.operations.metrics.reading import own


def figure(role: str, name: str, **labels: str) -> float | None:
    """The sum of a figure's samples that have these labels; None where none is told.

    Args:
        role: that this process is taken for; what is another's is not told.
        name: of the sample, with the `_total` of a counter.
        labels: that it has, beside others.
    """
    wanted = set(labels.items())
    values = [
        value
        for (told, of), value in own(snapshot(role), role).samples.items()
        if told == name and wanted <= set(of)
    ]
    return sum(values) if values else None


def counted(role: str, name: str, **labels: str) -> float:
    """The same of a counter, which begins at 0 where it is not told."""
    return figure(role, name, **labels) or 0.0


def told_by(
    role: str, tsas: Iterable[str] = (), later: timedelta = timedelta()
) -> Facts:
    """What this process's figures come to on the console's page of health.

    Args:
        role: that it is taken for.
        tsas: names that may be asked.
        later: how much later somebody looks.
    """
    return facts([own(snapshot(role), role)], "h", datetime.now(UTC) + later, tsas)


def alert_of_token(token: str, later: timedelta = timedelta()) -> str:
    """The alert that tells of a token; empty while it is well.

    Args:
        token: its role.
        later: how much later somebody looks.
    """
    told = told_by("signing", later=later).tokens
    (found,) = [each.verdict.alert for each in told if each.token == token]
    return found


def alert_of_ground(kind: str) -> str:
    """The same of what the chores' host stands on.

    Args:
        kind: `database`, `disk` or `clock`.
    """
    told = told_by("chores").grounds
    (found,) = [each.verdict.alert for each in told if each.kind == kind]
    return found
