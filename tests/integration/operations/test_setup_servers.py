"""Setup's way to a PostgreSQL on another host: TLS, a user and a password a role.

The server is a real one, asked by TCP on a name; what needs root's folders is looked at
on a booted machine (`tests/functional/test_servers_elsewhere.py`).

Source: docs/database.md "Set it up".
"""

import gc
import os
import subprocess
from base64 import b64decode
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from appliance.cli.installation.database import scram_verifier
from appliance.database.password_files import password_file_of
from appliance.database.rights import OWNER, Role
from appliance.operations import system
from appliance.operations.setup import servers
from appliance.operations.setup.questions import look
from appliance.operations.setup_answers import Answers
from appliance.settings import Settings, SettingsError
from tests.support.installation.settings import settings_in
from tests.support.processes.rubrica import run_rubrica
from tests.support.processes.scratch import free_port
from tests.support.services.postgres import PostgresServer, program
from tests.support.services.server_certificates import Authority, make_authority
from tests.support.services.tls_postgres import postgres_certified_by

USERS = (OWNER, *(role.value for role in Role))

# A connection that is refused over TLS is open until the server hangs up, or its loop
# ends, as that of a command does: asyncpg gives nobody a hold on it.
pytestmark = pytest.mark.filterwarnings("ignore:unclosed:ResourceWarning")


@pytest.fixture(scope="module", autouse=True)
def _let_go() -> Iterator[None]:
    """Have none of them found in a test of another file."""
    yield
    gc.collect()


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    """Who certifies the server."""
    return make_authority(tmp_path_factory.mktemp("authority"))


@pytest.fixture
def postgres(authority: Authority) -> Iterator[PostgresServer]:
    """A server of the test's own, with a certificate for `localhost`."""
    with postgres_certified_by(authority) as server:
        yield server


@pytest.fixture
def settings(
    tmp_path: Path,
    postgres: PostgresServer,
    authority: Authority,
    monkeypatch: pytest.MonkeyPatch,
) -> Settings:
    """Settings of that server, with passwords as setup makes them."""
    monkeypatch.setattr(system, "SETTINGS", tmp_path / "settings.toml")
    monkeypatch.setattr(system, "UNITS", tmp_path / "units")
    owners = tmp_path / "database"
    for user in USERS:
        password_file_of(owners, user).write_text(f"clave de {user}\n")
    return settings_of(tmp_path, postgres.port, authority)


def settings_of(
    tmp_path: Path, port: int, authority: Authority, **more: str
) -> Settings:
    """The same, of another place or another authority."""
    table = {
        "url": f"postgresql://localhost:{port}/rubrica",
        "password_file": str(tmp_path / "database"),
        "tls": "verify-full",
        "root_certificate_file": str(authority.certificate),
        **more,
    }
    return settings_in(tmp_path, database=table)


def written_sql(tmp_path: Path) -> Path:
    """Where it is."""
    return tmp_path / "database-roles.sql"


def test_verifier_is_that_of_the_rfc() -> None:
    """RFC 7677's example, as PostgreSQL writes it; other characters are refused."""
    assert scram_verifier("pencil", b64decode("W22ZaJ0SNY7soEsUEjb6gQ==")) == (
        "SCRAM-SHA-256$4096:W22ZaJ0SNY7soEsUEjb6gQ==$"
        "WG5d8oPm3OtcPnkdi4Uo7BkeZkBFzpcXkuLmtbsT4qY=:"
        "wfPLwcE6nTWhTAmQ7tl2KeoiWGPlZqQxSrmfPwDl2dU="
    )
    with pytest.raises(ValueError, match="ASCII"):
        scram_verifier("contraseña", b"0" * 16)


def test_somebody_else_makes_the_users(
    tmp_path: Path, settings: Settings, postgres: PostgresServer
) -> None:
    """What setup writes down is run there; no password is in it, and all get in."""
    with pytest.raises(SettingsError) as told:
        servers.make_users(settings, "postgres", "")

    written = written_sql(tmp_path)
    assert str(written) in str(told.value)
    assert all(user in str(told.value) for user in USERS)
    assert written.stat().st_mode & 0o077 == 0
    sql = written.read_text()
    assert "clave" not in sql + str(told.value)
    psql = [str(program("psql")), "-X", "-v", "ON_ERROR_STOP=1", "--quiet"]
    subprocess.run(
        [*psql, "-d", postgres.url(), "-f", str(written)], check=True, text=True
    )

    servers.make_users(settings, "postgres", "")

    assert not written.exists()


