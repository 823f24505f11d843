"""What the package asks for before it is unpacked, of a host with a part of the roles.

Source: packaging/debian/preinst.
"""

import os
import shutil
import subprocess
from pathlib import Path
from typing import Final

import pytest

_ROOT: Final = Path(__file__).resolve().parents[2]
_PACKAGING: Final = _ROOT / "packaging"
_FRONTS: Final = ("api", "embed", "admin")
_WORKERS: Final = ("signing@1", "signing@2")

pytestmark = pytest.mark.skipif(
    shutil.which("dpkg") is None, reason="dpkg is Debian's (package dpkg)"
)


def _script() -> str:
    """The script as the package has it, with no settings or room to ask for."""
    given = subprocess.run(
        [str(_PACKAGING / "credentials")], check=True, capture_output=True, text=True
    ).stdout
    text = (_PACKAGING / "debian" / "preinst").read_text("utf-8")
    filled = {"CREDENTIALS": " ".join(given.split()), "SETTINGS": ""}
    for name, value in {**filled, "SIZE": "1", "OLDEST": "0.1.0"}.items():
        text = text.replace(f"@{name}@", value)
    return text


class Host:
    """A machine's files, in a folder.

    Args:
        root: of them.
    """

    def __init__(self, root: Path) -> None:
        self.root = root
        self.units = root / "etc/systemd/system"
        self.secrets = root / "etc/rubrica/secrets"
        self.units.mkdir(parents=True)
        self.secrets.mkdir(parents=True)
        (root / "etc/rubrica/settings.toml").touch()

    def mask(self, *units: str) -> None:
        """As systemctl does."""
        for unit in units:
            (self.units / f"rubrica-{unit}.service").symlink_to("/dev/null")

    def enable(self, worker: str) -> None:
        """As systemctl does."""
        wants = self.units / "rubrica.target.wants"
        wants.mkdir(exist_ok=True)
        unit = "/usr/lib/systemd/system/rubrica-signing@.service"
        (wants / f"rubrica-{worker}.service").symlink_to(unit)

    def lacks(self) -> set[str]:
        """Names of the secrets that an upgrade is refused for; none if it goes on."""
        done = subprocess.run(
            ["sh", "-c", _script(), "preinst", "upgrade", "0.1.0"],
            env={**os.environ, "DPKG_ROOT": str(self.root)},
            capture_output=True,
            text=True,
            check=False,
        )
        first = done.stderr.partition("\n")[0]
        found = [part.strip() for part in first.split(";")]
        names = [part.rpartition("/")[2] for part in found if "the file " in part]
        assert len(names) == len(set(names)), first
        assert (done.returncode != 0) is bool(names), done.stderr
        return set(names)


@pytest.fixture
def host(tmp_path: Path) -> Host:
    """One with settings and no secret."""
    return Host(tmp_path)


def test_host_with_all_roles_needs_every_secret(host: Host) -> None:
    """Each is named once, however many units it is for."""
    assert host.lacks() == {"pepper", "data-key", "document-key", "lookup-key"}


def test_host_with_workers_alone_needs_their_key(host: Host) -> None:
    """And none of the fronts'."""
    host.mask(*_FRONTS)

    assert host.lacks() == {"document-key"}
    (host.secrets / "document-key").touch()
    assert host.lacks() == set()


def test_host_with_the_sandbox_alone_needs_none(host: Host) -> None:
    """Whether workers are masked one by one or all at once."""
    host.mask(*_FRONTS, *_WORKERS, "chores")

    assert host.lacks() == set()


def test_unit_of_all_workers_may_be_masked(host: Host) -> None:
    """By what they are made from."""
    host.mask(*_FRONTS, "signing@", "chores")

    assert host.lacks() == set()


@pytest.mark.parametrize("masked", [("signing@1",), _WORKERS])
def test_one_worker_that_is_left_needs_its_key(
    host: Host, masked: tuple[str, ...]
) -> None:
    """The second one, or a third that was enabled."""
    host.mask(*_FRONTS, "chores", *masked)
    if masked == _WORKERS:
        host.enable("signing@3")

    assert host.lacks() == {"document-key"}


def test_secret_that_a_drop_in_hands_over_is_not_asked_for(host: Host) -> None:
    """Its file is elsewhere, and systemd's to find."""
    host.mask("chores", *_WORKERS, "embed", "api")
    folder = host.units / "rubrica-admin.service.d"
    folder.mkdir()
    line = "LoadCredentialEncrypted=data-key:/etc/credstore.encrypted/data-key\n"
    (folder / "keys.conf").write_text(f"[Service]\n{line}")

    assert host.lacks() == {"document-key", "lookup-key"}
