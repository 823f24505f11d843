"""The Debian package, installed, set up, upgraded and removed on a booted Debian.

What docs/installing.md tells an operator to run is run, on a machine that has nothing
of ours and no network; the package is built from this checkout.

Source: docs/installing.md, "First installation".
"""

import re
import shutil
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import httpx
import pytest

from tests.support.appliance.manual import (
    blocks,
    packages,
    run_block,
    script,
    typed_lines,
)
from tests.support.hosts.booted_machine import Booted, can_boot
from tests.support.hosts.debian_packages import debian_with, in_checkout
from tests.support.hosts.machine_hsm import BRING_KEY, KEY, TAKE_KEY
from tests.support.patience import CALL_S
from tests.support.services.s3 import ACCESS_KEY, SECRET_KEY, S3Server
from tests.support.services.server_certificates import make_authority

_API: Final = "http://127.0.0.1:8080"
_BESIDE: Final = ("nginx", "openssl", "age", "awscli", "openssh-server", "procps")
_LONGEST_S: Final = 600
"""From the first command to a signed document (an operator's Friday)."""

pytestmark = [
    pytest.mark.long,
    pytest.mark.skipif(
        not can_boot(), reason="it takes root, mmdebstrap and systemd-container"
    ),
]


@pytest.fixture(scope="module")
def machine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Booted]:
    """A machine with the package beside PostgreSQL, Redis, SoftHSM and nginx."""
    folder = tmp_path_factory.mktemp("package")
    place = ("/tmp", str(folder))  # noqa: S108 (the manual's)
    told = run_block("installing.md", "First installation", 0, in_checkout, place)
    package = Path(told.strip())
    named = [
        each
        for each in packages(script("installing.md", "First installation", 1))
        if each[0] != "/"
    ]
    (folder / "machine").mkdir()
    with debian_with(folder / "machine", package, [*named, *_BESIDE]) as booted:
        yield booted


def in_root(machine: Booted) -> Callable[[str], subprocess.CompletedProcess[str]]:
    """Runs lines in root's own folder."""
    return lambda lines: machine.run(f"cd /root && {lines}")


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


