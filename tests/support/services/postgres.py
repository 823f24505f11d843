"""A private PostgreSQL, apart from any cluster that the machine runs.

Its socket lies in a short folder that only its owner and root may enter, so the
socket needs no password; over TCP on 127.0.0.1 it wants the one in `pw`.
`python -m tests.support.services.postgres start FOLDER` prints a URL, `stop FOLDER`
ends it.
"""

import argparse
import os
import pwd
import secrets
import shutil
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, TypedDict
from urllib.parse import parse_qs, urlsplit

from tests.support.processes.scratch import free_port

USER: Final = "rubrica"
URL_VARIABLE: Final = "RUBRICA_TEST_POSTGRES_URL"
"""URL of a running server's `postgres` database, as `start` prints it."""
_CHOOSES_STRATEGY: Final = 15
"""First version that copies a database by its journal, unless it is told."""
# Nothing here needs to survive a power cut; without fsync a database takes 30 ms.
_OPTIONS: Final = (
    "-c fsync=off -c synchronous_commit=off -c full_page_writes=off "
    "-c max_connections=800 -c listen_addresses=127.0.0.1 "
    # In its own folder: what a killed server leaves goes with that, not so in /dev/shm.
    "-c dynamic_shared_memory_type=mmap"
)


class PostgresMissingError(Exception):
    """No PostgreSQL server programs are installed."""


class _RunAs(TypedDict, total=False):
    user: int
    group: int
    extra_groups: list[int]


def program(name: str) -> Path:
    """Find one of PostgreSQL's programs, the newest version's.

    Raises:
        PostgresMissingError: none is installed.
    """
    found = sorted(
        Path("/usr/lib/postgresql").glob(f"*/bin/{name}"),
        key=lambda path: int(path.parts[-3]),
    )
    if found:
        return found[-1]
    if on_path := shutil.which(name):
        return Path(on_path)
    raise PostgresMissingError(f"no program {name}: install the package postgresql")


def _run_as() -> _RunAs:
    """Say who the server runs as: it refuses root, and has `postgres` for that."""
    if os.geteuid() != 0:
        return {}
    account = pwd.getpwnam("postgres")
    return {"user": account.pw_uid, "group": account.pw_gid, "extra_groups": []}


def _run(folder: Path, *command: str | Path) -> None:
    """Run one of the server's own programs in its folder, as its owner."""
    done = subprocess.run(
        command,
        cwd=folder,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        check=False,
        env={"PATH": os.environ.get("PATH", os.defpath), "LC_ALL": "C.UTF-8"},
        **_run_as(),
    )
    if done.returncode != 0:
        raise RuntimeError(f"{command}: {done.stdout.decode(errors='replace')}")


def database_name(url: str) -> str:
    """The database that a URL names, as `PostgresServer.url` makes it."""
    return urlsplit(url).path.strip("/")


@dataclass(frozen=True, slots=True)
class PostgresServer:
    """A running server.

    Args:
        folder: holds its socket, data, log and password file.
        port: on 127.0.0.1; it names the socket too.
    """

    folder: Path
    port: int

    @classmethod
    def start(cls, folder: Path, more: str = "") -> "PostgresServer":
        """Make a cluster in an existing, short folder and start it.

        Args:
            folder: for all of it.
            more: options of the server.

        Raises:
            PostgresMissingError: no server programs are installed.
        """
        password = folder / "pw"
        password.write_text(secrets.token_hex(16), "ascii")
        if owner := _run_as():
            os.chown(folder, owner["user"], owner["group"])
            os.chown(password, owner["user"], owner["group"])
        password.chmod(0o600)
        server = cls(folder, free_port())
        data = folder / "data"
        _run(
            folder,
            *(program("initdb"), "-D", data, "-U", USER, f"--pwfile={password}"),
            *("--auth-host=scram-sha-256", "--auth-local=trust", "--no-sync"),
            *("-E", "UTF8", "--locale=C.UTF-8"),
        )
        server.start_again(more)
        return server

    @classmethod
    def at(cls, url: str) -> "PostgresServer":
        """Find the running server again by a URL of it."""
        query = parse_qs(urlsplit(url).query)
        return cls(Path(query["host"][0]), int(query["port"][0]))

    @property
    def password(self) -> str:
        """What TCP wants; the socket takes no password."""
        return (self.folder / "pw").read_text("ascii")

    def url(self, database: str = "postgres") -> str:
        """Name a database by the socket; no password is needed."""
        return f"postgresql://{USER}@/{database}?host={self.folder}&port={self.port}"

    def tcp_url(self, database: str = "postgres") -> str:
        """Name a database by TCP, without the password that it wants."""
        return f"postgresql://{USER}@127.0.0.1:{self.port}/{database}"

    def create_database(self, template: str = "template0") -> str:
        """Make a copy of a database, of the empty one unless told.

        Returns:
            Its name.
        """
        name = f"test_{secrets.token_hex(8)}"
        copy = f"CREATE DATABASE {name} TEMPLATE {template}"
        version = int((self.folder / "data" / "PG_VERSION").read_text("ascii"))
        if version >= _CHOOSES_STRATEGY:
            # Without fsync this costs a sixth of a copy by the journal.
            copy += " STRATEGY file_copy"
        self.execute(copy)
        return name

    def drop_database(self, name: str) -> None:
        """Remove a database, whoever is still connected."""
        self.execute(f"DROP DATABASE {name} WITH (FORCE)")

    def execute(self, sql: str, database: str = "postgres") -> str:
        """Run one statement by psql and return its bare output."""
        command = [str(program("psql")), "-XAtq", "-v", "ON_ERROR_STOP=1"]
        done = subprocess.run(
            [*command, "-d", self.url(database), "-c", sql],
            capture_output=True,
            text=True,
            check=True,
        )
        return done.stdout.strip()

    def start_again(self, more: str = "") -> None:
        """Start it after `stop`.

        Args:
            more: as of `start`.
        """
        options = f"-p {self.port} -k {self.folder} {_OPTIONS} {more}"
        start = ("-w", "-l", self.folder / "log", "-o", options, "start")
        _run(self.folder, program("pg_ctl"), "-D", self.folder / "data", *start)

    def use_tls(self, certificate: Path, key: Path) -> None:
        """Offer TLS from now on.

        Args:
            certificate: of the server (PEM).
            key: its private one; both become the server's own.
        """
        if owner := _run_as():
            for file in (certificate, key):
                os.chown(file, owner["user"], owner["group"])
        self.execute(f"ALTER SYSTEM SET ssl_cert_file = '{certificate}'")
        self.execute(f"ALTER SYSTEM SET ssl_key_file = '{key}'")
        self.execute("ALTER SYSTEM SET ssl = on")
        restart = ("-w", "-l", self.folder / "log", "restart")
        _run(self.folder, program("pg_ctl"), "-D", self.folder / "data", *restart)

    def stop(self) -> None:
        """Stop it; connections are cut."""
        stop = ("-w", "-m", "fast", "stop")
        _run(self.folder, program("pg_ctl"), "-D", self.folder / "data", *stop)


def main(argv: Sequence[str] | None = None) -> int:
    """Start or stop a server from a shell script."""
    parser = argparse.ArgumentParser(prog="postgres", description=__doc__)
    parser.add_argument("action", choices=["start", "stop"])
    parser.add_argument("folder", type=Path)
    options = parser.parse_args(argv)
    if options.action == "start":
        print(PostgresServer.start(options.folder).url())  # noqa: T201 (its output)
    else:
        # Only the folder is needed to stop.
        PostgresServer(options.folder, 0).stop()
    return 0


if __name__ == "__main__":
    sys.exit(main())
