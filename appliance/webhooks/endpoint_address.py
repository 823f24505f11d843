"""Addresses that webhooks may have, as far as that can be told without going there.

Whether one leads to a network that may be called is found out at each try, by the
address that its name then has.
"""

import re
from collections.abc import Collection
from typing import Final

from appliance.domain.errors import FieldInvalidError
from appliance.domain.text.urls import read_address

ADDRESS_CHARS: Final = 2048
_PLAIN: Final = re.compile(r"[!-~]+", re.ASCII)
"""Of what addresses consist (RFC 3986, 2); no space, no control character."""


def check_address(text: str, schemes: Collection[str]) -> str:
    """Read the address of an endpoint.

    Args:
        text: as typed; spaces around it do not count.
        schemes: that it may have.

    Raises:
        FieldInvalidError: `url`: it is none, too long, of another scheme, or has a
            user's name or a fragment.
    """
    text = text.strip(" ")
    parts = read_address(text) if _PLAIN.fullmatch(text) else None
    if (
        parts is None
        or len(text) > ADDRESS_CHARS
        or parts.scheme not in schemes
        or not parts.hostname
        or parts.port == 0
        or "@" in parts.netloc
        or "#" in text
    ):
        told = " or ".join(
            f"{each}://host/path" for each in sorted(schemes, reverse=True)
        )
        raise FieldInvalidError("url", f"{told}, up to {ADDRESS_CHARS} characters")
    return text


def host_of(address: str) -> str:
    """The host of an endpoint's address.

    Args:
        address: as `check_address` gave it.
    """
    parts = read_address(address)
    return (parts.hostname or "") if parts else ""
