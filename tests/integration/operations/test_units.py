"""The systemd units: valid, and exposed no more than stated here."""

import os
import re
import shutil
import stat
import subprocess
from pathlib import Path
from typing import Final

import pytest

from appliance.settings.web import WebSettings

UNITS: Final = Path(__file__).resolve().parents[3] / "systemd"
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
    "rubrica-metrics.service": 10,
    "rubrica-sandbox.service": 3,
    "rubrica-signing@.service": 10,
    "rubrica-audit-verify.service": 10,
    # It reads all files, and writes wherever an operator has backups go.
    "rubrica-backup.service": 15,
}

CREDENTIALS: Final = {
    "rubrica-api.service": {"pepper", "data-key", "document-key", "lookup-key"},
    "rubrica-embed.service": {"pepper", "data-key", "document-key", "lookup-key"},
    "rubrica-admin.service": {"data-key", "document-key", "lookup-key"},
    "rubrica-signing@.service": {"document-key"},
    "rubrica-chores.service": {"data-key", "document-key"},
    "rubrica-metrics.service": set(),
    "rubrica-sandbox.service": set(),
    "rubrica-migrate.service": set(),
    "rubrica-audit-verify.service": set(),
    "rubrica-backup.service": set(),
}
"""Secrets that a unit is handed; the files are root's alone."""
SHARES: Final = {
    "rubrica-api.service": (200, "2G", 512, 65536),
    "rubrica-embed.service": (200, "2G", 512, 65536),
    "rubrica-signing@.service": (200, "2G", 512, 65536),
    "rubrica-admin.service": (150, "1G", 512, 65536),
    "rubrica-chores.service": (100, "2G", 512, 65536),
    "rubrica-migrate.service": (100, "1G", 512, 65536),
    "rubrica-metrics.service": (100, "512M", 64, 4096),
    "rubrica-sandbox.service": (50, "4G", 512, 65536),
    "rubrica-audit-verify.service": (20, "1G", 512, 65536),
    "rubrica-backup.service": (20, "1G", 64, 65536),
}
"""CPUWeight (systemd's own is 100), MemoryMax, TasksMax, LimitNOFILE. Who waits comes
first: people, then who keeps their record, then what may take its time."""
TIMED: Final = ("audit-verify", "backup")
"""Units that a timer starts, once somebody enabled it."""
SOCKETS: Final = ("api", "embed", "admin", "sandbox")

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


@pytest.mark.parametrize(
    "unit",
    [
        *SERVICES,
        *(f"rubrica-{role}.socket" for role in SOCKETS),
        *(f"rubrica-{name}.timer" for name in TIMED),
        "rubrica.target",
    ],
)
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
def test_unit_is_handed_its_own_secrets_alone(unit: str) -> None:
    """By the name that the settings have them by; a worker has no data key."""
    lines = (UNITS / unit).read_text("utf-8").splitlines()
    loaded = {line for line in lines if line.startswith("LoadCredential=")}
    folders = {
        name: "hsm" if name.endswith(".pin") else "secrets"
        for name in CREDENTIALS[unit]
    }

    assert loaded == {
        f"LoadCredential={name}:/etc/rubrica/{folder}/{name}"
        for name, folder in folders.items()
    }


@pytest.mark.parametrize("role", SOCKETS)
def test_socket_is_there_before_its_service(role: str) -> None:
    """And stays while that one restarts: it is no part of its service's restart."""
    service = (UNITS / f"rubrica-{role}.service").read_text("utf-8")
    socket = (UNITS / f"rubrica-{role}.socket").read_text("utf-8")
    target = (UNITS / "rubrica.target").read_text("utf-8")

    for key in ("After", "Requires"):
        lines = re.findall(rf"^{key}=.*$", service, re.MULTILINE)
        assert any(f"rubrica-{role}.socket" in line for line in lines), key
    assert f"rubrica-{role}.service" not in socket
    assert f"rubrica-{role}.socket" in target


@pytest.mark.parametrize("role", ["api", "embed", "admin"])
def test_socket_listens_where_the_documented_settings_say(role: str) -> None:
    """With as many that may wait as the settings have by themselves."""
    socket = (UNITS / f"rubrica-{role}.socket").read_text("utf-8")
    manual = (UNITS.parent / "docs" / "installing.md").read_text("utf-8")
    (address,) = re.findall(rf'^ *listen_{role} = "(.*)"$', manual, re.MULTILINE)

    assert f"ListenStream={address}\n" in socket
    assert f"Backlog={WebSettings.model_fields['backlog'].default}\n" in socket


