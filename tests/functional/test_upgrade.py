"""From release 0.1.0 to what comes next while people sign, and back.

The next version is this checkout with a migration, a secret, a setting and a changed
unit more. Both are built as packages and installed by apt, on a booted Debian with
PostgreSQL, Redis and SoftHSM.

Source: docs/running.md, "Upgrading from"; docs/database.md, "Who may use which
tables".
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Final

import httpx
import pytest

from appliance.storage import table_version
from tests.parts.booted import Booted, can_boot
from tests.parts.machine_load import (
    ANSWERS,
    API,
    PARTS,
    assert_each_signed_once,
    prepared,
)
from tests.parts.next_version import migration
from tests.parts.packaged import bring, built, checkout, debian_with, release

_SECRET: Final = "/etc/rubrica/secrets/next"
_INSTALL: Final = "DEBIAN_FRONTEND=noninteractive apt-get install --yes 2>&1"
_REQUESTS: Final = 600

pytestmark = [
    pytest.mark.long,
    pytest.mark.skipif(
        not can_boot(), reason="it takes root, mmdebstrap and systemd-container"
    ),
]


def changed(folder: Path) -> Path:
    """The checkout with what the next release might bring."""
    checkout(folder)
    newest = table_version.newest()
    coming = f"{int(newest) + 1:04d}"
    (folder / f"appliance/storage/migrations/versions/{coming}_more.py").write_text(
        migration(coming, before=newest, oldest="0001")
    )
    _replace(
        folder / "appliance/settings/root.py",
        "    data_dir: Path\n",
        "    data_dir: Path\n    next_name: str\n",
    )
    _replace(
        folder / "systemd/rubrica-api.service",
        "MemoryMax=2G\n",
        f"MemoryMax=3G\nLoadCredential=next:{_SECRET}\n",
    )
    return folder


def _replace(path: Path, before: str, after: str) -> None:
    text = path.read_text("utf-8")
    assert text.count(before) == 1
    path.write_text(text.replace(before, after), "utf-8")


@pytest.fixture(scope="module")
def packages(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """Of release 0.1.0, and of the next version."""
    old, new, folder = (tmp_path_factory.mktemp(n) for n in ("old", "new", "deb"))
    return built(folder, release(old, "0.1.0")), built(folder, changed(new))


@pytest.fixture(scope="module")
def machine(
    packages: tuple[Path, Path], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Booted]:
    """A machine with the release, set up, and the next version's package beside."""
    old, new = packages
    folder = tmp_path_factory.mktemp("machine")
    with debian_with(folder, old, PARTS) as booted:
        bring(booted, new)
        (booted.root / "root/answers.toml").write_text(ANSWERS)
        booted.run(f"{_INSTALL} /tmp/{old.name}")
        booted.run("cd /root && rubrica setup --answers answers.toml")
        yield booted


def ready(machine: Booted) -> int:
    """Status of `/readyz`."""
    return machine.within(lambda: httpx.get(f"{API}/readyz")).status_code


def versions(machine: Booted) -> tuple[str, str]:
    """Of the package, and of the tables."""
    query = "SELECT version_num FROM alembic_version"
    return (
        machine.run("dpkg-query -W -f '${Version}' rubrica").stdout,
        machine.run(f"runuser -u postgres -- psql -qAt rubrica -c '{query}'").stdout,
    )


@pytest.mark.parametrize("lacking", ["secret", "setting", "room"])
def test_upgrade_that_lacks_something_changes_nothing(
    machine: Booted, packages: tuple[Path, Path], lacking: str
) -> None:
    """Package, tables, roles and settings as they were; and it says what is missing."""
    before = versions(machine)
    pids = "systemctl show -P MainPID 'rubrica-*.service' | sort"
    running = machine.run(pids).stdout
    make, take, word = {
        "secret": ("true", "true", _SECRET),
        "setting": (f"touch {_SECRET}", f"rm {_SECRET}", "next_name"),
        "room": (
            "mount -t tmpfs -o size=64M none /opt",
            "umount /opt",
            "KiB of room",
        ),
    }[lacking]

    machine.run(make)
    refused = machine.run(f"{_INSTALL} /tmp/{packages[1].name}", check=False)
    machine.run(take)

    assert refused.returncode != 0
    assert word in refused.stdout
    assert "nothing was changed" in refused.stdout
    assert versions(machine) == before
    assert machine.run(pids).stdout == running
    assert ready(machine) == httpx.codes.OK


def test_upgrade_under_load_and_back(
    machine: Booted, packages: tuple[Path, Path]
) -> None:
    """Two signatures a second: none refused, none lost, none twice."""
    old, new = packages
    load = prepared(machine, _REQUESTS)
    before = versions(machine)

    machine.run(f"install -o rubrica-migrate -m 600 /dev/null {_SECRET}")
    with load.calling():
        machine.run("sed '1i next_name = \"x\"' -i /etc/rubrica/settings.toml")
        upgraded = machine.run(f"{_INSTALL} /tmp/{new.name}").stdout
        after = versions(machine)
        limit = machine.run("systemctl show -P MemoryMax rubrica-api").stdout
        machine.run("sed -i '/^next_name/d' /etc/rubrica/settings.toml")
        machine.run(f"{_INSTALL} --allow-downgrades /tmp/{old.name}")
    back = versions(machine)

    assert (after[0] != before[0], int(after[1]) > int(before[1])) == (True, True)
    assert limit.strip() == str(3 << 30)
    assert "AMISS" not in upgraded
    assert back == (before[0], after[1])
    assert ready(machine) == httpx.codes.OK
    assert_each_signed_once(load, 40)
