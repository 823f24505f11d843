"""The manual's step that makes users, folders and units, in an upgrade by hand.

Source: docs/installing.md; docs/running.md, "Stop, restart, upgrade".
"""

import subprocess
from pathlib import Path
from typing import Final

import pytest

from tests.support.appliance.manual import script

_SETTINGS: Final = "/etc/rubrica/settings.toml"
_COMMANDS: Final = (
    *("install", "systemd-sysusers", "systemctl", "ln", "rubrica", "systemd-tmpfiles"),
)
_UNITS: Final = ["install units", "systemctl", "ln"]
_FOLDERS: Final = ["install tmpfiles.conf", "systemd-tmpfiles"]


@pytest.mark.parametrize(
    ("is_upgrade", "pins", "wanted"),
    [
        (False, "exit 1", [*_UNITS, *_FOLDERS]),
        (True, "exit 0", [*_UNITS, "rubrica", *_FOLDERS]),
        # What is in the way is told, and the workers' user reads its PINs on.
        (True, "exit 1", [*_UNITS, "rubrica"]),
    ],
)
def test_folder_of_pins_is_closed_once_they_are_handed_over(
    tmp_path: Path, *, is_upgrade: bool, pins: str, wanted: list[str]
) -> None:
    """By units that systemd has read; and by no run that was refused."""
    log, programs, settings = (tmp_path / name for name in ("log", "bin", "settings"))
    programs.mkdir()
    if is_upgrade:
        settings.touch()
    for name in _COMMANDS:
        ends = pins if name == "rubrica" else "exit 0"
        text = f'#!/bin/sh\necho "{name} $*" >>{log}\n{ends}\n'
        (programs / name).write_text(text)
        (programs / name).chmod(0o755)
    step = script("installing.md", "First installation, with systemd", 1)
    assert _SETTINGS in step
    step = step.replace(_SETTINGS, str(settings)).replace("/opt/rubrica\n", "/\n")

    # No command but those: nothing of this machine is changed.
    subprocess.run(["/bin/bash", "-c", step], env={"PATH": str(programs)}, check=False)

    done = [_short(line) for line in log.read_text().splitlines()]
    assert done[2:] == wanted
    assert done[:2] == ["install sysusers.conf", "systemd-sysusers"]


def _short(line: str) -> str:
    """A command, with what it installs."""
    name, _, rest = line.partition(" ")
    kinds = ("sysusers.conf", "tmpfiles.conf")
    kind = next((each for each in kinds if f"systemd/{each} " in rest), "units")
    return f"{name} {kind}" if name == "install" else name
