"""A real nginx before an appliance, by the sample of the documentation.

    with nginx_before(appliance, folder) as proxy:
        with proxy.client("firma.example", "127.0.0.2") as client:
            client.get("/healthz")

Clients have addresses of their own on this machine (127.0.0.2, 127.0.0.3 …).
"""

import datetime as dt
import re
import socket
import ssl
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import httpx
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
)

from tests.support.appliance.appliance import Appliance
from tests.support.patience import CALL_S
from tests.support.processes.scratch import free_port

SAMPLE: Final = Path(__file__).resolve().parents[3] / "docs/samples/nginx.conf"
API: Final = "firma.example"
FRAME: Final = "marco.firma.example"
CONSOLE: Final = "consola.firma.example"
PORTS: Final = {"8080": "base_url", "8081": "iframe_url", "8082": "admin_url"}
_MAIN: Final = """\
pid {folder}/nginx.pid;
error_log {folder}/error.log;
worker_processes 1;
daemon off;
events {{ worker_connections 1024; }}
http {{
    access_log off;
    client_body_temp_path {folder}/body;
    proxy_temp_path {folder}/proxy;
    fastcgi_temp_path {folder}/fastcgi;
    uwsgi_temp_path {folder}/uwsgi;
    scgi_temp_path {folder}/scgi;
    # Debian's nginx.conf has this; what is said again in one place counts twice.
    ssl_protocols TLSv1 TLSv1.1 TLSv1.2 TLSv1.3;
    include {folder}/rubrica.conf;
}}
"""


@dataclass(frozen=True, slots=True)
class Proxy:
    """One that runs."""

    port: int
    tls: ssl.SSLContext

    def client(self, host: str, address: str = "127.0.0.1") -> httpx.Client:
        """A client of one of its names.

        Args:
            host: name that is asked for.
            address: the client's own, on this machine.
        """
        transport = httpx.HTTPTransport(local_address=address, verify=self.tls)
        return httpx.Client(
            base_url=f"https://127.0.0.1:{self.port}",
            headers={"Host": f"{host}:{self.port}"},
            transport=_Named(transport, host),
            timeout=CALL_S,
        )


class _Named(httpx.BaseTransport):
    """Says a host's name in the TLS handshake."""

    def __init__(self, inner: httpx.BaseTransport, host: str) -> None:
        self._inner = inner
        self._host = host

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        request.extensions["sni_hostname"] = self._host
        return self._inner.handle_request(request)

    def close(self) -> None:
        self._inner.close()


@contextmanager
def nginx_before(
    appliance: Appliance, folder: Path, port: int, *changes: tuple[str, str]
) -> Iterator[Proxy]:
    """Start nginx by the sample, and stop it after.

    Args:
        appliance: what it stands before.
        folder: an empty one.
        port: where it listens for all names.
        changes: texts of the sample and what stands in their place here.
    """
    tls = certificate(folder)
    text = SAMPLE.read_text().replace("listen 443 ssl", f"listen 127.0.0.1:{port} ssl")
    for ours, name in PORTS.items():
        own = getattr(appliance, name).rpartition(":")[2]
        text = text.replace(f"server 127.0.0.1:{ours};", f"server 127.0.0.1:{own};")
    text = re.sub(r"/etc/ssl/(private/)?firma\.example", f"{folder}/tls", text)
    for before, after in changes:
        assert before in text
        text = text.replace(before, after)
    (folder / "rubrica.conf").write_text(text)
    (folder / "nginx.conf").write_text(_MAIN.format(folder=folder))
    command = ["nginx", "-p", str(folder), "-c", str(folder / "nginx.conf")]
    with (folder / "out").open("wb") as out:
        process = subprocess.Popen(command, stdout=out, stderr=out)
    try:
        wait_listening(process, port, folder)
        assert "[warn]" not in (folder / "out").read_text()
        yield Proxy(port, tls)
    finally:
        process.terminate()
        process.wait(30)


def wait_listening(process: subprocess.Popen[bytes], port: int, folder: Path) -> None:
    """Wait until a proxy listens.

    Args:
        process: it.
        port: where it is to.
        folder: with `out`, what it says.
    """
    deadline = time.monotonic() + 30
    while process.poll() is None and time.monotonic() < deadline:
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.02)
    raise AssertionError((folder / "out").read_text())


def new_port() -> int:
    """A port that nobody listens on."""
    return free_port()


def certificate(folder: Path) -> ssl.SSLContext:
    """A certificate for all names, and a client's side that believes it alone.

    Args:
        folder: gets `tls.pem`, `tls.key`, and both as `tls.both.pem`.
    """
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, API)])
    now = dt.datetime.now(dt.UTC)
    names = [x509.DNSName(host) for host in (API, FRAME, CONSOLE)]
    made = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - dt.timedelta(hours=1))
        .not_valid_after(now + dt.timedelta(days=2))
        .add_extension(x509.SubjectAlternativeName(names), critical=False)
        .sign(key, hashes.SHA256())
    )
    pem = made.public_bytes(Encoding.PEM)
    (folder / "tls.pem").write_bytes(pem)
    own = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    (folder / "tls.key").write_bytes(own)
    (folder / "tls.both.pem").write_bytes(pem + own)
    return ssl.create_default_context(cadata=pem.decode())
