"""Ambiguous and mutated files: what four readers show before and after signing.

    python -m bench.differential ../shared/corpus --files 5000 --out FOLDER

Each file goes through intake without the confinement of a job, and what is taken in is
signed by the engine, with stamps and without. Readers are asked about the file as it
came, about the copy that its signer is shown, and about the signed file. A run that was
stopped goes on where it was.
"""

import argparse
import asyncio
import itertools
import json
import logging
import queue
import resource
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, nullcontext
from dataclasses import asdict, dataclass, field
from functools import cache
from pathlib import Path
from typing import Any, Final

from pyhanko.pdf_utils.misc import PdfDecodeLimitError

from appliance.documents.examination import Examination
from appliance.domain.documents.inspected import Inspection, RepairedCopy
from appliance.domain.errors import ApplianceError, DocumentRefusedError, ErrorCode
from appliance.settings import DocumentSettings
from bench.differential_mutations import SHARES, Made, made
from bench.differential_readers import (
    PAGES,
    Box,
    PdfJs,
    Readers,
    Shown,
    differences,
    disagreeing,
    pdfjs,
)
from tests.support.processes.bounded_calls import BoundedCalls, TooLateError
from worker.pades.appearance.fonts import StampFonts, load_fonts
from worker.sandbox.inspection import inspect
from worker.sandbox.page_looks import are_drawn_alike
from worker.sandbox.repair import repair
from worker.sandbox.trial.trial_chain import SignedCopy, TrialSignature, chains, sign

_FONTS: Final = Path("/usr/share/fonts/truetype/liberation2")
_LINES: Final = "lines.jsonl"
_JOB_S: Final = 40
_JOB_BYTES: Final = 2_000_000_000
_ENOUGH: Final = 50
_BYTES_MOST: Final = 200_000
_AT_A_TIME: Final = 2
_TURN: Final = 100
_PDFJS: Final = "pdf.js"
_COLUMNS: Final = ("poppler", "PDFium", "MuPDF", _PDFJS, "engine")

Signer = Callable[
    [bytes, Sequence[TrialSignature], Inspection, StampFonts | None], SignedCopy
]


@dataclass(frozen=True, slots=True)
class Signed:
    """A signed file.

    Args:
        pdf: the whole file.
        marks: places of its stamps, by 1-based page, in parts of width and height.
        text: of its stamps.
        pages: of the document.
    """

    pdf: bytes = field(repr=False)
    marks: dict[int, list[Box]]
    text: str
    pages: int

    def differences(self, before: Shown | None, after: Shown | None) -> list[str]:
        """Name what a reader shows differently outside the stamps.

        Args:
            before: of the signer's copy.
            after: of this file.
        """
        # For a page that is counted and not there, pdftoppm repeats the last one.
        repeated = dict.fromkeys(
            range(self.pages + 1, PAGES + 1), self.marks.get(self.pages, [])
        )
        return differences(before, after, repeated | self.marks, self.text)


@dataclass(frozen=True, slots=True)
class Outcome:
    """Result of one file's intake and signatures.

    Args:
        code: by which it was refused; empty if it was taken in.
        copy: the document that its signer is shown.
        is_anew: the copy was written anew.
        signed: one file for each chain.
        faults: errors of the engine.
    """

    code: str
    copy: bytes = field(default=b"", repr=False)
    is_anew: bool = False
    signed: tuple[Signed, ...] = ()
    faults: tuple[str, ...] = ()


@dataclass(slots=True)
class Line:
    """What is kept of one file.

    Args:
        kind: of the file.
        number: of the file.
        before: pairs of readers that showed it differently before intake.
        code: by which it was refused; empty if it was taken in.
        is_anew: it was written anew.
        signed: signed files that were looked at.
        copy: pairs of readers that show the signer's copy differently.
        readers: that read the signer's copy.
        is_asked: pdf.js was asked, too.
        found: differences after signing, by reader.
    """

    kind: str
    number: int
    before: list[str]
    code: str
    is_anew: bool = False
    signed: int = 0
    copy: list[str] = field(default_factory=list)
    readers: list[str] = field(default_factory=list)
    is_asked: bool = False
    found: dict[str, list[str]] = field(default_factory=dict)


@dataclass(slots=True)
class Result:
    """One file on its way through the bench."""

    line: Line
    made: Made
    outcome: Outcome
    real: Mapping[str, Shown | None]
    """What readers show of the real file that was mutated, if any."""
    came: Mapping[str, Shown | None]
    shown: Mapping[str, Shown | None]
    """What they show of the signer's copy."""


