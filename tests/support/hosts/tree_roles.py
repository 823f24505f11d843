"""Roles of one tree beside roles of another, over one installation.

    with TreeRoles.of(site) as roles:
        roles.start(earlier, *FRONT)
        other = roles.other_host("front-b")
        other.start(now, *FRONT)

Each role is a process of its own, so that they can be replaced one by one. Another host
has a name, sockets and addresses of its own; files and database are the same.
"""

import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from appliance.documents.sandbox_client import SandboxClient
from appliance.domain.errors import ApplianceError
from appliance.settings import load_settings
from tests.support.hosts.earlier_tree import Tree, TreeInstallation
from tests.support.installation.settings import merged, toml
from tests.support.processes.event_loops import run_apart
from tests.support.processes.plain_http import answers
from tests.support.processes.scratch import free_port
from tests.support.services.redis import RedisServer

Role = tuple[str, ...]
SANDBOX: Final[Role] = ("sandbox",)
API: Final[Role] = ("serve", "api")
CHORES: Final[Role] = ("worker", "chores")
SIGNING: Final[tuple[Role, Role]] = (
    ("worker", "signing", "--slot", "1"),
    ("worker", "signing", "--slot", "2"),
)
_SCRIPT: Final = Path(__file__).with_name("tree_script.py")
_STARTED_S: Final = 300.0
_END_S: Final = 120.0
_PING_S: Final = 5.0


@dataclass
class TreeHost:
    """A host on which roles of some tree run.

    Args:
        site: the installation.
        name: of the host; None: this machine's.
        run_dir: folder of its sockets.
        port: of its API.
    """

    site: TreeInstallation
    name: str | None
    run_dir: Path
    port: int = field(default_factory=free_port)
    _running: dict[Role, subprocess.Popen[bytes]] = field(default_factory=dict)

    @property
    def api(self) -> str:
        """Where its API is."""
        return f"http://127.0.0.1:{self.port}"

    @property
    def settings(self) -> Path:
        """Its settings file."""
        return self.site.folder / f"settings-{self.run_dir.name}.toml"

    @property
    def log(self) -> str:
        """What its roles wrote."""
        return self._log.read_text("utf-8", "replace") if self._log.exists() else ""

    @property
    def _log(self) -> Path:
        return self.site.folder / f"log-{self.run_dir.name}"

    def configure(self, **more: Any) -> None:
        """Write its settings: the installation's, with addresses of its own."""
        self.run_dir.mkdir(mode=0o700, exist_ok=True)
        tables = {
            "run_dir": str(self.run_dir),
            "web": {"listen_api": self.api.removeprefix("http://")},
        }
        given = merged(merged(self.site.toml(), tables), more)
        self.settings.write_text(toml(given), "utf-8")

    def start(self, tree: Tree, *roles: Role) -> None:
        """Start roles of a tree, and wait until each works."""
        for role in roles:
            self._start(role, tree, tree.command(self.settings, *role))

    def start_quick_worker(self, tree: Tree, role: Role) -> None:
        """Start a signing worker that leaves out the sample of new keys."""
        self._start(role, tree, _script(self.settings, "work", role[-1]))

    def _start(self, role: Role, tree: Tree, command: Sequence[str]) -> None:
        begun = len(self.log)
        named = [] if self.name is None else _on_host(self.name)
        with self._log.open("ab") as log:
            self._running[role] = subprocess.Popen(
                [*named, *command],
                cwd=tree.folder,
                env=tree.environment,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
            )
        deadline = time.monotonic() + _STARTED_S
        while not self._works(role, self.log[begun:]):
            assert self._running[role].poll() is None, self.log[begun:]
            assert time.monotonic() < deadline, self.log[begun:]
            time.sleep(0.1)

    def _works(self, role: Role, told: str) -> bool:
        if role == API:
            return answers(f"{self.api}/healthz")
        if role == SANDBOX:
            socket = load_settings(self.settings).sandbox_socket
            return run_apart(_answers(SandboxClient(socket, _PING_S)))
        return "worker.started" in told

    def stop(self, *roles: Role) -> None:
        """Stop roles, each at once, as systemd does; each must end well."""
        for role in roles:
            self._running[role].terminate()
        for role in roles:
            status = self._running[role].wait(_END_S)
            del self._running[role]
            assert status == 0, f"{role}: {status}\n{self.log[-4000:]}"

    def replace(self, tree: Tree, *roles: Role) -> None:
        """Replace roles by those of another tree, one after the other."""
        for role in roles:
            self.stop(role)
            self.start(tree, role)

    def kill(self) -> None:
        """End whatever still runs."""
        for process in self._running.values():
            process.kill()
            process.wait()
        self._running.clear()

    def run(self, tree: Tree, what: str, orders: Sequence[Any]) -> list[Any]:
        """Have a tree's own code make things; see `tree_script`."""
        told = run_script(tree, self.settings, what, given=json.dumps(orders))
        made: list[Any] = json.loads(told)
        return made


@dataclass
class TreeRoles:
    """The hosts of an installation, and the Redis that they share."""

    site: TreeInstallation
    redis: RedisServer
    stack: ExitStack

    @classmethod
    @contextmanager
    def of(cls, site: TreeInstallation) -> Iterator["TreeRoles"]:
        """Run a Redis, and end every role afterwards."""
        with ExitStack() as stack:
            redis = RedisServer(site.folder)
            redis.start()
            stack.callback(redis.stop)
            # The keys outlive their workers on purpose; a test they need not.
            folder = load_settings(site.settings).activation_dir
            stack.callback(shutil.rmtree, folder, ignore_errors=True)
            yield cls(site, redis, stack)

    def host(self, name: str | None = None, **more: Any) -> TreeHost:
        """A host where nothing runs yet.

        Args:
            name: as its processes have it; None: this machine's.
            more: settings of its own.
        """
        made = TreeHost(self.site, name, self.site.folder / f"run-{name or 'own'}")
        made.configure(redis={"url": self.redis.url}, **more)
        self.stack.callback(made.kill)
        return made


def run_script(tree: Tree, settings: Path, *words: str, given: str = "") -> str:
    """Run `tree_script` by a tree's code; the last line that it wrote.

    Args:
        tree: whose.
        settings: of the installation.
        words: what it is to do.
        given: what it reads.
    """
    done = subprocess.run(
        _script(settings, *words),
        cwd=tree.folder,
        env=tree.environment,
        input=given,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-4000:]
    # Its log comes before.
    return done.stdout.rpartition("\n")[2]


async def _answers(sandbox: SandboxClient) -> bool:
    try:
        await sandbox.ping()
    except ApplianceError:
        return False
    return True


def _script(settings: Path, *words: str) -> list[str]:
    return [sys.executable, "-P", str(_SCRIPT), str(settings), *words]


def _on_host(name: str) -> list[str]:
    return ["unshare", "--uts", "sh", "-c", 'hostname "$0" && exec "$@"', name]


def can_name_hosts() -> bool:
    """Return whether this user may give a process another host name."""
    return os.geteuid() == 0
