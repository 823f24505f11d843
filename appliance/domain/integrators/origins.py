"""Origins of pages that may show the frame: exact, in the form browsers send.

What passes is safe to stand in a `frame-ancestors` list as it is: letters,
digits, dots and hyphens, nothing that a policy could read as more than one
source.

Source: decisions "allowed domains"; RFC 6454, 6.2; CSP Level 3, host-source.
"""

import re
from ipaddress import IPv4Address
from typing import Final

from appliance.domain.errors import DomainInvalidError
from appliance.domain.text.idn_hosts import ascii_host
from appliance.domain.vocab import Environment

LONGEST: Final = 270
"""Most characters of an origin: scheme, 253 of host, port."""
_FORM = re.compile(
    r"(?P<scheme>[a-z][a-z0-9+.-]*)://(?P<host>\[[^\]]*\]|[^:/?#@\[\]\\]+)"
    r"(?::(?P<port>[0-9]{1,5}))?/?",
    re.ASCII,
)
_LABEL = re.compile(r"[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?", re.ASCII)
# What a browser takes for an IPv4 address: its last label is a number.
_NUMBER = re.compile(r"[0-9]+|0x[0-9a-f]*", re.ASCII)
_DEFAULT_PORTS: Final = {"http": 80, "https": 443}
_LOOPBACK: Final = frozenset({"127.0.0.1", "[::1]"})
_HOST_AT_MOST = 253
_PORT_AT_MOST = 65535


def parse_origin(
    text: str, environment: Environment, *, in_private_network: bool = False
) -> str:
    """Read an origin that somebody wants to allow.

    Args:
        text: as typed; spaces around and one final slash do not count. A host may
            have letters beyond ASCII.
        environment: outside PROD, http is allowed for this machine's names.
        in_private_network: outside PROD, allow an IPv4 address of a private network;
            for a trial's own site, which has no name there.

    Returns:
        It as a browser sends it: lower case, the host in its `xn--` form, without a
        default port.

    Raises:
        DomainInvalidError: with the reason in words.
    """
    text = ascii_host(text.strip(" ").lower())
    if len(text) > LONGEST or not text.isascii():
        raise DomainInvalidError("the host is not a DNS name")
    match = _FORM.fullmatch(text)
    if match is None:
        raise DomainInvalidError("write only https://host or https://host:port")
    scheme, host = match["scheme"], match["host"]
    local = environment is not Environment.PROD and is_local(host)
    if scheme == "http" and not local:
        raise DomainInvalidError("it must begin with https://")
    if scheme not in _DEFAULT_PORTS:
        raise DomainInvalidError("it must begin with https://")
    is_private = (
        in_private_network
        and environment is not Environment.PROD
        and is_private_ipv4(host)
    )
    if not local and not is_private:
        _check_host(host)
    return f"{scheme}://{host}{_port(scheme, match['port'])}"


def is_private_ipv4(host: str) -> bool:
    """Return whether a host is an IPv4 address that only a private network reaches.

    Args:
        host: without port.
    """
    try:
        address = IPv4Address(host)
    except ValueError:
        return False
    return not (
        address.is_global
        or address.is_loopback
        or address.is_multicast
        or address.is_unspecified
    )


def is_local(host: str) -> bool:
    """Whether a host, in lower case, names the machine itself.

    Args:
        host: without port; IPv6 in brackets.
    """
    if host in _LOOPBACK or host == "localhost":
        return True
    head, dot, rest = host.rpartition(".")
    return dot == "." and rest == "localhost" and _labels_hold(head)


def _port(scheme: str, text: str | None) -> str:
    """The port as it stands in an origin: empty for the scheme's own.

    Raises:
        DomainInvalidError: it cannot be.
    """
    if text is None:
        return ""
    port = int(text)
    if not 0 < port <= _PORT_AT_MOST or text != str(port):
        raise DomainInvalidError("the port is not one from 1 to 65535")
    return "" if port == _DEFAULT_PORTS[scheme] else f":{port}"


def _check_host(host: str) -> None:
    """Take a DNS name in full; nothing that matches more than one host.

    Raises:
        DomainInvalidError: it cannot be.
    """
    if "*" in host:
        raise DomainInvalidError("wildcards are not allowed; list each origin")
    if host.startswith("[") or _NUMBER.fullmatch(host.rpartition(".")[2]):
        raise DomainInvalidError("IP addresses are not allowed; use a name")
    if host.endswith("."):
        raise DomainInvalidError("the host must not end in a dot")
    if len(host) > _HOST_AT_MOST or not _labels_hold(host):
        raise DomainInvalidError("the host is not a DNS name")


def _labels_hold(host: str) -> bool:
    return all(
        _LABEL.fullmatch(label) is not None and _decodes(label)
        for label in host.split(".")
    )


def _decodes(label: str) -> bool:
    """Whether a label that says to be punycode is: it stands for other letters."""
    if not label.startswith("xn--"):
        # Hyphens in third and fourth place are kept for such prefixes.
        return label[2:4] != "--"
    rest = label.removeprefix("xn--")
    try:
        decoded = rest.encode("ascii").decode("punycode")
    except UnicodeError:
        return False
    return not decoded.isascii() and decoded.encode("punycode").decode() == rest
