"""Which addresses may be connected to that somebody outside chose.

    guard = AddressGuard([ip_network("10.1.2.0/24")])
    session = ClientSession(connector=TCPConnector(resolver=guard))
    guard.check("::ffff:127.0.0.1")                  # RefusedAddressError

Public ones, and those of the networks that the settings allow. A name is resolved once
and what was found is what is connected to, so that no later answer counts.

Source: RFC 6890, and IANA's registries of special-purpose addresses.
"""

import ipaddress
import socket
from collections.abc import Sequence
from typing import Final

from aiohttp.abc import AbstractResolver, ResolveResult
from aiohttp.resolver import ThreadedResolver

_Network = ipaddress.IPv4Network | ipaddress.IPv6Network
_Address = ipaddress.IPv4Address | ipaddress.IPv6Address
_UNICAST: Final = ipaddress.IPv6Network("2000::/3")
"""All that is public of IPv6. Source: RFC 4291, 2.4 with IANA's assignments."""
_REFUSED: Final = tuple(
    # By 6to4 an IPv4 address within it is reached; the other is the protocols' own.
    map(ipaddress.ip_network, ("2002::/16", "192.0.0.0/24"))
)
"""Public by what Python 3.11 says of them."""


class RefusedAddressError(OSError):
    """An address that must not be connected to."""


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
        self._inner = inner or ThreadedResolver()

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
