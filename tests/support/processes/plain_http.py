"""HTTP to what the tests start: none of it speaks TLS."""

import ssl
from typing import Final

import httpx

from tests.support.patience import CALL_S

NO_TLS: Final = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
"""What `httpx` is to `verify` by. Without it each client, and each call that makes
one, reads the certificates of all the world's CAs: 20 ms of a processor."""


def answers(url: str) -> bool:
    """Whether something answers 200 there by now."""
    try:
        return httpx.get(url, timeout=CALL_S, verify=NO_TLS).status_code == 200
    except httpx.HTTPError:
        return False
