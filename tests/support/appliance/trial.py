"""What `./quickstart` leaves running, without what it installs: a trial in a folder.

    with running_trial(folder) as trial:
        trial.run("rubrica() { … }")

The folder has `var/` and `.venv/bin/` as the tree has them after it, so that lines for
whoever has just started a trial run there as they are printed.
"""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from appliance.settings import load_settings
from tests.support.processes.forked_command import command_script
from tests.support.processes.rubrica import run_rubrica, start_rubrica

_STOP_S: Final = 60.0


@dataclass(frozen=True, slots=True)
class Trial:
    """A running one."""

    folder: Path
    web_url: str
    settings_file: Path

    def run(self, script: str) -> str:
        """Run a script as somebody would in that folder, to a good end; what it said.

        What it leaves running ends with it.
        """
        with subprocess.Popen(
            ["bash", "-euo", "pipefail", "-c", script],
            cwd=self.folder,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        ) as process:
            try:
                out, _ = process.communicate(timeout=600)
            finally:
                if process.returncode != 0:
                    os.killpg(process.pid, signal.SIGKILL)
        assert process.returncode == 0, f"{script}\n{out}"
        return out


@contextmanager
def running_trial(folder: Path, network: str = "") -> Iterator[Trial]:
    """Set one up by the commands of `quickstart`, and stop it after.

    Args:
        folder: a short, private, empty one.
        network: this machine's address in the network that reaches it; empty: none
            does.
    """
    programs = folder / ".venv/bin"
    programs.mkdir(parents=True)
    (programs / "rubrica").write_text(command_script())
    (programs / "rubrica").chmod(0o755)
    (programs / "python").write_text(f'#!/bin/sh\nexec {sys.executable} "$@"\n')
    (programs / "python").chmod(0o755)
    file = folder / "var/settings.toml"
    settings = ("--settings", str(file))
    _done(*settings, "init", "--trial", str(folder / "var"))
    if network:
        file = folder / "var/settings-network.toml"
        prepare = ("--prepare", str(file), "--address", network)
        _done(*settings, "demo", "network", *prepare)
        settings = ("--settings", str(file))
    _done(*settings, "migrate")
    _done(*settings, "hsm", "init")
    log = folder / "rubrica.log"
    with log.open("ab") as out:
        process = start_rubrica(*settings, "up", stdout=out, stderr=out)
    try:
        _done(*settings, "ready", "--wait", "120", "--pid", str(process.pid))
        _done(*settings, "demo", "setup")
        yield Trial(folder, load_settings(file).web.web_url, file)
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(_STOP_S)


def _done(*arguments: str) -> None:
    done = run_rubrica(*arguments)
    assert done.returncode == 0, done.stdout + done.stderr
