"""What the loaded process forks, which stands for `rubrica` executed by itself."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil
import pytest

from tests.support.processes.command_folder import make_command_folder
from tests.support.processes.forked_process import Running, Started
from tests.support.processes.rubrica import run_rubrica, start_rubrica
from tests.support.processes.scratch import free_port

_SOON_S = 60.0
_ROOT = Path(__file__).parents[3]
_PROGRAM = """\
import atexit, os, sys, threading, time
def main():
    """
"""Of a program whose one function goes on with one of these:"""
PROGRAMS = {
    "status": "return 3",
    "large status": "return 300",
    "exit": "sys.exit()",
    "exit with a status": "sys.exit(4)",
    "exit with a text": "sys.exit('why')",
    "failure": "return 1 // 0",
    "output": "return print('kept back', end='') or 0",
    "no output": "os.close(1); print('lost'); return 0",
    "thread": "threading.Timer(0.2, print, ['late']).start(); return 0",
    "at exit": "atexit.register(print, 'at exit'); return 0",
}
_HOLDER = """\
import os, sys
from pathlib import Path
from tests.support.processes.rubrica import Loaded
loaded = Loaded()
arguments = ("--settings", sys.argv[1], "migrate", "--wait", "300")
process = loaded.start(arguments, os.environ, Path.cwd(), *map(int, "000"))
print(loaded.process.pid, process.pid, flush=True)
sys.stdin.read()
"""


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """A settings file whose database is away."""
    port = free_port()
    make_command_folder(
        tmp_path, f"postgresql://rubrica@/none?host={tmp_path}&port={port}"
    )
    return tmp_path / "settings.toml"


def until(so: Callable[[], bool]) -> None:
    """Wait until something is so."""
    deadline = time.monotonic() + _SOON_S
    while not so():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def waiting(place: Path) -> Running:
    """A command that waits for its database for minutes."""
    return start_rubrica("--settings", str(place), "migrate", "--wait", "300")


@pytest.mark.parametrize(
    ("words", "status"),
    [
        (("--version",), 0),
        (("--help",), 0),
        (("no-such-command",), 2),
        (("--settings", "/nowhere", "check-config"), 78),
    ],
    ids=["version", "help", "wrong", "refused"],
)
def test_forked_and_executed_say_the_same(words: tuple[str, ...], status: int) -> None:
    """Output, errors and exit status."""
    forked, executed = run_rubrica(*words), run_rubrica(*words, execute=True)

    assert (forked.stdout, forked.stderr) == (executed.stdout, executed.stderr)
    assert (forked.returncode, executed.returncode) == (status, status)


@pytest.mark.parametrize("program", PROGRAMS)
def test_it_ends_as_a_program_ends(program: str) -> None:
    """Exit status, traceback, threads, what is done at exit, and output kept back."""
    usual, ours = (
        subprocess.run(
            [sys.executable, "-c", f"{_PROGRAM}{PROGRAMS[program]}\n{end}"],
            env={**os.environ, "PYTHONPATH": str(_ROOT)},
            capture_output=True,
            text=True,
            check=False,
        )
        for end in (
            "sys.exit(main())",
            "import tests.support.processes.fork_server as it; it.end_after(main)",
        )
    )

    assert (ours.returncode, ours.stdout) == (usual.returncode, usual.stdout)
    assert ours.stderr.splitlines()[-1:] == usual.stderr.splitlines()[-1:]


def test_it_is_forked_and_shows_its_own_arguments(place: Path) -> None:
    """Its parent is the loaded process; `ps` shows what it was started with."""
    with waiting(place) as process:
        assert isinstance(process, Started)
        seen = psutil.Process(process.pid)
        shown = [each for each in seen.cmdline() if each]
        parent = seen.parent()
        threads = parent.num_threads() if parent else 0
        mapped = Path(f"/proc/{seen.ppid()}/maps").read_text()
        process.kill()

    assert shown == [sys.executable, "-c", *process.args]
    assert parent is not None
    assert "tests.support.processes.fork_server" in parent.cmdline()
    # What forks must have no threads, and no PKCS#11 module is open twice.
    assert threads == 1
    assert "softhsm" not in mapped


@pytest.mark.parametrize(
    ("number", "status"),
    [(signal.SIGTERM, -15), (signal.SIGKILL, -9), (signal.SIGINT, 130)],
)
def test_signals_end_it_as_any_process(
    place: Path, number: signal.Signals, status: int
) -> None:
    """By a signal its status is negative; Ctrl-C is the command's to handle."""
    with waiting(place) as process:
        assert process.stderr is not None
        # It says so once it waits; before, Ctrl-C would end it as it starts.
        assert process.stderr.readline()
        with pytest.raises(subprocess.TimeoutExpired):
            process.wait(0.5)
        assert process.poll() is None
        process.send_signal(number)

    assert process.returncode == status
    process.kill()  # of one that has ended: nothing happens


