"""The two locks of a signature: `outer` of a credential, and the seal to a host.

`outer` is opened by the unlock key, which follows from the owner's password;
the seal carries that unlock key from a front to one signing host. Both open
only for what they are bound to. Keys here live as long as a call does.

Source: design §4 "Wrapped", "Activation keys"; RFC 9180.
"""

import secrets
from typing import Final

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.asymmetric.x25519 import (
    X25519PrivateKey,
    X25519PublicKey,
)
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.hpke import AEAD, KDF, KEM, Suite

from appliance.domain.errors import (
    ActivationInvalidError,
    ApplianceError,
    CredentialRefusedError,
    ErrorCode,
)
from appliance.domain.keys.hsm_keys import KeyMode, ResidentKey, TokenRole, WrappedKey
from appliance.domain.people.identity import Credential
from appliance.domain.signing.activation import ActivationKey, Seal
from appliance.domain.vocab import StatementFault

UNLOCK_BYTES: Final = 32
"""Length of an unlock key: AES-256."""
PERMIT_BYTES: Final = 32
"""Length of what `outer` of a resident key holds, which is nothing but a proof."""
_NONCE_BYTES: Final = 12
_SUITE: Final = Suite(KEM.X25519, KDF.HKDF_SHA256, AEAD.AES_256_GCM)


def lock_outer(unlock: bytes, inner: bytes, aad: bytes) -> bytes:
    """Lock a wrapped key, or a permit, with its owner's unlock key.

    Args:
        unlock: 32 bytes, of this credential alone.
        inner: what is locked.
        aad: what it is bound to (see `Credential.aad`).

    Returns:
        Nonce, ciphertext and tag.
    """
    nonce = secrets.token_bytes(_NONCE_BYTES)
    return nonce + AESGCM(unlock).encrypt(nonce, inner, aad)


def open_outer(unlock: bytes, outer: bytes, aad: bytes) -> bytes:
    """Open what `lock_outer` made.

    Args:
        unlock: the same key.
        outer: as it stands recorded.
        aad: by what stands recorded beside it.

    Raises:
        ActivationInvalidError: another key, or something was altered.
    """
    nonce, rest = outer[:_NONCE_BYTES], outer[_NONCE_BYTES:]
    try:
        return AESGCM(unlock).decrypt(nonce, rest, aad)
    except (InvalidTag, ValueError) as exc:
        raise ActivationInvalidError("outer") from exc


def signing_key(credential: Credential, opened: bytes) -> WrappedKey | ResidentKey:
    """What the HSM is given to sign with.

    Args:
        credential: whose key it is, checked against its certificate.
        opened: what was in its `outer`.

    Raises:
        CredentialRefusedError: the row names a key of another token.
        ApplianceError: `CERTIFICATE_NOT_USABLE`: the row lacks what its mode
            needs.
    """
    if credential.key_mode is KeyMode.RESIDENT and credential.cka_id is not None:
        if credential.key_token != TokenRole.FIRMA.value:
            told = "users' keys are on the firma token"
            raise CredentialRefusedError(StatementFault.RESIDENT, told)
        return ResidentKey(credential.cka_id, credential.spki)
    if (
        credential.key_mode is KeyMode.RESIDENT
        or credential.master is None
        or credential.blob_w is None
        or credential.method_w is None
        or credential.method_k is None
    ):
        raise ApplianceError(ErrorCode.CERTIFICATE_NOT_USABLE)
    return WrappedKey(
        algorithm=credential.algorithm,
        spki=credential.spki,
        master=credential.master,
        blob_w=credential.blob_w,
        method_w=credential.method_w,
        blob_k=opened,
        method_k=credential.method_k,
    )


def seal_to_each(
    hosts: tuple[ActivationKey, ...], unlock: bytes, info: bytes
) -> tuple[Seal, ...]:
    """Seal an unlock key to each host.

    Args:
        hosts: as `SigningHosts.live` gave them.
        unlock: 32 bytes.
        info: what the seals are bound to.
    """
    return tuple(
        Seal(key.host, key.epoch, seal_to(key.public, unlock, info)) for key in hosts
    )


def seal_to(public: bytes, unlock: bytes, info: bytes) -> bytes:
    """Seal an unlock key to a host.

    Args:
        public: the host's X25519 key, 32 bytes.
        unlock: 32 bytes.
        info: what it is bound to (see `appliance.domain.signing.activation`).

    Returns:
        Encapsulated key and ciphertext.
    """
    return _SUITE.encrypt(unlock, X25519PublicKey.from_public_bytes(public), info)


def open_seal(private: bytes, sealed: bytes, info: bytes) -> bytes:
    """Open what `seal_to` made.

    Args:
        private: the host's X25519 key, 32 bytes.
        sealed: as it stands recorded.
        info: by what stands recorded beside it.

    Returns:
        The unlock key, 32 bytes.

    Raises:
        ActivationInvalidError: another key, or something was altered.
    """
    try:
        key = X25519PrivateKey.from_private_bytes(private)
        unlock = _SUITE.decrypt(sealed, key, info)
    except (InvalidTag, ValueError) as exc:
        raise ActivationInvalidError("seal") from exc
    if len(unlock) != UNLOCK_BYTES:
        raise ActivationInvalidError("seal")
    return unlock
