"""Secrets at rest: sealed values and keyed look-ups.

A sealed value is bound to its table, row and column: moved elsewhere it does
not open. Both name the version of the key that made them, so that a key can be
replaced while the appliance runs. No key shows in a repr.
"""

import hmac
import json
import secrets
from typing import Final

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from appliance.domain.errors import ApplianceError, ErrorCode
from appliance.domain.keys.versioned_secrets import FIRST, KeySource

_NONCE_BYTES: Final = 12
_INDEX_CHARS: Final = 64


class SecretBox:
    """Seals values with the data key or the document key (AES-256-GCM).

    Args:
        keys: 32 bytes each.
    """

    def __init__(self, keys: KeySource) -> None:
        self._keys = keys

    def seal(self, secret: bytes, *, table: str, row: str, column: str) -> bytes:
        """Encrypt a value so that it opens only in its own place.

        Args:
            secret: the value.
            table: where it will stand.
            row: primary key of its row.
            column: its column.

        Returns:
            Version of the key in one byte, nonce, ciphertext and tag.
        """
        ring = self._keys.ring()
        nonce = secrets.token_bytes(_NONCE_BYTES)
        aead = AESGCM(ring.keys[ring.present])
        place = _place(table, row, column)
        return bytes([ring.present]) + nonce + aead.encrypt(nonce, secret, place)

    def open(self, sealed: bytes, *, table: str, row: str, column: str) -> bytes:
        """Decrypt what `seal` made for the same place.

        Args:
            sealed: the value as stored.
            table: where it stands.
            row: primary key of its row.
            column: its column.

        Raises:
            ApplianceError: `STORE_UNAVAILABLE`: a version that is not known,
                another place, or an altered value.
        """
        nonce, rest = sealed[1 : 1 + _NONCE_BYTES], sealed[1 + _NONCE_BYTES :]
        key = self._keys.ring().keys.get(sealed[0]) if sealed else None
        if key is None or len(nonce) != _NONCE_BYTES:
            raise ApplianceError(ErrorCode.STORE_UNAVAILABLE)
        try:
            return AESGCM(key).decrypt(nonce, rest, _place(table, row, column))
        except InvalidTag as exc:
            raise ApplianceError(ErrorCode.STORE_UNAVAILABLE) from exc


class LookupKey:
    """Makes look-up indexes with the lookup key (HMAC-SHA256).

    An index of version 1 is the HMAC in hex. Later ones begin with the version
    and a colon, and have as many digits less, so that all have 64 characters.

    Args:
        keys: 32 bytes each.
    """

    def __init__(self, keys: KeySource) -> None:
        self._keys = keys

    def index(self, purpose: str, value: str) -> str:
        """Index of a value for one purpose, to be stored; 64 characters.

        Args:
            purpose: what the index is for; without NUL.
            value: what is looked up.
        """
        ring = self._keys.ring()
        return _index(ring.present, ring.keys[ring.present], purpose, value)

    def indexes(self, purpose: str, value: str) -> tuple[str, ...]:
        """All that may stand stored for a value: by each version of the key.

        Args:
            purpose: what the index is for; without NUL.
            value: what is looked up.

        Returns:
            That of `index` first.
        """
        ring = self._keys.ring()
        return tuple(
            _index(version, ring.keys[version], purpose, value)
            for version in ring.versions
        )


def index_prefix(version: int) -> str:
    """What the indexes of a version begin with; empty for the first."""
    return "" if version == FIRST else f"{version}:"


def _index(version: int, key: bytes, purpose: str, value: str) -> str:
    """The index of a value by one version of the key."""
    digest = hmac.digest(key, purpose.encode() + b"\0" + value.encode(), "sha256")
    return (index_prefix(version) + digest.hex())[:_INDEX_CHARS]


def _place(table: str, row: str, column: str) -> bytes:
    """The associated data: the place, unambiguously."""
    return json.dumps([table, row, column], separators=(",", ":")).encode()