def test_superuser_is_tried_when_asked_for(
    tmp_path: Path, postgres: PostgresServer, authority: Authority
) -> None:
    """By TLS, as the users will be; a wrong password is told at the question."""
    password = tmp_path / "superuser"
    answers = Answers.of(
        {
            "database": f"postgresql://localhost:{postgres.port}/rubrica",
            "database_ca": str(authority.certificate),
            "database_superuser": "rubrica",
            "database_superuser_password_file": str(password),
        }
    )
    key = "database_superuser_password_file"

    (missing,) = look(answers, key)
    password.write_text("otra")
    (wrong,) = look(answers, key)
    password.write_text(postgres.password)
    (untrusted,) = look(replace(answers, database_ca=""), key)

    assert look(answers, key) == []
    assert "cannot be read" in missing
    assert "rubrica does not get in: password authentication failed" in wrong
    assert "certificate" in untrusted.lower()


def test_setup_makes_the_users(
    tmp_path: Path,
    settings: Settings,
    postgres: PostgresServer,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Where it is given a superuser's password; again, it runs nothing there."""
    superuser = tmp_path / "superuser"
    superuser.write_text(postgres.password)

    servers.make_users(settings, "rubrica", str(superuser))
    superuser.write_text("otra")
    servers.make_users(settings, "rubrica", str(superuser))

    assert "6 users get in, TLS verify-full" in capsys.readouterr().out
    postgres.execute("ALTER ROLE \"rubrica-admin\" PASSWORD 'otra'")
    with pytest.raises(SettingsError) as refused:
        servers.make_users(settings, "postgres", "")
    told = str(refused.value)
    assert "rubrica-admin" in told
    assert "rubrica-api" not in told


def test_command_prints_the_same_users(
    tmp_path: Path, settings: Settings, postgres: PostgresServer
) -> None:
    """After a restore, for a server that has none: by the passwords that came back."""
    file = tmp_path / "settings.toml"
    token = f'{{ label = "x", pin_file = "{tmp_path}/pin" }}'
    file.write_text(
        f'data_dir = "{tmp_path}"\nrun_dir = "{tmp_path}"\n'
        f'[database]\nurl = "{settings.database.url}"\npassword_file = "database"\n'
        f"[hsm]\nfirma = {token}\npki = {token.replace('x', 'y', 1)}\n"
        '[secrets]\npepper_file = "p"\ndata_key_file = "d"\nlookup_key_file = "l"\n'
    )

    done = run_rubrica("--settings", str(file), "database", "roles", "--from-files")

    assert done.returncode == 0, done.stderr
    assert "clave" not in done.stdout
    psql = [str(program("psql")), "-X", "-v", "ON_ERROR_STOP=1", "--quiet"]
    subprocess.run(
        [*psql, "-d", postgres.url()], check=True, text=True, input=done.stdout
    )
    servers.make_users(settings, "postgres", "")
    password_file_of(tmp_path / "database", Role.API).write_text("contraseña")
    refused = run_rubrica("--settings", str(file), "database", "roles", "--from-files")
    assert refused.returncode == 78
    assert "ASCII" in refused.stderr


def test_wrong_superuser_is_told(
    tmp_path: Path, settings: Settings, capsys: pytest.CaptureFixture[str]
) -> None:
    """In PostgreSQL's words, without the password."""
    superuser = tmp_path / "superuser"
    superuser.write_text("no es esta")

    with pytest.raises(SettingsError, match="authentication failed") as told:
        servers.make_users(settings, "rubrica", str(superuser))

    assert "no es esta" not in str(told.value) + capsys.readouterr().out


@pytest.mark.parametrize("wrong", ["authority", "name", "away"])
def test_server_that_is_another_is_told(
    tmp_path: Path,
    settings: Settings,
    postgres: PostgresServer,
    authority: Authority,
    wrong: str,
) -> None:
    """Before anything is run there or written down."""
    other = make_authority(tmp_path, "other") if wrong == "authority" else authority
    port = free_port() if wrong == "away" else postgres.port
    host = "127.0.0.1" if wrong == "name" else "localhost"
    url = f"postgresql://{host}:{port}/rubrica"
    del settings

    with pytest.raises(SettingsError, match="does not answer as it should"):
        servers.make_users(settings_of(tmp_path, port, other, url=url), "x", "")

    assert not written_sql(tmp_path).exists()


def test_units_get_their_own_password_and_the_way_there(
    tmp_path: Path, authority: Authority, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each its own, by the name that the settings have; the host's address alone."""
    known = {"db.example": "192.0.2.20", "redis.example": "2001:db8::7"}

    def look_up(host: str, *_: object, **__: object) -> list[object]:
        return [(2, 1, 6, "", (known[host], 0))]

    monkeypatch.setattr("socket.getaddrinfo", look_up)
    monkeypatch.setattr(system, "UNITS", tmp_path / "units")
    settings = settings_of(
        tmp_path, 5432, authority, url="postgresql://db.example/rubrica"
    )
    redis = settings.redis.model_copy(
        update={
            "url": "rediss://redis.example:6379/0",
            "password_file": tmp_path / "redis",
        }
    )
    settings = settings.model_copy(update={"redis": redis})

    for unit, user in servers.UNITS.items():
        own = "" if user == OWNER else f"-{user.removeprefix('rubrica-')}"
        assert servers.unit_lines(settings, unit) == [
            f"LoadCredential=database:{tmp_path}/database{own}",
            f"LoadCredential=redis:{tmp_path}/redis",
            "IPAddressAllow=192.0.2.20",
            "IPAddressAllow=2001:db8::7",
        ]


@pytest.mark.skipif(os.geteuid() != 0, reason="the files are root's")
def test_drop_ins_are_written_where_they_are_others(
    tmp_path: Path, authority: Authority, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Once; again for another address; and they go where nothing is elsewhere."""
    address, reloads = "192.0.2.20", []
    monkeypatch.setattr(system, "UNITS", tmp_path / "units")
    monkeypatch.setattr(system, "run", lambda *words: reloads.append(words))
    monkeypatch.setattr(
        "socket.getaddrinfo", lambda *_, **__: [(2, 1, 6, "", (address, 0))]
    )
    url = "postgresql://db.example/rubrica"
    settings = settings_of(tmp_path, 5432, authority, url=url)

    def written() -> dict[str, str]:
        servers.write_drop_ins(settings)
        found = (tmp_path / "units").glob("*/servers.conf")
        return {path.parent.name: path.read_text() for path in found}

    first = written()
    assert first.keys() == {f"rubrica-{unit}.service.d" for unit in servers.UNITS}
    assert written() == first
    assert reloads == [("systemctl", "daemon-reload")]
    address = "192.0.2.21"
    other = written()
    assert all("IPAddressAllow=192.0.2.21\n" in text for text in other.values())
    settings = settings_in(tmp_path, database={"url": "postgresql:///r?host=/run/p"})
    assert written() == {}
    assert len(reloads) == 3


def test_what_an_operator_wrote_stays(
    tmp_path: Path,
    settings: Settings,
    postgres: PostgresServer,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A credential of their own drop-in is that unit's, and the password is there."""
    monkeypatch.setattr(system, "UNITS", tmp_path)
    superuser = tmp_path / "superuser"
    superuser.write_text(postgres.password)
    (tmp_path / "other").write_text("la de la api")
    for unit, line in (
        ("api", f"LoadCredential=database:{tmp_path}/other"),
        ("admin", "LoadCredentialEncrypted=database:/etc/credstore/database"),
    ):
        drop_in = tmp_path / f"rubrica-{unit}.service.d"
        drop_in.mkdir()
        (drop_in / "override.conf").write_text(f"[Service]\n{line}\n")
        (drop_in / "servers.conf").write_text("[Service]\nLoadCredential=database:x\n")

    servers.make_users(settings, "rubrica", str(superuser))

    assert servers.unit_lines(settings, "api") == []
    assert servers.unit_lines(settings, "admin") == []
    own = f"LoadCredential=database:{tmp_path}/database-chores"
    assert servers.unit_lines(settings, "chores") == [own]
    url = settings.database.url.replace("//", "//rubrica-api@")
    (tmp_path / "database").write_text("la de la api")
    database = settings.database.model_copy(update={"url": url})
    servers.make_users(settings.model_copy(update={"database": database}), "x", "")


def test_units_of_this_machines_servers_need_nothing(tmp_path: Path) -> None:
    """A socket, and Redis without a password."""
    table = {"url": "postgresql:///rubrica?host=/run/postgresql"}
    redis = {"url": "redis://127.0.0.1:6379/0"}
    settings = settings_in(tmp_path, database=table, redis=redis)

    assert not servers.has_host(settings)
    assert all(servers.unit_lines(settings, unit) == [] for unit in servers.UNITS)


def test_one_user_for_all_is_left_to_whom_made_it(
    tmp_path: Path, postgres: PostgresServer, authority: Authority
) -> None:
    """The settings name it: nothing is run there; its password is every unit's."""
    (tmp_path / "database").write_text(postgres.password)
    url = f"postgresql://rubrica@localhost:{postgres.port}/postgres"
    settings = settings_of(tmp_path, postgres.port, authority, url=url)

    servers.make_users(settings, "postgres", "")

    for unit in servers.UNITS:
        assert servers.unit_lines(settings, unit) == [
            f"LoadCredential=database:{tmp_path}/database"
        ]
    (tmp_path / "database").write_text("otra")
    with pytest.raises(SettingsError, match="password"):
        servers.make_users(settings, "postgres", "")
