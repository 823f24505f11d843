"""The Debian package, installed, set up, upgraded and removed on a booted Debian.

What docs/installing.md tells an operator to run is run, on a machine that has nothing
of ours and no network; the package is built from this checkout.

Source: docs/installing.md, "First installation".
"""

import re
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

import httpx
import pytest

from tests.parts.booted import Booted, can_boot
from tests.parts.manual import Block, blocks, packages
from tests.parts.packaged import built, debian_with

_API: Final = "http://127.0.0.1:8080"
_BESIDE: Final = ("nginx", "openssl", "age")

pytestmark = [
    pytest.mark.long,
    pytest.mark.skipif(
        not can_boot(), reason="it takes root, mmdebstrap and systemd-container"
    ),
]


@pytest.fixture(scope="module")
def manual() -> list[Block]:
    """What the manual says."""
    return blocks("First installation")


@pytest.fixture(scope="module")
def machine(
    manual: list[Block], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Booted]:
    """A machine with the package beside PostgreSQL, Redis, SoftHSM and nginx."""
    folder = tmp_path_factory.mktemp("package")
    package = built(folder)
    install = next(b.text for b in manual if "rubrica_*.deb" in b.text)
    named = [each for each in packages(install) if not each.startswith("/")]
    (folder / "machine").mkdir()
    with debian_with(folder / "machine", package, [*named, *_BESIDE]) as booted:
        yield booted


def test_package_has_what_it_should(machine: Booted) -> None:
    """Notices, a man page, nobody's files; nothing that only building needs."""
    (package,) = (machine.root / "root").glob("rubrica_*.deb")
    listed = subprocess.run(
        ["dpkg-deb", "--contents", str(package)],
        check=True,
        capture_output=True,
        text=True,
    ).stdout.splitlines()
    names = {line.split()[5].removeprefix(".") for line in listed}

    assert all(line.split()[1] == "root/root" for line in listed)
    assert {
        "/usr/bin/rubrica",
        "/usr/share/man/man8/rubrica.8.gz",
        "/usr/share/doc/rubrica/copyright",
        "/usr/share/doc/rubrica/THIRD-PARTY-NOTICES",
        "/usr/lib/systemd/system/rubrica.target",
        "/usr/lib/systemd/system/rubrica-backup.timer",
        "/usr/lib/systemd/system/rubrica-audit-verify.timer",
    } <= names
    assert not [name for name in names if re.search(r"/(pip|setuptools|wheel)/", name)]


def test_five_commands_to_a_signed_document(
    machine: Booted, manual: list[Block]
) -> None:
    """Installed, set up by answers, behind nginx with TLS."""
    scripts = [block.text for block in manual if block.language == "sh"]
    install = next(text for text in scripts if "rubrica_*.deb" in text)
    setup = next(text for text in scripts if "--answers" in text)
    proxy = next(text for text in scripts if "nginx" in text and "ln -s" in text)
    answers = next(block.text for block in manual if block.language == "toml")
    (machine.root / "root/answers.toml").write_text(answers)
    machine.run(
        "openssl req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=firma.example"
        " -addext subjectAltName=DNS:firma.example,DNS:marco.firma.example,"
        "DNS:consola.firma.example -keyout /etc/ssl/private/firma.example.key"
        " -out /etc/ssl/firma.example.pem 2>&1"
    )

    machine.run(install.splitlines()[0])
    told = machine.run(f"cd /root && {setup}").stdout
    machine.run(proxy)

    assert "signed through the API" in told
    *_, verified, backups = told.rstrip().splitlines()
    assert verified.endswith("valid")
    assert backups.startswith("no backups yet: /etc/rubrica/backup.toml")
    assert len(install.splitlines()[:1] + setup.splitlines() + proxy.splitlines()) <= 5
    answer = machine.run(
        "curl -s --cacert /etc/ssl/firma.example.pem"
        " --resolve firma.example:443:127.0.0.1 https://firma.example/readyz"
    ).stdout
    assert '"status":"ok"' in answer.replace(" ", "") or '"ready"' in answer, answer
    warned = machine.run("journalctl -q -p warning -u 'rubrica-*'").stdout
    assert warned == ""