@pytest.mark.parametrize("unit", SERVICES)
def test_unit_has_a_share_of_the_machine_alone(unit: str) -> None:
    """Processor, memory, tasks and files; and wrong settings are no loop."""
    lines = (UNITS / unit).read_text("utf-8").splitlines()
    given = [line.partition("=")[::2] for line in lines if "=" in line]
    keys = {key for key, _ in given}
    wanted = ("CPUWeight", "MemoryMax", "TasksMax", "LimitNOFILE")

    # As often as once: the last one would count.
    assert sorted(pair for pair in given if pair[0] in wanted) == sorted(
        (key, str(value)) for key, value in zip(wanted, SHARES[unit], strict=True)
    )
    is_timed = unit.removeprefix("rubrica-").removesuffix(".service") in TIMED
    assert ("Restart" in keys) is not is_timed
    assert ("RestartPreventExitStatus=78" in lines) is not is_timed


@pytest.mark.parametrize("name", TIMED)
def test_timer_waits_for_somebody_to_enable_it(name: str) -> None:
    """It starts its own unit, and neither is of the target that starts the roles."""
    timer = (UNITS / f"rubrica-{name}.timer").read_text("utf-8")
    target = (UNITS / "rubrica.target").read_text("utf-8")

    assert "WantedBy=timers.target\n" in timer
    assert "Persistent=true\n" in timer
    assert f"rubrica-{name}." not in target


def test_workers_stop_after_those_who_wait_for_them() -> None:
    """Systemd stops in the reverse order of the start."""
    fronts = {"rubrica-api.service", "rubrica-embed.service", "rubrica-admin.service"}
    for unit in ("rubrica-signing@.service", "rubrica-chores.service"):
        lines = (UNITS / unit).read_text("utf-8").splitlines()
        (before,) = [line for line in lines if line.startswith("Before=")]

        assert set(before.removeprefix("Before=").split()) == fronts
        assert "After=rubrica-sandbox.service" in lines


def make_by(root: Path, conf: str, *program: str) -> None:
    """Run a tool of systemd's on a file system's root."""
    command = [*program, f"--root={root}", str(UNITS / conf)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A file system's root with our users and folders, made by systemd's own tools."""
    if os.geteuid() != 0:
        pytest.skip("who is not root can make no users and owners")
    (tmp_path / "etc").mkdir()
    make_by(tmp_path, "sysusers.conf", "systemd-sysusers")
    make_by(tmp_path, "tmpfiles.conf", "systemd-tmpfiles", "--create")
    return tmp_path


def users_of(root: Path) -> dict[str, int]:
    """Numbers of its users."""
    lines = (root / "etc" / "passwd").read_text("utf-8").splitlines()
    return {line.split(":")[0]: int(line.split(":")[2]) for line in lines}


def test_users_are_in_the_group_that_roles_share(root: Path) -> None:
    """So that `--init-groups` gives it to whoever runs a command as one of them."""
    groups = {
        line.split(":")[0]: line.split(":")[3].split(",")
        for line in (root / "etc" / "group").read_text("utf-8").splitlines()
    }
    roles = ("api", "embed", "admin", "signing", "chores", "sandbox")

    assert groups["rubrica"] == sorted(f"rubrica-{role}" for role in roles)


def test_folders_keep_roles_apart(root: Path) -> None:
    """What one role alone may have is its own, and cannot be swapped by another."""
    users = users_of(root)

    def stands(path: str) -> tuple[str, int]:
        found = (root / path).stat()
        return oct(stat.S_IMODE(found.st_mode)), found.st_uid

    signing = users["rubrica-signing"]
    assert stands("run/rubrica") == ("0o3770", 0)
    assert stands("run/rubrica/activation") == ("0o700", signing)
    assert stands("run/rubrica/metrics") == ("0o755", 0)
    for role in ("api", "embed", "admin", "signing", "chores", "sandbox"):
        own = users[f"rubrica-{role}"]
        assert stands(f"run/rubrica/metrics/{role}") == ("0o2750", own)
    assert stands("var/lib/rubrica") == ("0o3770", 0)
    assert stands("var/lib/rubrica/pki") == ("0o2750", signing)
    assert stands("var/lib/rubrica/tokens") == ("0o700", signing)
    assert stands("etc/rubrica/hsm") == ("0o700", 0)
    assert stands("etc/rubrica/secrets") == ("0o700", users["rubrica-migrate"])


@pytest.mark.parametrize("service", SERVICES)
def test_log_names_the_unit(service: str) -> None:
    """In the journal none is called as another one; of several each by its number."""
    text = (UNITS / service).read_text("utf-8")
    (own,) = re.findall(r"^SyslogIdentifier=(.*)$", text, re.MULTILINE)

    assert own == service.removesuffix(".service").replace("@", "-%i")
