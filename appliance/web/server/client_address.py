"""Where a call comes from, through the proxies that the settings trust.

The peer of the connection is the client unless it is a trusted proxy. Then the
named header is read from its end, where the nearest proxy wrote: the first address
that is no trusted proxy is the client. What stands before it is the client's own
word, and is not looked at. Nobody else's header is ever read.

Source: RFC 7239; decisions "behind a proxy".
"""

import ipaddress
import re
from collections.abc import Collection
from typing import Final, TypeAlias

from quart import current_app, g, request

from appliance.domain.integrators.key_networks import LOCAL

IPAddress: TypeAlias = ipaddress.IPv4Address | ipaddress.IPv6Address
IPNetwork: TypeAlias = ipaddress.IPv4Network | ipaddress.IPv6Network

UNIX: Final = "unix"
"""In `web.trusted_proxies`: whoever may connect to a Unix socket of ours."""
_HOPS_AT_MOST: Final = 32
_SUBSCRIBER_BITS: Final = 64
_FOR: Final = re.compile(
    r'(?:^|;)\s*for=(?:"([^"\\]*)"|([^";,\s]*))\s*(?=;|$)', re.IGNORECASE
)


class Proxies:
    """The proxies that may say for whom they ask.

    Args:
        trusted: their networks, and `UNIX`.
        header: what they say it in: `x-forwarded-for` or `forwarded`.
    """

    def __init__(self, trusted: Collection[str], header: str) -> None:
        self._unix = UNIX in trusted
        self._networks: tuple[IPNetwork, ...] = tuple(
            ipaddress.ip_network(text) for text in trusted if text != UNIX
        )
        self._header = header.encode("ascii")
        self._read = _forwarded if header == "forwarded" else str.strip

    def trusts(self, peer: str) -> bool:
        """Whether the peer of a connection is one of them.

        Args:
            peer: its IP address; anything else where it has none.
        """
        address = parse(peer)
        return self._unix if address is None else self._is_ours(address)

    def client(self, peer: str, headers: Collection[tuple[bytes, bytes]]) -> str:
        """Who asks.

        Args:
            peer: IP address of the connection's other end; anything else where
                it has none.
            headers: of the call, names in any case.

        Returns:
            An IP address, or `LOCAL`. Where a trusted proxy says nothing that is
            an address, it is itself the client.
        """
        address = parse(peer)
        if self._unix if address is None else self._is_ours(address):
            for hop in self._hops(headers):
                said = parse(self._read(hop))
                if said is None:
                    break
                address = said
                if not self._is_ours(said):
                    break
        return LOCAL if address is None else str(address)

    def _is_ours(self, address: IPAddress) -> bool:
        return any(address in network for network in self._networks)

    def _hops(self, headers: Collection[tuple[bytes, bytes]]) -> list[str]:
        """What the header says, the nearest hop first."""
        # Lines of one header are one list, in their order (RFC 9110, 5.3).
        lines = [v.decode("latin-1") for n, v in headers if n.lower() == self._header]
        hops = ",".join(lines).rsplit(",", _HOPS_AT_MOST)
        return hops[::-1][:_HOPS_AT_MOST]


def client_address() -> str:
    """Where the present request came from, as attempts are counted by.

    Behind trusted proxies it is whom they name. An IPv6 address stands for its /64:
    one subscriber has all of it.
    """
    return counted(full_address())


def full_address() -> str:
    """Where the present request came from: an IP address, or `local`."""
    known: str | None = g.get("address")
    if known is None:
        proxies: Proxies = current_app.extensions["rubrica.proxies"]
        headers = tuple(request.scope["headers"])
        client = request.scope.get("client")
        # None where it has no address: a Unix socket.
        known = proxies.client(str(client[0]) if client else "", headers)
        g.address = known
    return known


def parse(text: str) -> IPAddress | None:
    """Read an address, with or without a port, or None for anything else.

    Args:
        text: `192.0.2.1`, `192.0.2.1:80`, `2001:db8::1`, `[2001:db8::1]:80`.
    """
    bare = text
    if text.startswith("["):
        bare = text[1:].partition("]")[0]
    elif text.count(":") == 1:
        bare = text.partition(":")[0]
    try:
        address = ipaddress.ip_address(bare)
    except ValueError:
        return None
    if isinstance(address, ipaddress.IPv6Address):
        # A listener on `[::]` shows IPv4 peers so.
        return address.ipv4_mapped or _unscoped(address)
    return address


def read_typed(text: str) -> str | None:
    """An address that somebody typed, as attempts are counted by; None for none.

    Args:
        text: as for `parse`.
    """
    parsed = parse(text.strip())
    return None if parsed is None else counted(str(parsed))


def counted(address: str) -> str:
    """The address as attempts are counted by: an IPv6 one stands for its /64.

    One subscriber has all of a /64.

    Args:
        address: as `Proxies.client` gives it.
    """
    parsed = parse(address)
    if isinstance(parsed, ipaddress.IPv6Address):
        network = ipaddress.ip_network((parsed, _SUBSCRIBER_BITS), strict=False)
        return str(network)
    return address


def _unscoped(address: ipaddress.IPv6Address) -> ipaddress.IPv6Address:
    """An address without the name of an interface (`%eth0`)."""
    return ipaddress.IPv6Address(int(address))


def _forwarded(element: str) -> str:
    """The address of one `Forwarded` element; empty where it names none.

    Commas in quoted strings would part an element; no address has one, so such an
    element is read as none.

    Source: RFC 7239, 4 and 6.
    """
    found = _FOR.search(element.strip())
    return (found[1] or found[2] or "") if found else ""
