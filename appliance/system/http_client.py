"""What our HTTP clients have in common: the bare session, and answers with an end.

A session is opened at the first call. It keeps no cookie, unpacks nothing and reads
no environment variable.
"""

from collections.abc import Mapping
from typing import Any, Self

import aiohttp


class BadAnswerError(Exception):
    """It answered, but not well."""


class HttpClient:
    """A client whose session is opened when it is needed, and closed with it."""

    def __init__(self) -> None:
        self._http: aiohttp.ClientSession | None = None

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_exc: object) -> None:
        await self.close()

    async def close(self) -> None:
        """Close what is open."""
        if self._http is not None:
            await self._http.close()
            self._http = None

    def _session(self) -> aiohttp.ClientSession:
        if self._http is None:
            self._http = aiohttp.ClientSession(
                cookie_jar=aiohttp.DummyCookieJar(),
                auto_decompress=False,
                trust_env=False,
                **self._options(),
            )
        return self._http

    def _options(self) -> Mapping[str, Any]:
        """What this client's session has besides."""
        return {}


async def read_up_to(response: aiohttp.ClientResponse, limit_bytes: int) -> bytes:
    """The body of an answer, no more of it than is read.

    Args:
        response: whose body.
        limit_bytes: the most that is read.

    Raises:
        BadAnswerError: it is longer.
        ClientError: it broke off.
    """
    body = bytearray()
    async for chunk in response.content.iter_any():
        body += chunk
        if len(body) > limit_bytes:
            response.close()
            msg = f"it is longer than {limit_bytes} bytes"
            raise BadAnswerError(msg)
    return bytes(body)
