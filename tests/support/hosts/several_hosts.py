"""An installation on eight hosts: two fronts, two workers, databases, Redis, S3.

    with HostCluster.made() as site:
        site.fronts[0].kill()
        site.network.cut(site.redis.host)

What hosts share is as docs/scaling.md has it: database, Redis, the bucket of documents
and the HSM's tokens. Each has its own settings, secrets, sockets and locks. Somebody
who operates it reaches database and bucket from outside, whatever link is cut.
"""

import os
import shutil
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from appliance.database.engines import open_engines
from appliance.domain.clock import SystemClock
from appliance.domain.signing.hsm_tasks import slot_host
from appliance.keys.health import signing_workers
from appliance.record.unit_of_work import Database
from appliance.secrets.admitted_hosts import admit
from appliance.secrets.host_key import make_host_key
from appliance.settings import load_settings
from tests.support.appliance.appliance import Appliance
from tests.support.factories.document_storage import BucketStorage
from tests.support.faults.fault_injection import until
from tests.support.hosts.database_host import USER, DatabaseHost
from tests.support.hosts.host_server import HostServer
from tests.support.hosts.network import Host, Network
from tests.support.hosts.store_host import StoreHost
from tests.support.installation.settings import merged, tables_in, toml
from tests.support.processes.event_loops import run_apart
from tests.support.processes.forked_process import Running, Started
from tests.support.processes.plain_http import answers
from tests.support.processes.rubrica import start_rubrica
from tests.support.processes.scratch import short_folder

PUBLIC: Final = "http://firma.example"
API_PORT: Final = 8080
REDIS_PORT: Final = 6379
FRONT: Final = (("sandbox",), ("serve", "api"))
WORKER: Final = (
    ("sandbox",),
    ("worker", "signing", "--slot", "1"),
    ("worker", "chores"),
)
_START_S: Final = 300.0
_END_S: Final = 40


@dataclass
class RoleHost:
    """A host that runs roles of ours.

    Args:
        host: of the network.
        folder: its own, with its settings.
        roles: commands of `rubrica`.
    """

    host: Host
    folder: Path
    roles: Sequence[tuple[str, ...]]
    _running: list[Started] = field(default_factory=list)

    @property
    def api(self) -> str:
        """Where its API is."""
        return f"http://{self.host.address}:{API_PORT}"

    @property
    def log(self) -> str:
        """What its roles wrote."""
        return (self.folder / "log").read_text("utf-8", "replace")

    def pid_of(self, word: str) -> int:
        """Process of the one role whose command has that word."""
        (process,) = [each for each in self._running if word in each.args]
        return process.pid

    def start(self) -> None:
        """Start its roles, as its systemd would when it boots."""
        settings = ("--settings", str(self.folder / "settings.toml"))
        for role in self.roles:
            with (self.folder / "log").open("ab") as log:
                process = start_rubrica(
                    *settings,
                    *role,
                    environment={**os.environ, **self.host.place},
                    stdout=log,
                    stderr=log,
                )
            assert isinstance(process, Started), "only what is forked gets there"
            self._running.append(process)

    def kill(self) -> None:
        """End all its processes at once."""
        for process in self._running:
            process.kill()
        self._end()

    def stop(self) -> None:
        """Stop all its roles."""
        for process in self._running:
            process.terminate()
        self._end()

    def fallen(self) -> list[object]:
        """What ended by itself."""
        return [process.args for process in self._running if process.poll() is not None]

    def _end(self) -> None:
        while self._running:
            try:
                self._running.pop().wait(_END_S)
            except subprocess.TimeoutExpired as exc:
                raise AssertionError(self.log[-4000:]) from exc


class RedisHost(HostServer):
    """A host that runs Redis."""

    def start(self) -> None:
        """Start it, empty."""
        options = ["--bind", self.host.address, "--port", str(REDIS_PORT)]
        options += ["--protected-mode", "no", "--save", "", "--dir", str(self.folder)]
        self._process = subprocess.Popen(
            self.host.command("redis-server", *options),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
        )


