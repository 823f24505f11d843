"""Which addresses may be connected to that somebody outside chose.

    guard = AddressGuard([ip_network("10.1.2.0/24")])
    session = ClientSession(connector=TCPConnector(resolver=guard))
    guard.check("::ffff:127.0.0.1")                  # RefusedAddressError

Public ones, and those of the networks that the settings allow. A name is resolved once
and what was found is what is connected to, so that no later answer counts.

Source: `appliance.domain.text.public_addresses`.
"""

import asyncio
import ipaddress
import socket
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any, Final

from aiohttp.abc import AbstractResolver, ResolveResult

from appliance.domain.text.public_addresses import Network, may_connect

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
        self, allowed: Sequence[Network], inner: AbstractResolver | None = None
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
        if not may_connect(address, self._allowed):
            msg = f"{address} is not public"
            raise RefusedAddressError(msg)

    async def close(self) -> None:
        """Release what it holds."""
        await self._inner.close()
