"""Which addresses may be connected to that somebody outside chose.

    guard = AddressGuard([ip_network("10.1.2.0/24")])
    session = ClientSession(connector=TCPConnector(resolver=guard))
    guard.check("::ffff:127.0.0.1")                  # RefusedAddressError

Public ones, and those of the networks that the settings allow. A name is resolved once
and what was found is what is connected to, so that no later answer counts.

Source: RFC 6890, and IANA's registries of special-purpose addresses.
"""

import asyncio
import ipaddress
import socket
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any, Final

from aiohttp.abc import AbstractResolver, ResolveResult

_Network = ipaddress.IPv4Network | ipaddress.IPv6Network
_Address = ipaddress.IPv4Address | ipaddress.IPv6Address
_UNICAST: Final = ipaddress.IPv6Network("2000::/3")
"""All that is public of IPv6. Source: RFC 4291, 2.4 with IANA's assignments."""
_REFUSED: Final = tuple(
    # By 6to4 an IPv4 address within it is reached; the other is the protocols' own.
    map(ipaddress.ip_network, ("2002::/16", "192.0.0.0/24"))
)
"""Public by what Python 3.11 says of them."""
_THREADS: Final = 32
"""Names that are resolved at once. One that is given up keeps its thread until the
system's resolver gives up as well."""


class RefusedAddressError(OSError):
    """An address that must not be connected to."""


class NameResolver(AbstractResolver):
    """The system's resolver, in threads of its own.

    In those that the event loop has for everybody, names whose servers are slow would
    hold up all else that runs there.
    """

    def __init__(self) -> None:
        self._threads = ThreadPoolExecutor(_THREADS, thread_name_prefix="names")

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_INET
    ) -> list[ResolveResult]:
        """See `AbstractResolver`."""
        looking = partial(
            socket.getaddrinfo,
            host,
            port,
            family=family,
            type=socket.SOCK_STREAM,
            flags=socket.AI_ADDRCONFIG,
        )
        found = await asyncio.get_running_loop().run_in_executor(self._threads, looking)
        return [
            ResolveResult(
                hostname=host,
                host=_numeric(address),
                port=port,
                family=kind,
                proto=protocol,
                flags=socket.AI_NUMERICHOST | socket.AI_NUMERICSERV,
            )
            for kind, _, protocol, _, address in found
        ]

    async def close(self) -> None:
        """Begin nothing more; what a thread waits for is not waited for."""
        self._threads.shutdown(wait=False, cancel_futures=True)


def _numeric(address: Sequence[Any]) -> str:
    """Of what the system found; of IPv6 with its link, where it has one."""
    host, _, *flow_and_link = address
    link = flow_and_link[-1] if flow_and_link else 0
    return f"{host}%{link}" if link else str(host)


class AddressGuard(AbstractResolver):
    """Resolves names to addresses that may be connected to, and to no others.

    Args:
        allowed: networks beside the public ones.
        inner: resolves; the system's resolver unless given.
    """

    def __init__(
        self, allowed: Sequence[_Network], inner: AbstractResolver | None = None
    ) -> None:
        self._allowed = allowed
        self._inner = inner or NameResolver()

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_INET
    ) -> list[ResolveResult]:
        """See `AbstractResolver`.

        Raises:
            RefusedAddressError: it has an address that must not be connected to.
        """
        found = await self._inner.resolve(host, port, family)
        for each in found:
            self.check(each["host"])
        return found

    def check(self, host: str) -> None:
        """Refuse an address, if it is one, that must not be connected to.

        Args:
            host: address or name.

        Raises:
            RefusedAddressError: it must not.
        """
        try:
            address = ipaddress.ip_address(host.partition("%")[0])
        except ValueError:
            return
        if not self._may(address):
            msg = f"{address} is not public"
            raise RefusedAddressError(msg)

    def _may(self, address: _Address) -> bool:
        if isinstance(address, ipaddress.IPv6Address) and address.ipv4_mapped:
            address = address.ipv4_mapped
        if any(address in network for network in self._allowed):
            return True
        if address.version == _UNICAST.version and address not in _UNICAST:
            # Among them those that lead to an IPv4 address: 64:ff9b::/96 and ::/96.
            return False
        is_refused = any(address in network for network in _REFUSED)
        return address.is_global and not address.is_multicast and not is_refused

    async def close(self) -> None:
        """Release what it holds."""
        await self._inner.close()
