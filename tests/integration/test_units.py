"""The systemd units: valid, and exposed no more than stated here."""

import shutil
import subprocess
from pathlib import Path
from typing import Final

import pytest

UNITS: Final = Path(__file__).resolve().parents[2] / "systemd"
PROGRAM: Final = "/opt/rubrica/.venv/bin/rubrica"
SERVICES: Final = sorted(path.name for path in UNITS.glob("*.service"))

# Tenths of systemd's exposure level (0 best, 100 worst). What is left: sockets,
# the host's root directory and, but in the sandbox, the network of this machine.
THRESHOLDS: Final = {
    "rubrica-api.service": 10,
    "rubrica-chores.service": 10,
    "rubrica-embed.service": 10,
    "rubrica-admin.service": 10,
    "rubrica-migrate.service": 10,
    "rubrica-sandbox.service": 3,
    "rubrica-signing@.service": 10,
}

COPIES: Final = {
    "rubrica-api.service": set(),
    "rubrica-embed.service": {"pepper", "data-key", "document-key", "lookup-key"},
    "rubrica-admin.service": {"data-key", "document-key", "lookup-key"},
    "rubrica-signing@.service": {"document-key"},
    "rubrica-chores.service": {"document-key"},
    "rubrica-sandbox.service": set(),
    "rubrica-migrate.service": set(),
}
"""Secrets that a unit gets a copy of; the originals are the API's alone."""

pytestmark = pytest.mark.skipif(
    shutil.which("systemd-analyze") is None,
    reason="systemd-analyze is not installed (package systemd)",
)


@pytest.fixture
def installed(tmp_path: Path) -> Path:
    """The units as installed, with a program that exists on any machine."""
    for unit in UNITS.glob("rubrica*"):
        text = unit.read_text("utf-8").replace(PROGRAM, shutil.which("true") or "true")
        (tmp_path / unit.name).write_text(text, "utf-8")
    return tmp_path


def analyze(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run systemd-analyze among the units."""
    return subprocess.run(
        ["systemd-analyze", "--no-pager", *arguments],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.parametrize("unit", [*SERVICES, "rubrica.target"])
def test_unit_is_valid(installed: Path, unit: str) -> None:
    """Systemd reads the unit and has nothing to say about it."""
    done = analyze(installed, "verify", f"./{unit}")

    told = [line for line in done.stderr.splitlines() if "rubrica" in line]
    assert (done.returncode, told) == (0, [])


@pytest.mark.parametrize("unit", SERVICES)
def test_unit_exposes_no_more_than_stated(installed: Path, unit: str) -> None:
    """The exposure level stays within the unit's threshold."""
    threshold = f"--threshold={THRESHOLDS[unit]}"
    done = analyze(installed, "security", "--offline=true", threshold, f"./{unit}")

    assert done.returncode == 0, done.stdout


def test_unit_beyond_its_threshold_is_noticed(installed: Path) -> None:
    """The measure is a measure: an open unit does not pass."""
    open_unit = installed / "open.service"
    open_unit.write_text("[Service]\nExecStart=/bin/true\n", "utf-8")

    done = analyze(
        installed, "security", "--offline=true", "--threshold=10", "./open.service"
    )

    assert done.returncode == 1


@pytest.mark.parametrize("unit", SERVICES)
def test_unit_has_a_user_of_its_own(unit: str) -> None:
    """No role runs as root, and each one's user is made by sysusers.conf."""
    lines = (UNITS / unit).read_text("utf-8").splitlines()
    (user,) = [line.removeprefix("User=") for line in lines if line.startswith("User=")]

    assert f"u      {user} " in (UNITS / "sysusers.conf").read_text("utf-8")


@pytest.mark.parametrize("unit", SERVICES)
def test_unit_has_copies_of_its_own_secrets_alone(unit: str) -> None:
    """Each one is put where the settings file has it; a worker has no data key."""
    role = unit.removeprefix("rubrica-").removesuffix(".service").removesuffix("@")
    folder = "/etc/rubrica/secrets"
    wanted = {f"{folder}/{role}/{name}:{folder}/{name}" for name in COPIES[unit]}

    lines = (UNITS / unit).read_text("utf-8").splitlines()
    bound = [line for line in lines if line.startswith("BindReadOnlyPaths=")]
    assert {line.partition("=")[2] for line in bound} == wanted