@dataclass
class HostCluster:
    """The installation.

    Args:
        network: where the hosts are.
        client: a host that clients call from.
        operator: reaches the record and the documents from outside; never started.
        databases: the first takes writes, the second follows.
        redis: the doorbell.
        store: has the documents.
        fronts: with `api`.
        workers: with `signing` and `chores`.
        signing_settings: of that section, on every host with roles of ours.
    """

    network: Network
    client: Host
    operator: Appliance
    databases: tuple[DatabaseHost, DatabaseHost]
    redis: RedisHost
    store: StoreHost
    fronts: tuple[RoleHost, RoleHost]
    workers: tuple[RoleHost, RoleHost]
    signing_settings: Mapping[str, Any] = field(default_factory=dict)

    @classmethod
    @contextmanager
    def made(cls, **signing: Any) -> Iterator["HostCluster"]:
        """Make all hosts, start all roles, and end them after.

        Args:
            signing: settings of that section.
        """
        with ExitStack() as stack:
            folder = stack.enter_context(short_folder())
            folder.chmod(0o711)
            network = stack.enter_context(Network.made())
            first = DatabaseHost.made(network.host("db-a"), folder / "db-a")
            stack.callback(first.kill)
            second = first.standby(network.host("db-b"), folder / "db-b")
            stack.callback(second.kill)
            redis = RedisHost(network.host("redis"), _folder(folder / "redis"))
            redis.start()
            stack.callback(redis.kill)
            store = StoreHost.made(network.host("store"), folder / "store")
            stack.callback(store.kill)
            operator = Appliance(
                _folder(folder / "operator"),
                database=first.url,
                base_url=PUBLIC,
                more=toml({"documents": store.tables()}),
            )
            stack.callback(operator.close)
            operator.set_up()
            sandbox = stack.enter_context(_sandbox_of(operator))
            stack.callback(sandbox.kill)
            site = cls(
                network,
                network.host("client"),
                operator,
                (first, second),
                redis,
                store,
                *((), ()),  # type: ignore[arg-type]  # they come next
                signing_settings=signing,
            )
            site.fronts = site._pair("front", FRONT)
            site.workers = site._pair("worker", WORKER)
            site._admit_workers()
            for host in site.roles:
                stack.callback(_end, host)
                host.start()
            until(site.is_whole, _START_S)
            yield site

    @property
    def roles(self) -> tuple[RoleHost, ...]:
        """All hosts with roles of ours."""
        return (*self.fronts, *self.workers)

    @property
    def machines(self) -> tuple[RoleHost | DatabaseHost | RedisHost | StoreHost, ...]:
        """All hosts that can be killed and started."""
        return (*self.roles, *self.databases, self.redis, self.store)

    def is_whole(self) -> bool:
        """Whether every front is ready, and every worker signs."""
        for host in self.roles:
            assert not host.fallen(), host.log[-4000:]
        ready = self.client.within(
            lambda: [answers(f"{front.api}/readyz") for front in self.fronts]
        )
        return all(ready) and self.signing() == {
            worker.host.name for worker in self.workers
        }

    def signing(self) -> set[str]:
        """Hosts whose worker said of late that it signs."""

        async def look() -> set[str]:
            # A whole front would take from the hosts what they need just then.
            clock = SystemClock()
            store = Database(open_engines(self.operator.settings), clock, "operator")
            try:
                alive = await signing_workers(store, clock)
            finally:
                await store.close()
            return {slot_host(each.slot) for each in alive if each.hsm == "ready"}

        return run_apart(look())

    def copy_documents(self) -> None:
        """Have the operator's folder be a copy of the bucket, for the ledger."""
        settings = self.operator.settings
        BucketStorage(settings.documents).copy_to(settings.documents_dir)

    def _pair(
        self, name: str, roles: Sequence[tuple[str, ...]]
    ) -> tuple[RoleHost, RoleHost]:
        a, b = (self._role_host(f"{name}-{letter}", roles) for letter in "ab")
        return a, b

    def _admit_workers(self) -> None:
        """Have every front know every signing host by a key of its own.

        The operator's commands seal to signing hosts as well.
        """
        folders = [front.folder for front in self.fronts]
        for worker in self.workers:
            own = load_settings(worker.folder / "settings.toml").host_key_file
            key, _ = make_host_key(own)
            for folder in (self.operator.folder, *folders):
                hosts = load_settings(folder / "settings.toml").signing_hosts_file
                admit(hosts, worker.host.name, key.public)

    def _role_host(self, name: str, roles: Sequence[tuple[str, ...]]) -> RoleHost:
        """A host with its own copy of what is no document and no record."""
        own = self.operator.folder
        folder = _folder(own.with_name(name))
        for part in ("secrets", "pki"):
            shutil.copytree(own / part, folder / part)
        (folder / "hsm").mkdir()
        # It names the folder of tokens, which the workers share.
        shutil.copy2(own / "hsm/softhsm2.conf", folder / "hsm/softhsm2.conf")
        (folder / "secrets/database").write_text(self.databases[0].password, "ascii")
        _folder(folder / "run")
        host = self.network.host(name)
        servers = ",".join(server.host.address for server in self.databases)
        tables: dict[str, Any] = {
            "trial": True,
            "run_dir": "run",
            "web": {
                "base_url": PUBLIC,
                "listen_api": f"{host.address}:{API_PORT}",
            },
            "database": {"password_file": "secrets/database"},
            "redis": {"url": f"redis://{self.redis.host.address}:{REDIS_PORT}/0"},
            "documents": self.store.tables(folder / "secrets"),
            "profile": {"level": "B-T"},
            "signing": {"commands_per_minute": 1_000_000, **self.signing_settings},
            "hsm": {"softhsm_conf": "hsm/softhsm2.conf"},
        }
        usual = tables_in(".", "secrets", f"postgresql://{USER}@{servers}/{USER}")
        (folder / "settings.toml").write_text(toml(merged(usual, tables)))
        return RoleHost(host, folder, roles)


def _sandbox_of(operator: Appliance) -> Running:
    """What looks at the documents that an operator takes in; it needs no network."""
    (operator.folder / "run").mkdir(mode=0o700, exist_ok=True)
    with operator.log.open("ab") as log:
        return start_rubrica(
            *("--settings", str(operator.settings_file), "sandbox"),
            stdout=log,
            stderr=log,
        )


def _folder(path: Path) -> Path:
    path.mkdir(mode=0o700)
    return path


def _end(host: RoleHost) -> None:
    host.stop()
    # The keys outlive their workers on purpose; a test they need not.
    settings = load_settings(host.folder / "settings.toml")
    shutil.rmtree(settings.activation_dir, ignore_errors=True)
