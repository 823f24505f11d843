"""An S3-compatible store with a bucket: moto's server, as a process of its own.

    with S3Server.running(folder) as server:
        bucket = server.new_bucket()
        Bucket(server.settings(bucket))

It keeps everything in memory: cut its link (`tests.support.services.tcp_links`), never
end it.
"""

import itertools
import os
import ssl
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final, Self

import httpx

from appliance.documents.s3.bucket import Bucket
from appliance.settings import DocumentSettings
from tests.support.faults.fault_injection import until
from tests.support.patience import CALL_S
from tests.support.processes.plain_http import NO_TLS
from tests.support.processes.scratch import free_port

ACCESS_KEY: Final = "AKIATESTTESTTEST"
SECRET_KEY: Final = "the-secret-of-the-access-key"
_SERVER: Final = "import sys; from moto.server import main; main(sys.argv[1:])"
_BY_PATH: Final = {"S3_IGNORE_SUBDOMAIN_BUCKETNAME": "true"}
"""Under the name `s3.example` it would look for a bucket `s3`."""
_ANY: Final = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
_ANY.check_hostname = False
_ANY.verify_mode = ssl.CERT_NONE


class S3Server:
    """A server on a port of 127.0.0.1, and the files of a key to it.

    Args:
        folder: for those files and its log.
        port: where it listens.
        is_tls: whether it speaks TLS.
    """

    def __init__(self, folder: Path, port: int, *, is_tls: bool = False) -> None:
        self._folder = folder
        self._client = httpx.Client(
            base_url=f"{'https' if is_tls else 'http'}://127.0.0.1:{port}",
            verify=_ANY if is_tls else NO_TLS,
            timeout=CALL_S,
        )
        self._numbers = itertools.count(1)
        self.port = port
        for name, key in (("access-key", ACCESS_KEY), ("secret-key", SECRET_KEY)):
            (folder / name).write_text(f"{key}\n")

    @classmethod
    @contextmanager
    def running(
        cls, folder: Path, tls: tuple[Path, Path] | None = None
    ) -> Iterator[Self]:
        """Start one, and end it after.

        Args:
            folder: for its files.
            tls: its certificate and that one's key (PEM); None: it speaks none.
        """
        server = cls(folder, free_port(), is_tls=tls is not None)
        command = [sys.executable, "-c", _SERVER, "-H", "127.0.0.1"]
        if tls is not None:
            command += ["-s", "-c", str(tls[0]), "-k", str(tls[1])]
        with (folder / "s3.log").open("wb") as log:
            process = subprocess.Popen(
                [*command, "-p", str(server.port)],
                stdout=log,
                stderr=log,
                env={**os.environ, **_BY_PATH},
            )
        try:
            until(server._answers)
            yield server
        finally:
            process.kill()
            process.wait()

    def new_bucket(self) -> str:
        """Make an empty bucket; its name."""
        name = f"bucket-{next(self._numbers)}"
        assert self._client.put(f"/{name}").status_code == 200
        return name

    def _answers(self) -> bool:
        try:
            return self._client.get("/moto-api/").status_code == 200
        except httpx.HTTPError:
            return False

    def tables(self, bucket: str, port: int | None = None) -> dict[str, Any]:
        """`[documents]` for a bucket, as TOML gives it.

        Args:
            bucket: its name, and a prefix if any.
            port: of a link to the server; None: without one.
        """
        return {
            "url": f"s3://{bucket}",
            "endpoint": f"http://127.0.0.1:{port or self.port}",
            "access_key_file": str(self._folder / "access-key"),
            "secret_key_file": str(self._folder / "secret-key"),
            "request_timeout_s": 20,
        }

    def settings(self, bucket: str, port: int | None = None) -> DocumentSettings:
        """The same, read."""
        return DocumentSettings.model_validate(self.tables(bucket, port))

    def open(self, bucket: str) -> Bucket:
        """A client of a bucket."""
        return Bucket(self.settings(bucket))
