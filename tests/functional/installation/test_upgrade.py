"""From release 0.1.0 to what comes next while people sign, and back.

The next version is this checkout with a migration, a secret, a setting, a changed unit
and a header of its answers more. Both are built as packages and installed by apt, on a
booted Debian with PostgreSQL, Redis and SoftHSM.

Source: docs/running.md, "Upgrading from"; docs/database.md, "Who may use which
tables".
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import httpx
import pytest

from appliance.database import table_version
from tests.support.faults.fault_injection import until
from tests.support.hosts.booted_machine import Booted, can_boot
from tests.support.hosts.debian_packages import (
    bring,
    built,
    checkout,
    debian_with,
    release,
)
from tests.support.hosts.machine_hsm import BRING_KEY, KEY, TAKE_KEY
from tests.support.hosts.machine_load import (
    ANSWERS,
    API,
    PARTS,
    Load,
    assert_each_signed_once,
    prepared,
)
from tests.support.hosts.next_version import migration
from tests.support.patience import CALL_S

_SECRET: Final = "/etc/rubrica/secrets/next"
_HEADER: Final = "X-Next"
"""Of each answer of the next version."""
_INSTALL: Final = "DEBIAN_FRONTEND=noninteractive apt-get install --yes 2>&1"
_BACK: Final = f"{_INSTALL} --allow-downgrades"
_REQUESTS: Final = 900
_FEW: Final = 20
"""Calls that are made before, between and after the upgrade and the way back."""
_SETTINGS: Final = "/etc/rubrica/settings.toml"
_MAKE_SECRET: Final = f"install -o rubrica-migrate -m 600 /dev/null {_SECRET}"
_ADD_SETTING: Final = f"sed -i '1i next_name = \"x\"' {_SETTINGS}"
_ADD_WRONG_SETTING: Final = f"sed -i '1i next_name = 5' {_SETTINGS}"
_DROP_SETTING: Final = f"sed -i '/^next_name/d' {_SETTINGS}"
_FRAME_ANSWERS: Final = (
    "timeout 90 sh -c 'until rubrica health embed; do sleep 0.2; done' >/dev/null 2>&1"
)
_LISTENING: Final = "\n".join(
    f"rubrica health {role}" for role in ("sandbox", "api", "embed", "admin", "metrics")
)
_ALL_STARTED_S: Final = 180.0
_WORKING: Final = """\
for unit in rubrica-chores rubrica-signing@1 rubrica-signing@2; do
    run=$(systemctl show -P InvocationID $unit)
    # Not `grep -q`: what writes to it would be cut off, and fail.
    journalctl --quiet _SYSTEMD_INVOCATION_ID=$run | grep worker.started
