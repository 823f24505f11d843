"""The networks around an Internet address, as tries are counted by them too.

An IPv6 address stands for its /64, which one subscriber has whole; a /56 and a /48
are what subscribers and small providers are given, and hold 256 and 65,536 of those.

Source: RFC 6177; decisions "attempts".
"""

import ipaddress
from typing import Final

_WIDE: Final = (56, 48)


def wider(address: str) -> tuple[str, ...]:
    """The /56 and the /48 around an IPv6 network; nothing for anything else.

    Args:
        address: as `appliance.web.server.client_address.client_address` gives it.
    """
    try:
        network = ipaddress.ip_network(address)
    except ValueError:
        return ()
    if isinstance(network, ipaddress.IPv4Network):
        return ()
    return tuple(str(network.supernet(new_prefix=width)) for width in _WIDE)
