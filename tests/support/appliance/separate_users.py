"""A PostgreSQL whose roles have users of their own, as an installation's has.

Users are a whole cluster's, so it is one of its own: what other tests migrate must
not find them.
"""

import asyncio
import os
import secrets
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Final

import httpx

from appliance.cli.installation.database import roles_sql
from appliance.database.rights import OWNER, Role
from appliance.documents.sandbox_client import SandboxClient
from appliance.domain.errors import ApplianceError
from appliance.settings import Settings
from tests.support.appliance.appliance import Appliance
from tests.support.patience import CALL_S
from tests.support.processes.forked_process import Running
from tests.support.processes.installed_copy import Installed
from tests.support.processes.plain_http import NO_TLS
from tests.support.processes.rubrica import run_rubrica, start_rubrica
from tests.support.processes.scratch import short_folder
from tests.support.services.postgres import PostgresServer, program
from tests.support.services.redis import RedisServer

_READY_S: Final = 300.0
_PASSWORD: Final = "database"
"""Name of a password's file, and of the credential in its place."""
_PROCESSES: Final = (
    (None, ("sandbox",)),
    (Role.SIGNING.value, ("worker", "signing", "--slot", "1")),
    (Role.CHORES.value, ("worker", "chores")),
    (Role.API.value, ("serve", "api")),
    (Role.EMBED.value, ("serve", "embed")),
    (Role.ADMIN.value, ("serve", "admin")),
)
"""User and command of each role."""
_BEGUN: Final = {
    "api.listening": 1,
    "embed.listening": 1,
    "admin.listening": 1,
    "worker.started": 2,
}
"""What the roles log as they begin, and how many of them."""
_PING_S: Final = 5.0


@dataclass(frozen=True, slots=True)
class SeparateUsers:
    """A running cluster with the users and one database of an installation."""

    server: PostgresServer
    name: str

    @classmethod
    @contextmanager
    def made(cls, name: str = "rubrica") -> Iterator["SeparateUsers"]:
        """Start a cluster, and let it run what `rubrica database roles` prints."""
        with short_folder() as folder:
            server = PostgresServer.start(folder)
            try:
                cluster = cls(server, name)
                cluster.run_as_superuser(roles_sql(name))
                yield cluster
            finally:
                server.stop()

    def run_as_superuser(self, script: str) -> str:
        """Run a script of psql's, with its own commands; what it printed."""
        command = [str(program("psql")), "-XAtq", "-v", "ON_ERROR_STOP=1"]
        done = subprocess.run(
            [*command, "-d", self.server.url()],
            input=script,
            capture_output=True,
            text=True,
            check=True,
        )
        return done.stdout

    def url(self, user: str) -> str:
        """The database as a user sees it, by the socket."""
        plain = self.server.url(self.name)
        return plain.replace("://rubrica@", f"://{user}@", 1)

    @property
    def log(self) -> Path:
        """What the server wrote, each refused statement too."""
        return self.server.folder / "log"


