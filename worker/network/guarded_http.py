"""HTTP to addresses that somebody outside chose: certificates, integrators.

    async with GuardedHttp(settings) as http:
        der = await http.get("http://ca.example/ca.crl", limit)

They may name anything: only http and https are spoken, and only to addresses that
`AddressGuard` lets through. No redirect is followed.
"""

import ipaddress
import ssl
from collections.abc import AsyncIterator, Collection, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any, Final, Protocol

import aiohttp
from aiohttp.abc import AbstractResolver

from appliance.domain.text.urls import read_address
from appliance.system.http_client import BadAnswerError, HttpClient, read_up_to
from worker.network.address_guard import AddressGuard

_URL_MOST: Final = 2048
_BEGINNING_BYTES: Final = 4096


class BadUrlError(BadAnswerError):
    """A text that is no address to go to."""


FAILURES: Final = (BadAnswerError, aiohttp.ClientError, OSError, ValueError)
"""What a call ends in that yields nothing; a time-out is an OSError."""


class Egress(Protocol):
    """How such addresses are reached: a section of the settings."""

    @property
    def timeout_s(self) -> float:
        """Longest that a call may take, in seconds."""

    @property
    def proxy(self) -> str | None:
        """Address of an HTTP proxy; which addresses it goes to is its own matter."""

    @property
    def allowed_networks(self) -> tuple[str, ...]:
        """Networks that may be connected to beside public addresses."""


@dataclass(frozen=True, slots=True)
class Answer:
    """What a server said, well or not."""

    status: int
    retry_after: str
    """The header of that name, or empty."""
    beginning: bytes
    """Of its body, as far as it was read."""


class GuardedHttp(HttpClient):
    """Calls to such addresses.

    Args:
        settings: time, proxy and networks that are allowed.
        schemes: that are spoken.
        tls: what servers' certificates are checked by; the system's authorities
            unless given.
        resolver: of names; the system's unless given.
    """

    def __init__(
        self,
        settings: Egress,
        schemes: Collection[str] = ("http", "https"),
        tls: ssl.SSLContext | None = None,
        resolver: AbstractResolver | None = None,
    ) -> None:
        super().__init__()
        self._settings = settings
        self._schemes = schemes
        self._tls = tls
        allowed = [ipaddress.ip_network(one) for one in settings.allowed_networks]
        self._guard = AddressGuard(allowed, resolver)

    async def close(self) -> None:
        """Close what is open, for good."""
        await super().close()
        await self._guard.close()

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
        async with self._asking("GET", url) as response:
            return await _good_body(response, limit_bytes)

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
        async with self._asking("POST", url, headers, body) as response:
            return await _good_body(response, limit_bytes)

    async def tell(self, url: str, headers: Mapping[str, str], body: bytes) -> Answer:
        """Tell something; any answer is one, and no more of it is read than a page.

        Args:
            url: whom.
            headers: beside those that every call has.
            body: what.

        Raises:
            BadUrlError: it is no address to go to.
            ClientError: as `get`, as the others.
        """
        async with self._asking("POST", url, headers, body) as response:
            return Answer(
                response.status,
                response.headers.get("Retry-After", ""),
                await _beginning(response),
            )

    @asynccontextmanager
    async def _asking(
        self,
        method: str,
        url: str,
        headers: Mapping[str, str] | None = None,
        body: bytes | None = None,
    ) -> AsyncIterator[aiohttp.ClientResponse]:
        """One call.

        Raises:
            BadUrlError: as `_check_url`.
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
            yield response

    def _check_url(self, url: str) -> None:
        """Refuse what is no address to go to.

        Raises:
            BadUrlError: another scheme, a user name, no host, one that is not ASCII,
                too long.
            RefusedAddressError: an address that must not be connected to.
        """
        parts = read_address(url)
        if (
            parts is None
            or len(url) > _URL_MOST
            or parts.scheme not in self._schemes
            or not parts.hostname
            # The client makes plain digits of full-width ones, after this look.
            or not parts.hostname.isascii()
            or parts.username is not None
        ):
            msg = "it is no address to go to"
            raise BadUrlError(msg)
        # Names go through the resolver, addresses do not.
        self._guard.check(parts.hostname)

    def _options(self) -> Mapping[str, Any]:
        # A proxy resolves by itself, and may well be on a private address.
        guard = None if self._settings.proxy else self._guard
        return {
            "connector": aiohttp.TCPConnector(
                resolver=guard,
                use_dns_cache=False,
                force_close=True,
                limit=0,
                ssl=self._tls or True,
            ),
            "headers": {"Accept-Encoding": "identity", "User-Agent": "rubrica"},
        }


async def _good_body(response: aiohttp.ClientResponse, limit_bytes: int) -> bytes:
    """The body of an answer that has what was asked for.

    Raises:
        BadAnswerError: it has another status, or is too long.
    """
    if response.status != HTTPStatus.OK:
        msg = f"HTTP {response.status}"
        raise BadAnswerError(msg)
    return await read_up_to(response, limit_bytes)


async def _beginning(response: aiohttp.ClientResponse) -> bytes:
    """How a body begins; that it breaks off or comes too late, its status outlives."""
    read = bytearray()
    with suppress(aiohttp.ClientError, OSError):
        async for chunk in response.content.iter_any():
            read += chunk
            if len(read) >= _BEGINNING_BYTES:
                break
    # There may be more: the connection is of no use any more.
    response.close()
    return bytes(read[:_BEGINNING_BYTES])


def host_of(url: str) -> str:
    """The host of an address: what logs may say of it.

    Args:
        url: any.
    """
    parts = read_address(url)
    return "(none)" if parts is None else parts.netloc.rpartition("@")[2]
