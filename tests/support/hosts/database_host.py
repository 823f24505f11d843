"""PostgreSQL on hosts of a network: a server, and a standby that follows it.

    first = DatabaseHost.made(network.host("db-a"), folder / "a")
    second = first.standby(network.host("db-b"), folder / "b")
    second.promote()

A commit waits for the standby. Each is reached by its host's address, with a password;
whoever is outside of the network reaches it by its socket, without one.
"""

import os
import pwd
import secrets
import signal
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from tests.support.faults.fault_injection import until
from tests.support.hosts.host_server import HostServer
from tests.support.hosts.network import Host
from tests.support.services.postgres import program

USER: Final = "rubrica"
PORT: Final = 5432
_OPTIONS: Final = (
    # Processes are killed here, not machines: nothing need be on a disk.
    *("-c", "fsync=off", "-c", "full_page_writes=off"),
    *("-c", "listen_addresses=*", "-c", "dynamic_shared_memory_type=mmap"),
    # As docs/database.md advises: else a standby that was cut off follows on late.
    *("-c", "wal_sender_timeout=5s", "-c", "wal_receiver_timeout=5s"),
    *("-c", "wal_retrieve_retry_interval=1s"),
)
_NOTICED_MS: Final = 3000
_HBA: Final = "host all all all scram-sha-256\nhost replication all all scram-sha-256\n"


@dataclass
class DatabaseHost(HostServer):
    """One server.

    Args:
        host: where it runs.
        folder: of its data and its socket; short, and its owner's.
        password: of the one user.
    """

    password: str

    @classmethod
    def made(cls, host: Host, folder: Path) -> "DatabaseHost":
        """Make a server that takes writes, and start it.

        Args:
            host: where.
            folder: that is made; its parents let everybody through.
        """
        server = cls(host, folder, secrets.token_hex(16))
        password = _owned(folder) / "pw"
        password.write_text(server.password, "ascii")
        _give(password)
        _run_as_owner(
            *(str(program("initdb")), "-D", str(folder / "data"), "-U", USER),
            *("-A", "trust", f"--pwfile={password}", "--no-sync"),
            *("-E", "UTF8", "--locale=C.UTF-8"),
        )
        (folder / "data/pg_hba.conf").write_text(f"local all all trust\n{_HBA}")
        server.start()
        server.execute(f"CREATE DATABASE {USER}", "postgres")
        return server

    def standby(self, host: Host, folder: Path) -> "DatabaseHost":
        """Make a copy that follows this one, and start it; commits wait for it.

        Args:
            host: where.
            folder: as of `made`.
        """
        server = DatabaseHost(host, _owned(folder), self.password)
        source = f"host={self.host.address} user={USER} password={self.password}"
        # Else TCP asks a host that was cut off again after 8 and 16 s only.
        source = f"{source} tcp_user_timeout={_NOTICED_MS}"
        _run(
            *host.command(*_AS_OWNER, str(program("pg_basebackup"))),
            *("-d", source, "-D", str(folder / "data"), "-R", "-X", "stream"),
            *("--checkpoint", "fast", "--no-sync"),
        )
        server.start()
        followers = "SELECT count(*) FROM pg_stat_replication WHERE state = 'streaming'"
        until(lambda: self.execute(followers) == "1")
        self.execute("ALTER SYSTEM SET synchronous_standby_names = '*'")
        self.execute("SELECT pg_reload_conf()")
        until(lambda: self.execute("SHOW synchronous_standby_names") == "*")
        return server

    @property
    def url(self) -> str:
        """By its socket, from anywhere on this machine."""
        return f"postgresql://{USER}@/{USER}?host={self.folder}&port={PORT}"

    def start(self) -> None:
        """Start it, and wait until it answers."""
        server = (str(program("postgres")), "-D", str(self.folder / "data"))
        place = ("-p", str(PORT), "-k", str(self.folder), *_OPTIONS)
        command = self.host.command(*_AS_OWNER, *_TIED, *server, *place)
        with (self.folder / "log").open("ab") as log:
            self._process = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=log, stderr=log
            )
        until(self._answers)

    def stop(self) -> None:
        """Stop it; connections are cut."""
        self._end(signal.SIGINT)

    def kill(self) -> None:
        """End it as a crash would."""
        self._end(signal.SIGQUIT)

    def promote(self) -> None:
        """Have a standby take writes from now on, and wait for nobody."""
        self.execute("SELECT pg_promote()")
        self.execute("ALTER SYSTEM RESET synchronous_standby_names")
        self.execute("SELECT pg_reload_conf()")

    def execute(self, sql: str, database: str = USER) -> str:
        """Run one statement by psql and return its bare output."""
        words = ["-XAtq", "-v", "ON_ERROR_STOP=1", "-h", str(self.folder), "-U", USER]
        command = [str(program("psql")), *words, "-d", database, "-c", sql]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        return done.stdout.strip()

    def _answers(self) -> bool:
        assert self._process is not None
        assert self._process.poll() is None, (self.folder / "log").read_text()[-2000:]
        ready = [str(program("pg_isready")), "-q", "-h", str(self.folder)]
        return subprocess.run(ready, check=False).returncode == 0


_AS_OWNER: Final = (
    *("setpriv", "--reuid", "postgres", "--regid", "postgres", "--init-groups"),
    *("env", "-i", "LC_ALL=C.UTF-8", f"PATH={os.defpath}"),
)
_TIED: Final = ("setpriv", "--pdeathsig", "KILL")
"""Again: who becomes another user loses it."""


def _owned(folder: Path) -> Path:
    folder.mkdir(mode=0o700)
    _give(folder)
    return folder


def _give(path: Path) -> None:
    owner = pwd.getpwnam("postgres")
    os.chown(path, owner.pw_uid, owner.pw_gid)


def _run_as_owner(*command: str) -> None:
    _run(*_AS_OWNER, *command)


def _run(*command: str) -> None:
    done = subprocess.run(
        command, cwd="/", stdin=subprocess.DEVNULL, capture_output=True, check=False
    )
    assert done.returncode == 0, done.stderr.decode(errors="replace")
