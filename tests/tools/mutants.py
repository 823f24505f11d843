"""Measure what the tests notice: `python -m tests.tools.mutants --seed N --out FILE`.

A mutant is a copy of the tree with one small change to one statement. It is killed if a
test that runs the statement fails. A mutant that survives shows a line that tests run
and do not check. The sample is of the packages that signatures depend on, of each as
many, and the same seed chooses the same mutants. To compare a quicker suite of tests
with the one before it:

    python -m tests.tools.mutants --seed 7 --out after.jsonl --against before.jsonl

Which tests run a statement is recorded first, once for each state of the sources
(`.check/coverage`). Tests run in rings: those near the packages, then the others by
their folder, which are recorded if a mutant is left. The cheapest test of each file
runs before the second one of any. A kill counts only if the test
passes without the mutant. FILE gets a JSON object a line as soon as it is known;
started again with the same FILE, the program goes on, and tests survivors again by
rings whose tests were edited.

Exit status: 0; 1 if a mutant survives that was killed in the file of `--against`.
"""

import argparse
import os
import shutil
import signal
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path, PurePath
from typing import Final, NoReturn

from tests.support.mutation.coverage_map import hash_of_sources, is_near
from tests.support.mutation.probes import with_probes
from tests.support.mutation.results import Result, Results, lost, summary
from tests.support.mutation.runner import MutantRunner
from tests.support.mutation.sample import Mutant, modules, sample
from tests.support.mutation.trees import run_environment
from tests.support.processes.scratch import short_folder
from tests.support.services.postgres import URL_VARIABLE, PostgresServer

ROOT: Final = Path(__file__).resolve().parents[2]
_MARKS: Final = "not full and not alone and not long"
"""The tests that `./check` runs."""
_BUDGET_S: Final = 600.0
_NEAR: Final = "near"
_RINGS: Final = (_NEAR, "unit", "integration", "functional", "faults", "e2e")
"""Tests near the packages, then the others by their folder."""
_MEMORY: Final = "/dev/shm"  # noqa: S108 (a private folder in it)
"""Where the copies lie, if it is there: SQLite waits for a disk at each commit."""


def chosen(options: argparse.Namespace) -> list[Mutant]:
    """The sample, or the mutants of it that are named.

    Raises:
        ValueError: a name is of none in the sample.
    """
    mutants = sample(modules(options.tree), options.seed, options.count)
    if not options.only:
        return mutants
    by_name = {mutant.name: mutant for mutant in mutants}
    if unknown := [name for name in options.only if name not in by_name]:
        raise ValueError(f"not in the sample: {', '.join(unknown)}")
    return [by_name[name] for name in options.only]


def run(mutants: Sequence[Mutant], options: argparse.Namespace) -> list[Result]:
    """Test all mutants that the file has no result of.

    Returns:
        The results of all, in their order.
    """
    results = Results(options.out)
    rings = _rings(mutants, options)
    with _runner(options) as runner:
        for ring, files in rings.items():
            known = _known(options, results)
            state = runner.map.state(files)
            waiting = [
                (mutant, _earlier(known.get(mutant.name), ring))
                for mutant in mutants
                if not _is_done(known.get(mutant.name), ring, state)
            ]
            if not waiting:
                continue
            for recorded in runner.record(files):
                _say(f"recorded {', '.join(recorded)}")
            for test in runner.map.failed(files):
                _say(f"fails without a mutant, and does not count: {test}")
            for result in runner.run(waiting, files, seed=options.seed, ring=ring):
                results.add(result)
                _say(str(result))
    known = _known(options, results)
    return [known[mutant.name] for mutant in mutants]


def _known(options: argparse.Namespace, results: Results) -> dict[str, Result]:
    """Results of this sample, in this state of the sources."""
    sources = hash_of_sources(options.tree)
    return {
        name: result
        for name, result in results.read().items()
        if (result.seed, result.sources) == (options.seed, sources)
    }


def _is_done(result: Result | None, ring: str, state: str) -> bool:
    return result is not None and (result.is_dead or result.rings.get(ring) == state)


def _earlier(result: Result | None, ring: str) -> Result | None:
    """What other rings found; nothing if this one is run again, with other tests."""
    return None if result is None or ring in result.rings else result