class _Inspector:
    """Inspects and repairs in this process, with the refusals of a job."""

    def __init__(self, fonts: StampFonts, pages: int) -> None:
        self._fonts = fonts
        self._pages = pages

    async def inspect(self, pdf: Any) -> Inspection:
        """See `PdfInspector.inspect`."""
        # A validator starts an event loop of its own, so this one is left.
        return await asyncio.to_thread(self._inspect, bytes(pdf))

    def _inspect(self, pdf: bytes) -> Inspection:
        with _refusals():
            return inspect(pdf, self._pages, self._fonts)

    async def repair(self, pdf: Any) -> RepairedCopy:
        """See `PdfInspector.repair`."""
        with _refusals():
            return repair(bytes(pdf))

    async def compare(self, pdf: Any, copy: Any) -> bool | None:
        """See `PdfInspector.compare`."""
        return are_drawn_alike(bytes(pdf), bytes(copy))


class _refusals:  # noqa: N801 (used as a function)
    """Refuse for any exception, as a job of the sandbox does."""

    def __enter__(self) -> None:
        pass

    def __exit__(
        self, kind: object, error: BaseException | None, trace: object
    ) -> None:
        if error is None or isinstance(error, ApplianceError):
            return
        if isinstance(error, MemoryError | PdfDecodeLimitError):
            raise DocumentRefusedError(ErrorCode.PDF_TOO_COMPLEX) from error
        if isinstance(error, Exception):
            raise DocumentRefusedError(ErrorCode.PDF_MALFORMED) from error


@cache
def _fonts() -> StampFonts:
    return load_fonts(_FONTS)


def take_and_sign(pdf: bytes, signer: Signer) -> Outcome:
    """Take a file in and sign it, in a process whose memory is limited."""
    resource.setrlimit(resource.RLIMIT_AS, (_JOB_BYTES, _JOB_BYTES))
    logging.disable()
    settings = DocumentSettings()
    inspector: Any = _Inspector(_fonts(), settings.pages)
    try:
        taken = asyncio.run(Examination(inspector, settings).examine(pdf))
    except ApplianceError as exc:
        return Outcome(exc.code.value)
    copy, described = bytes(taken.pdf), taken.inspection
    signed, faults = [], []
    for chain in chains(described, _fonts()):
        try:
            one = signer(copy, chain, described, _fonts())
        except Exception as exc:  # noqa: BLE001 (that is what is looked for)
            faults.append(f"not signable: {type(exc).__name__}: {exc}"[:200])
            continue
        lines = (each.layout.lines for each in chain if each.layout is not None)
        text = " ".join(itertools.chain.from_iterable(lines))
        pages = len(described.pages)
        signed.append(Signed(one.pdf, one.marks, text, pages))
    return Outcome("", copy, taken.repair is not None, tuple(signed), tuple(faults))


class Judge:
    """Readers and a job for one thread.

    Args:
        signer: signs what is taken in.
    """

    def __init__(self, signer: Signer) -> None:
        self._signer = signer
        self._readers = Readers()
        self._job = BoundedCalls(_JOB_S)
        self._real: dict[bytes, Mapping[str, Shown | None]] = {b"": {}}

    def close(self) -> None:
        """End the processes."""
        self._readers.close()
        self._job.close()

    def judge(self, kind: str, number: int, file: Made) -> Result:
        """Put one file through everything but pdf.js."""
        came = self._readers.show(file.pdf)
        if file.original not in self._real:
            self._real[file.original] = self._readers.show(file.original)
        real = self._real[file.original]
        # What two readers make of the real file itself is not the mutation's.
        apart = disagreeing(came) - disagreeing(real)
        outcome = self._outcome(file.pdf)
        line = Line(kind, number, _names(apart), outcome.code, outcome.is_anew)
        result = Result(line, file, outcome, real, came, came)
        if outcome.faults:
            line.found["engine"] = list(outcome.faults)
        if outcome.signed:
            if outcome.is_anew:
                result.shown = self._readers.show(outcome.copy)
            line.copy = _names(disagreeing(result.shown))
            line.readers = [name for name, it in result.shown.items() if it is not None]
            line.signed = len(outcome.signed)
        for one in outcome.signed:
            after = self._readers.show(one.pdf)
            if any(_differences(result.shown, after, one).values()):
                # Once more: a busy machine makes a reader late.
                shown = self._readers.show(outcome.copy)
                after = self._readers.show(one.pdf)
                _note(line, _differences(shown, after, one), one)
        return result

    def _outcome(self, pdf: bytes) -> Outcome:
        try:
            return self._job.call(take_and_sign, pdf, self._signer)
        except TooLateError:
            return Outcome("no answer in time")
        except RuntimeError as exc:
            return Outcome("error", faults=(str(exc),))


