"""Addresses that webhooks may have, as far as that can be told without going there.

Whether a name leads to a network that may be called is found out at each try, by the
address that it then has; of what is an address itself it is told at once.
"""

import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Final, Self

from appliance.domain.errors import FieldInvalidError, PrivateAddressError
from appliance.domain.text.idn_hosts import ascii_host
from appliance.domain.text.public_addresses import (
    Address,
    Network,
    address_in,
    may_connect,
)
from appliance.domain.text.urls import read_address
from appliance.settings import Settings

ADDRESS_CHARS: Final = 2048
_PUBLIC: Final = "a host that is reached from the Internet, not a private address"
_PLAIN: Final = re.compile(r"[!-~]+", re.ASCII)
"""Of what addresses consist (RFC 3986, 2); no space, no control character."""


@dataclass(frozen=True, slots=True)
class AddressRules:
    """Which addresses are taken."""

    schemes: Collection[str]
    networks: Sequence[Network] | None = ()
    """That may be called beside public addresses; None: that is a proxy's matter."""

    @classmethod
    def of(cls, settings: Settings) -> Self:
        """As an installation's settings say."""
        return cls(settings.webhook_schemes, settings.webhooks.networks)


def check_address(text: str, rules: AddressRules) -> str:
    """Read the address of an endpoint.

    Args:
        text: as typed; spaces around it do not count. A host may have letters beyond
            ASCII.
        rules: what it may be.

    Raises:
        FieldInvalidError: `url`: it is none, too long, of another scheme, has a user's
            name or a fragment.
        PrivateAddressError: `url`: it is of a network that is not called.
    """
    text = ascii_host(text.strip(" "))
    parts = read_address(text) if _PLAIN.fullmatch(text) else None
    if (
        parts is None
        or len(text) > ADDRESS_CHARS
        or parts.scheme not in rules.schemes
        or not parts.hostname
        or parts.port == 0
        or "@" in parts.netloc
        or "#" in text
    ):
        told = " or ".join(
            f"{each}://host/path" for each in sorted(rules.schemes, reverse=True)
        )
        raise FieldInvalidError("url", f"{told}, up to {ADDRESS_CHARS} characters")
    address = address_in(parts.hostname)
    if address is not None and not _may_call(address, rules):
        raise PrivateAddressError("url", _PUBLIC)
    return text


def _may_call(address: Address, rules: AddressRules) -> bool:
    return rules.networks is None or may_connect(address, rules.networks)


def host_of(address: str) -> str:
    """The host of an endpoint's address.

    Args:
        address: as `check_address` gave it.
    """
    parts = read_address(address)
    return (parts.hostname or "") if parts else ""
