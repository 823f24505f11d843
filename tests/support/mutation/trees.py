"""Copies of the tree in which mutants live, and runs of pytest in them."""

import itertools
import os
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import pytest

from tests.support.mutation.keeper import OVERDUE, command_line
from tests.support.mutation.outcomes import Outcome, read_outcomes
from tests.support.mutation.probes import HITS_FILE, Probes, hits_module

_CACHES: Final = (
    "__pycache__",
    ".mypy_cache",
    ".ruff_cache",
    ".pytest_cache",
    ".hypothesis",
)
_NOT_COPIED: Final = frozenset({".git", ".venv", ".check", "var", *_CACHES})
"""In the tree's own folder."""
_NO_CACHES: Final = shutil.ignore_patterns(*_CACHES)
_OUR_PART: Final = "tests/support/mutation"
_PLUGIN: Final = "tests.support.mutation.outcomes"
_PREPARED: Final = "RUBRICA_TEST_PREPARED"
"""As `tests.support.processes.setup_cache` has it."""
_MANGLED: Final = ("PYTHONDONTWRITEBYTECODE", "PYTEST_ADDOPTS")
_ENDED_WELL: Final = frozenset({pytest.ExitCode.OK, pytest.ExitCode.NO_TESTS_COLLECTED})
_ROOT: Final = Path(__file__).parents[3]
_OTHERS_MAY_PASS: Final = 0o711
_ALL_MAY_WRITE: Final = 0o666
"""Processes of other users run statements too."""


@dataclass(frozen=True, slots=True)
class Limits:
    """Seconds that tests may take.

    Args:
        run: all of them together.
        test: one of them.
    """

    run: float
    test: float


@dataclass(frozen=True, slots=True)
class Run:
    """What came of a run of pytest.

    Args:
        status: of pytest, or OVERDUE.
        outcomes: in the order of the tests.
        output: what pytest printed.
    """

    status: int
    outcomes: list[Outcome]
    output: str

    @property
    def failure(self) -> Outcome | None:
        """The first test that failed, or the one at which the run ended too early."""
        failed = (
            each for each in self.outcomes if each.result in {"failed", "timeout"}
        )
        if (first := next(failed, None)) is not None or self.status in _ENDED_WELL:
            return first
        last = self.outcomes[-1].test if self.outcomes else ""
        return Outcome(last, "timeout" if self.status == OVERDUE else "failed")

    @property
    def ended(self) -> int:
        """Number of tests that passed or were skipped."""
        return sum(
            bool(each.test) and each.result in {"passed", "skipped"}
            for each in self.outcomes
        )


class StoppedError(Exception):
    """The tree was stopped: the run says nothing of its tests."""


