"""The signing password: what is kept of it, and checking it.

`p = HMAC-SHA256(pepper, NFC(password))`, `root = Argon2id(p, salt)`, and from
root by HKDF a verifier and, per credential, an unlock key. Stored are salt,
parameters, pepper version and SHA-256(verifier); never root, and never a PHC
string, which contains it.

Source: design §4 "Password".
"""

import hmac
import secrets
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Final

import structlog

from appliance.domain.errors import (
    ActivationInvalidError,
    ApplianceError,
    ErrorCode,
    FieldInvalidError,
    FilesAwayError,
)
from appliance.domain.ids import CredentialId
from appliance.domain.keys.versioned_secrets import KeySource
from appliance.domain.people.identity import LockedKey, SigningSecret
from appliance.domain.text.unicode_nfc import nfc
from appliance.keys.key_encryption import open_outer
from appliance.keys.password_hashing import HashSlots, PasswordRoot

_log = structlog.get_logger(__name__)
ARGON2: Final = {"t": 2, "m": 19_456, "p": 1, "v": 19}
"""19 MiB, two passes: about 20 ms (facts "Argon2id")."""
_SALT_BYTES: Final = 16
MIN_BYTES: Final = 8
MAX_BYTES: Final = 1024


def normalize(password: str, field_name: str = "password") -> bytes:
    """A password as it is hashed: UTF-8 of its NFC form.

    Raises:
        FieldInvalidError: not 8 to 1024 bytes, or with a NUL in it.
    """
    composed = nfc(password, MAX_BYTES) or ""
    try:
        encoded = composed.encode()
    except UnicodeEncodeError as exc:
        raise FieldInvalidError(field_name, "8 to 1024 bytes of UTF-8") from exc
    if not MIN_BYTES <= len(encoded) <= MAX_BYTES or b"\0" in encoded:
        raise FieldInvalidError(field_name, "8 to 1024 bytes of UTF-8")
    return encoded


UnlockKeys = Mapping[CredentialId, bytes]
"""What opens `outer` of each credential; never stored, never shown."""


@dataclass(frozen=True, slots=True)
class NewSecret:
    """A password derived under a salt of its own."""

    secret: SigningSecret
    """To be kept."""
    unlock: UnlockKeys = field(repr=False)


@dataclass(frozen=True, slots=True)
class PasswordCheck:
    """What one check of a password found."""

    right: bool
    verifier_sha256: str = field(repr=False)
    """Hash of the tried password's verifier; never stored of a wrong one."""
    unlock: UnlockKeys = field(repr=False, default_factory=dict)
    """By credential asked for; empty of a wrong password."""
    renewed: NewSecret | None = None
    """The same password under the present pepper, where it was kept under another."""
    mark: str = field(repr=False, default="")
    """Of the password tried by its person, hex; tells a repeated wrong one from a new
    one. Whoever reads it learns nothing of the verifier."""


class SigningPasswords:
    """Derives and checks, off the event loop, at most one a core at a time.

    Verifier and unlock keys follow from one computation of Argon2id; its result
    is gone when the thread is done with it.

    Args:
        peppers: 32 bytes each, which no backup of the database holds.
        slots: shared with every other Argon2 of the process.
    """

    def __init__(self, peppers: KeySource, slots: HashSlots) -> None:
        self._peppers = peppers
        self._slots = slots

    async def derive_new(
        self,
        password: bytes,
        credentials: Collection[CredentialId] = (),
        *,
        first: bool = False,
    ) -> NewSecret:
        """Derive what is kept of a new password, and the unlock keys it makes.

        Args:
            password: as `normalize` gives it.
            credentials: whose unlock keys are wanted.
            first: it is part of a check.
        """
        salt = secrets.token_bytes(_SALT_BYTES)
        ring = self._peppers.ring()
        root = PasswordRoot(ring.keys[ring.present], salt, ARGON2)
        digest, unlock = await self._slots.run(
            root.derive, password, credentials, first=first
        )
        kept = SigningSecret(
            salt=salt,
            argon2=dict(ARGON2),
            pepper_version=ring.present,
            verifier_sha256=digest,
        )
        return NewSecret(kept, unlock)

    async def check(
        self,
        password: bytes,
        secret: SigningSecret,
        credentials: Collection[CredentialId] = (),
        *,
        keys: Collection[LockedKey] = (),
        owner: str = "",
    ) -> PasswordCheck:
        """Compare a password with what is stored.

        It is right if the verifier fits and, of a person with keys, `outer` of one of
        them opens: somebody else's salt and verifier, copied to a row of one's own,
        fit no key there. Whichever of the two fails, the same work is done.

        Args:
            password: as `normalize` gives it.
            secret: what is stored.
            credentials: whose unlock keys are wanted if it is right, beside those of
                `keys`.
            keys: the person's that may sign; where there are none, the verifier alone
                decides.
            owner: the person, for `mark`.

        Raises:
            FilesAwayError: its pepper is not in the file.
            ApplianceError: `STORE_UNAVAILABLE`: the stored derivation is none of ours.
        """
        if secret.argon2 != ARGON2 or len(secret.salt) != _SALT_BYTES:
            # What is cheaper would leave a cheap mark of the password in the database,
            # and what costs more memory or time would stop this process.
            _log.error("signing_password.derivation_unknown", person=owner)
            raise ApplianceError(ErrorCode.STORE_UNAVAILABLE)
        ring = self._peppers.ring()
        pepper = ring.keys.get(secret.pepper_version)
        if pepper is None:
            _log.error("signing_password.pepper_unknown", person=owner)
            raise FilesAwayError
        root = PasswordRoot(pepper, secret.salt, secret.argon2)
        wanted = (*(key.id for key in keys), *credentials)
        digest, unlock, mark = await self._slots.run(
            root.derive_marked, password, wanted, owner.encode(), first=True
        )
        opened = [_opens(unlock[key.id], key) for key in keys]
        fits = hmac.compare_digest(digest, secret.verifier_sha256)
        if not (fits and (any(opened) or not opened)):
            return PasswordCheck(right=False, verifier_sha256=digest, mark=mark)
        renewed = None
        if secret.pepper_version < ring.present:
            renewed = await self.derive_new(password, wanted, first=True)
        return PasswordCheck(
            right=True,
            verifier_sha256=digest,
            unlock=unlock,
            renewed=renewed,
            mark=mark,
        )


def _opens(unlock: bytes, key: LockedKey) -> bool:
    """Return whether an unlock key opens `outer`; what is inside is not kept."""
    try:
        open_outer(unlock, key.outer, key.aad)
    except ActivationInvalidError:
        return False
    return True
