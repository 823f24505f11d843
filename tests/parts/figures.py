"""A figure of this process, as Prometheus would read it.

    before = figure("chores", "rubrica_record_up")

What is read went the whole way: through what is handed over, and what is taken of it.
"""

from appliance.core.metrics_file import snapshot
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