class Tree:
    """A copy of a tree.

    Args:
        root: of the copy.
        scratch: a folder for what tests write.
        variables: of the tests, besides those of this process.
    """

    def __init__(self, root: Path, scratch: Path, variables: Mapping[str, str]) -> None:
        self.root = root
        self._variables = variables
        self._scratch = scratch
        self._originals: dict[str, str | None] = {}
        self._running: subprocess.Popen[bytes] | None = None
        self._stopped = threading.Event()
        self._times = itertools.count(int(time.time()))

    @classmethod
    def copied(cls, source: Path, folder: Path, variables: Mapping[str, str]) -> "Tree":
        """Copy a tree.

        Args:
            source: with our tests; what it links to stays where it is.
            folder: existing, with a short path for unix sockets.
            variables: of the tests, besides those of this process.
        """
        root, scratch = folder / "tree", folder / "s"
        scratch.mkdir()
        root.mkdir()
        for path in source.iterdir():
            if path.name in _NOT_COPIED:
                continue
            if path.is_dir():
                shutil.copytree(
                    path, root / path.name, symlinks=True, ignore=_NO_CACHES
                )
            else:
                shutil.copy2(path, root / path.name, follow_symlinks=False)
        if (source / ".venv").exists():
            (root / ".venv").symlink_to((source / ".venv").resolve())
        if source != _ROOT:
            shutil.copytree(
                _ROOT / _OUR_PART,
                root / _OUR_PART,
                ignore=_NO_CACHES,
                dirs_exist_ok=True,
            )
        for each in (folder, root, scratch):
            each.chmod(_OTHERS_MAY_PASS)
        return cls(root, scratch, variables)

    def write(self, file: str, text: str) -> None:
        """Change a file until `restore`.

        Args:
            file: from the root on.
            text: all of it.
        """
        path = self.root / file
        if file not in self._originals:
            known = path.read_text("utf-8") if path.exists() else None
            self._originals[file] = known
        self._put(path, text)

    def restore(self) -> None:
        """Have all files as they were copied."""
        for file, text in self._originals.items():
            if text is None:
                (self.root / file).unlink()
            else:
                self._put(self.root / file, text)
        self._originals.clear()

    def put_probes(self, probes: Probes) -> None:
        """Have all processes record the statements that run."""
        hits = self._scratch.parent / "hits"
        hits.write_bytes(bytes(len(probes.places)))
        hits.chmod(_ALL_MAY_WRITE)
        for file, text in probes.texts.items():
            self.write(file, text)
        self.write(HITS_FILE, hits_module(hits, len(probes.places)))

    def _put(self, path: Path, text: str) -> None:
        path.write_text(text, "utf-8")
        # Python takes compiled code for that of a source of the same second and size.
        moment = next(self._times)
        os.utime(path, (moment, moment))

    def run(
        self,
        files: Sequence[str],
        limits: Limits,
        *options: str,
        only: Sequence[str] = (),
    ) -> Run:
        """Run tests.

        Args:
            files: of tests.
            limits: of their time.
            *options: of pytest.
            only: ids of the tests, in the order in which they run; by default all.

        Raises:
            StoppedError: by `stop`, before or meanwhile.
        """
        if self._stopped.is_set():
            raise StoppedError
        with tempfile.TemporaryDirectory(
            prefix="r", dir=self._scratch.parent, ignore_cleanup_errors=True
        ) as name:
            folder = Path(name)
            outcomes, output, ids = (
                folder / each for each in ("outcomes", "out", "ids")
            )
            chosen: list[str] = []
            if only:
                ids.write_text("".join(f"{each}\n" for each in only), "utf-8")
                chosen = ["--only-tests", str(ids)]
            command = [
                *(sys.executable, "-m", "pytest", "-q", "--tb=short"),
                *("-p", "no:cacheprovider", "-p", _PLUGIN),
                *("--timeout", f"{limits.test:.0f}", "--basetemp", str(folder / "t")),
                *("--outcomes", str(outcomes), *chosen, *options, *files),
            ]
            with (
                output.open("wb") as out,
                subprocess.Popen(
                    command_line(limits.run, *command),
                    cwd=self.root,
                    env=self._environment(),
                    stdin=subprocess.DEVNULL,
                    stdout=out,
                    stderr=subprocess.STDOUT,
                ) as self._running,
            ):
                if self._stopped.is_set():
                    self._running.terminate()
                status = self._running.wait()
            found = read_outcomes(outcomes)
            text = output.read_text("utf-8", "replace")
        self._clear()
        if self._stopped.is_set():
            raise StoppedError
        return Run(status, found, text)

    def stop(self) -> None:
        """End the run in progress, and all that it started; begin no other."""
        self._stopped.set()
        if self._running is not None:
            self._running.terminate()

    def _environment(self) -> dict[str, str]:
        variables = {k: v for k, v in os.environ.items() if k not in _MANGLED}
        path = variables.get("PATH", os.defpath)
        return {
            **variables,
            "PATH": f"{Path(sys.executable).parent}:{path}",
            "PYTHONPATH": str(self.root),
            "RUBRICA_TEST_SCRATCH": str(self._scratch),
            **self._variables,
        }

    def _clear(self) -> None:
        """Remove what tests that were killed have left."""
        for path in self._scratch.iterdir():
            if path.is_dir() and not path.is_symlink():
                shutil.rmtree(path, ignore_errors=True)
            else:
                path.unlink(missing_ok=True)


def run_environment(tree: Path, prepared: Path, postgres: str) -> dict[str, str]:
    """Variables that the tests of all copies share, as `./check` sets them.

    Args:
        tree: that is copied.
        prepared: an existing folder for HSM tokens that many tests start from. Copies
            share it, or each mutant would have its own tokens generated.
        postgres: URL of a running server.
    """
    return {
        _PREPARED: str(prepared),
        "RUBRICA_TEST_POSTGRES_URL": postgres,
        "SSL_CERT_FILE": str(tree / "tests/support/pki/no_authority.pem"),
    }