done
"""
_HAS_READ_SETTINGS: Final = f"{_LISTENING}\n{_WORKING}"
_LOOKED_AT: Final = (
    *("units", "folders", "PINs", "settings", "database", "Redis", "documents"),
    *("service", "workers", "health", "anchors", "hosts", "disk", "clock"),
    *("backups", "HSM"),
)
"""Parts that `rubrica doctor` tells of, in order."""


@dataclass(frozen=True, slots=True)
class Lacking:
    """Something that is not as the next version needs it."""

    take: str
    """What takes it away."""
    mend: str
    """What brings it back."""
    told: str
    """Of what the upgrade says."""


_DOCUMENTS: Final = "/var/lib/rubrica/documents"
_OWN: Final = "/etc/systemd/system/rubrica-chores.service"
_DROP_IN: Final = f"{_OWN}.d/daemon.conf"
_MODULE: Final = "/usr/lib/softhsm/libsofthsm2.so"
_OUR_RECORD: Final = "/^Package: rubrica$/,/^$/"
_STATED: Final = (
    f"sed -i '{_OUR_RECORD} s/^Version: .*/Version: {{}}/' /var/lib/dpkg/status"
)
_LACKING: Final = {
    "release": Lacking(
        _STATED.format("0.0.9"),
        _STATED.format("0.1.0"),
        "release 0.1.0 installed first, after 0.0.9",
    ),
    "room": Lacking(
        "mount -t tmpfs -o size=64M none /opt", "umount /opt", "KiB of room in /opt"
    ),
    "secret": Lacking(f"rm {_SECRET}", _MAKE_SECRET, f"the file {_SECRET}"),
    "setting": Lacking(_DROP_SETTING, _ADD_SETTING, f"next_name in {_SETTINGS}"),
    "folder": Lacking(
        f"mv {_DOCUMENTS} {_DOCUMENTS}.away",
        f"mv {_DOCUMENTS}.away {_DOCUMENTS}",
        f"the folder {_DOCUMENTS}",
    ),
    "unit of one's own": Lacking(
        f"cp /usr/lib/systemd/system/rubrica-chores.service {_OWN}",
        f"rm {_OWN}; systemctl daemon-reload",
        f"rubrica-chores.service, which {_OWN} hides",
    ),
    "unit of others": Lacking(
        f"mkdir -p {_OWN}.d; printf '[Unit]\\nRequires=hsmd.service\\n' >{_DROP_IN}",
        f"rm {_DROP_IN}; systemctl daemon-reload",
        "hsmd.service, which rubrica-chores.service requires: not-found",
    ),
    "HSM": Lacking(f"chmod 0 {_MODULE}", f"chmod 644 {_MODULE}", "the HSM with all"),
    "HSM object": Lacking(TAKE_KEY, BRING_KEY, f"{KEY} is not there"),
    "masked socket": Lacking(
        # None that callers are at: systemd lets go of what a masked one listens on.
        "systemctl mask rubrica-embed.socket 2>&1",
        # 0.1.0 reads its settings anew, and knows none of the next version's.
        f"systemctl unmask rubrica-embed.socket 2>&1; {_DROP_SETTING};"
        " systemctl restart rubrica-embed.socket rubrica-embed.service;"
        f" {_FRAME_ANSWERS}; {_ADD_SETTING}",
        "rubrica-embed.socket, which rubrica-embed.service requires: it is masked",
    ),
    "migrated tables": Lacking(
        "systemctl mask rubrica-migrate",
        "systemctl unmask rubrica-migrate",
        "those of the database are of version 0001, and rubrica-migrate is masked",
    ),
}

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
    (folder / f"appliance/database/migrations/versions/{coming}_more.py").write_text(
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
    _replace(
        folder / "appliance/web/security_headers.py",
        "_ALWAYS = {\n",
        f'_ALWAYS = {{\n    "{_HEADER}": "yes",\n',
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
    return machine.within(
        lambda: httpx.get(f"{API}/readyz", timeout=CALL_S)
    ).status_code


def has_read_settings(machine: Booted) -> bool:
    """Whether every role listens, or has begun to work, and so has read its settings.

    systemd takes a role for started before that (`Type=exec`).
    """
    return machine.run(_HAS_READ_SETTINGS, check=False).returncode == 0


def versions(machine: Booted) -> tuple[str, str]:
    """Of the package, and of the tables."""
    query = "SELECT version_num FROM alembic_version"
    return (
        machine.run("dpkg-query -W -f '${Version}' rubrica").stdout,
        machine.run(f"runuser -u postgres -- psql -qAt rubrica -c '{query}'").stdout,
    )


def pids(machine: Booted) -> dict[str, str]:
    """The process of every role that runs, by unit.

    What systemd has loaded besides, such as units that ended, comes and goes.
    """
    listed = "systemctl list-units --plain --no-legend --state=running"
    units = machine.run(f"{listed} 'rubrica-*.service'").stdout.splitlines()
    names = [line.split()[0] for line in units]
    shown = machine.run(f"systemctl show -P MainPID {' '.join(names)}").stdout.split()
    return dict(zip(names, shown, strict=True))


def pin_files(machine: Booted) -> tuple[set[str], bool]:
    """Whose the PINs are, and whether systemd hands them to the workers."""
    owners = machine.run("stat -c '%a %U' /etc/rubrica/hsm /etc/rubrica/hsm/*").stdout
    unit = machine.run("systemctl cat rubrica-signing@1.service").stdout
    lines = {f"LoadCredential={name}.pin:" for name in ("firma", "pki")}
    return set(owners.splitlines()), all(line in unit for line in lines)


def files(machine: Booted) -> str:
    """It is another one where a file of the package, or beside the settings, is."""
    places = "/opt/rubrica /usr/lib/systemd/system/rubrica* /usr/lib/*/rubrica.conf"
    found = f"find {places} -printf '%p %i %s %T@\\n' | sort | sha256sum"
    return machine.run(f"{found}; ls -A /etc/rubrica; dpkg --verify rubrica").stdout


def looked_at(told: str) -> list[tuple[str, str]]:
    """What `rubrica doctor` said, line by line: how a part is, and which."""
    return re.findall(r"^(ok|none|AMISS) +(.*)$", told, re.MULTILINE)


@pytest.fixture
def needs(machine: Booted) -> Iterator[None]:
    """The next version's secret and setting are there."""
    # A role of 0.1.0 that read its settings later would refuse that one, and end.
    until(lambda: has_read_settings(machine), _ALL_STARTED_S)
    machine.run(f"{_MAKE_SECRET}; {_ADD_SETTING}")
    yield
    machine.run(f"rm {_SECRET}; {_DROP_SETTING}")


