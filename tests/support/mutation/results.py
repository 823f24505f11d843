"""What became of mutants, one JSON object a line."""

import json
import threading
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Final

KILLED: Final = "killed"
TIMEOUT: Final = "timeout"
SURVIVED: Final = "survived"
UNCOVERED: Final = "uncovered"
DEAD: Final = frozenset({KILLED, TIMEOUT})
_SHOWN: Final = 60
"""Characters of a change that one line shows."""


@dataclass(frozen=True, slots=True)
class Result:
    """Outcome of a mutant.

    Args:
        seed: of the sample.
        sources: state of the tree, of the product alone.
        mutant: its name.
        at: file and line.
        kind: of the change.
        before: the text that was changed.
        after: the text in its place.
        outcome: `killed`, `timeout`, `survived` or `uncovered`.
        by: the test that killed it.
        tests: count of those that ran.
        covering: count of those that run the statement.
        rings: of tests that ran, from those near its package outwards, each with the
            state of its files.
        seconds: that it took.
    """

    seed: int
    sources: str
    mutant: str
    at: str
    kind: str
    before: str
    after: str
    outcome: str
    by: str
    tests: int
    covering: int
    rings: dict[str, str]
    seconds: float

    @property
    def is_dead(self) -> bool:
        """Whether the tests noticed it."""
        return self.outcome in DEAD

    def __str__(self) -> str:
        rings = ", ".join(self.rings)
        by = f", by {self.by}" if self.by else ""
        return (
            f"{self.outcome} {self.mutant} {self.at} {self.kind}: "
            f"{_short(self.before)} -> {_short(self.after)} "
            f"({self.tests} of {self.covering} tests, {rings}{by})"
        )


class Results:
    """A file of results.

    Args:
        path: written to as each mutant is tested.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._lock = threading.Lock()

    def add(self, result: Result) -> None:
        """Write a line; it replaces an earlier one of the same mutant."""
        with self._lock, self._path.open("a", encoding="utf-8") as file:
            file.write(f"{json.dumps(asdict(result), ensure_ascii=False)}\n")

    def read(self) -> dict[str, Result]:
        """The last result by mutant.

        Raises:
            ValueError: the file is not one of results.
        """
        if not self._path.exists():
            return {}
        wanted = {field.name for field in fields(Result)}
        results: dict[str, Result] = {}
        for text in self._path.read_text("utf-8").splitlines():
            line = json.loads(text)
            if not isinstance(line, dict) or line.keys() != wanted:
                raise ValueError(f"{self._path}: no file of results")
            results[line["mutant"]] = Result(**line)
        return results


def lost(before: Mapping[str, Result], after: Iterable[Result]) -> list[Result]:
    """Mutants that one run killed and another one did not."""
    return [
        result
        for result in after
        if not result.is_dead
        and result.mutant in before
        and before[result.mutant].is_dead
    ]


def summary(results: Iterable[Result]) -> str:
    """How many of each outcome."""
    counts = Counter(result.outcome for result in results)
    told = ", ".join(
        f"{counts[outcome]} {outcome}"
        for outcome in (KILLED, TIMEOUT, SURVIVED, UNCOVERED)
    )
    return f"{counts.total()} mutants: {told}"


def _short(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= _SHOWN else f"{line[: _SHOWN - 1]}…"
