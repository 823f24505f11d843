"""`[database]` and `[redis]`: where the record is, and the doorbell beside it."""

from pathlib import Path
from typing import Annotated, Final, Literal
from urllib.parse import parse_qs

from pydantic import Field, field_validator

from appliance.domain.text.urls import read_address
from appliance.settings.named_files import SERVING, STORING, Content, Holds
from appliance.settings.section import Seconds, Section

_QUERY: Final = ("host", "port", "user")
"""What may stand behind the question mark of `database.url`."""


class DatabaseSettings(Section):
    """Where the record of everything is."""

    url: str = "sqlite"
    """`sqlite` (a file in `data_dir`; for a trial) or
    `postgresql://user@host:port/name` (or `?host=/socket/folder`). Without a user it
    is `PGUSER`, or else the system's user. Several hosts
    (`user@one:5432,two:5432/name`): the first that takes writes is used."""
    password_file: Annotated[Path | None, Holds(Content.PASSWORD, STORING)] = None
    """File with the PostgreSQL password; not for SQLite."""
    tls: Literal["disable", "prefer", "require", "verify-ca", "verify-full"] = "prefer"
    """TLS to PostgreSQL, in the words of libpq's `sslmode`: `prefer` takes what the
    server offers, `require` no connection without it, `verify-ca` a certificate of
    `root_certificate_file` alone, `verify-full` of the host's name besides. A Unix
    socket has none."""
    root_certificate_file: Annotated[
        Path | None, Holds(Content.CERTIFICATES, STORING)
    ] = None
    """Certificates (PEM) of the authorities that `verify-ca` and `verify-full` check
    the server's by; the default is the system's."""
    pool_size: int = Field(default=8, ge=1, le=100)
    """Connections a process keeps open (PostgreSQL), or readers (SQLite)."""
    busy_timeout_s: Seconds = 5
    """Longest that a SQLite writer waits for the other, in seconds."""

    @field_validator("url")
    @classmethod
    def _is_a_database(cls, given: str) -> str:
        if given == "sqlite":
            return given
        _refuse_password(given, "database.password_file")
        before, _, query = given.partition("?")
        netloc, _, rest = before.removeprefix("postgresql://").partition("/")
        user, at, hosts = netloc.rpartition("@")
        every = [f"postgresql://{user}{at}{one}/{rest}" for one in hosts.split(",")]
        good = given.startswith("postgresql://") and all(map(read_address, every))
        if not good or ("," in hosts and not all(map(_has_host, every))):
            msg = "must be sqlite, or postgresql://user@host:port/name"
            raise ValueError(msg)
        for key in parse_qs(query, keep_blank_values=True):
            if key.startswith("ssl"):
                msg = f"has {key}= in it; set database.tls"
                if "cert" in key:
                    msg = f"has {key}= in it; set database.root_certificate_file"
                raise ValueError(msg)
            if key not in _QUERY:
                allowed = ", ".join(_QUERY)
                msg = f"has {key}= in it; allowed after the question mark: {allowed}"
                raise ValueError(msg)
        return given


class RedisSettings(Section):
    """The doorbell. Nothing is lost when it is away."""

    socket: Path | None = None
    """Unix socket; the default is `redis.sock` in `run_dir`, where
    `rubrica up` starts a server of its own."""
    url: str | None = None
    """`redis://host:port/0`, `rediss://…` or `unix:///path/of/socket` of a server run
    by others; then `rubrica up` starts none."""
    password_file: Annotated[Path | None, Holds(Content.PASSWORD, SERVING)] = None
    """File with the password of that server; for `url` alone."""
    root_certificate_file: Annotated[
        Path | None, Holds(Content.CERTIFICATES, SERVING)
    ] = None
    """Certificates (PEM) that the server of a `rediss://` address is checked by; the
    default is the system's."""
    command: str = "redis-server"
    """Program that `rubrica up` starts."""

    @field_validator("url")
    @classmethod
    def _is_a_redis(cls, given: str | None) -> str | None:
        if given is None:
            return given
        _refuse_password(given, "redis.password_file")
        address = read_address(given)
        if address is None or address.scheme not in {"redis", "rediss", "unix"}:
            msg = "must be redis://host:port/0, rediss://host:port/0 or unix:///path"
            raise ValueError(msg)
        return given


def _has_host(url: str) -> bool:
    address = read_address(url)
    return address is not None and bool(address.hostname)


def _refuse_password(url: str, key: str) -> None:
    """Refuse an address with a password: the settings are no secret file.

    Raises:
        ValueError: it has one; the text does not show it.
    """
    before, at, _ = url.partition("://")[2].rpartition("@")
    if (at and ":" in before) or "password=" in url.lower():
        msg = f"has a password in it; put it alone into the file of {key}"
        raise ValueError(msg)
