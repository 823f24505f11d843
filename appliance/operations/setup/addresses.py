"""Where the units have to reach to, as addresses: their firewall knows no names."""

import ipaddress
import socket
from urllib.parse import urlsplit

from appliance.settings import DocumentSettings, SettingsError


def addresses_of(documents: DocumentSettings) -> list[str]:
    """Addresses of the store that a bucket is in, but for this machine's own.

    Args:
        documents: with a `url`.

    Raises:
        SettingsError: its name has none.
    """
    host = urlsplit(documents.address).hostname or ""
    try:
        every = addresses_of_host(host)
    except SettingsError as exc:
        msg = f"documents.endpoint: {exc}"
        raise SettingsError(msg) from exc
    return sorted(each for each in every if not ipaddress.ip_address(each).is_loopback)


def addresses_of_host(host: str) -> set[str]:
    """The addresses of a name, as this machine knows them now.

    Args:
        host: the name, or an address.

    Raises:
        SettingsError: it has none.
    """
    try:
        found = socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError) as exc:
        # The latter: no name of DNS is like that.
        told = getattr(exc, "strerror", None) or exc
        msg = f"{host}: has no address ({told})"
        raise SettingsError(msg) from exc
    return {str(place[0]).partition("%")[0] for *_, place in found}
