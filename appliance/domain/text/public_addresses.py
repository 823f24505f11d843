"""Which Internet addresses are public, and which hosts are an address in some form.

    address_in("0x7f.1")                             # IPv4Address("127.0.0.1")
    may_connect(address, [ip_network("10.1.2.0/24")])

Source: RFC 6890, and IANA's registries of special-purpose addresses; `inet_aton` of
POSIX; RFC 6761, 6.3.
"""

import ipaddress
import re
import socket
from collections.abc import Sequence
from typing import Final

Network = ipaddress.IPv4Network | ipaddress.IPv6Network
Address = ipaddress.IPv4Address | ipaddress.IPv6Address
_UNICAST: Final = ipaddress.IPv6Network("2000::/3")
"""All that is public of IPv6. Source: RFC 4291, 2.4 with IANA's assignments."""
_REFUSED: Final = tuple(
    # By 6to4 an IPv4 address within it is reached; the other is the protocols' own.
    map(ipaddress.ip_network, ("2002::/16", "192.0.0.0/24"))
)
"""Public by what Python 3.11 says of them."""
_NUMERIC: Final = re.compile(
    r"(?:0x[0-9a-f]*|\d+)(?:\.(?:0x[0-9a-f]*|\d+)){0,3}", re.ASCII
)
"""What a resolver takes for an IPv4 address: one to four numbers."""
_OWN: Final = "localhost"


def may_connect(address: Address, allowed: Sequence[Network]) -> bool:
    """Whether an address may be connected to that somebody outside chose.

    Args:
        address: which.
        allowed: networks beside the public ones.
    """
    if isinstance(address, ipaddress.IPv6Address) and address.ipv4_mapped:
        address = address.ipv4_mapped
    if any(address in network for network in allowed):
        return True
    if address.version == _UNICAST.version and address not in _UNICAST:
        # Among them those that lead to an IPv4 address: 64:ff9b::/96 and ::/96.
        return False
    is_refused = any(address in network for network in _REFUSED)
    return address.is_global and not address.is_multicast and not is_refused


def address_in(host: str) -> Address | None:
    """The address that a host is without asking anybody; None: it is a name.

    Args:
        host: of a URL, without brackets; also one in decimal, octal or hexadecimal
            numbers, and a name of this machine's own.
    """
    host = host.lower().partition("%")[0].removesuffix(".")
    if host == _OWN or host.endswith(f".{_OWN}"):
        return ipaddress.IPv4Address("127.0.0.1")
    try:
        return ipaddress.ip_address(host)
    except ValueError:
        pass
    if not _NUMERIC.fullmatch(host):
        return None
    try:
        return ipaddress.IPv4Address(socket.inet_aton(host))
    except OSError:
        return None
