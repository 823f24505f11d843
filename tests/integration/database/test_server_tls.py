"""TLS and passwords to a real PostgreSQL and a real Redis."""

import socket
import subprocess
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from redis.exceptions import RedisError
from sqlalchemy import text

from appliance.database.engines import open_engines
from appliance.messaging.redis_link import connect, redis_settings
from appliance.settings import Settings
from tests.support.installation.settings import settings_in
from tests.support.processes.scratch import free_port
from tests.support.services.postgres import USER, PostgresServer
from tests.support.services.server_certificates import Authority, make_authority
from tests.support.services.tls_postgres import postgres_certified_by

PASSWORD = "clave de redis"


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    """Who certifies the servers."""
    return make_authority(tmp_path_factory.mktemp("authority"))


@pytest.fixture(scope="module")
def postgres(authority: Authority) -> Iterator[PostgresServer]:
    """A server that has a certificate for `localhost`."""
    with postgres_certified_by(authority) as server:
        yield server


def database(
    tmp_path: Path, server: PostgresServer, hosts: str, **more: str
) -> Settings:
    """Settings of that server, by TCP and its password."""
    password = tmp_path / "pw"
    password.write_text(server.password)
    url = f"postgresql://{USER}@{hosts}/postgres"
    table = {"url": url, "password_file": str(password), **more}
    return settings_in(tmp_path, database=table)


async def has_tls(settings: Settings) -> bool:
    """Whether a connection to the database has it."""
    engines = open_engines(settings)
    asked = "SELECT ssl FROM pg_stat_ssl WHERE pid = pg_backend_pid()"
    try:
        async with engines.reader.connect() as connection:
            return bool((await connection.execute(text(asked))).scalar_one())
    finally:
        await engines.dispose()


@pytest.mark.parametrize(
    ("tls", "host", "secure"),
    [
        ("disable", "localhost", False),
        ("prefer", "localhost", True),
        ("require", "127.0.0.1", True),
        ("verify-ca", "127.0.0.1", True),
        ("verify-full", "localhost", True),
    ],
)
async def test_database_is_reached_as_the_settings_say(
    tmp_path: Path,
    postgres: PostgresServer,
    authority: Authority,
    tls: str,
    host: str,
    secure: bool,
) -> None:
    """Libpq's words mean what they mean there."""
    more = {"tls": tls}
    if tls.startswith("verify"):
        more["root_certificate_file"] = str(authority.certificate)
    settings = database(tmp_path, postgres, f"{host}:{postgres.port}", **more)

    assert await has_tls(settings) is secure


@pytest.mark.parametrize(
    ("tls", "host", "ours"),
    [
        ("verify-full", "127.0.0.1", True),
        ("verify-full", "localhost", False),
        ("verify-ca", "localhost", False),
    ],
)
async def test_database_that_is_another_is_refused(
    tmp_path: Path,
    postgres: PostgresServer,
    authority: Authority,
    tls: str,
    host: str,
    ours: bool,
) -> None:
    """Another name, or a certificate of somebody else's."""
    root = authority if ours else make_authority(tmp_path, "other")
    settings = database(
        tmp_path,
        postgres,
        f"{host}:{postgres.port}",
        tls=tls,
        root_certificate_file=str(root.certificate),
    )

    with pytest.raises(OSError, match="CERTIFICATE_VERIFY_FAILED"):
        await has_tls(settings)


async def test_database_that_has_no_tls_is_refused(
    tmp_path: Path, postgres_server: PostgresServer
) -> None:
    """`require` takes no connection without it."""
    hosts = f"127.0.0.1:{postgres_server.port}"
    settings = database(tmp_path, postgres_server, hosts, tls="require")

    with pytest.raises(OSError, match="SSL"):
        await has_tls(settings)


