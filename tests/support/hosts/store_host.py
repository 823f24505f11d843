"""An S3-compatible store on a host of a network.

    store = StoreHost.made(network.host("store"), folder / "store")
    tables = store.tables(secrets_of_a_host)
    store.kill()
    store.start()

What it said it has, it has after that too. Hosts reach it by its host's address;
whoever is outside of the network by a port of this machine, whatever link is cut.
"""

import shutil
import socket
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import httpx

from tests.support.faults.fault_injection import until
from tests.support.hosts.host_server import HostServer
from tests.support.hosts.network import Host
from tests.support.patience import CALL_S
from tests.support.processes.plain_http import NO_TLS
from tests.support.processes.scratch import free_port
from tests.support.services.s3 import ACCESS_KEY, SECRET_KEY

PORT: Final = 9000
BUCKET: Final = "documents"
KEY_FILES: Final = {
    "access_key_file": "documents-access-key",
    "secret_key_file": "documents-secret-key",
}
"""Of a key to it, by the setting that names each."""
_ROOT: Final = Path(__file__).parents[3]
_START_S: Final = 300.0
"""With all that its journal has, on a machine that does much else."""


@dataclass
class StoreHost(HostServer):
    """One server with one bucket.

    Args:
        host: where it runs.
        folder: of its journal, its log and a key to it.
    """

    _port: int = field(default_factory=free_port, init=False)

    @classmethod
    def made(cls, host: Host, folder: Path) -> "StoreHost":
        """Make a server and its bucket, and start it.

        Args:
            host: where.
            folder: that is made.
        """
        folder.mkdir(mode=0o700)
        store = cls(host, folder)
        for name, key in zip(KEY_FILES.values(), (ACCESS_KEY, SECRET_KEY), strict=True):
            (folder / name).write_text(f"{key}\n")
        store.start()
        made = httpx.put(f"{store.outside}/{BUCKET}", verify=NO_TLS, timeout=CALL_S)
        assert made.status_code == 200, made.text
        return store

    @property
    def outside(self) -> str:
        """Where it is for whoever is outside of the network."""
        return f"http://127.0.0.1:{self._port}"

    def tables(self, secrets: Path | None = None) -> dict[str, Any]:
        """`[documents]` for its bucket.

        Args:
            secrets: a host's folder of secrets, which gets a copy of the key; None:
                for whoever is outside of the network.
        """
        inside = f"http://{self.host.address}:{PORT}"
        if secrets is not None:
            for name in KEY_FILES.values():
                shutil.copy2(self.folder / name, secrets / name)
        folder = secrets or self.folder
        return {
            "url": f"s3://{BUCKET}/rubrica",
            "endpoint": self.outside if secrets is None else inside,
            **{key: str(folder / name) for key, name in KEY_FILES.items()},
        }

    def start(self) -> None:
        """Start it, and wait until it answers."""
        words = (str(self.folder), self.host.address, str(PORT))
        with (
            socket.create_server(("127.0.0.1", self._port)) as outside,
            (self.folder / "log").open("ab") as log,
        ):
            number = outside.fileno()
            server = (
                sys.executable,
                "-m",
                "tests.support.services.persistent_s3",
                *words,
                str(number),
            )
            self._process = subprocess.Popen(
                self.host.command(*server),
                cwd=_ROOT,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                pass_fds=(number,),
            )
        until(self._answers, _START_S)

    def _answers(self) -> bool:
        assert self._process is not None
        assert self._process.poll() is None, (self.folder / "log").read_text()[-2000:]
        return self.host.within(self._is_there)

    def _is_there(self) -> bool:
        try:
            url = f"http://{self.host.address}:{PORT}/moto-api/"
            return httpx.get(url, verify=NO_TLS, timeout=CALL_S).status_code == 200
        except httpx.HTTPError:
            return False
