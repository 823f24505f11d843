"""`[database]` and `[redis]`: where the record is, and the doorbell beside it."""

from pathlib import Path

from pydantic import Field

from appliance.settings.section import Seconds, Section


class DatabaseSettings(Section):
    """Where the record of everything is."""

    url: str = "sqlite"
    """`sqlite` (a file in `data_dir`; for a trial) or
    `postgresql://user@host:port/name` (or `?host=/socket/folder`)."""
    password_file: Path | None = None
    """File with the PostgreSQL password; not for SQLite."""
    pool_size: int = Field(default=8, ge=1, le=100)
    """Connections a process keeps open (PostgreSQL), or readers (SQLite)."""
    busy_timeout_s: Seconds = 5
    """Longest that a SQLite writer waits for the other, in seconds."""


class RedisSettings(Section):
    """The doorbell. Nothing is lost when it is away."""

    socket: Path | None = None
    """Unix socket; the default is `redis.sock` in `run_dir`, where
    `rubrica up` starts a server of its own."""
    url: str | None = None
    """`redis://host:port/0` or `rediss://…` of a server run by others; then
    `rubrica up` starts none."""
    command: str = "redis-server"
    """Program that `rubrica up` starts."""