async def test_host_that_is_away_is_passed_over(
    tmp_path: Path, postgres: PostgresServer
) -> None:
    """Of several hosts, the first that takes writes."""
    hosts = f"localhost:{free_port()},localhost:{postgres.port}"

    assert await has_tls(database(tmp_path, postgres, hosts))


async def test_host_that_only_reads_is_passed_over(
    tmp_path: Path, postgres: PostgresServer, postgres_server: PostgresServer
) -> None:
    """As the standby of a failover is."""
    readers = "regla_de_lectura"
    for server in (postgres, postgres_server):
        server.execute(f"CREATE ROLE {readers} LOGIN PASSWORD '{postgres.password}'")
    postgres_server.execute(
        f"ALTER ROLE {readers} SET default_transaction_read_only = on"
    )
    hosts = f"localhost:{postgres_server.port},localhost:{postgres.port}"
    settings = database(tmp_path, postgres, hosts)
    url = settings.database.url.replace(USER, readers, 1)
    changed = settings.database.model_copy(update={"url": url})
    try:
        # The first has no TLS.
        assert await has_tls(settings.model_copy(update={"database": changed}))
    finally:
        for server in (postgres, postgres_server):
            server.execute(f"DROP ROLE {readers}")


@pytest.fixture(scope="module")
def redis_port(
    tmp_path_factory: pytest.TempPathFactory, authority: Authority
) -> Iterator[int]:
    """The port of a Redis that wants TLS and a password."""
    place = tmp_path_factory.mktemp("redis")
    certificate, key = authority.certify(place, "localhost")
    port = free_port()
    words = ["--port", "0", "--tls-port", str(port), "--bind", "127.0.0.1"]
    words += ["--tls-cert-file", str(certificate), "--tls-key-file", str(key)]
    words += ["--tls-ca-cert-file", str(authority.certificate)]
    words += ["--tls-auth-clients", "no", "--dir", str(place), "--save", ""]
    with subprocess.Popen(
        ["redis-server", *words, "--requirepass", PASSWORD],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
    ) as process:
        try:
            _await(lambda: _listens(port))
            yield port
        finally:
            process.terminate()


def _listens(port: int) -> bool:
    try:
        socket.create_connection(("127.0.0.1", port), 1).close()
    except OSError:
        return False
    return True


def _await(holds: Callable[[], bool]) -> None:
    """Wait until something holds, for a while."""
    deadline = time.monotonic() + 30
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(0.05)


def redis(
    folder: Path, port: int, root: Authority, password: str, host: str
) -> Settings:
    """Settings of that Redis."""
    file = folder / "redis-password"
    file.write_text(f"{password}\n")
    table = {
        "url": f"rediss://{host}:{port}/0",
        "password_file": str(file),
        "root_certificate_file": str(root.certificate),
    }
    return settings_in(folder, redis=table)


@asynccontextmanager
async def pinged(settings: Settings) -> AsyncIterator[bool]:
    """What a client of the doorbell is answered."""
    client = connect(redis_settings(settings))
    try:
        yield bool(await client.ping())
    finally:
        await client.aclose()


async def test_redis_is_reached_by_tls_and_a_password(
    tmp_path: Path, redis_port: int, authority: Authority
) -> None:
    """The password is in a file of its own."""
    settings = redis(tmp_path, redis_port, authority, PASSWORD, "localhost")

    async with pinged(settings) as well:
        assert well


@pytest.mark.parametrize(
    ("password", "host", "ours"),
    [
        ("otra", "localhost", True),
        (PASSWORD, "127.0.0.1", True),
        (PASSWORD, "localhost", False),
    ],
)
async def test_redis_that_is_another_is_refused(
    tmp_path: Path,
    redis_port: int,
    authority: Authority,
    password: str,
    host: str,
    ours: bool,
) -> None:
    """Another password, another name, a certificate of somebody else's."""
    root = authority if ours else make_authority(tmp_path, "other")

    with pytest.raises(RedisError):
        async with pinged(redis(tmp_path, redis_port, root, password, host)):
            pass
