"""The signing password: what is kept of it, and checking it.

`p = HMAC-SHA256(pepper, NFC(password))`, `root = Argon2id(p, salt)`, and from
root by HKDF a verifier and, per credential, an unlock key. Stored are salt,
parameters, pepper version and SHA-256(verifier); never root, and never a PHC
string, which contains it.

Source: design §4 "Password".
"""

import hashlib
import hmac
import secrets
import unicodedata
from dataclasses import dataclass, field
from typing import Final

from argon2.low_level import Type, hash_secret_raw
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

from appliance.domain.errors import FieldInvalidError
from appliance.domain.records.people import SigningSecret
from appliance.services.passwords import HashSlots

ARGON2: Final = {"t": 2, "m": 19_456, "p": 1, "v": 19}
"""19 MiB, two passes: about 20 ms (facts "Argon2id")."""
PEPPER_VERSION: Final = 1
MIN_BYTES: Final = 8
MAX_BYTES: Final = 1024


def normalize(password: str, field_name: str = "password") -> bytes:
    """A password as it is hashed: UTF-8 of its NFC form.

    Raises:
        FieldInvalidError: not 8 to 1024 bytes, or with a NUL in it.
    """
    try:
        encoded = unicodedata.normalize("NFC", password).encode()
    except UnicodeEncodeError as exc:
        raise FieldInvalidError(field_name, "8 to 1024 bytes of UTF-8") from exc
    if not MIN_BYTES <= len(encoded) <= MAX_BYTES or b"\0" in encoded:
        raise FieldInvalidError(field_name, "8 to 1024 bytes of UTF-8")
    return encoded


@dataclass(frozen=True, slots=True)
class PasswordCheck:
    """What one check of a password found."""

    right: bool
    verifier_sha256: str = field(repr=False)
    """Of the password tried; tells a repeated wrong one from a new one."""


class SigningPasswords:
    """Derives and checks, off the event loop, at most one a core at a time.

    Args:
        pepper: 32 secret bytes that no backup of the database holds.
        slots: shared with every other Argon2 of the process.
    """

    def __init__(self, pepper: bytes, slots: HashSlots) -> None:
        self._pepper = pepper
        self._slots = slots

    async def new_secret(self, password: bytes) -> SigningSecret:
        """What is stored for a new password."""
        salt = secrets.token_bytes(16)
        digest = await self._verifier(password, salt, ARGON2)
        return SigningSecret(
            salt=salt,
            argon2=dict(ARGON2),
            pepper_version=PEPPER_VERSION,
            verifier_sha256=digest,
        )

    async def check(self, password: bytes, secret: SigningSecret) -> PasswordCheck:
        """Compare a password with what is stored, in constant time."""
        digest = await self._verifier(password, secret.salt, secret.argon2)
        return PasswordCheck(
            hmac.compare_digest(digest, secret.verifier_sha256), digest
        )

    async def _verifier(
        self, password: bytes, salt: bytes, argon2: dict[str, int]
    ) -> str:
        return await self._slots.run(
            lambda: _verifier_sha256(self._pepper, password, salt, argon2)
        )


def _verifier_sha256(
    pepper: bytes, password: bytes, salt: bytes, argon2: dict[str, int]
) -> str:
    peppered = hmac.digest(pepper, password, "sha256")
    root = hash_secret_raw(
        peppered,
        salt,
        time_cost=argon2["t"],
        memory_cost=argon2["m"],
        parallelism=argon2["p"],
        hash_len=32,
        type=Type.ID,
        version=argon2["v"],
    )
    verifier = HKDF(SHA256(), 32, salt=None, info=b"rubrica/verifier/1").derive(root)
    return hashlib.sha256(verifier).hexdigest()