def test_setup_again_changes_nothing(machine: Booted) -> None:
    """No file is written, no role started anew, nothing asked."""
    look = (
        "find /etc/rubrica /etc/systemd/system /var/lib/rubrica/pki"
        " /var/lib/rubrica/tokens/softhsm2.conf -type f"
        " -printf '%p %T@ %u %m\\n' | sort;"
        "systemctl show -P ActiveEnterTimestampMonotonic -P MainPID 'rubrica-*.service'"
    )
    before = machine.run(look).stdout

    told = machine.run("rubrica setup </dev/null").stdout

    assert machine.run(look).stdout == before
    assert "made " not in told


def test_doctor_finds_what_setup_mends(machine: Booted) -> None:
    """Owners, rights in the database, roles that stopped or failed; no lost key."""
    assert "AMISS" not in machine.run("cd /root && rubrica doctor --deep").stdout
    drop_in = "/etc/systemd/system/rubrica-embed.service.d/other.conf"
    machine.run(
        "chown root: /var/lib/rubrica/documents;"
        "chmod 700 /var/lib/rubrica/documents;"
        "systemctl stop rubrica-chores.service;"
        "runuser -u postgres -- psql -q rubrica"
        " -c 'REVOKE ALL ON person FROM \"rubrica-api\"';"
        "mkdir -p /etc/systemd/system/rubrica-embed.service.d;"
        f"printf '[Service]\\nLoadCredential=other:/nowhere\\n' >{drop_in};"
        "systemctl daemon-reload; systemctl restart rubrica-embed.service || true"
    )

    found = machine.run("rubrica doctor", check=False)

    assert found.returncode == 1
    amiss = [line for line in found.stdout.splitlines() if line.startswith("AMISS")]
    for part, word in (
        ("units", "rubrica-chores.service is inactive"),
        ("units", "LoadCredential"),
        ("folders", "/var/lib/rubrica/documents is 2700 root root"),
        ("settings", "embed: it ended with status 243"),
        ("database", "person"),
    ):
        told = [line for line in amiss if line.startswith(f"AMISS  {part}: ")]
        assert any(word in line for line in told), found.stdout

    machine.run(f"rm {drop_in} && systemctl daemon-reload && systemctl reset-failed")
    machine.run("systemctl stop rubrica-embed.service && rubrica setup </dev/null")
    assert "AMISS" not in machine.run("rubrica doctor").stdout

    assert machine.run("stat -c '%a %G' /var/lib/rubrica/documents").stdout.split() == [
        "2770",
        "rubrica",
    ]
    assert machine.run("systemctl is-active rubrica-chores").stdout.strip() == "active"

    machine.run("mv /etc/rubrica/secrets/pepper /root/pepper")
    refused = machine.run("rubrica setup </dev/null", check=False)
    machine.run("mv /root/pepper /etc/rubrica/secrets/pepper")
    assert refused.returncode == 78
    assert "/etc/rubrica/secrets/pepper" in refused.stderr
    assert "backup" in refused.stderr


def test_backup_is_made_and_tried_out(machine: Booted) -> None:
    """By the manual's lines; one that fails is a unit that failed, and told."""
    given = blocks("Every day", "backup.md")
    folders, start = (block.text for block in given if block.language == "sh")
    (config,) = (block.text for block in given if block.language == "toml")
    (drill,) = (b.text for b in blocks("Try it", "backup.md") if b.language == "sh")
    machine.run(f"cd /root && {_text('Make one', 'age-keygen')}")
    key = machine.run("age-keygen -y /root/rubrica-backup.key").stdout.strip()
    machine.run(folders)
    machine.run(_text("Make one", "rubrica backup").replace("age1…", key))
    (machine.root / "etc/rubrica/backup.toml").write_text(config.replace("age1…", key))
    (machine.root / "etc/rubrica/backup.toml").chmod(0o644)

    machine.run(start)
    machine.run("systemctl enable --now rubrica-audit-verify.timer")
    machine.run("systemctl start rubrica-audit-verify.service")

    timers = machine.run("systemctl list-timers --no-legend 'rubrica-*'").stdout
    assert "rubrica-backup.timer" in timers
    assert "rubrica-audit-verify.timer" in timers
    record = "$(ls /backup/record/*.tar.age | tail -n 1)"
    secrets = "$(ls /elsewhere/secrets/*.tar.age | tail -n 1)"
    drill = drill.replace("rubrica-secrets-ID-TIME.tar.age", secrets)
    told = machine.run(
        f"cd /root && {drill.replace('rubrica-ID-TIME.tar.age', record)}"
    )
    assert "can be brought back" in told.stdout
    assert "signatures: 0" not in told.stdout
    machine.run("mv /backup/record /backup/away")
    failed = machine.run("systemctl start rubrica-backup.service", check=False)
    found = machine.run("rubrica doctor --only units", check=False)
    machine.run("mv /backup/away /backup/record; systemctl start rubrica-backup")
    assert failed.returncode != 0
    assert found.returncode == 1
    assert "rubrica-backup.service failed" in found.stdout
    assert "AMISS" not in machine.run("rubrica doctor --only units").stdout


