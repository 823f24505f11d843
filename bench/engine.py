"""The signing engine against the HSM's own speed and against others.

    python -m bench.engine [--rounds 30] [--json FILE]

One process and one thread sign a small PDF, one of 1 MB and one of 12 MB with an
RSA-2048 key of a SoftHSM. All take turns, a few signatures each, round after round,
so that what else the machine does falls on all alike; medians are compared. On a
busy machine look at the CPU's time: whoever takes longer is interrupted more often.
"""

import argparse
import json
import os
import statistics
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Final

from bench.engine_peers import Libpdf, StockPyhanko, Took, libpdf
from bench.engine_place import EngineKey, EnginePlace, engine_place, stamp
from tests import pdfs
from tests.parts.places import short_folder
from tests.validators import pdfsig, pyhanko_verdicts

_MS: Final = 1000.0
RAW, UNWRAP = "raw C_Sign", "raw unwrap twice, C_Sign, destroy"
RESIDENT, RESIDENT_SHOWN = "resident, invisible", "resident, visible"
WRAPPED, WRAPPED_SHOWN = "wrapped, invisible", "wrapped, visible"
STOCK, STOCK_SHOWN = "stock pyHanko, invisible", "stock pyHanko, visible"
LIBPDF: Final = "@libpdf/core, invisible"
SMALL, MEDIUM, LARGE = "small", "1 MB", "12 MB"

Turn = Callable[[int], list[Took]]
"""Sign so many times, and tell what each time took."""


@dataclass(frozen=True, slots=True)
class Document:
    """What is signed."""

    name: str
    pdf: bytes = field(repr=False)
    path: Path
    """The same as a file, for other processes."""
    at_a_time: int
    """Signatures in a turn."""


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
)


class Contender:
    """Somebody who signs documents, and the last one signed.

    Args:
        sign: how.
        roots: certificates that the signatures lead to, DER.
    """

    def __init__(self, sign: Callable[[bytes], bytes], roots: Sequence[bytes]) -> None:
        self._sign = sign
        self.roots = roots
        self.last = b""

    def sign(self, pdf: bytes) -> None:
        """Sign a document, and keep the result."""
        self.last = self._sign(pdf)


def contenders(place: EnginePlace) -> dict[str, Contender]:
    """Who signs in this process."""
    layout = stamp()

    def ours(key: EngineKey, *, shown: bool) -> Contender:
        at = layout if shown else None
        return Contender(lambda pdf: place.sign(pdf, key, at), key.chain)

    def stock(*, shown: bool) -> Contender:
        signer = StockPyhanko(place, layout.rect if shown else None)
        return Contender(signer.sign, place.resident.chain)

    return {
        RESIDENT: ours(place.resident, shown=False),
        RESIDENT_SHOWN: ours(place.resident, shown=True),
        WRAPPED: ours(place.wrapped, shown=False),
        WRAPPED_SHOWN: ours(place.wrapped, shown=True),
        STOCK: stock(shown=False),
        STOCK_SHOWN: stock(shown=True),
    }


def documents(folder: Path) -> Iterator[Document]:
    """The documents, made by script."""
    for name, pdf, at_a_time in (
        (SMALL, pdfs.one_page(), 5),
        (MEDIUM, pdfs.heavy(10, 1_000_000), 3),
        (LARGE, pdfs.heavy(100, 12_000_000), 1),
    ):
        path = folder / f"{name}.pdf"
        path.write_bytes(pdf)
        yield Document(name, pdf, path, at_a_time)


