"""The worker identities that a front has pinned, from the file of `hsm init`."""

import hashlib
import re
from pathlib import Path
from typing import Final

from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric import ec, padding, rsa
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    PublicFormat,
    load_pem_public_key,
)

from appliance.system.pinned_files import PinnedFile, Version

_PEM: Final = re.compile(
    rb"-----BEGIN PUBLIC KEY-----.+?-----END PUBLIC KEY-----", re.DOTALL
)
_Key = ec.EllipticCurvePublicKey | rsa.RSAPublicKey


class PinnedIdentities:
    """Public keys from a PEM file, read again whenever the file is another.

    Args:
        path: of the file; nobody is believed while it is not there.
    """

    def __init__(self, path: Path) -> None:
        self._file = PinnedFile(path)
        self._read_at: Version | None = None
        self._keys: dict[str, _Key] = {}

    def signed(self, identity: str, statement: bytes, signature: bytes) -> bool:
        """Whether a pinned identity signed a statement.

        Args:
            identity: SHA-256, in hex, of its SubjectPublicKeyInfo.
            statement: what was signed.
            signature: ECDSA (DER) or RSASSA-PKCS1-v1_5, over SHA-256.
        """
        key = self._pinned().get(identity)
        if key is None:
            return False
        try:
            if isinstance(key, rsa.RSAPublicKey):
                key.verify(signature, statement, padding.PKCS1v15(), SHA256())
            else:
                key.verify(signature, statement, ec.ECDSA(SHA256()))
        except InvalidSignature:
            return False
        return True

    @property
    def version(self) -> Version | None:
        """Another value once the file is another; None while it is not there."""
        self._pinned()
        return self._read_at

    def _pinned(self) -> dict[str, _Key]:
        try:
            version = self._file.version()
            if version != self._read_at:
                self._keys = _parse(self._file.path.read_bytes())
                self._read_at = version
        except OSError:
            self._keys, self._read_at = {}, None
        return self._keys


def _parse(pem: bytes) -> dict[str, _Key]:
    """The keys of a file by identity; what is none is passed over."""
    keys: dict[str, _Key] = {}
    for block in _PEM.findall(pem):
        try:
            key = load_pem_public_key(block)
        except (ValueError, UnsupportedAlgorithm):
            continue
        if isinstance(key, (ec.EllipticCurvePublicKey, rsa.RSAPublicKey)):
            spki = key.public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)
            keys[hashlib.sha256(spki).hexdigest()] = key
    return keys
