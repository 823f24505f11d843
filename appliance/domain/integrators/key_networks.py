"""From where an API key may be used: networks of the Internet, as text.

An IPv4 network that is written as an IPv6 one (`::ffff:192.0.2.0/120`) is taken as
the IPv4 network that it is: callers are told so too.

Source: RFC 4632, 3.1; RFC 4291, 2.3 and 2.5.5.2.
"""

import ipaddress
import re
from collections.abc import Collection
from typing import Final, TypeAlias

from appliance.domain.errors import (
    NETWORK_HOST_BITS,
    NETWORK_MALFORMED,
    NETWORKS_TOO_MANY,
    FieldInvalidError,
)

LOCAL: Final = "local"
"""The address of who has none: it came through a Unix socket."""
NETWORKS_AT_MOST: Final = 20
_Network: TypeAlias = ipaddress.IPv4Network | ipaddress.IPv6Network
_FIELD: Final = "networks"
# No netmask after the slash, and no name of an interface.
_FORM: Final = re.compile(r"[0-9A-Fa-f:.]{2,45}(?:/[0-9]{1,3})?", re.ASCII)
_MAPPED: Final = ipaddress.IPv6Network("::ffff:0:0/96")
_SHOWN: Final = 64
"""Most characters of what was typed that a refusal shows."""


def read_networks(texts: Collection[str]) -> tuple[str, ...]:
    """Read addresses and networks, each one once, in their order.

    Args:
        texts: `192.0.2.7`, `10.0.0.0/8`, `2001:db8::/32`; spaces around them do not
            count. At most `NETWORKS_AT_MOST`.

    Returns:
        Networks in CIDR form.

    Raises:
        FieldInvalidError: one is neither an address nor a network, or has bits of a
            host; or they are too many.
    """
    if len(texts) > NETWORKS_AT_MOST:
        raise FieldInvalidError(
            _FIELD,
            f"0 to {NETWORKS_AT_MOST}",
            sentence=NETWORKS_TOO_MANY,
            params={"count": len(texts), "most": NETWORKS_AT_MOST},
        )
    return tuple(dict.fromkeys(str(_read(text.strip())) for text in texts))


def is_within(address: str, networks: Collection[str]) -> bool:
    """Whether a caller may be there.

    Args:
        address: an IP address, or `LOCAL`, which is in no network.
        networks: as `read_networks` gives them; none: it may be anywhere.
    """
    if not networks or address == LOCAL:
        return not networks
    found = ipaddress.ip_address(address)
    return any(found in ipaddress.ip_network(network) for network in networks)


def _parsed(text: str) -> _Network | None:
    """The network that a text names, or that an address in it belongs to."""
    try:
        found = ipaddress.ip_network(text, strict=False)
    except ValueError:
        return None
    return found if _FORM.fullmatch(text) else None


def _read(text: str) -> _Network:
    """Read one.

    Raises:
        FieldInvalidError: it is none, or has bits of a host.
    """
    network = _parsed(text)
    if network is None:
        raise FieldInvalidError(
            _FIELD,
            ("192.0.2.7", "192.0.2.0/24", "2001:db8::/32"),
            sentence=NETWORK_MALFORMED,
            params={"network": text[:_SHOWN]},
        )
    written = ipaddress.ip_address(text.partition("/")[0])
    if written != network.network_address:
        raise FieldInvalidError(
            _FIELD,
            (str(network), str(written)),
            sentence=NETWORK_HOST_BITS,
            params={"network": text, "whole": str(network), "one": str(written)},
        )
    if isinstance(network, ipaddress.IPv6Network) and network.subnet_of(_MAPPED):
        four = int(network.network_address) & 0xFFFFFFFF
        return ipaddress.IPv4Network((four, network.prefixlen - _MAPPED.prefixlen))
    return network
