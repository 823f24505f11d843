"""Secrets at rest: sealed values and keyed look-ups, keys from files.

A sealed value is bound to its table, row and column: moved elsewhere it does
not open. The keys never leave their objects and show in no repr.
"""

import hashlib
import hmac
import json
import secrets
import stat
from pathlib import Path
from typing import Final

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from appliance.domain.errors import ApplianceError, ErrorCode
from appliance.settings import SettingsError

KEY_BYTES: Final = 32
_VERSION: Final = b"\x01"
"""First byte of a sealed value: which key and format it has."""
_NONCE_BYTES = 12


def read_key_file(path: Path) -> bytes:
    """Read a key of 32 bytes in hex that only its owner can read.

    Args:
        path: the file.

    Raises:
        SettingsError: not readable, readable by others, or not 64 hex digits.
    """
    try:
        mode = stat.S_IMODE(path.stat().st_mode)
        text = path.read_text(encoding="ascii").strip()
        key = bytes.fromhex(text)
    except OSError as exc:
        msg = f"{path}: cannot be read ({exc.strerror})"
        raise SettingsError(msg) from exc
    except ValueError:
        # The cause would show what the file holds.
        key = b""
    if mode & 0o077:
        msg = f"{path}: others may read it; set its mode to 0600 or 0400"
        raise SettingsError(msg)
    if len(key) != KEY_BYTES:
        msg = f"{path}: must hold {KEY_BYTES} bytes as {2 * KEY_BYTES} hex digits"
        raise SettingsError(msg)
    return key


class SecretBox:
    """Seals values with the data key (AES-256-GCM).

    Args:
        key: 32 bytes.
    """

    def __init__(self, key: bytes) -> None:
        self._aead = AESGCM(key)

    def seal(self, secret: bytes, *, table: str, row: str, column: str) -> bytes:
        """Encrypt a value so that it opens only in its own place.

        Args:
            secret: the value.
            table: where it will stand.
            row: primary key of its row.
            column: its column.

        Returns:
            Version, nonce, ciphertext and tag.
        """
        nonce = secrets.token_bytes(_NONCE_BYTES)
        place = _place(table, row, column)
        return _VERSION + nonce + self._aead.encrypt(nonce, secret, place)

    def open(self, sealed: bytes, *, table: str, row: str, column: str) -> bytes:
        """Decrypt what `seal` made for the same place.

        Args:
            sealed: the value as stored.
            table: where it stands.
            row: primary key of its row.
            column: its column.

        Raises:
            ApplianceError: `STORE_UNAVAILABLE`: another key, another place, or
                an altered value.
        """
        nonce, rest = sealed[1 : 1 + _NONCE_BYTES], sealed[1 + _NONCE_BYTES :]
        if sealed[:1] != _VERSION or len(nonce) != _NONCE_BYTES:
            raise ApplianceError(ErrorCode.STORE_UNAVAILABLE)
        try:
            return self._aead.decrypt(nonce, rest, _place(table, row, column))
        except InvalidTag as exc:
            raise ApplianceError(ErrorCode.STORE_UNAVAILABLE) from exc


class LookupKey:
    """Makes look-up indexes with the lookup key (HMAC-SHA256).

    Args:
        key: 32 bytes.
    """

    def __init__(self, key: bytes) -> None:
        self._key = key

    def index(self, purpose: str, value: str) -> str:
        """HMAC of a value for one purpose, 64 hex digits.

        Args:
            purpose: what the index is for; without NUL.
            value: what is looked up.
        """
        message = purpose.encode() + b"\0" + value.encode()
        return hmac.new(self._key, message, hashlib.sha256).hexdigest()


def _place(table: str, row: str, column: str) -> bytes:
    """The associated data: the place, unambiguously."""
    return json.dumps([table, row, column], separators=(",", ":")).encode()
