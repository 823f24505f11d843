"""HTTP to addresses that certificates name, and that nobody here chose.

    async with GuardedHttp(settings) as http:
        der = await http.get("http://ca.example/ca.crl", limit)

A certificate may be made to name anything: only http and https are spoken, and only
to addresses that are public or that the settings allow. The name is resolved once,
and that address connected to; no redirect is followed.
"""

import ipaddress
import socket
from collections.abc import Mapping, Sequence
from http import HTTPStatus
from typing import Any, Final

import aiohttp
from aiohttp.abc import AbstractResolver, ResolveResult
from aiohttp.resolver import ThreadedResolver

from appliance.core.system.http_client import BadAnswerError, HttpClient, read_up_to
from appliance.domain.text.urls import read_address
from appliance.settings import RevocationSettings

_Network = ipaddress.IPv4Network | ipaddress.IPv6Network
_Address = ipaddress.IPv4Address | ipaddress.IPv6Address
_TRANSLATED: Final = tuple(
    map(ipaddress.IPv6Network, ("64:ff9b::/96", "64:ff9b:1::/48", "2002::/16"))
)
"""Global by themselves, and yet they lead to an IPv4 address within them."""
_URL_MOST: Final = 2048


class RefusedAddressError(OSError):
    """An address that must not be connected to."""


FAILURES: Final = (BadAnswerError, aiohttp.ClientError, OSError, ValueError)
"""What a call ends in that yields nothing; a time-out is an OSError."""


class AddressGuard(AbstractResolver):
    """Resolves names to addresses that may be connected to, and to no others.

    Args:
        allowed: networks beside the public ones.
    """

    def __init__(self, allowed: Sequence[_Network]) -> None:
        self._allowed = allowed
        self._inner = ThreadedResolver()

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
        is_translated = any(address in network for network in _TRANSLATED)
        return address.is_global and not address.is_multicast and not is_translated

    async def close(self) -> None:
        """Release what it holds."""
        await self._inner.close()


class GuardedHttp(HttpClient):
    """Calls to such addresses.

    Args:
        settings: time, proxy and networks that are allowed.
    """

    def __init__(self, settings: RevocationSettings) -> None:
        super().__init__()
        self._settings = settings
        allowed = [ipaddress.ip_network(one) for one in settings.allowed_networks]
        self._guard = AddressGuard(allowed)

    async def get(self, url: str, limit_bytes: int) -> bytes:
        """Fetch something.

        Args:
            url: where from.
            limit_bytes: longest body that is read.

        Raises:
            BadAnswerError: another address or status, or it is too long.
            ClientError: there was no answer.
            OSError: nor a connection; it came too late; `RefusedAddressError`.
        """
        return await self._call("GET", url, limit_bytes)

    async def post(self, url: str, kind: str, body: bytes, limit_bytes: int) -> bytes:
        """Ask something.

        Args:
            url: whom.
            kind: media type of the question.
            body: the question.
            limit_bytes: longest answer that is read.

        Raises:
            BadAnswerError: as `get`, as the others.
        """
        headers = {"Content-Type": kind}
        return await self._call("POST", url, limit_bytes, headers, body)

    async def _call(
        self,
        method: str,
        url: str,
        limit_bytes: int,
        headers: dict[str, str] | None = None,
        body: bytes | None = None,
    ) -> bytes:
        """One call, its answer's body.

        Raises:
            BadAnswerError: as `get`.
        """
        self._check_url(url)
        async with self._session().request(
            method,
            url,
            headers=headers,
            data=body,
            proxy=self._settings.proxy,
            allow_redirects=False,
            timeout=aiohttp.ClientTimeout(total=self._settings.timeout_s),
        ) as response:
            if response.status != HTTPStatus.OK:
                msg = f"HTTP {response.status}"
                raise BadAnswerError(msg)
            return await read_up_to(response, limit_bytes)

    def _check_url(self, url: str) -> None:
        """Refuse what is no address to go to.

        Raises:
            BadAnswerError: another scheme, a user name, no host, too long.
            RefusedAddressError: an address that must not be connected to.
        """
        parts = read_address(url)
        if (
            parts is None
            or len(url) > _URL_MOST
            or parts.scheme not in {"http", "https"}
            or not parts.hostname
            or parts.username is not None
        ):
            msg = "it is no address to go to"
            raise BadAnswerError(msg)
        # Names go through the resolver, addresses do not.
        self._guard.check(parts.hostname)

    def _options(self) -> Mapping[str, Any]:
        # A proxy resolves by itself, and may well be on a private address.
        guard = None if self._settings.proxy else self._guard
        return {
            "connector": aiohttp.TCPConnector(
                resolver=guard, use_dns_cache=False, force_close=True
            ),
            "headers": {"Accept-Encoding": "identity", "User-Agent": "rubrica"},
        }


def host_of(url: str) -> str:
    """The host of an address: what logs may say of it.

    Args:
        url: any.
    """
    parts = read_address(url)
    return "(none)" if parts is None else parts.netloc.rpartition("@")[2]