def _names(pairs: set[tuple[str, str]]) -> list[str]:
    return sorted(" and ".join(pair) for pair in pairs)


def _differences(
    before: Mapping[str, Shown | None], after: Mapping[str, Shown | None], one: Signed
) -> dict[str, list[str]]:
    """Name the differences that each reader shows."""
    return {
        reader: one.differences(before[reader], shown)
        for reader, shown in after.items()
    }


def _note(line: Line, found: Mapping[str, list[str]], one: Signed) -> None:
    how = "stamped" if one.marks else "unseen"
    for reader, differing in found.items():
        if differing:
            line.found.setdefault(reader, []).extend(f"{how}: {it}" for it in differing)


def ask_pdfjs(reader: PdfJs, result: Result) -> None:
    """Ask pdf.js about one file: as it came, the signer's copy, and signed."""
    outcome, line = result.outcome, result.line
    line.is_asked = True
    came, real = dict(result.came), dict(result.real)
    came[_PDFJS] = reader.show(result.made.pdf)
    if real:
        real[_PDFJS] = reader.show(result.made.original)
    line.before = _names(disagreeing(came) - disagreeing(real))
    shown = reader.show(outcome.copy) if outcome.is_anew else came[_PDFJS]
    line.copy = _names(disagreeing({**result.shown, _PDFJS: shown}))
    if shown is not None:
        line.readers.append(_PDFJS)
    for one in outcome.signed:
        after = reader.show(one.pdf)
        if one.differences(shown, after):
            before, after = reader.show(outcome.copy), reader.show(one.pdf)
            _note(line, {_PDFJS: one.differences(before, after)}, one)


def numbers(files: int, seed: int) -> list[tuple[str, int]]:
    """Give kind and number of each file, by the kinds' shares."""
    turns = sorted(
        ((at + 0.5) / share, kind)
        for kind, share in SHARES.items()
        for at in range(share)
    )
    kinds = itertools.islice(itertools.cycle(kind for _, kind in turns), files)
    return [(kind, seed * 1_000_000 + at) for at, kind in enumerate(kinds)]


class Bench:
    """Two judges, and a reader in Chromium for a sample.

    Args:
        originals: real files that are mutated.
        reader: pdf.js, if it is asked.
        pdfjs_every: of so many signed files it is asked about one.
        signer: signs what is taken in.
    """

    def __init__(
        self,
        originals: Sequence[bytes],
        reader: PdfJs | None,
        pdfjs_every: int,
        signer: Signer,
    ) -> None:
        self._originals = originals
        self._reader = reader
        self._pdfjs_every = pdfjs_every
        self._judges = [Judge(signer) for _ in range(_AT_A_TIME)]
        self._free: queue.SimpleQueue[Judge] = queue.SimpleQueue()
        for judge in self._judges:
            self._free.put(judge)

    def close(self) -> None:
        """End the processes."""
        for judge in self._judges:
            judge.close()

    def results(
        self, wanted: Sequence[tuple[str, int]], signed: int
    ) -> Iterator[Result]:
        """Make and judge files; those that cannot be made are left out.

        Args:
            wanted: kind and number of each file.
            signed: files that were signed before.
        """
        kinds = [kind for kind, _ in wanted]
        with ThreadPoolExecutor(_AT_A_TIME) as pool:
            for result in pool.map(self._judged, kinds, [at for _, at in wanted]):
                if result is None:
                    continue
                signed += bool(result.line.signed)
                is_drawn = self._reader and signed % self._pdfjs_every == 0
                if self._reader and is_drawn and result.line.signed:
                    ask_pdfjs(self._reader, result)
                yield result

    def _judged(self, kind: str, number: int) -> Result | None:
        try:
            file = made(kind, number, self._originals)
        except Exception:  # noqa: BLE001 (qpdf refuses to mutate some files)
            return None
        judge = self._free.get()
        try:
            return judge.judge(kind, number, file)
        finally:
            self._free.put(judge)