def test_standard_streams_environment_folder_and_umask_are_its_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As those of a process that is executed."""
    monkeypatch.chdir(tmp_path)
    make_command_folder(tmp_path)
    variables = {**os.environ, "RUBRICA_SETTINGS": "settings.toml"}

    done = run_rubrica("migrate", environment=variables)

    assert done.returncode == 0, done.stderr
    assert (tmp_path / "rubrica.db").stat().st_mode & 0o077 == 0
    with (tmp_path / "said").open("w") as said:
        process = start_rubrica("audit", "verify", environment=variables, stdout=said)
        assert process.stdout is None
        _, err = process.communicate(timeout=_SOON_S)
    assert (process.returncode, err) == (0, "")
    assert (tmp_path / "said").read_text().endswith("all explained\n")
    code = ("integrator", "create", "acme", "Acme")
    assert run_rubrica(*code, environment=variables).returncode == 0
    monkeypatch.setenv("RUBRICA_SETTINGS", "elsewhere.toml")
    assert run_rubrica("check-config").returncode == 78


def test_nothing_of_the_others_is_open_in_it(place: Path) -> None:
    """Neither sockets of the loaded process nor what runs beside it."""
    with waiting(place) as first, waiting(place) as second:
        seen = psutil.Process(second.pid)
        assert second.stderr is not None
        assert second.stderr.readline().startswith("waiting for the database")
        held = [str(path.readlink()) for path in Path(f"/proc/{seen.pid}/fd").iterdir()]
        first.kill()
        second.kill()

    assert os.devnull in held
    assert sum(name.startswith("pipe:") for name in held) == 2
    assert not [name for name in held if "pidfd" in name]


def test_what_acts_at_load_has_python_started(place: Path) -> None:
    """A forked process would never see it."""
    variables = {**os.environ, "MALLOC_ARENA_MAX": "1"}
    with start_rubrica(
        *("--settings", str(place), "migrate", "--wait", "300"), environment=variables
    ) as process:
        assert isinstance(process, subprocess.Popen)
        process.kill()


@pytest.fixture
def holder(place: Path) -> Iterator[tuple[subprocess.Popen[str], list[int]]]:
    """A process with a loaded one and a command of it; the ids of those two."""
    with subprocess.Popen(
        [sys.executable, "-c", _HOLDER, str(place)],
        env={**os.environ, "PYTHONPATH": str(_ROOT)},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout is not None
        pids = [int(word) for word in process.stdout.readline().split()]
        try:
            yield process, pids
        finally:
            process.kill()


def test_all_ends_with_whoever_asked(
    holder: tuple[subprocess.Popen[str], list[int]],
) -> None:
    """Killed as nothing can prevent, it leaves neither the one nor the other."""
    process, pids = holder
    assert all(psutil.pid_exists(pid) for pid in pids)

    process.kill()

    until(lambda: not any(psutil.pid_exists(pid) for pid in pids))