def measure(
    place: EnginePlace, peer: Libpdf | None, document: Document, rounds: int
) -> tuple[dict[str, Took], list[str]]:
    """Have all sign one document, in turns.

    Returns:
        The medians of each, and what is wrong with a sample of each.
    """
    signers = contenders(place)
    turns = {RAW: _timed(place.raw_sign), UNWRAP: _timed(place.unwrap_and_sign)}
    for name, one in signers.items():
        turns[name] = _timed(partial(one.sign, document.pdf))
    if peer is not None:
        turns[LIBPDF] = partial(peer.sign, document.path)
    took = _take_turns(turns, rounds, document.at_a_time)
    samples = {name: (one.last, one.roots) for name, one in signers.items()}
    if peer is not None:
        out = document.path.with_suffix(".out")
        peer.sign(document.path, 1, out)
        samples[LIBPDF] = out.read_bytes(), [peer.root]
    faults = [
        f"{document.name}, {name}: {fault}"
        for name, (signed, roots) in samples.items()
        for fault in faults_of(signed, roots)
    ]
    return {name: _median(times) for name, times in took.items()}, faults


def _timed(work: Callable[[], object]) -> Turn:
    def once() -> Took:
        cpu, begun = time.process_time(), time.perf_counter()
        work()
        return Took(time.perf_counter() - begun, time.process_time() - cpu)

    return lambda times: [once() for _ in range(times)]


def _median(times: Sequence[Took]) -> Took:
    return Took(
        statistics.median(one.wall_s for one in times),
        statistics.median(one.cpu_s for one in times),
    )


def _take_turns(
    turns: Mapping[str, Turn], rounds: int, times: int
) -> dict[str, list[Took]]:
    """Every turn in every round, after one that does not count."""
    took: dict[str, list[Took]] = {name: [] for name in turns}
    for number in range(rounds + 1):
        for name, turn in turns.items():
            seconds = turn(times)
            if number:
                took[name] += seconds
    return took


def faults_of(pdf: bytes, roots: Sequence[bytes]) -> list[str]:
    """What pyHanko and pdfsig say against a document's one signature."""
    verdicts = [one.good for one in pyhanko_verdicts(pdf, roots)]
    found = [] if verdicts == [True] else [f"pyHanko: {verdicts}"]
    told = pdfsig(pdf)
    if [one.valid and one.whole_document for one in told] != [True]:
        found.append(f"pdfsig: {[one.text for one in told]}")
    return found


Medians = Mapping[str, Mapping[str, Took]]
"""By document and by who signed it."""


def reached(medians: Medians) -> list[dict[str, object]]:
    """The goals, and what became of them; those without a peer are left out."""
    found: list[dict[str, object]] = []
    for goal in GOALS:
        took = medians[goal.document]
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
                f"| {document} | {name} | {one.wall_s * _MS:.3f} "
                f"| {one.cpu_s * _MS:.3f} | {raw.wall_s / one.wall_s:.3f} "
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


def run(rounds: int) -> tuple[dict[str, object], list[str]]:
    """All of it: the figures, and the lines that show them."""
    medians: dict[str, dict[str, Took]] = {}
    faults: list[str] = []
    with (
        short_folder() as folder,
        short_folder() as scratch,
        engine_place(folder) as place,
        libpdf(scratch) as peer,
    ):
        for document in documents(scratch):
            took, bad = measure(place, peer, document, rounds)
            medians[document.name] = took
            faults += bad
    goals = reached(medians)
    figures = {
        "median_ms": {
            document: {
                name: {
                    "wall": round(one.wall_s * _MS, 4),
                    "cpu": round(one.cpu_s * _MS, 4),
                }
                for name, one in took.items()
            }
            for document, took in medians.items()
        },
        "goals": goals,
        "faults": faults,
        "cores": os.cpu_count() or 0,
        "load_after": os.getloadavg()[0],
    }
    return figures, [*table(medians, goals), *faults]


def main() -> int:
    """Print the table and JSON; exit status 1 when a signature is bad."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--rounds", type=int, default=30)
    parser.add_argument("--json", type=Path, help="write the figures to a file too")
    options = parser.parse_args()
    figures, lines = run(options.rounds)
    print("\n".join(lines))
    text = json.dumps(figures, indent=2, ensure_ascii=False)
    print(text)
    if options.json is not None:
        options.json.write_text(text, "utf-8")
    return 1 if figures["faults"] else 0


if __name__ == "__main__":
    sys.exit(main())
