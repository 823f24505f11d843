"""What `bench.engine` compares, and how it tells the result."""

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


Medians = Mapping[str, Mapping[str, Took]]
"""By document and by who signed it."""


def reached(medians: Medians) -> list[dict[str, object]]:
    """The goals, and what became of them; those without a peer are left out."""
    found: list[dict[str, object]] = []
    for goal in GOALS:
        took = medians.get(goal.document, {})
        if goal.to not in took:
            continue
        of, to = took[goal.of], took[goal.to]
        found.append(
            {
                "document": goal.document,
                "rate_of": goal.of,
                "to": goal.to,
                "at_least": goal.at_least,
                "found": round(to.wall_s / of.wall_s, 3),
                "found_by_cpu": round(to.cpu_s / of.cpu_s, 3),
            }
        )
    return found


def table(medians: Medians, goals: Sequence[Mapping[str, object]]) -> Iterator[str]:
    """Times and rates in Markdown, then the goals."""
    yield "| document | who | ms | CPU ms | to raw C_Sign | the same by CPU |"
    yield "|---|---|---:|---:|---:|---:|"
    for document, took in medians.items():
        raw = took[RAW]
        for name, one in took.items():
            yield (
                f"| {document} | {name} | {one.wall_s * MS:.3f} "
                f"| {one.cpu_s * MS:.3f} | {raw.wall_s / one.wall_s:.3f} "
                f"| {raw.cpu_s / one.cpu_s:.3f} |"
            )
    yield ""
    yield "| rate of | to that of | at least | found | by CPU |"
    yield "|---|---|---:|---:|---:|"
    for goal in goals:
        yield (
            f"| {goal['document']}: {goal['rate_of']} | {goal['to']} "
            f"| {goal['at_least']} | {goal['found']} | {goal['found_by_cpu']} |"
        )
