"""An installation in PROD whose servers are on other hosts, on a booted Debian.

PostgreSQL and Redis listen on an address that is none of the machine's own loopback,
with TLS and passwords; nginx with TLS stands before the faces. What the manual tells an
operator to run is run.

Source: docs/installing.md "PostgreSQL and Redis on other hosts".
"""

import re
import ssl
import subprocess
import time
from collections.abc import Iterator
from typing import Final

import httpx
import pyotp
import pytest

from tests.support.appliance.manual import blocks, packages, run_block, script
from tests.support.hosts.booted_machine import Booted, can_boot
from tests.support.hosts.debian_packages import built, debian_with
from tests.support.services.nginx import Proxy

_HEADING: Final = "PostgreSQL and Redis on other hosts"
_ADDRESS: Final = "192.0.2.20"
"""Of documentation (RFC 5737): the units reach it only where they are allowed to."""
_PASSWORD: Final = "una clave de administradora"
_NEW_KEY: Final = "-newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 2"
_SERVERS: Final = f"""
echo '{_ADDRESS} db.example redis.example' >>/etc/hosts
mkdir /srv/tls && cd /srv/tls
openssl req -x509 {_NEW_KEY} -subj /CN=ca -keyout ca.key -out ca.pem 2>&1
openssl req -x509 {_NEW_KEY} -subj /CN=servers -keyout server.key -out server.pem \\
  -addext subjectAltName=DNS:db.example,DNS:redis.example \\
  -addext basicConstraints=critical,CA:FALSE -CA ca.pem -CAkey ca.key 2>&1
for server in postgres redis; do
  install -d -o $server -g $server -m 700 /srv/$server
  install -o $server -g $server -m 600 server.key server.pem ca.pem /srv/$server
done
cd /etc/postgresql/*/main
cat >conf.d/elsewhere.conf <<'END'
listen_addresses = '{_ADDRESS}'
ssl = on
ssl_cert_file = '/srv/postgres/server.pem'
ssl_key_file = '/srv/postgres/server.key'
END
cat >pg_hba.conf <<'END'
local all postgres peer
hostssl rubrica all {_ADDRESS}/32 scram-sha-256
END
cat >>/etc/redis/redis.conf <<'END'
bind {_ADDRESS}
port 0
tls-port 6379
tls-cert-file /srv/redis/server.pem
tls-key-file /srv/redis/server.key
tls-ca-cert-file /srv/redis/ca.pem
tls-auth-clients no
requirepass "clave de redis"
END
systemctl restart postgresql redis-server
cp /srv/tls/ca.pem /root/database-ca.pem && cp /srv/tls/ca.pem /root/redis-ca.pem
echo 'clave de redis' >/root/redis-password
echo '{_PASSWORD}' >/root/marta-password
"""
_CERTIFICATE: Final = (
    "openssl req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=firma.example"
    " -addext subjectAltName=DNS:firma.example,DNS:marco.firma.example,"
    "DNS:consola.firma.example -keyout /etc/ssl/private/firma.example.key"
    " -out /etc/ssl/firma.example.pem 2>&1"
)
_PROXY: Final = (
    "ln -s /etc/rubrica/nginx.conf /etc/nginx/conf.d/rubrica.conf;"
    "systemctl reload nginx"
)
_INSTALL: Final = "DEBIAN_FRONTEND=noninteractive apt-get install --yes 2>&1"
_SETUP: Final = "cd /root && rubrica setup --answers answers.toml"
_ACTIVE: Final = "systemctl list-units --no-legend --state=active 'rubrica*'"

pytestmark = [
    pytest.mark.long,
    pytest.mark.skipif(
        not can_boot(), reason="it takes root, mmdebstrap and systemd-container"
    ),
]


@pytest.fixture(scope="module")
def machine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Booted]:
    """A machine with the package and with servers that are as good as elsewhere."""
    folder = tmp_path_factory.mktemp("production")
    package = built(folder)
    install = script("installing.md", "First installation", 1)
    named = [each for each in packages(install) if not each.startswith("/")]
    (folder / "machine").mkdir()
    with debian_with(
        folder / "machine", package, [*named, "nginx", "openssl", "age"]
    ) as booted:
        address = ["ip", "address", "add", f"{_ADDRESS}/32", "dev", "lo"]
        booted.within(lambda: subprocess.run(address, check=True))
        booted.run(_SERVERS)
        booted.run(_CERTIFICATE)
        booted.run(f"{_INSTALL} /tmp/{package.name}")
        (answers,) = (b.text for b in blocks(_HEADING) if b.language == "toml")
        (booted.root / "root/answers.toml").write_text(answers)
        yield booted


def client(machine: Booted, host: str) -> httpx.Client:
    """A client of a name, through nginx and its TLS."""
    certificate = (machine.root / "etc/ssl/firma.example.pem").read_text()
    tls = ssl.create_default_context(cadata=certificate)
    # By the address, as nothing resolves the name.
    tls.check_hostname = False
    made = Proxy(443, tls).client(host)
    made.headers["Host"] = host
    return made


