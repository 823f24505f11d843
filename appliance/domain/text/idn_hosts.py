"""Hosts with letters beyond ASCII: as DNS has them, and as people read them.

    ascii_host("https://mañana.example/x")  # "https://xn--maana-pta.example/x"
    host_in_letters("https://xn--maana-pta.example")  # "mañana.example"

What is compared, stored and connected to is always the form of DNS.

Source: RFC 5891.
"""

import re
from typing import Final
from unicodedata import normalize

import idna

from appliance.domain.text.urls import read_address

_ADDRESS: Final = re.compile(
    r"([A-Za-z][A-Za-z0-9+.-]*://)([^/:?#@\[\]\\]+)(.*)", re.DOTALL
)
_ASCII_PREFIX: Final = "xn--"
_HOST_AT_MOST: Final = 253


def ascii_host(address: str) -> str:
    """An address whose host is in the form of DNS.

    Args:
        address: as typed, with scheme.

    Returns:
        The same address where its host is ASCII already or stands for no name.
    """
    match = _ADDRESS.fullmatch(address)
    if match is None or match[2].isascii() or len(match[2]) > _HOST_AT_MOST:
        return address
    try:
        # Nothing is mapped: full-width letters are refused, not guessed.
        host = idna.encode(normalize("NFC", match[2].lower()), strict=True).decode()
    except UnicodeError:
        return address
    return f"{match[1]}{host}{match[3]}"


def host_in_letters(address: str) -> str:
    """The host of an address as people read it; empty where that is no other form.

    Args:
        address: with a host in the form of DNS.
    """
    parts = read_address(address)
    host = (parts.hostname or "") if parts else ""
    if _ASCII_PREFIX not in host:
        return ""
    try:
        return idna.decode(host)
    except UnicodeError:
        return ""
