"""Which tests run which statements, recorded once for each state of the sources.

`.check/coverage/HASH` has one file for each file of tests. The hash is of our packages
and of `tests/support`. A file of tests that changed is recorded again.
"""

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePath
from typing import Any, Final

from tests.support.mutation.outcomes import Outcome
from tests.support.mutation.sample import Mutant

_SOURCES: Final = (
    "appliance", "worker", "hsm_config", "admin_ui", "embed", "tests/support",
)  # fmt: skip
_NOT_HASHED: Final = PurePath("tests/support/mutation")
_HASH_LENGTH: Final = 16


@dataclass(frozen=True, slots=True)
class CoveringTest:
    """A test that runs a mutant's statement.

    Args:
        test: its id.
        seconds: that it took.
        is_near: whether its file belongs to the mutant's package.
    """

    test: str
    seconds: float
    is_near: bool

    @property
    def file(self) -> str:
        """The test's file."""
        return self.test.partition("::")[0]


class CoverageMap:
    """The map of one tree.

    Args:
        tree: its folder.
        places: file and line of each probe.
    """

    def __init__(self, tree: Path, places: Sequence[tuple[str, int]]) -> None:
        self._tree = tree
        self._folder = tree / ".check" / "coverage" / hash_of_sources(tree)
        self._lines: dict[tuple[str, int], int] = {}
        self._files: dict[str, int] = {}
        for at, (file, line) in enumerate(places):
            self._lines[file, line] = self._lines.get((file, line), 0) | 1 << at
            self._files[file] = self._files.get(file, 0) | 1 << at
        self._read: dict[str, list[Outcome]] = {}

    def missing(self, files: Iterable[str]) -> list[str]:
        """Files of tests that are not recorded, or that changed since."""
        return [file for file in files if self._tests(file) is None]

    def save(self, files: Iterable[str], outcomes: Iterable[Outcome]) -> None:
        """Keep what a run of some files recorded."""
        ended = [each for each in outcomes if each.result != "started"]
        on_import = sum(each.hits for each in ended if not each.test)
        for file in files:
            tests = [each for each in ended if each.test.partition("::")[0] == file]
            record = {
                "state": self._state(file),
                "on_import": f"{on_import:x}",
                "tests": [
                    {
                        "test": each.test,
                        "result": each.result,
                        "seconds": each.seconds,
                        "hits": f"{each.hits:x}",
                    }
                    for each in tests
                ],
            }
            self._folder.mkdir(parents=True, exist_ok=True)
            part = self._path(file).with_suffix(".part")
            part.write_text(json.dumps(record), "utf-8")
            part.rename(self._path(file))
            self._read.pop(file, None)

    def failed(self, files: Iterable[str]) -> list[str]:
        """Tests that failed with no mutant: they prove nothing."""
        return [
            each.test
            for file in files
            for each in self._tests(file) or ()
            if each.result in {"failed", "timeout"}
        ]

    def covering(self, mutant: Mutant, files: Iterable[str]) -> list[CoveringTest]:
        """Tests that passed and run the mutant's statement, the cheapest first.

        Near files come first. One test of each file comes before the second one of
        any: tests of one file resemble each other.

        Args:
            mutant: that is to be killed.
            files: of tests, recorded.
        """
        ordered: list[tuple[bool, int, float, CoveringTest]] = []
        for file in files:
            near = is_near(self._tree, file, mutant.package)
            tests = [
                each for each in self._tests(file) or () if each.result == "passed"
            ]
            found = sorted(self._of(tests, mutant), key=lambda each: each.seconds)
            for place, each in enumerate(found):
                test = CoveringTest(each.test, each.seconds, near)
                ordered.append((not near, place, each.seconds, test))
        return [test for *_, test in sorted(ordered, key=lambda entry: entry[:3])]

    def _of(self, tests: Iterable[Outcome], mutant: Mutant) -> Iterator[Outcome]:
        """What runs on import concerns whoever runs any function of the module."""
        wanted = self._files.get(mutant.file, 0)
        if mutant.statement.is_in_function:
            wanted = self._lines.get((mutant.file, mutant.statement.line), 0)
        return (each for each in tests if each.hits & wanted)

    def _tests(self, file: str) -> list[Outcome] | None:
        if file not in self._read:
            try:
                record: Mapping[str, Any] = json.loads(self._path(file).read_bytes())
            except FileNotFoundError:
                return None
            if record["state"] != self._state(file):
                return None
            on_import = int(record["on_import"], 16)
            self._read[file] = [
                Outcome(
                    each["test"],
                    each["result"],
                    each["seconds"],
                    int(each["hits"], 16) | on_import,
                )
                for each in record["tests"]
            ]
        return self._read[file]

    def state(self, files: Iterable[str]) -> str:
        """A hash of files of tests; it differs once one of them is edited."""
        states = "".join(f"{file}\0{self._state(file)}\0" for file in files)
        return hashlib.sha256(states.encode()).hexdigest()[:_HASH_LENGTH]

    def _path(self, file: str) -> Path:
        return self._folder / f"{file.replace('/', '.')}.json"

    def _state(self, file: str) -> str:
        return hashlib.sha256((self._tree / file).read_bytes()).hexdigest()


def hash_of_sources(tree: Path) -> str:
    """The state of all that tests run, without the tests."""
    state = hashlib.sha256()
    for folder in _SOURCES:
        for path in sorted((tree / folder).rglob("*.py")):
            name = path.relative_to(tree)
            if not name.is_relative_to(_NOT_HASHED):
                state.update(f"{name}\0".encode() + path.read_bytes() + b"\0")
    return state.hexdigest()[:_HASH_LENGTH]


def is_near(tree: Path, file: str, package: str) -> bool:
    """Whether a file of tests belongs to a package: by its folder, or by its imports.

    Args:
        tree: its folder.
        file: of tests.
        package: as a path.
    """
    features = set(PurePath(package).parts[1:])
    if features & set(PurePath(file).parts):
        return True
    return package.replace("/", ".") in (tree / file).read_text("utf-8")