def test_two_runs_and_the_sql_between_them(machine: Booted) -> None:
    """The first one tells what to run there and starts nothing; the second one ends."""
    first = machine.run(_SETUP, check=False)

    assert first.returncode == 78, first.stderr
    assert "rubrica-signing: " in first.stderr
    assert "/etc/rubrica/database-roles.sql" in first.stderr
    assert machine.run(_ACTIVE).stdout == ""
    machine.run(
        "install -o postgres -m 600 -t /var/lib/postgresql"
        " /etc/rubrica/database-roles.sql"
    )

    def as_postgres(line: str) -> None:
        assert line in first.stderr
        machine.run(f"cd /var/lib/postgresql && runuser -u postgres -- {line}")

    run_block("installing.md", "PostgreSQL and Redis on other hosts", 0, as_postgres)

    written = machine.run(f"{_SETUP} --no-start").stdout
    assert "6 users get in, TLS verify-full" in written
    assert machine.run(_ACTIVE).stdout == ""
    # Before who holds the keys is there: units and passwords are, tokens are not.
    units = machine.run("systemctl cat rubrica-signing@1.service").stdout
    assert "LoadCredential=database:" in units
    assert machine.run("ls /etc/rubrica/hsm /var/lib/rubrica/pki").stdout.split() == [
        *("/etc/rubrica/hsm:", "/var/lib/rubrica/pki:")
    ]

    second = machine.run(_SETUP)

    assert "6 users get in, TLS verify-full" in second.stdout
    assert "ready" in second.stdout
    machine.run(_PROXY)
    (seed,) = re.findall(
        r"^otpauth://\S+[?&]secret=([A-Z2-7]+)", second.stdout, re.MULTILINE
    )
    (machine.root / "root/marta-totp").write_text(seed)
    assert machine.run("systemctl --failed --no-legend").stdout == ""
    warned = machine.run("journalctl -q -p warning -u 'rubrica-*'").stdout
    assert warned == ""


def test_it_is_ready(machine: Booted) -> None:
    """By its public address, through nginx; the backups alone are still to come."""
    with client(machine, "firma.example") as public:
        ready = machine.within(lambda: public.get("/readyz"))

    assert ready.status_code == httpx.codes.OK, ready.text
    found = machine.run("rubrica doctor --deep", check=False)
    amiss = [line for line in found.stdout.splitlines() if line.startswith("AMISS")]
    assert amiss == [
        "AMISS  backups: no backups: /etc/rubrica/backup.toml is not there"
    ]
    assert found.returncode == 1
    machine.run("systemctl mask rubrica-backup.timer 2>&1")
    otherwise = machine.run("rubrica doctor").stdout
    machine.run("systemctl unmask rubrica-backup.timer 2>&1")
    assert "AMISS" not in otherwise


def test_administrator_signs_in(machine: Booted) -> None:
    """With the password of the file and the TOTP that setup told once."""
    totp = pyotp.TOTP((machine.root / "root/marta-totp").read_text())
    origin = {"Origin": "https://consola.firma.example"}
    form = {"name": "marta", "password": _PASSWORD, "next": ""}

    with client(machine, "consola.firma.example") as console:

        def signs_in(code: str) -> httpx.Response:
            told = {**form, "code": code}
            return console.post("/admin/login", headers=origin, data=told)

        wrong = machine.within(lambda: signs_in("000000"))
        right = machine.within(lambda: signs_in(totp.at(time.time())))
        home = machine.within(lambda: console.get("/admin/"))

    assert wrong.status_code == httpx.codes.UNPROCESSABLE_ENTITY
    assert right.status_code == httpx.codes.SEE_OTHER, right.text
    assert home.status_code == httpx.codes.OK
    assert "marta" in home.text


def test_every_connection_has_tls_and_a_user_of_its_own(machine: Booted) -> None:
    """In PostgreSQL's own words."""
    ask = (
        "SELECT usename, bool_and(ssl) FROM pg_stat_ssl JOIN pg_stat_activity"
        " USING (pid) WHERE usename LIKE 'rubrica-%' GROUP BY usename ORDER BY usename"
    )
    told = machine.run(f'runuser -u postgres -- psql -qAt -c "{ask}"').stdout

    roles = ("admin", "api", "chores", "embed", "signing")
    assert told.splitlines() == [f"rubrica-{role}|t" for role in roles]


def test_units_have_their_own_password_and_one_address_more(machine: Booted) -> None:
    """As systemd has them, the drop-ins in it."""
    text = machine.run("systemctl cat rubrica-chores.service").stdout
    reached = machine.run("systemctl show -P IPAddressAllow rubrica-chores.service")

    assert "LoadCredential=database:/etc/rubrica/secrets/database-chores\n" in text
    assert "LoadCredential=redis:/etc/rubrica/secrets/redis\n" in text
    assert sorted(reached.stdout.split()) == [
        *("127.0.0.0/8", f"{_ADDRESS}/32", "::1/128")
    ]


def test_setup_again_changes_nothing(machine: Booted) -> None:
    """No file is written, no role started anew, nothing asked."""
    look = (
        "find /etc/rubrica /etc/systemd/system -type f"
        " -printf '%p %T@ %u %m\\n' | sort;"
        "systemctl show -P ActiveEnterTimestampMonotonic -P MainPID 'rubrica-*.service'"
    )
    before = machine.run(look).stdout

    told = machine.run("rubrica setup </dev/null").stdout

    assert machine.run(look).stdout == before
    assert "made " not in told


def test_backup_has_every_password(machine: Booted) -> None:
    """It comes back with the users that the database knows; tried out here."""
    told = machine.run(
        "mkdir -p /backup/record /elsewhere/secrets;"
        "age-keygen -o /root/backup.key 2>/dev/null;"
        "rubrica backup --to /backup/record --secrets-to /elsewhere/secrets"
        ' --recipient "$(age-keygen -y /root/backup.key)" >/dev/null;'
        "rubrica restore --drill --backup /backup/record/*.age"
        " --secrets /elsewhere/secrets/*.age --identity /root/backup.key;"
        "age --decrypt --identity /root/backup.key /elsewhere/secrets/*.age | tar -t"
    ).stdout

    assert "can be brought back" in told
    for role in ("api", "embed", "admin", "signing", "chores"):
        assert f"secrets/database.password_file.database-{role}" in told
