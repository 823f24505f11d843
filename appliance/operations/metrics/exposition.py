"""The figures of all processes as one text that Prometheus reads.

Each figure keeps the process that it is of (`role`, `number`): counters of a process
that was started anew begin anew, and nothing is added up that Prometheus cannot take
apart again. What a dead process last measured is not told any more.

Source: Prometheus, "Exposition formats".
"""

from collections.abc import Iterable, Iterator
from typing import Final

from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.exposition import generate_latest
from prometheus_client.registry import Collector

from appliance.metrics.metrics import FAMILIES, Family
from appliance.operations.metrics.reading import SAMPLES, Process

_OF: Final = ("role", "number")
_UP: Final = Family(
    "rubrica_role_up",
    "gauge",
    "Whether a process handed figures over lately: it is alive and gets on.",
    _OF,
    roles=frozenset({"metrics"}),
)
_FAULT: Final = Family(
    "rubrica_metrics_fault",
    "gauge",
    "1 where a process's figures cannot be taken, by what is wrong with them.",
    (*_OF, "fault"),
    roles=frozenset({"metrics"}),
)
_DROPPED: Final = Family(
    "rubrica_metrics_dropped_samples",
    "gauge",
    "Samples that were left out: no role has them, or there were too many.",
    _OF,
    roles=frozenset({"metrics"}),
)
OF_FILES: Final = (_UP, _FAULT, _DROPPED)
"""What is told of what was handed over."""


class _Merged(Collector):
    def __init__(self, processes: Iterable[Process]) -> None:
        self._processes = list(processes)

    def collect(self) -> Iterator[Metric]:
        """Each family once, with the samples of all."""
        families = {
            name: Metric(name, family.help, family.kind)
            for name, family in FAMILIES.items()
        }
        for process in self._processes:
            of = {"role": process.role, "number": process.number}
            for (name, labels), value in process.samples.items():
                family, _ = SAMPLES[name]
                families[family.name].add_sample(name, of | dict(labels), value)
        yield from (family for family in families.values() if family.samples)
        yield from self._of_files()

    def _of_files(self) -> Iterator[Metric]:
        up, faults, dropped = (
            GaugeMetricFamily(each.name, each.help, labels=each.labels)
            for each in OF_FILES
        )
        for process in self._processes:
            of = (process.role, process.number)
            up.add_metric(of, process.is_alive)
            dropped.add_metric(of, process.dropped)
            if process.fault:
                faults.add_metric((*of, process.fault), 1)
        yield from (up, faults, dropped)


def exposition(processes: Iterable[Process]) -> bytes:
    """What is told of some processes, in the text format 0.0.4.

    Args:
        processes: as they were read.
    """
    return generate_latest(_Merged(processes))