def _rings(
    mutants: Sequence[Mutant], options: argparse.Namespace
) -> dict[str, list[str]]:
    """Files of tests, those that are likely to kill and quick to run first."""
    packages = {mutant.package for mutant in mutants}
    rings: dict[str, list[str]] = {ring: [] for ring in options.rings}
    for file in _files_of_tests(options.tree, options.tests):
        near = any(is_near(options.tree, file, package) for package in packages)
        ring = _NEAR if near else PurePath(file).parts[1]
        if ring in rings:
            rings[ring].append(file)
    return {ring: files for ring, files in rings.items() if files}


@contextmanager
def _runner(options: argparse.Namespace) -> Iterator[MutantRunner]:
    place = _MEMORY if os.access(_MEMORY, os.W_OK) else None
    sources = modules(options.tree)
    probes = with_probes({f: t for files in sources.values() for f, t in files.items()})
    folder = Path(tempfile.mkdtemp(prefix="m", dir=place))
    try:
        prepared = folder / "prepared"
        prepared.mkdir()
        with (
            _postgres_url() as url,
            MutantRunner(
                options.tree,
                folder,
                workers=options.workers,
                variables=run_environment(options.tree, prepared, url),
                probes=probes,
                marks=options.marks,
                budget_s=options.budget,
            ) as runner,
        ):
            yield runner
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def _postgres_url() -> Iterator[str]:
    if url := os.environ.get(URL_VARIABLE):
        yield url
        return
    with short_folder() as folder:
        server = PostgresServer.start(folder)
        try:
            yield server.url("postgres")
        finally:
            server.stop()


def _files_of_tests(tree: Path, given: Sequence[Path]) -> list[str]:
    found: set[Path] = set()
    for path in given:
        full = tree / path
        found |= set(full.rglob("test_*.py")) if full.is_dir() else {full}
    return sorted(str(path.relative_to(tree)) for path in found)


def main(argv: Sequence[str] | None = None) -> int:
    """Choose mutants, test them and print what became of them."""
    options = _options(argv)
    mutants = chosen(options)
    _say(f"seed {options.seed}, {len(mutants)} mutants")
    if options.list:
        for mutant in mutants:
            change = mutant.change
            _say(
                f"{mutant.name} {mutant.at} {change.kind}: {mutant.before!r}"
                f" -> {change.text!r}"
            )
        return 0
    before = signal.signal(signal.SIGTERM, _stop)
    try:
        results = run(mutants, options)
    finally:
        signal.signal(signal.SIGTERM, before)
    for result in results:
        if not result.is_dead:
            _say(str(result))
    _say(f"seed {options.seed}, {summary(results)}")
    if options.against is None:
        return 0
    fewer = lost(Results(options.against).read(), results)
    for result in fewer:
        _say(f"was killed before: {result}")
    return 1 if fewer else 0


def _options(argv: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="mutants",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add = parser.add_argument
    add("--seed", type=int, required=True, help="a number that chooses the sample")
    add("--count", type=int, default=60, help="mutants (60)")
    add("--list", action="store_true", help="print the sample and run nothing")
    add("--only", nargs="+", metavar="NAME", help="test these of the sample alone")
    add("--workers", type=int, default=2, help="runs side by side (2)")
    add("--out", type=Path, metavar="FILE", help="results; needed unless --list")
    add("--against", type=Path, metavar="FILE", help="results to compare with")
    add("--tree", type=Path, default=ROOT, help="folder of the tree (this one)")
    add(
        "--tests",
        type=Path,
        nargs="+",
        default=[Path("tests")],
        help="files and folders of tests, from the tree's folder on (tests)",
    )
    add(
        "--rings",
        nargs="+",
        choices=_RINGS,
        default=_RINGS,
        help=f"tests that run, one ring after the other ({' '.join(_RINGS)})",
    )
    add("--marks", default=_MARKS, help=f"tests that count ({_MARKS})")
    add(
        "--budget",
        type=float,
        default=_BUDGET_S,
        metavar="SECONDS",
        help="of tests of each ring, after which a mutant survives it (600)",
    )
    options = parser.parse_args(argv)
    if options.out is None and not options.list:
        parser.error("--out is needed")
    options.tree = options.tree.resolve()
    return options


def _stop(*_: object) -> NoReturn:
    raise SystemExit(128 + signal.SIGTERM)


def _say(line: str) -> None:
    print(line, flush=True)  # noqa: T201 (a command's output)


if __name__ == "__main__":
    sys.exit(main())
