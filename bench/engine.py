"""The signing engine against the HSM's own speed and against others.

    python -m bench.engine [--rounds 30] [--documents small …] [--json FILE]

One process and one thread sign a small PDF, one of 1 MB and one of 12 MB with an
RSA-2048 key of a SoftHSM. All take turns, a few signatures each, round after round,
so that what else the machine does falls on all alike; medians are compared. On a
busy machine look at the CPU's time: whoever takes longer is interrupted more often.
"""

import argparse
import gc
import json
import logging
import os
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Final

from appliance.domain.vocab import SignatureLevel
from bench.engine_libpdf import Libpdf, libpdf
from bench.engine_place import EngineKey, EnginePlace, engine_place, stamp
from bench.engine_report import (
    DOCUMENTS,
    LARGE,
    LIBPDF,
    MEDIUM,
    RAW,
    RESIDENT,
    RESIDENT_LT,
    RESIDENT_SHOWN,
    RESIDENT_T,
    SMALL,
    STOCK,
    STOCK_LT,
    STOCK_SHOWN,
    STOCK_T,
    UNWRAP,
    WRAPPED,
    WRAPPED_SHOWN,
    Summary,
    Took,
    reached,
    table,
)  # fmt: skip
from bench.engine_stock import StockPyhanko
from tests.support.documents import pdfs
from tests.support.documents.long_term_validators import lt_failures
from tests.support.documents.validators import pdfsig, pyhanko_verdicts
from tests.support.processes.scratch import short_folder

_L: Final = SignatureLevel

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


class Contender:
    """Somebody who signs documents, and the last one signed.

    Args:
        sign: how.
    """

    def __init__(self, sign: Callable[[bytes], tuple[bytes, ...]]) -> None:
        self._sign = sign
        self.last: tuple[bytes, ...] = ()

    def sign(self, pdf: bytes) -> None:
        """Sign a document, and keep the result."""
        self.last = self._sign(pdf)


def contenders(place: EnginePlace, closing: ExitStack) -> dict[str, Contender]:
    """Who signs in this process.

    Args:
        place: the HSM.
        closing: what they leave open is closed with it.
    """
    layout = stamp()

    def ours(
        key: EngineKey, *, shown: bool = False, level: SignatureLevel = _L.B_B
    ) -> Contender:
        at = layout if shown else None
        return Contender(lambda pdf: place.sign(pdf, key, at, level))

    def stock(*, shown: bool = False, level: SignatureLevel = _L.B_B) -> Contender:
        signer = StockPyhanko(place, layout.rect if shown else None, level)
        closing.callback(signer.close)
        return Contender(lambda pdf: (signer.sign(pdf),))

    return {
        RESIDENT: ours(place.resident),
        RESIDENT_SHOWN: ours(place.resident, shown=True),
        WRAPPED: ours(place.wrapped),
        WRAPPED_SHOWN: ours(place.wrapped, shown=True),
        RESIDENT_T: ours(place.resident, level=_L.B_T),
        RESIDENT_LT: ours(place.resident, level=_L.B_LT),
        STOCK: stock(),
        STOCK_SHOWN: stock(shown=True),
        STOCK_T: stock(level=_L.B_T),
        STOCK_LT: stock(level=_L.B_LT),
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
) -> tuple[dict[str, Summary], list[str]]:
    """Have all sign one document, in turns.

    Returns:
        The times of each, and what is wrong with a sample of each.
    """
    closing = ExitStack()
    signers = contenders(place, closing)
    turns = {RAW: _timed(place.raw_sign), UNWRAP: _timed(place.unwrap_and_sign)}
    for name, one in signers.items():
        turns[name] = _timed(partial(one.sign, document.pdf))
    if peer is not None:
        turns[LIBPDF] = partial(peer.sign, document.path)
    with closing:
        took = _take_turns(turns, rounds, document.at_a_time)
    root = place.pki.chain[-1]
    samples = {name: (b"".join(one.last), root) for name, one in signers.items()}
    if peer is not None:
        out = document.path.with_suffix(".out")
        peer.sign(document.path, 1, out)
        samples[LIBPDF] = out.read_bytes(), peer.root
    faults = [
        f"{document.name}, {name}: {fault}"
        for name, (signed, to) in samples.items()
        for fault in faults_of(signed, to, is_long=name in {RESIDENT_LT, STOCK_LT})
    ]
    return {name: Summary.of(times) for name, times in took.items()}, faults


def _timed(work: Callable[[], object]) -> Turn:
    def once() -> Took:
        cpu, begun = time.process_time(), time.perf_counter()
        work()
        return Took(time.perf_counter() - begun, time.process_time() - cpu)

    return lambda times: [once() for _ in range(times)]


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


def faults_of(pdf: bytes, root: bytes, *, is_long: bool) -> list[str]:
    """What pyHanko and pdfsig say against a document's one signature.

    Args:
        pdf: the document.
        root: the certificate that its signature leads to, DER.
        is_long: whether it carries all that its validation needs.
    """
    verdicts = [one.good for one in pyhanko_verdicts(pdf, [root])]
    found = [] if verdicts == [True] else [f"pyHanko: {verdicts}"]
    told = pdfsig(pdf)
    # What a later revision adds is not under the signature.
    if [one.valid and (is_long or one.whole_document) for one in told] != [True]:
        found.append(f"pdfsig: {[one.text for one in told]}")
    if is_long:
        found += lt_failures(pdf, root, datetime.now(UTC))
    return found


def run(names: Sequence[str], rounds: int) -> tuple[dict[str, object], list[str]]:
    """All of it: the figures, and the lines that show them."""
    summaries: dict[str, dict[str, Summary]] = {}
    faults: list[str] = []
    with (
        short_folder() as folder,
        short_folder() as scratch,
        engine_place(folder) as place,
        libpdf(scratch) as peer,
    ):
        gc.collect()
        gc.freeze()  # as the supervisor does before it forks the workers
        for document in documents(scratch):
            if document.name not in names:
                continue
            took, bad = measure(place, peer, document, rounds)
            summaries[document.name] = took
            faults += bad
    goals = reached(summaries)
    figures = {
        "ms": {
            document: {name: one.ms for name, one in took.items()}
            for document, took in summaries.items()
        },
        "goals": goals,
        "faults": faults,
        "cores": os.cpu_count() or 0,
        "load_after": os.getloadavg()[0],
    }
    return figures, [*table(summaries, goals), *faults]


def main() -> int:
    """Print the table and JSON; exit status 1 when a signature is bad."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--rounds", type=int, default=30)
    parser.add_argument("--json", type=Path, help="write the figures to a file too")
    parser.add_argument("--documents", nargs="+", choices=DOCUMENTS, default=DOCUMENTS)
    options = parser.parse_args()
    # It warns of each signature that may not fetch what it has.
    logging.getLogger("pyhanko").setLevel(logging.ERROR)
    figures, lines = run(options.documents, options.rounds)
    print("\n".join(lines))
    text = json.dumps(figures, indent=2, ensure_ascii=False)
    print(text)
    if options.json is not None:
        options.json.write_text(text, "utf-8")
    return 1 if figures["faults"] else 0


if __name__ == "__main__":
    sys.exit(main())