@pytest.mark.usefixtures("needs")
@pytest.mark.parametrize("name", _LACKING)
def test_upgrade_that_lacks_something_changes_nothing(
    machine: Booted, packages: tuple[Path, Path], name: str
) -> None:
    """Package, tables, roles and files as they were; mended, it is refused no more."""
    lacking = _LACKING[name]
    before, running, had = versions(machine), pids(machine), files(machine)

    machine.run(lacking.take)
    refused = machine.run(f"{_INSTALL} /tmp/{packages[1].name}", check=False)
    # Now: what mends it may start a role anew.
    still_running = pids(machine)
    machine.run(lacking.mend)

    told = [line for line in refused.stdout.splitlines() if "rubrica: lacks " in line]
    assert refused.returncode != 0
    assert [lacking.told in line for line in told] == [True], refused.stdout
    assert re.search(r"^ +-> \w", refused.stdout, re.MULTILINE)
    assert "nothing was changed" in refused.stdout
    assert versions(machine) == before
    assert still_running == running
    assert files(machine) == had
    assert ready(machine) == httpx.codes.OK
    machine.run(f"rm -rf /srv/deb; dpkg -e /tmp/{packages[1].name} /srv/deb")
    machine.run(f"/srv/deb/preinst upgrade {before[0]}")


def test_upgrade_under_load_and_back(
    machine: Booted, packages: tuple[Path, Path]
) -> None:
    """Two signatures a second: none refused, lost or twice; each by who runs."""
    old, new = packages
    load = prepared(machine, _REQUESTS)
    before, pins = versions(machine), pin_files(machine)

    machine.run(_MAKE_SECRET)
    with load.calling():
        until(lambda: len(load.headers) >= _FEW)
        machine.run(_ADD_SETTING)
        of_old = list(load.headers)
        upgraded = machine.run(f"{_INSTALL} /tmp/{new.name}").stdout
        of_new = _few_more(load)
        after = versions(machine)
        pins_after = pin_files(machine)
        limit = machine.run("systemctl show -P MemoryMax rubrica-api").stdout
        machine.run(_DROP_SETTING)
        machine.run(f"{_BACK} /tmp/{old.name}")
        of_old += _few_more(load)
    back, pins_back = versions(machine), pin_files(machine)
    machine.run(f"rm {_SECRET}")

    assert (after[0] != before[0], int(after[1]) > int(before[1])) == (True, True)
    assert limit.strip() == str(3 << 30)
    assert pins == pins_back == ({"700 rubrica-signing", "600 rubrica-signing"}, False)
    assert pins_after == ({"700 root", "600 root"}, True)
    assert_all_well(upgraded)
    assert back == (before[0], after[1])
    assert ready(machine) == httpx.codes.OK
    assert_each_signed_once(load, 3 * _FEW)
    assert {_HEADER in load.headers[request] for request in of_new} == {True}
    assert {_HEADER in load.headers[request] for request in of_old} == {False}


def _few_more(load: Load) -> list[int]:
    """Requests of some calls that are made from now on, and were answered."""
    made = len(load.answers)
    until(lambda: len(load.answers) > made + _FEW)
    more = list(load.answers)[made + 1 : made + 1 + _FEW]
    until(lambda: set(more) <= set(load.headers))
    return more


def assert_all_well(told: str) -> None:
    """The doctor looked at settings and HSM, then at each part, and all was well.

    Args:
        told: by an upgrade.
    """
    parts = ("settings", "HSM", *_LOOKED_AT)
    assert looked_at(told) == [("ok", part) for part in parts]


@pytest.mark.usefixtures("needs")
@pytest.mark.parametrize("configure", ["dpkg --configure -a", "apt-get -f install -y"])
def test_package_that_was_left_half_configured_is_configured_once_mended(
    machine: Booted, packages: tuple[Path, Path], configure: str
) -> None:
    """A setting that the new program alone finds wrong: the old roles run on."""
    old, new = packages
    before, running = versions(machine), pids(machine)
    machine.run(f"{_DROP_SETTING}; {_ADD_WRONG_SETTING}")
    state = "dpkg-query -W -f '${db:Status-Status}' rubrica"

    refused = machine.run(f"{_INSTALL} /tmp/{new.name}", check=False)
    again = machine.run(f"{configure} 2>&1", check=False)

    for each in (refused, again):
        assert each.returncode != 0
        assert "settings.toml: next_name" in each.stdout
        assert f"the roles of {before[0]} run on" in each.stdout
    assert machine.run(state).stdout == "half-configured"
    assert versions(machine)[1] == before[1]
    assert pids(machine) == running
    assert ready(machine) == httpx.codes.OK

    machine.run(f"{_DROP_SETTING}; {_ADD_SETTING}")
    configured = machine.run(f"{configure} 2>&1").stdout

    assert_all_well(configured)
    assert machine.run(state).stdout == "installed"
    assert versions(machine)[0] != before[0]
    assert not set(pids(machine).values()) & set(running.values())
    assert "valid" in machine.run("rubrica sample").stdout
    machine.run(f"{_DROP_SETTING}; {_BACK} /tmp/{old.name}")
    assert versions(machine)[0] == before[0]