def _text(heading: str, word: str) -> str:
    """The block below a heading of the page on backups that has a word in it."""
    (found,) = (b.text for b in blocks(heading, "backup.md") if word in b.text)
    return found


def test_upgrade_without_a_file_is_refused_before_anything(machine: Booted) -> None:
    """The package as it was, the roles at work, and what is missing named."""
    machine.run("mv /etc/rubrica/secrets/lookup-key /root/lookup-key")
    refused = machine.run("dpkg -i /tmp/rubrica_*.deb", check=False)
    state = machine.run("dpkg-query -W -f '${db:Status-Status}' rubrica").stdout
    machine.run("mv /root/lookup-key /etc/rubrica/secrets/lookup-key")

    assert refused.returncode != 0
    assert "/etc/rubrica/secrets/lookup-key" in refused.stderr + refused.stdout
    assert state == "installed"
    assert machine.within(lambda: httpx.get(f"{_API}/readyz")).status_code == 200


def test_upgrade_restarts_every_role(machine: Booted) -> None:
    """The same package again is an upgrade to dpkg; nobody is refused meanwhile."""
    pids = "systemctl show -P MainPID 'rubrica-*.service' | sort"
    before = set(machine.run(pids).stdout.split()) - {"0"}
    machine.run(
        "(while :; do curl -s -o /dev/null -w '%{http_code}\\n' --max-time 60"
        f" {_API}/solicitudes || true; sleep 0.05; done) >/tmp/asked 2>&1 </dev/null &"
        " echo $! >/tmp/asking"
    )

    machine.run("dpkg -i /tmp/rubrica_*.deb")

    machine.run("kill $(cat /tmp/asking); wait")
    after = set(machine.run(pids).stdout.split()) - {"0"}
    answers = machine.run("cat /tmp/asked").stdout.split()
    assert before.isdisjoint(after)
    assert len(answers) > 10
    assert set(answers) == {"401"}
    assert "valid" in machine.run("rubrica sample").stdout


@dataclass(frozen=True)
class Part:
    """A host with a part of the roles."""

    masked: tuple[str, ...]
    """Units that are another host's."""
    away: tuple[str, ...]
    """What is not there, of /etc/rubrica."""
    told: str
    amiss: tuple[str, ...]
    """What another host lacks here, where there is none."""


_FACES: Final = ("api", "embed", "admin")
_PARTS: Final = (
    Part(
        (*_FACES, *(f"{face}.socket" for face in _FACES), "migrate", "chores"),
        ("secrets/pepper", "secrets/data-key", "secrets/lookup-key"),
        "none   admin, api, chores, embed, migrate: masked, not of this host",
        (),
    ),
    Part(
        ("signing@1", "signing@2", "chores"),
        ("hsm/firma.pin", "hsm/pki.pin"),
        "none   chores, signing: masked, not of this host",
        ("AMISS  service: hsm: NO_WORKER",),
    ),
)


