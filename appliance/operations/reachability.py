"""Whether PostgreSQL and Redis answer where the settings have them.

    for finding in look_at_redis(settings):
        print(finding.what, finding.remedy)

Nothing is written and nobody logs in at PostgreSQL.
"""

import ipaddress
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final
from urllib.parse import parse_qs, urlsplit

from appliance.database.password_files import read_password
from appliance.operations.installation_checks import Finding
from appliance.settings import Settings, SettingsError

CONNECT_S: Final = 10
"""Longest that connecting may take, in seconds."""
ANSWER_S: Final = 3.0
"""Longest wait for the first answer, in seconds. A process that was stopped (SIGSTOP)
still accepts connections."""
_SSL_REQUEST: Final = (8).to_bytes(4, "big") + (80877103).to_bytes(4, "big")
"""Question that every PostgreSQL, and every pooler before it, answers by one byte
before anybody logs in. Source: PostgreSQL, "Message Formats", SSLRequest."""
_HANGS: Final = "accepts connections and does not answer: it hangs"
DATABASE_PORT: Final = 5432
REDIS_PORT: Final = 6379
WANTS_PASSWORD: Final = "Redis wants a password"  # noqa: S105 (a sentence)
"""What `redis_fault` says where none was given."""


def socket_place(url: str) -> tuple[str, int] | None:
    """Folder and port of a database's Unix socket; None: it is asked by its host."""
    parts = urlsplit(url)
    query = parse_qs(parts.query)
    folder = query.get("host", [""])[0]
    if not folder.startswith("/") or parts.hostname:
        return None
    return folder, int(query.get("port", ["5432"])[0])


def hosts_fault(url: str, usual_port: int, *, is_postgres: bool = False) -> str:
    """Why none of a URL's hosts lets a connection in; empty: one does.

    Args:
        url: of the settings; of several hosts one is enough.
        usual_port: where it names none.
        is_postgres: each is PostgreSQL, and has to answer as well.
    """
    told = "names no host"
    for each in urlsplit(url).netloc.rpartition("@")[2].split(","):
        place = urlsplit(f"//{each}")
        if not place.hostname:
            continue
        where = (place.hostname, place.port or usual_port)
        try:
            with socket.create_connection(where, CONNECT_S) as connection:
                if not is_postgres or _answers(connection):
                    return ""
                told = f"{each} {_HANGS}"
        except OSError as exc:
            told = f"{each} does not answer: {exc}"
    return told


def _answers(connection: socket.socket) -> bool:
    """Return whether PostgreSQL answers over a connection within `ANSWER_S`.

    Raises:
        OSError: the connection broke.
    """
    connection.settimeout(ANSWER_S)
    try:
        connection.sendall(_SSL_REQUEST)
        return bool(connection.recv(1))
    except TimeoutError:
        return False


def redis_fault(url: str, authority: Path | None, password: str | None) -> str:
    """Why a Redis does not answer; empty: it does.

    Args:
        url: as `redis.url`.
        authority: certificates that it is checked by; None: the system's.
        password: None: none is given.
    """
    import redis  # noqa: PLC0415 (heavy)

    options: dict[str, Any] = {"password": password} if password else {}
    if url.startswith("rediss:"):
        options["ssl_ca_certs"] = str(authority) if authority else None
    try:
        with redis.Redis.from_url(
            url,
            socket_timeout=ANSWER_S,
            socket_connect_timeout=CONNECT_S,
            **options,
        ) as client:
            client.ping()
    except redis.AuthenticationError:
        if password is None:
            return WANTS_PASSWORD
        return "Redis does not take that password"
    except redis.TimeoutError as exc:
        # redis-py has one error for a host that is not there and for one that hangs.
        is_connected = "reading" in str(exc)
        return f"Redis {_HANGS}" if is_connected else f"Redis does not answer: {exc}"
    except (redis.RedisError, OSError, ValueError) as exc:
        return f"Redis does not answer: {exc}"
    return ""


def look_at_redis(settings: Settings) -> Iterator[Finding]:
    """A Redis that does not answer.

    Args:
        settings: of the installation.
    """
    redis = settings.redis
    url = redis.url or f"unix://{settings.redis_socket}"
    try:
        password = read_password(redis.password_file) if redis.password_file else None
    except SettingsError as exc:
        yield Finding(str(exc), "bring it back from the backup of the secrets")
        return
    if told := redis_fault(url, redis.root_certificate_file, password):
        what = f"{told} (redis.url: {url}); signing goes on, more slowly"
        host, hangs = urlsplit(url).hostname, _HANGS in told
        yield Finding(what, _start("redis-server", "Redis", host, hangs=hangs))


def look_for_database(settings: Settings) -> Iterator[Finding]:
    """A PostgreSQL that lets no connection in, or hangs.

    Args:
        settings: of the installation; an SQLite is always there.
    """
    url = settings.database.url
    if url == "sqlite":
        return
    place = socket_place(url)
    if place:
        told = socket_fault(*place)
    else:
        told = hosts_fault(url, DATABASE_PORT, is_postgres=True)
    if told:
        remedy = database_remedy(settings, hangs=_HANGS in told)
        yield Finding(f"PostgreSQL: {told}", remedy)


def socket_fault(folder: str, port: int) -> str:
    """Why no PostgreSQL answers at a database's Unix socket; empty: one does.

    Args:
        folder: of the socket.
        port: that is in its name.
    """
    path = f"{folder}/.s.PGSQL.{port}"
    try:
        with socket.socket(socket.AF_UNIX) as asking:
            asking.settimeout(CONNECT_S)
            asking.connect(path)
            if not _answers(asking):
                return f"{path} {_HANGS}"
    except OSError as exc:
        return f"{path} does not answer: {exc.strerror or exc}"
    return ""


def database_remedy(settings: Settings, *, hangs: bool = False) -> str:
    """What to look at where the database does not answer.

    Args:
        settings: of the installation.
        hangs: it accepts connections.
    """
    netloc = urlsplit(settings.database.url).netloc.rpartition("@")[2]
    return _start("postgresql", "PostgreSQL", netloc or None, hangs=hangs)


def _start(unit: str, name: str, host: str | None, *, hangs: bool) -> str:
    """How to have a service be there again.

    Args:
        unit: of Debian's package.
        name: of the service.
        host: where it runs; None: behind a Unix socket.
        hangs: it runs and does not answer.
    """
    if host is None or _is_here(host):
        again = "restart" if hangs else "start"
        return f"systemctl status {unit}\nsystemctl {again} {unit}"
    return f"look at {name} on {host}, and at the network and firewall on the way there"


def _is_here(host: str) -> bool:
    name = urlsplit(f"//{host}").hostname or ""
    try:
        return name == "localhost" or ipaddress.ip_address(name).is_loopback
    except ValueError:
        return False
