"""`./quickstart` as it is, in folders of its own, without what it installs."""

import os
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import pytest

from appliance.settings import load_settings
from tests.support.patience import CALL_S
from tests.support.processes.rubrica import command_line, run_rubrica
from tests.support.processes.scratch import short_folder

_ROOT: Final = Path(__file__).resolve().parents[3]
_LONGEST_S: Final = 300.0
_LIBRARY: Final = """
say() { printf '%s\\n' "$*" >&2; }
die() { say "$(basename "$0"): $*"; exit 1; }
run_packages=()
for name in python packages venv browser_libraries sdks; do
  eval "ensure_$name() { :; }"
done
"""
"""In place of what installs packages and libraries."""


@contextmanager
def _tree() -> Iterator[Path]:
    """A folder with the script and a `rubrica` of this tree."""
    with short_folder() as folder:
        shutil.copy(_ROOT / "quickstart", folder)
        (folder / ".ci").mkdir()
        (folder / ".ci/lib.sh").write_text(_LIBRARY)
        programs = folder / ".venv/bin"
        programs.mkdir(parents=True)
        python, *rest = command_line()
        code = rest[-1]
        (programs / "rubrica").write_text(
            f'#!/bin/sh\nPYTHONPATH={_ROOT} exec {python} -c "{code}" "$@"\n'
        )
        (programs / "rubrica").chmod(0o755)
        yield folder


def _begin(folder: Path, *words: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        ["./quickstart", *words],
        cwd=folder,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )


def _end(process: subprocess.Popen[str]) -> str:
    """Wait for the end; what was said."""
    try:
        out, _ = process.communicate(timeout=_LONGEST_S)
    except BaseException:
        os.killpg(process.pid, signal.SIGKILL)
        raise
    return out


def _ports(folder: Path) -> set[int]:
    settings = load_settings(folder / "var/settings.toml")
    listening = map(settings.listen, ("api", "embed", "admin", "metrics"))
    return {settings.mail.server_port, *(int(a.rpartition(":")[2]) for a in listening)}


def test_two_at_once_sign_each_with_ports_of_its_own() -> None:
    """Started in the same moment from two clones, both come to their verified file."""
    with _tree() as one, _tree() as other:
        processes = [_begin(folder, "--once") for folder in (one, other)]
        said = [_end(process) for process in processes]

        assert [process.returncode for process in processes] == [0, 0], said
        for folder, words in zip((one, other), said, strict=True):
            assert f"signed PDF: {folder}/var/contrato-firmado.pdf" in words
        assert len(_ports(one) | _ports(other)) == 10


def test_mail_port_that_is_taken_is_said_at_once() -> None:
    """Before anything is started: who has it, and where another one is chosen."""
    with _tree() as folder:
        made = run_rubrica("init", "--trial", str(folder / "var"))
        assert made.returncode == 0
        port = load_settings(folder / "var/settings.toml").mail.server_port
        with socket.create_server(("127.0.0.1", port)):
            process = _begin(folder)
            said = _end(process)

        assert process.returncode == 1
        assert f"127.0.0.1:{port}: cannot be listened on (it is in use by " in said
        assert f"mail.port in {folder}/var/settings.toml" in said
        assert not (folder / "var/log").exists()


def test_second_one_in_the_same_folder_is_refused() -> None:
    """It takes nothing from the first, whose ports are those of the settings."""
    with _tree() as folder:
        first = _begin(folder)
        try:
            _until_running(first)
            second = _begin(folder)
            said = _end(second)
        finally:
            first.send_signal(signal.SIGTERM)
            _end(first)

    assert (second.returncode, said) == (
        1,
        "quickstart: another ./quickstart is running here\n",
    )


def test_site_that_ends_is_said_with_its_last_words() -> None:
    """The whole ends with status 1, and never without a word."""
    with _tree() as folder:
        process = _begin(folder)
        _until_running(process)
        os.kill(_child(process.pid, "demo\0host"), signal.SIGKILL)
        said = _end(process)

    assert process.returncode == 1
    assert "quickstart: the demo site ended by itself" in said


def _until_running(process: subprocess.Popen[str]) -> None:
    assert process.stdout is not None
    said = []
    while not (line := process.stdout.readline()).startswith("running;"):
        said.append(line)
        assert line, "".join(said)


def _child(parent: int, words: str) -> int:
    """The child of a process whose command line has these words."""
    deadline = time.monotonic() + CALL_S
    while time.monotonic() < deadline:
        for folder in Path("/proc").glob("[0-9]*"):
            try:
                status = (folder / "status").read_text()
                command = (folder / "cmdline").read_bytes().decode()
            except OSError:
                continue
            if f"\nPPid:\t{parent}\n" in status and words in command:
                return int(folder.name)
    pytest.fail(f"no child of {parent} runs {words!r}")
