"""Addresses (URLs) that come from outside: read, or nothing.

`urllib.parse.urlsplit` raises for some texts that are none, and its `port` for
others only when it is asked: whoever reads what somebody sent takes this instead.

Source: RFC 3986; Python's `urllib.parse`, "URL Parsing".
"""

from urllib.parse import SplitResult, urlsplit


def read_address(text: str) -> SplitResult | None:
    """The parts of an address, or None for what is none.

    Args:
        text: as it came; a path alone is an address too, the empty text as well.

    Returns:
        Parts whose `hostname` and `port` raise nothing.
    """
    try:
        parts = urlsplit(text)
        # Both are read, and refused, only when they are asked for.
        _ = parts.hostname, parts.port
    except ValueError:
        return None
    return parts
