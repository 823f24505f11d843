"""What `bench.engine` compares, and how it tells the result."""

import statistics
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

MS: Final = 1000.0
RAW, UNWRAP = "raw C_Sign", "raw unwrap twice, C_Sign, destroy"
RESIDENT, RESIDENT_SHOWN = "resident, invisible", "resident, visible"
WRAPPED, WRAPPED_SHOWN = "wrapped, invisible", "wrapped, visible"
RESIDENT_T, RESIDENT_LT = "resident, B-T", "resident, B-LT"
STOCK, STOCK_SHOWN = "stock pyHanko, invisible", "stock pyHanko, visible"
STOCK_T, STOCK_LT = "stock pyHanko, B-T", "stock pyHanko, B-LT"
LIBPDF: Final = "@libpdf/core, invisible"
SMALL, MEDIUM, LARGE = DOCUMENTS = ("small", "1 MB", "12 MB")


class Took(NamedTuple):
    """What a signature took, in seconds."""

    wall_s: float
    cpu_s: float
    """Of all threads of the process."""


class Summary(NamedTuple):
    """What somebody's signatures took, in seconds."""

    wall_s: float
    """Median, by the clock."""
    cpu_s: float
    """Median, of the CPU."""
    quiet_s: float
    """The least tenth, of the CPU: interruptions cost even CPU time, by caches that
    have to be filled anew; this is nearest to a machine that does nothing else."""

    @classmethod
    def of(cls, times: Sequence[Took]) -> "Summary":
        """Sum up some signatures."""
        cpu = sorted(one.cpu_s for one in times)
        wall = statistics.median(one.wall_s for one in times)
        return cls(wall, statistics.median(cpu), cpu[len(cpu) // 10])

    @property
    def ms(self) -> dict[str, float]:
        """The same in milliseconds, by name."""
        return {
            name.removesuffix("_s"): round(seconds * MS, 4)
            for name, seconds in self._asdict().items()
        }


@dataclass(frozen=True, slots=True)
class Goal:
    """A ratio of two rates that is to be reached."""

    document: str
    of: str
    to: str
    at_least: float


GOALS: Final = (
    Goal(SMALL, RESIDENT, RAW, 0.40),
    Goal(SMALL, RESIDENT_SHOWN, RAW, 0.33),
    Goal(SMALL, WRAPPED, RAW, 0.28),
    Goal(SMALL, RESIDENT, LIBPDF, 1.5),
    Goal(LARGE, RESIDENT, LIBPDF, 8),
    Goal(SMALL, RESIDENT_LT, STOCK_LT, 8),
)


Summaries = Mapping[str, Mapping[str, Summary]]
"""By document and by who signed it."""


def reached(took: Summaries) -> list[dict[str, object]]:
    """The goals, and what became of them; those without a peer are left out."""
    found: list[dict[str, object]] = []
    for goal in GOALS:
        times = took.get(goal.document, {})
        if goal.to not in times:
            continue
        of, to = times[goal.of], times[goal.to]
        found.append(
            {
                "document": goal.document,
                "rate_of": goal.of,
                "to": goal.to,
                "at_least": goal.at_least,
                "found": round(to.wall_s / of.wall_s, 3),
                "found_by_cpu": round(to.cpu_s / of.cpu_s, 3),
                "found_quiet": round(to.quiet_s / of.quiet_s, 3),
            }
        )
    return found


def table(took: Summaries, goals: Sequence[Mapping[str, object]]) -> Iterator[str]:
    """Times and ratios in Markdown, then the goals."""
    yield (
        "| document | who | ms | CPU ms | quiet CPU ms "
        "| to raw C_Sign | by CPU | quiet |"
    )
    yield "|---|---|---:|---:|---:|---:|---:|---:|"
    for document, times in took.items():
        raw = times[RAW]
        for name, one in times.items():
            ms = " | ".join(f"{each * MS:.3f}" for each in one)
            ratios = " | ".join(
                f"{least / each:.3f}" for least, each in zip(raw, one, strict=True)
            )
            yield f"| {document} | {name} | {ms} | {ratios} |"
    yield ""
    yield "| rate of | to that of | at least | found | by CPU | quiet |"
    yield "|---|---|---:|---:|---:|---:|"
    for goal in goals:
        yield (
            f"| {goal['document']}: {goal['rate_of']} | {goal['to']} "
            f"| {goal['at_least']} | {goal['found']} | {goal['found_by_cpu']} "
            f"| {goal['found_quiet']} |"
        )