def test_five_commands_to_a_signed_document(machine: Booted) -> None:
    """Installed, set up by answers, behind nginx with TLS."""
    given = blocks("First installation")
    answers = next(block.text for block in given if block.language == "toml")
    (machine.root / "root/answers.toml").write_text(answers)
    machine.run(
        "openssl req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=firma.example"
        " -addext subjectAltName=DNS:firma.example,DNS:marco.firma.example,"
        "DNS:consola.firma.example -keyout /etc/ssl/private/firma.example.key"
        " -out /etc/ssl/firma.example.pem 2>&1"
    )

    begun = time.monotonic()
    run_block(
        "installing.md", "First installation", 1, machine.run, only="apt-get install"
    )
    told = run_block("installing.md", "First installation", 2, in_root(machine)).stdout
    took_s = time.monotonic() - begun
    run_block("installing.md", "First installation", 3, machine.run)

    print(f"from apt to a signed document: {took_s:.0f} s")  # noqa: T201 (the figures that -rP shows)
    assert took_s <= _LONGEST_S
    assert "signed through the API" in told
    *_, verified, backups = told.rstrip().splitlines()
    assert verified.endswith("valid")
    assert backups.startswith("no backups yet: /etc/rubrica/backup.toml")
    typed = [script("installing.md", "First installation", each) for each in (1, 2, 3)]
    assert sum(len(typed_lines(each)) for each in typed) - 1 <= 5  # setup once
    answer = machine.run(
        "curl -s --retry 30 --retry-all-errors --retry-delay 1"
        " --cacert /etc/ssl/firma.example.pem"
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

    told = run_block(
        "installing.md", "First installation", 1, machine.run, only="rubrica setup"
    ).stdout

    assert machine.run(look).stdout == before
    assert "made " not in told


def test_doctor_finds_what_setup_mends(machine: Booted) -> None:
    """Owners, rights in the database, roles that stopped or failed; no lost key."""
    assert "AMISS" not in machine.run("cd /root && rubrica doctor --deep").stdout
    drop_in = "/etc/systemd/system/rubrica-embed.service.d/other.conf"
    machine.run(
        "chown root: /var/lib/rubrica/documents;"
        "chmod 700 /var/lib/rubrica/documents;"
        "chown -R rubrica-signing: /etc/rubrica/hsm;"
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
        ("PINs", "/etc/rubrica/hsm/firma.pin is 0600 rubrica-signing"),
        ("settings", "embed: /nowhere is not there"),
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
    pins = machine.run("stat -c '%a %U' /etc/rubrica/hsm /etc/rubrica/hsm/*").stdout
    assert set(pins.splitlines()) == {"700 root", "600 root"}

    machine.run("mv /etc/rubrica/secrets/pepper /root/pepper")
    refused = machine.run("rubrica setup </dev/null", check=False)
    machine.run("mv /root/pepper /etc/rubrica/secrets/pepper")
    assert refused.returncode == 78
    assert "/etc/rubrica/secrets/pepper" in refused.stderr
    assert "backup" in refused.stderr


def test_backup_is_made_and_tried_out(machine: Booted) -> None:
    """By the manual's lines; one that fails is a unit that failed, and told."""
    given = blocks("Every day", "backup.md")
    config = next(block.text for block in given if block.language == "toml")
    run_block("backup.md", "Make one", 0, in_root(machine))
    key = machine.run("age-keygen -y /root/rubrica-backup.key").stdout.strip()
    run_block("backup.md", "Every day", 0, machine.run)
    run_block("backup.md", "Make one", 1, machine.run, ("age1…", key))
    (machine.root / "etc/rubrica/backup.toml").write_text(config.replace("age1…", key))
    (machine.root / "etc/rubrica/backup.toml").chmod(0o644)

    run_block("backup.md", "Every day", 1, machine.run)
    machine.run("systemctl enable --now rubrica-audit-verify.timer")
    machine.run("systemctl start rubrica-audit-verify.service")

    timers = machine.run("systemctl list-timers --no-legend 'rubrica-*'").stdout
    assert "rubrica-backup.timer" in timers
    assert "rubrica-audit-verify.timer" in timers
    record = ("rubrica-ID-TIME.tar.age", f"$(ls {_RECORD} | tail -n 1)")
    secrets = ("rubrica-secrets-ID-TIME.tar.age", f"$(ls {_SECRETS} | tail -n 1)")
    told = run_block("backup.md", "Try it", 0, in_root(machine), record, secrets)
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


_RECORD: Final = "/backup/record/*.tar.age"
_SECRETS: Final = "/elsewhere/secrets/*.tar.age"


def test_one_file_of_the_secrets_comes_back(machine: Booted) -> None:
    """Out of the archive by hand, as it was: bytes, owner and mode."""
    key = "/etc/rubrica/secrets/lookup-key"
    look = f"sha256sum {key}; stat -c '%U %a' {key}"
    before = machine.run(look).stdout
    machine.run(f"rm {key}")
    newest = ("rubrica-secrets-TIME.tar.age", f"$(ls {_SECRETS} | tail -n 1)")
    identity = ("rubrica-backup.key", "/root/rubrica-backup.key")

    run_block("backup.md", "One file of the secrets", 0, machine.run, newest, identity)

    assert machine.run(look).stdout == before


def test_users_and_tables_made_again_stay_as_they_are(machine: Booted) -> None:
    """The database's, by an administrator of PostgreSQL."""
    run_block("database.md", "Set it up", 0, machine.run)

    assert "AMISS" not in machine.run("rubrica doctor --only database").stdout


_PKI: Final = "/var/lib/rubrica/pki"


def test_certificate_of_the_ca_is_made_anew(machine: Booted) -> None:
    """The CA's, then with the root's; each of the key that there is."""
    renewed = [
        run_block(
            "key-ceremony.md",
            "A new certificate of the CA or the root",
            0,
            machine.run,
        ).stdout
    ]
    machine.run(f"rm {_PKI}/ca-before.pem")
    run_block(
        "key-ceremony.md",
        "A new certificate of the CA or the root",
        1,
        lambda line: machine.run(f"cd {_PKI} && {line}"),
    )
    renewed.append(
        machine.run(f"cd {_PKI} && mv ca.pem ca-2.pem; rubrica hsm init").stdout
    )

    assert ["made  CA certificate" in told for told in renewed] == [True, True]
    assert ["made  root certificate" in told for told in renewed] == [False, True]
    assert not any(
        f"made  {key} key" in told for told in renewed for key in ("CA", "root")
    )
    machine.run("rubrica hsm check; rubrica hsm renew-tsa")
    run_block("running.md", "Stop, restart, upgrade", 0, machine.run)
    assert "valid" in machine.run("rubrica sample").stdout


_LOOKUP_KEY: Final = "/etc/rubrica/secrets/lookup-key"
_LACKING: Final = {
    "file": (
        f"mv {_LOOKUP_KEY} /root/lookup-key",
        f"mv /root/lookup-key {_LOOKUP_KEY}",
        f"the file {_LOOKUP_KEY}",
    ),
    "HSM object": (TAKE_KEY, BRING_KEY, f"{KEY} is not there"),
    "masked socket": (
        # None that callers are at: systemd lets go of what a masked one listens on.
        "systemctl mask rubrica-embed.socket 2>&1",
        "systemctl unmask rubrica-embed.socket 2>&1",
        "the unit rubrica-embed.socket, which rubrica-embed.service requires:",
    ),
}
"""What takes something away, what brings it back, and what an upgrade says."""


@pytest.mark.parametrize(("take", "mend", "told"), _LACKING.values(), ids=_LACKING)
def test_upgrade_that_lacks_something_is_refused_before_anything(
    machine: Booted, take: str, mend: str, told: str
) -> None:
    """The package as it was, the roles at work, and what is missing named, alone."""
    look = (
        "systemctl show -P Id -P MainPID 'rubrica-*.service' | sort;"
        "find /opt/rubrica /usr/lib/systemd/system/rubrica* -printf '%p %i %T@\\n'"
        " | sort | sha256sum; dpkg-query -W -f '${db:Status-Status}' rubrica"
    )
    before = machine.run(look).stdout
    machine.run(take)
    refused = machine.run("dpkg -i /tmp/rubrica_*.deb 2>&1", check=False)
    after = machine.run(look).stdout
    machine.run(mend)

    lacks = [line for line in refused.stdout.splitlines() if "rubrica: lacks " in line]
    assert refused.returncode != 0
    assert [told in line for line in lacks] == [True], refused.stdout
    assert "nothing was changed" in refused.stdout
    assert after == before
    assert before.endswith("installed")
    assert (
        machine.within(lambda: httpx.get(f"{_API}/readyz", timeout=CALL_S)).status_code
        == 200
    )


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


_SECOND: Final = """\
systemctl disable --quiet --now ssh 2>/dev/null
mkdir -p /run/second/up /run/second/work /mnt/second
mount -t overlay second /mnt/second \
  -o lowerdir=/,upperdir=/run/second/up,workdir=/run/second/work
cd /mnt/second
rm -r etc/rubrica etc/systemd/system/rubrica-*.d var/lib/rubrica/pki
mount --rbind --make-rslave /dev dev
mkdir -p run/sshd root/.ssh /root/.ssh
ssh-keygen -q -t ed25519 -N '' -f /root/.ssh/id_ed25519
cp /root/.ssh/id_ed25519.pub root/.ssh/authorized_keys
chmod 700 root/.ssh
echo 'StrictHostKeyChecking accept-new' >/root/.ssh/config
echo '127.0.0.2 second' >>/etc/hosts
chroot . /usr/sbin/sshd -o ListenAddress=127.0.0.2 -o UsePAM=no -o PidFile=/second.pid
"""
"""A host by that name whose root lets this machine's in: this machine's own files,
written elsewhere, and nothing of an installation."""
_SECOND_AWAY: Final = """\
kill $(cat /mnt/second/second.pid)
umount -R -l /mnt/second
"""
_SHARED: Final = "etc/rubrica etc/systemd/system/rubrica-*.d var/lib/rubrica/pki"


def test_second_host_gets_what_is_shared(machine: Booted) -> None:
    """By ssh: the same files, with their owners and modes."""
    drop_in = "/etc/systemd/system/rubrica-api.service.d/own.conf"
    machine.run(f"install -D -m 644 /dev/stdin {drop_in} <<<'[Service]'")
    look = (
        f"find {_SHARED} -printf '%p %y %m %U %G %l\\n' | sort;"
        f"find {_SHARED} -type f -exec sha256sum {{}} + | sort"
    )
    machine.run(_SECOND)

    run_block("scaling.md", "A second host", 0, machine.run)

    first, second = (
        machine.run(f"cd {root} && {look}").stdout for root in ("/", "/mnt/second")
    )
    machine.run(f"{_SECOND_AWAY} rm {drop_in}; systemctl daemon-reload")
    assert second == first
    assert "etc/rubrica/secrets/pepper" in second
    assert "etc/systemd/system/rubrica-api.service.d/own.conf" in second


_IN_BUCKET: Final = """
[documents]
url = "s3://{bucket}/rubrica"
endpoint = "https://s3.example:{port}"
region = "us-east-1"
access_key_file = "/etc/rubrica/secrets/documents-access-key"
secret_key_file = "/etc/rubrica/secrets/documents-secret-key"
root_certificate_file = "/etc/rubrica/s3-ca.pem"
"""
_S3_KEY: Final = f"""\
export AWS_ACCESS_KEY_ID={ACCESS_KEY} AWS_SECRET_ACCESS_KEY={SECRET_KEY}
export AWS_CA_BUNDLE=/etc/rubrica/s3-ca.pem
"""
_BRING_KEY: Final = f"""\
cd /etc/rubrica/secrets && umask 077
echo {ACCESS_KEY} >documents-access-key
echo {SECRET_KEY} >documents-secret-key
cp /etc/rubrica/settings.toml /root/settings.toml
echo 127.0.0.1 s3.example >>/etc/hosts
"""


def test_documents_move_into_a_bucket_and_back(machine: Booted, tmp_path: Path) -> None:
    """By copies alone; what was signed before opens after, in either place."""
    authority = make_authority(tmp_path)
    tls = authority.certify(tmp_path, "s3.example")
    shutil.copy(authority.certificate, machine.root / "etc/rubrica/s3-ca.pem")
    (machine.root / "etc/rubrica/s3-ca.pem").chmod(0o644)
    machine.run(_BRING_KEY)

    def typed(lines: str) -> str:
        return machine.run(f"{_S3_KEY}{lines}").stdout

    with ExitStack() as stack:
        running = S3Server.running(tmp_path, tls)
        server = machine.within(lambda: stack.enter_context(running))
        bucket = machine.within(server.new_bucket)
        place = ("s3://documents/", f"s3://{bucket}/")
        at = ("s3.example:9000", f"s3.example:{server.port}")

        run_block("storage.md", "From a folder into a bucket", 0, typed, place, at)
        settings = machine.root / "etc/rubrica/settings.toml"
        more = _IN_BUCKET.format(bucket=bucket, port=server.port)
        settings.write_text(settings.read_text() + more)
        machine.run("mv /var/lib/rubrica/documents /var/lib/rubrica/before")
        machine.run("install -d -o root -g rubrica -m 2770 /var/lib/rubrica/documents")
        moved = machine.run("rubrica setup </dev/null; rubrica doctor --deep").stdout
        there = machine.run("find /var/lib/rubrica/documents -name '*.pdf'").stdout

        machine.run("systemctl stop rubrica.target")
        run_block("storage.md", "From a folder into a bucket", 1, typed, place, at)
    machine.run(
        "cp /root/settings.toml /etc/rubrica/settings.toml;"
        "rm /etc/systemd/system/rubrica-*.service.d/documents.conf;"
        "rm /etc/rubrica/secrets/documents-*"
    )
    back = machine.run("rubrica setup </dev/null; rubrica doctor --deep").stdout
    opened = machine.run(
        "rubrica backup --to /backup/record --secrets-to /elsewhere/secrets"
        " --recipient $(age-keygen -y /root/rubrica-backup.key);"
        f"rubrica restore --drill --backup $(ls {_RECORD} | tail -n 1)"
        f" --secrets $(ls {_SECRETS} | tail -n 1) --identity /root/rubrica-backup.key"
    ).stdout

    assert there == ""
    for told in (moved, back):
        assert "valid" in told
        assert "AMISS" not in told
    assert re.search(r"documents: (\d+) of \1 opened", opened), opened
    kept = machine.run("ls -R /var/lib/rubrica/before | grep -c '[.]pdf$'").stdout
    assert int(re.findall(r"documents: (\d+) of", opened)[0]) > int(kept) > 0


def test_purge_keeps_keys_and_documents(machine: Booted) -> None:
    """Roles and program go; what nothing brings back stays, and is told."""
    purge = "DEBIAN_FRONTEND=noninteractive apt-get purge --yes rubrica 2>&1"
    told = machine.run(purge).stdout

    assert "kept: /etc/rubrica" in told
    assert "kept: /var/lib/rubrica" in told
    active = machine.run("systemctl list-units --no-legend --state=active 'rubrica*'")
    assert active.stdout == ""
    assert not (machine.root / "opt/rubrica").exists()
    secrets = ["data-key", "document-key", "lookup-key", "pepper", "sample-person.json"]
    assert machine.run("ls /etc/rubrica/secrets").stdout.split() == secrets


def test_nothing_is_left_after_all_is_removed(machine: Booted) -> None:
    """By the lines of the manual: no file, user, database or unit of ours."""
    run_block("installing.md", "Removing everything", 0, machine.run)

    for path in ("etc/rubrica", "var/lib/rubrica", "run/rubrica", "opt/rubrica"):
        assert not (machine.root / path).exists(), path
    count = "awk '/^rubrica/ {n++} END {print n + 0}'"
    ours = (
        "SELECT rolname FROM pg_roles UNION SELECT datname FROM pg_database ORDER BY 1"
    )
    left = machine.run(
        f"getent passwd | {count}; getent group | {count};"
        f"systemctl list-unit-files --no-legend | {count};"
        f"echo '{ours}' | runuser -l postgres -c 'psql -qAt' | {count}"
    ).stdout.split()
    assert left == ["0", "0", "0", "0"]
