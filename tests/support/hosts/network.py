"""Hosts on one switch, each a network namespace with a name of its own.

    with Network.made() as network:
        host = network.host("front-a")
        process = subprocess.Popen(host.command("redis-server", …))
        network.cut(host)
        network.mend(host)

A link that is cut says nothing: cable and addresses stay, and no packet comes through.
Needs root and `iproute2`.
"""

import ctypes
import os
import secrets
import shutil
import socket
import subprocess
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, TypeVar

Result = TypeVar("Result")
PLACE: Final = "RUBRICA_TEST_HOST"
"""Environment variable with which the loaded process forks to a host: see `Host`."""
_CLONE_NEWNET: Final = 0x4000_0000
_CLONE_NEWUTS: Final = 0x0400_0000
_SUBNET: Final = "10.77.0"
_FIRST: Final = 11
_NAMESPACES: Final = Path("/run/netns")
_LIBC: Final = ctypes.CDLL(None, use_errno=True)


@dataclass(frozen=True, slots=True)
class Host:
    """A place with an address and a name.

    Args:
        name: as `hostname` tells it there.
        number: the last part of its address.
        namespace: of its network.
    """

    name: str
    number: int
    namespace: str

    @property
    def address(self) -> str:
        """IPv4."""
        return f"{_SUBNET}.{self.number}"

    @property
    def port(self) -> str:
        """Its place at the switch."""
        return f"p{self.number}"

    @property
    def mac(self) -> str:
        """Its address on the wire."""
        return f"02:00:00:00:00:{self.number:02x}"

    @property
    def place(self) -> dict[str, str]:
        """A variable by which `start_rubrica` starts it there."""
        return {PLACE: f"{self.namespace} {self.name}"}

    def command(self, *words: str) -> list[str]:
        """What runs a program there, in one process, which ends with this thread."""
        name = ["unshare", "--uts", "sh", "-c", 'hostname "$0" && exec "$@"', self.name]
        end = ["setpriv", "--pdeathsig", "KILL"]
        return ["ip", "netns", "exec", self.namespace, *name, *end, *words]

    def within(self, work: Callable[[], Result]) -> Result:
        """Do something of the tests' on this host's network."""
        # Its one thread stays on that network and ends with the pool.
        with ThreadPoolExecutor(max_workers=1, initializer=self.enter) as pool:
            return pool.submit(work).result()

    def enter(self) -> None:
        """Move the calling thread to this network, for good."""
        _enter(self.namespace)


@dataclass
class Network:
    """A switch and what is plugged in."""

    switch: str
    hosts: list[Host] = field(default_factory=list)

    @classmethod
    @contextmanager
    def made(cls) -> Iterator["Network"]:
        """Make a switch; it goes at the end with all hosts."""
        network = cls(f"rbk-{secrets.token_hex(3)}")
        _ip("netns", "add", network.switch)
        try:
            _ip("-n", network.switch, "link", "add", "br0", "type", "bridge")
            _ip("-n", network.switch, "link", "set", "br0", "up")
            yield network
        finally:
            for name in (*(host.namespace for host in network.hosts), network.switch):
                _ip("netns", "delete", name)

    def host(self, name: str) -> Host:
        """Plug a new host in.

        Args:
            name: that nobody else there has.
        """
        number = _FIRST + len(self.hosts)
        host = Host(name, number, f"{self.switch}-{number}")
        _ip("netns", "add", host.namespace)
        self.hosts.append(host)
        peer = ("type", "veth", "peer", "name", "eth0", "netns", host.namespace)
        at_switch, there = ("-n", self.switch), ("-n", host.namespace)
        _ip(*at_switch, "link", "add", host.port, *peer)
        _ip(*at_switch, "link", "set", host.port, "master", "br0", "up")
        _ip(*there, "link", "set", "lo", "up")
        _ip(*there, "link", "set", "eth0", "address", host.mac, "up")
        _ip(*there, "address", "add", f"{host.address}/24", "dev", "eth0")
        for other in self.hosts[:-1]:
            _know(host, other)
            _know(other, host)
        return host

    def cut(self, host: Host) -> None:
        """Let nothing through to a host or from it, without a word to anybody."""
        _ip("-n", self.switch, "link", "set", host.port, "nomaster")

    def mend(self, host: Host) -> None:
        """Let all through again."""
        _ip("-n", self.switch, "link", "set", host.port, "master", "br0")


def move_to(place: str) -> None:
    """Move this process to a host, of its one thread.

    Args:
        place: as `Host.place` names it.

    Source: unshare(2), sethostname(2).
    """
    namespace, name = place.split()
    _enter(namespace)
    _called("unshare", _LIBC.unshare(_CLONE_NEWUTS))
    socket.sethostname(name)


def _enter(namespace: str) -> None:
    """Move the calling thread to a network. Source: setns(2)."""
    with (_NAMESPACES / namespace).open("rb") as there:
        _called("setns", _LIBC.setns(there.fileno(), _CLONE_NEWNET))


def _called(name: str, result: int) -> None:
    if result != 0:
        raise OSError(ctypes.get_errno(), name)


def _know(host: Host, other: Host) -> None:
    """Have one find another without asking: nobody's silence is told by ARP."""
    known = ("neigh", "replace", other.address, "lladdr", other.mac)
    _ip("-n", host.namespace, *known, "dev", "eth0", "nud", "permanent")


def _ip(*words: str) -> None:
    subprocess.run(["ip", *words], check=True, stdin=subprocess.DEVNULL)


def can_make_networks() -> bool:
    """Whether this machine and user can."""
    programs: Callable[[str], str | None] = shutil.which
    return os.geteuid() == 0 and all(map(programs, ("ip", "unshare", "setpriv")))
