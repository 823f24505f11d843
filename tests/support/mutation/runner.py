"""Tests recorded and mutants tested, in copies of a tree, several side by side."""

import queue
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, as_completed
from contextlib import contextmanager
from dataclasses import replace
from itertools import groupby
from pathlib import Path, PurePath
from typing import Final, Self, TypeVar

from tests.support.mutation.coverage_map import (
    CoverageMap,
    CoveringTest,
    hash_of_sources,
)
from tests.support.mutation.outcomes import Outcome
from tests.support.mutation.probes import Probes
from tests.support.mutation.results import KILLED, SURVIVED, TIMEOUT, UNCOVERED, Result
from tests.support.mutation.sample import Mutant
from tests.support.mutation.trees import Limits, Tree

_T = TypeVar("_T")
_CHUNK: Final = 8
"""Files of tests that are recorded in one run; a stop loses the run in progress."""
_RECORDING: Final = Limits(run=3 * 3600, test=900)
_BATCH: Final = 16
_BATCH_S: Final = 10.0
_GROWTH: Final = 8
"""Most mutants die by the first few tests; each batch is so many times larger."""
_START_S: Final = 180.0
"""Longest that pytest and what tests share take to start, on a busy machine."""
_TEST_S: Final = 60.0
_SLOWER: Final = 10
"""A test that takes so many times longer than when it was recorded hangs."""


class MutantRunner:
    """Workers that record tests and test mutants.

    Args:
        tree: its folder, which stays as it is.
        folder: existing, with a short path, for the copies.
        workers: count of copies.
        variables: of the tests.
        probes: of the packages.
        marks: of the tests that count, as of pytest's `-m`.
        budget_s: seconds of tests, as recorded, after which a mutant survives.
    """

    def __init__(
        self,
        tree: Path,
        folder: Path,
        *,
        workers: int,
        variables: Mapping[str, str],
        probes: Probes,
        marks: str,
        budget_s: float,
    ) -> None:
        self._sources = hash_of_sources(tree)
        self._probes = probes
        self._marks = marks
        self._budget_s = budget_s
        self.map = CoverageMap(tree, probes.places)
        self._pool = ThreadPoolExecutor(workers)
        self._trees: list[Tree] = []
        self._free: queue.SimpleQueue[Tree] = queue.SimpleQueue()
        for number in range(workers):
            place = folder / str(number)
            place.mkdir()
            self._trees.append(Tree.copied(tree, place, variables))
            self._free.put(self._trees[-1])

    def __enter__(self) -> Self:
        """Work for the block; what is in progress at its end is stopped."""
        return self

    def __exit__(self, *_: object) -> None:
        self._pool.shutdown(wait=False, cancel_futures=True)
        for tree in self._trees:
            tree.stop()
        self._pool.shutdown()

    def record(self, files: Iterable[str]) -> Iterator[list[str]]:
        """Record the tests that are not in the map.

        Args:
            files: of tests.

        Yields:
            Files as they are recorded.
        """
        chunks = list(_chunks(self.map.missing(files)))
        yield from _ended([self._pool.submit(self._record, each) for each in chunks])

    def _record(self, files: list[str]) -> list[str]:
        with self._tree() as tree:
            tree.put_probes(self._probes)
            run = tree.run(
                files, _RECORDING, "-m", self._marks, "--continue-on-collection-errors"
            )
        if not any(not each.test for each in run.outcomes):
            raise RuntimeError(f"recording {files[0]} failed:\n{run.output[-2000:]}")
        self.map.save(files, run.outcomes)
        return files

    def run(
        self,
        mutants: Iterable[tuple[Mutant, Result | None]],
        files: Sequence[str],
        *,
        seed: int,
        ring: str,
    ) -> Iterator[Result]:
        """Run the tests of each mutant until one fails.

        Args:
            mutants: each with the result of other tests, which it survived.
            files: of tests, recorded.
            seed: of the sample.
            ring: a name for the files.

        Yields:
            Results as they are known.
        """

        def result_of(mutant: Mutant, earlier: Result | None) -> Result:
            begun = time.monotonic()
            result = self._run(mutant, files, earlier or self._unknown(mutant, seed))
            seconds = result.seconds + time.monotonic() - begun
            rings = {**result.rings, ring: self.map.state(files)}
            return replace(result, seconds=round(seconds, 1), rings=rings)

        yield from _ended([self._pool.submit(result_of, *each) for each in mutants])

    def _unknown(self, mutant: Mutant, seed: int) -> Result:
        return Result(
            seed=seed,
            sources=self._sources,
            mutant=mutant.name,
            at=mutant.at,
            kind=mutant.change.kind,
            before=mutant.before,
            after=mutant.change.text,
            outcome=UNCOVERED,
            by="",
            tests=0,
            covering=0,
            rings={},
            seconds=0.0,
        )

    def _run(self, mutant: Mutant, files: Sequence[str], result: Result) -> Result:
        covering = self.map.covering(mutant, files)
        result = replace(result, covering=result.covering + len(covering))
        with self._tree() as tree:
            for batch in batches(covering, self._budget_s):
                result = _tried(tree, mutant, batch, result)
                if result.is_dead:
                    break
        return result

    @contextmanager
    def _tree(self) -> Iterator[Tree]:
        """A copy for the block, restored at its end."""
        tree = self._free.get()
        try:
            yield tree
        finally:
            tree.restore()
            self._free.put(tree)


