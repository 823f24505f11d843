"""Real web servers before an appliance, by the samples of the documentation.

with PROXIES["caddy"](appliance, folder, port) as proxy:
    with proxy.client("firma.example", "127.0.0.2") as client:
        client.get("/healthz")
"""

import re
import subprocess
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Final

from tests.support.appliance.appliance import Appliance
from tests.support.services.nginx import (
    PORTS,
    SAMPLE,
    Proxy,
    certificate,
    nginx_before,
    wait_listening,
)

_SAMPLES: Final = SAMPLE.parent


def _ours(appliance: Appliance, folder: Path, sample: str) -> str:
    """A sample with the test's ports and certificate."""
    text = (_SAMPLES / sample).read_text()
    for theirs, name in PORTS.items():
        own = getattr(appliance, name).rpartition(":")[2]
        text = text.replace(f"127.0.0.1:{theirs}", f"127.0.0.1:{own}")
    return re.sub(r"/etc/ssl/(private/)?firma\.example", f"{folder}/tls", text)


@contextmanager
def _running(folder: Path, port: int, *command: str) -> Iterator[Proxy]:
    tls = certificate(folder)
    environment = {"HOME": str(folder), "PATH": "/usr/sbin:/usr/bin"}
    with (folder / "out").open("wb") as out:
        process = subprocess.Popen(command, stdout=out, stderr=out, env=environment)
    try:
        wait_listening(process, port, folder)
        yield Proxy(port, tls)
    finally:
        process.terminate()
        process.wait(60)


@contextmanager
def caddy_before(appliance: Appliance, folder: Path, port: int) -> Iterator[Proxy]:
    """Start Caddy by the sample, and stop it after."""
    text = _ours(appliance, folder, "Caddyfile")
    text = re.sub(r"(?m)^([a-z.]+example) \{", rf"https://\1:{port} {{", text)
    head = "{\n\tadmin off\n\tauto_https disable_redirects\n\tgrace_period 1s\n}\n"
    (folder / "Caddyfile").write_text(head + text)
    command = ("caddy", "run", "--adapter", "caddyfile", "--config")
    with _running(folder, port, *command, str(folder / "Caddyfile")) as proxy:
        yield proxy


@contextmanager
def haproxy_before(appliance: Appliance, folder: Path, port: int) -> Iterator[Proxy]:
    """Start HAProxy by the sample, and stop it after."""
    text = _ours(appliance, folder, "haproxy.cfg")
    text = text.replace("bind :443", f"bind 127.0.0.1:{port}")
    (folder / "haproxy.cfg").write_text(text)
    with _running(
        folder, port, "haproxy", "-db", "-f", str(folder / "haproxy.cfg")
    ) as proxy:
        yield proxy


PROXIES: Final[
    dict[str, Callable[[Appliance, Path, int], AbstractContextManager[Proxy]]]
] = {"nginx": nginx_before, "caddy": caddy_before, "haproxy": haproxy_before}
"""By name: puts one before an appliance, on a port for all names."""