class AppliancePerUser(Appliance):
    """Roles that were started one by one, each as its own user of the database.

    What a test does for an operator (`do`, `rubrica`) is done as the tables' owner.

    Args:
        folder: a short, private, empty folder.
        cluster: where the database is.
        more: whole sections of the settings.
        installed: what the roles are started from; by default this checkout.
    """

    def __init__(
        self,
        folder: Path,
        cluster: SeparateUsers,
        more: str = "",
        installed: Installed | None = None,
    ) -> None:
        self._cluster = cluster
        self._installed = installed
        self._handed = folder / "credentials"
        self._give_passwords()
        server = cluster.server
        url = f"postgresql://127.0.0.1:{server.port}/{cluster.name}"
        super().__init__(folder, database=url, environment=self._user(OWNER), more=more)
        self._roles: list[Running] = []
        self._redis = RedisServer(folder / "run")

    def _give_passwords(self) -> None:
        """Give each user a password, in the place of a credential of its own."""
        for user in (OWNER, *(role.value for role in Role)):
            password = secrets.token_hex(16)
            sql = f"ALTER ROLE \"{user}\" PASSWORD '{password}'"
            self._cluster.run_as_superuser(sql)
            place = self._handed / user
            place.mkdir(parents=True)
            (place / _PASSWORD).write_text(password, "ascii")

    def _user(self, name: str) -> dict[str, str]:
        """Variables that make a process a user of the database."""
        return {"PGUSER": name, "CREDENTIALS_DIRECTORY": str(self._handed / name)}

    def configure(self, **sections: str) -> dict[str, str]:
        """Write the settings file, which names a password's file."""
        before = super().configure(**sections)
        text = self.settings_file.read_text("utf-8")
        named = f'[database]\npassword_file = "secrets/{_PASSWORD}"\n'
        self.settings_file.write_text(text.replace("[database]\n", named), "utf-8")
        return before

    @property
    def settings(self) -> Settings:
        """The settings, for this process: by the socket, as the owner."""
        read = super().settings
        here = {"url": self._cluster.url(OWNER), "password_file": None}
        return read.model_copy(
            update={"database": read.database.model_copy(update=here)}
        )

    def start(self, *, unready: bool = False) -> None:
        """Start each role and wait until all are ready.

        Args:
            unready: for what is not yet; `wait_ready` then waits.
        """
        (self.folder / "run").mkdir(mode=0o700, exist_ok=True)
        self._redis.start()
        with self.log.open("ab") as log:
            self._roles += [self._started(log, *each) for each in _PROCESSES]
        if not unready:
            self.wait_ready()

    def _started(
        self, log: IO[bytes], role: str | None, words: tuple[str, ...]
    ) -> Running:
        """Start a role as its user."""
        words = ("--settings", str(self.settings_file), *words)
        environment = {**os.environ, **(self._user(role) if role else {})}
        if self._installed is None:
            return start_rubrica(
                *words, environment=environment, stdout=log, stderr=log
            )
        return subprocess.Popen(
            self._installed.command(*words),
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            text=True,
        )

    def wait_ready(self) -> None:
        """Wait until every role answers, or says that it will."""
        deadline = time.monotonic() + _READY_S
        if self._installed is not None:
            self._wait_begun(deadline)
            return
        wanted = {
            f"{self.base_url}/readyz",
            f"{self.iframe_url}/healthz",
            f"{self.admin_url}/admin/",
        }
        while any(role.poll() is None for role in self._roles):
            wanted = {url for url in wanted if not _serves(url)}
            if not wanted:
                return
            assert time.monotonic() < deadline, self.log.read_text()[-4000:]
            time.sleep(0.05)
        raise AssertionError(self.log.read_text()[-4000:])

    def _wait_begun(self, deadline: float) -> None:
        """Wait until every role says in its log that it began; none is asked."""
        while not self._all_began():
            assert time.monotonic() < deadline, self.log.read_text()[-4000:]
            assert all(role.poll() is None for role in self._roles)
            time.sleep(0.05)

    def _all_began(self) -> bool:
        """Whether each has told so; the sandbox forks before it looks at anything."""
        told = self.log.read_text("utf-8")
        if any(told.count(event) < count for event, count in _BEGUN.items()):
            return False
        try:
            asyncio.run(SandboxClient(self.settings.sandbox_socket, _PING_S).ping())
        except ApplianceError:
            return False
        return True

    def stop(self) -> int:
        """Stop all roles gracefully; 0 if each ended well."""
        roles, self._roles = self._roles, []
        for role in roles:
            role.send_signal(signal.SIGTERM)
        ended = [role.wait(60) for role in roles]
        self._redis.stop()
        return max(ended, default=0)

    def close(self) -> None:
        """Stop what still runs."""
        self.stop()
        super().close()

    def rubrica_as(
        self, role: Role, *arguments: str
    ) -> "subprocess.CompletedProcess[str]":
        """Run a command of the command line as the user of a role."""
        return run_rubrica(
            *("--settings", str(self.settings_file), *arguments),
            environment={**os.environ, **self._user(role.value)},
        )

    def refused(self) -> list[str]:
        """What PostgreSQL refused anybody for want of a right, with the statement."""
        lines = self._cluster.log.read_text("utf-8").splitlines()
        return [
            "\n".join(lines[at : at + 2])
            for at, line in enumerate(lines)
            if "permission denied" in line
        ]


def _serves(url: str) -> bool:
    """Whether a role is ready: the console sends to its sign-in."""
    try:
        return httpx.get(url, timeout=CALL_S, verify=NO_TLS).status_code in {200, 303}
    except httpx.HTTPError:
        return False