def _tried(
    tree: Tree, mutant: Mutant, batch: list[CoveringTest], result: Result
) -> Result:
    """Run a batch of tests on a mutant.

    A test that fails without the mutant too does not count; the ones after it run then.
    """
    while batch:
        tree.write(mutant.file, mutant.text)
        run = tree.run(_files(batch), _limits(batch), "-x", only=_ids(batch))
        result = replace(result, tests=result.tests + run.ended)
        if run.failure is None:
            outcome = SURVIVED if result.tests else result.outcome
            return replace(result, outcome=outcome)
        tree.restore()
        failed = _failed(batch, run.failure)
        alone = tree.run(_files(failed), _limits(failed), only=_ids(failed))
        if alone.failure is None:
            is_late = run.failure.result == TIMEOUT
            return replace(
                result,
                outcome=TIMEOUT if is_late else KILLED,
                by=run.failure.test or failed[0].test,
                tests=result.tests + 1,
            )
        batch = batch[batch.index(failed[-1]) + 1 :]
    return result


def _failed(batch: list[CoveringTest], failure: Outcome) -> list[CoveringTest]:
    """The test that failed; those of its file if that could not be imported."""
    found = [each for each in batch if failure.test in {each.test, each.file}]
    return found or batch[:1]


def batches(
    tests: Sequence[CoveringTest], budget_s: float
) -> Iterator[list[CoveringTest]]:
    """Cut the tests of a mutant into runs, each larger than the one before.

    Args:
        tests: in the order in which they run.
        budget_s: seconds of tests after which none runs.
    """
    most, most_s, spent = float(_BATCH), _BATCH_S, 0.0
    batch: list[CoveringTest] = []
    for test in tests:
        if spent + test.seconds > budget_s:
            break
        spent += test.seconds
        batch.append(test)
        if len(batch) >= most or sum(each.seconds for each in batch) >= most_s:
            yield batch
            batch, most, most_s = [], most * _GROWTH, most_s * _GROWTH
    if batch:
        yield batch


def _limits(batch: Iterable[CoveringTest]) -> Limits:
    seconds = [each.seconds for each in batch]
    return Limits(
        run=_START_S + _SLOWER * sum(seconds), test=_TEST_S + _SLOWER * max(seconds)
    )


def _files(batch: Iterable[CoveringTest]) -> list[str]:
    return list(dict.fromkeys(each.file for each in batch))


def _ids(batch: Iterable[CoveringTest]) -> list[str]:
    return [each.test for each in batch]


def _chunks(files: Iterable[str]) -> Iterator[list[str]]:
    """Files of one folder share fixtures: together, but not too many."""
    for _, group in groupby(sorted(files), key=lambda file: PurePath(file).parent):
        of_folder = list(group)
        for at in range(0, len(of_folder), _CHUNK):
            yield of_folder[at : at + _CHUNK]


def _ended(futures: Sequence[Future[_T]]) -> Iterator[_T]:
    for future in as_completed(futures):
        yield future.result()
