"""One JSON text for each value (RFC 8785), quickly.

Audit rows and fingerprints are hashed in this form, several of them a signature. What
they are made of is plain: of that the standard library's encoder, which is in C, gives
the same bytes as `rfc8785`; all else is left to that.
"""

import json
from typing import Final

import rfc8785

_INTEGERS: Final = range(-(2**53) + 1, 2**53)
"""What has one value as a number of JSON (RFC 7493, 2.2)."""
_encode: Final = json.JSONEncoder(
    ensure_ascii=False, sort_keys=True, separators=(",", ":")
).encode


def canonical_json(value: object) -> bytes:
    """The JSON of a value by RFC 8785, UTF-8.

    Args:
        value: of what JSON is made of.

    Raises:
        ValueError: it cannot be told in JSON.
    """
    if _is_plain(value):
        try:
            return _encode(value).encode()
        except UnicodeEncodeError:
            # Half of a character: the library says so in its own words.
            pass
    return rfc8785.dumps(value)  # type: ignore[arg-type]  # plain JSON values


def _is_plain(value: object) -> bool:
    """Whether both encoders give the same: no fractions, and names in ASCII.

    Others are sorted by UTF-16, which differs from the order of Python's strings.
    """
    kind = type(value)
    if kind is str or value is None or kind is bool:
        return True
    if kind is int:
        return value in _INTEGERS
    if kind is dict:
        return all(
            type(name) is str and name.isascii() and _is_plain(inner)
            for name, inner in value.items()  # type: ignore[attr-defined]  # a dict
        )
    if kind is list or kind is tuple:
        return all(map(_is_plain, value))  # type: ignore[call-overload]  # one of them
    return False