def run(
    originals: Sequence[bytes],
    wanted: Sequence[tuple[str, int]],
    folder: Path,
    *,
    pdfjs_every: int = 8,
    signer: Signer = sign,
) -> list[Line]:
    """Make and judge the files, and write a line of each to a folder.

    Files of which the folder has a line are left out.

    Args:
        originals: real files that are mutated.
        wanted: kind and number of each file.
        folder: of the lines, and of the files with a difference.
        pdfjs_every: of so many signed files pdf.js is asked about one; 0: of none.
        signer: signs what is taken in.

    Returns:
        The lines of the folder.
    """
    folder.mkdir(parents=True, exist_ok=True)
    lines = read(folder)
    known = {(each.kind, each.number) for each in lines}
    left = [each for each in wanted if each not in known]
    with (
        pdfjs() if pdfjs_every else nullcontext() as reader,
        closing(Bench(originals, reader, pdfjs_every, signer)) as bench,
        (folder / _LINES).open("a") as out,
    ):
        for at in range(0, len(left), _TURN):
            signed = sum(bool(line.signed) for line in lines)
            for result in bench.results(left[at : at + _TURN], signed):
                if result.line.found:
                    keep(result, folder)
                out.write(json.dumps(asdict(result.line)) + "\n")
                out.flush()
                lines.append(result.line)
            print(min(at + _TURN, len(left)), "of", len(left), file=sys.stderr)
    return lines


def read(folder: Path) -> list[Line]:
    """Read the lines of a folder, the last one of each file."""
    path = folder / _LINES
    if not path.exists():
        return []
    lines = [Line(**json.loads(each)) for each in path.read_text().splitlines()]
    return [*{(each.kind, each.number): each for each in lines}.values()]


def keep(result: Result, folder: Path) -> None:
    """Write the files of a difference."""
    name = f"{result.line.kind}-{result.line.number}".replace(" ", "_").replace(":", "")
    (folder / f"{name}.pdf").write_bytes(result.made.pdf)
    (folder / f"{name}-shown.pdf").write_bytes(result.outcome.copy)
    for at, one in enumerate(result.outcome.signed):
        (folder / f"{name}-signed-{at}.pdf").write_bytes(one.pdf)


def table(lines: Sequence[Line]) -> Iterator[str]:
    """Give the table by kind."""
    yield (
        "| kind | made | shown differently before | refused | written anew "
        "| signed as is | of these shown differently before | and after | pdf.js asked "
        f"| {' | '.join(_COLUMNS)} | |"
    )
    yield "|---|" + "---:|" * (8 + len(_COLUMNS)) + "---|"
    for kind in dict.fromkeys(each.kind for each in lines):
        some = [each for each in lines if each.kind == kind]
        few = sum(bool(each.before) for each in some) < _ENOUGH
        yield _row(kind, some, f"proves nothing: fewer than {_ENOUGH}" if few else "")
    yield _row("all", lines, "")
    yield ""
    for kind in dict.fromkeys(each.kind for each in lines):
        codes = Counter(each.code for each in lines if each.kind == kind and each.code)
        yield f"{kind}: {', '.join(f'{a} {b}' for a, b in codes.most_common())}"
    read = Counter(name for each in lines for name in each.readers)
    yield (
        f"signed files: {sum(each.signed for each in lines)}; the documents signed "
        f"were read by {', '.join(f'{name} {count}' for name, count in read.items())}"
    )


def _row(kind: str, some: Sequence[Line], note: str) -> str:
    taken = [each for each in some if not each.code]
    counts = (
        len(some),
        sum(bool(each.before) for each in some),
        len(some) - len(taken),
        sum(each.is_anew for each in taken),
        sum(not each.is_anew for each in taken),
        sum(bool(each.before) for each in taken),
        sum(bool(each.before and each.copy) for each in taken),
        sum(each.is_asked for each in taken),
        *(sum(reader in each.found for each in some) for reader in _COLUMNS),
    )
    return f"| {kind} | {' | '.join(map(str, counts))} | {note} |"


def main() -> int:
    """Print the table and the differences; exit status 1 if there is any."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--files", type=int, default=sum(SHARES.values()))
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--out", type=Path, default=Path("differential"))
    parser.add_argument("--pdfjs-every", type=int, default=8, metavar="N")
    parser.add_argument("--kind", action="append", help="of these kinds alone")
    parser.add_argument("--again", nargs=2, metavar=("KIND", "NUMBER"))
    asked = parser.parse_args()
    files = [path.read_bytes() for path in sorted(asked.folder.glob("*.pdf"))]
    originals = [pdf for pdf in files if len(pdf) <= _BYTES_MOST]
    if asked.again:
        wanted = [(asked.again[0], int(asked.again[1]))]
    else:
        wanted = [
            each
            for each in numbers(asked.files, asked.seed)
            if not asked.kind or each[0] in asked.kind
        ]
    lines = run(originals, wanted, asked.out, pdfjs_every=asked.pdfjs_every)
    print("\n".join(table(lines)))
    wrong = [each for each in lines if each.found]
    for each in wrong:
        again = f'again by --again "{each.kind}" {each.number}'
        print(f"{each.kind} {each.number}: {each.found}; {again}")
    print(f"{len(wrong)} files with a difference" if wrong else "no differences")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