@pytest.mark.parametrize("part", _PARTS, ids=["workers", "faces"])
def test_host_with_a_part_of_the_roles_is_upgraded(machine: Booted, part: Part) -> None:
    """What it does not have is asked for by none; what it has is restarted."""
    units = " ".join(f"rubrica-{unit}" for unit in part.masked)
    pids = "systemctl show -P MainPID 'rubrica-*.service' | sort"
    machine.run(f"systemctl mask --now {units} 2>&1")
    for name in part.away:
        machine.run(f"mv /etc/rubrica/{name} /root/away-{name.replace('/', '-')}")
    before = set(machine.run(pids).stdout.split()) - {"0"}

    machine.run("dpkg -i /tmp/rubrica_*.deb")
    after = set(machine.run(pids).stdout.split()) - {"0"}
    found = machine.run("rubrica doctor --deep", check=False)
    masked = machine.run(f"systemctl show -P ActiveState {units}").stdout

    for name in part.away:
        machine.run(f"mv /root/away-{name.replace('/', '-')} /etc/rubrica/{name}")
    machine.run(f"systemctl unmask {units} 2>&1; systemctl start rubrica.target")
    machine.run("rubrica ready --wait 120")
    assert before
    assert before.isdisjoint(after)
    assert len(before) == len(after)
    assert "active" not in masked.split()
    amiss = [line for line in found.stdout.splitlines() if line.startswith("AMISS")]
    assert part.told in found.stdout.splitlines(), found.stdout
    assert amiss[: len(part.amiss)] == list(part.amiss), found.stdout
    assert found.returncode == (1 if part.amiss else 0), found.stdout
    assert "AMISS" not in machine.run("rubrica doctor").stdout


_EARLIER: Final = "0.1.5"
_MAKE_EARLIER: Final = f"""\
dpkg-deb -R /tmp/rubrica_*.deb /srv/earlier
version=$(dpkg-deb --field /tmp/rubrica_*.deb Version)
sed -i "s/$version/{_EARLIER}/g" /srv/earlier/DEBIAN/control /srv/earlier/DEBIAN/preinst
dpkg-deb -Znone --build /srv/earlier /tmp/earlier.deb
"""
"""Pack this version again as an earlier one, which asks what this one asks."""
_BACK: Final = "DEBIAN_FRONTEND=noninteractive apt-get install --yes --allow-downgrades"


_STATE: Final = (
    "UPDATE alembic_version SET version_num = :'version';"
    "UPDATE table_compatibility SET oldest_reader = :'oldest'"
)


def _tables_are(machine: Booted, version: str, oldest: str) -> None:
    """Have the database say so, as a later version does that migrated it."""
    stated = f"-v version={version} -v oldest={oldest}"
    machine.run(f'runuser -u postgres -- psql -q rubrica {stated} <<<"{_STATE}"')


def test_way_back_that_goes_too_far_is_refused(machine: Booted) -> None:
    """Before a file is changed, where nothing is migrated too; no further is let."""
    state = "dpkg-query -W -f '${Version} ${db:Status-Status}' rubrica; dpkg -V rubrica"
    tables = "SELECT version_num || ' ' || oldest_reader FROM alembic_version,"
    ask = f'runuser -u postgres -- psql -qAt rubrica -c "{tables} table_compatibility"'
    stated = machine.run(ask).stdout.split()
    before = machine.run(state).stdout
    machine.run(_MAKE_EARLIER)
    machine.run("systemctl mask rubrica-migrate 2>&1")

    _tables_are(machine, "9999", "9998")
    refused = machine.run(f"{_BACK} /tmp/earlier.deb 2>&1", check=False)
    kept = machine.run(state).stdout
    _tables_are(machine, "9999", stated[0])
    let = machine.run(f"{_BACK} /tmp/earlier.deb 2>&1").stdout
    earlier = machine.run(state).stdout
    _tables_are(machine, *stated)
    machine.run("systemctl unmask rubrica-migrate 2>&1; dpkg -i /tmp/rubrica_*.deb")

    assert refused.returncode != 0
    lacks = f"rubrica: lacks tables that {_EARLIER} may use: database: its tables are"
    assert lacks in refused.stdout
    assert "that one knows" in refused.stdout
    assert "nothing was changed" in refused.stdout
    assert kept == before
    assert earlier.startswith(f"{_EARLIER} installed"), let
    assert "nobody could look" not in let
    assert "valid" in machine.run("rubrica sample").stdout


def test_purge_keeps_keys_and_documents(machine: Booted) -> None:
    """Roles and program go; what nothing brings back stays, and is told."""
    told = machine.run(
        "DEBIAN_FRONTEND=noninteractive apt-get purge --yes rubrica 2>&1"
    ).stdout

    assert "kept: /etc/rubrica" in told
    assert "kept: /var/lib/rubrica" in told
    active = machine.run("systemctl list-units --no-legend --state=active 'rubrica*'")
    assert active.stdout == ""
    assert not (machine.root / "opt/rubrica").exists()
    assert machine.run("ls /etc/rubrica/secrets").stdout.split() == [
        *("data-key", "document-key", "lookup-key", "pepper", "sample-person.json")
    ]
