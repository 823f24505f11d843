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
        found = socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)
    except OSError as exc:
        msg = f"documents.endpoint: {host}: has no address ({exc.strerror})"
        raise SettingsError(msg) from exc
    every = {str(place[0]).partition("%")[0] for *_, place in found}
    return sorted(each for each in every if not ipaddress.ip_address(each).is_loopback)
