"""What can be asked of the HSM with the installation's own keys."""

import hashlib
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import TypeVar

import pkcs11

from appliance.domain.keys import KeyReference, SignatureScheme, TokenRole
from hsm_config.pkcs11 import objects, signatures
from hsm_config.pkcs11.key_pairs import spki
from hsm_config.provisioning import tsa_keys
from hsm_config.provisioning.ca_certificates import HsmRsaPrivateKey, private_key_of
from worker.hsm.connection import HsmConnection

_T = TypeVar("_T")


class HsmOwnKeys(ABC):
    """Signs with the keys that `rubrica hsm` made, and tells which there are."""

    @abstractmethod
    async def _call(
        self,
        work: Callable[[HsmConnection], _T],
        role: TokenRole = TokenRole.FIRMA,
    ) -> _T:
        """Do some work in the HSM thread; it may run twice, or on another member.

        Args:
            work: on a connection to a token of that role.
            role: which token it is for.

        Raises:
            HsmUnavailableError: the HSM cannot be used now.
            ApplianceError: what the work raises.
        """

    async def identity_statement(self, message: bytes) -> tuple[bytes, bytes]:
        """Sign a statement by a worker identity key, over its SHA-256.

        Each member of the logical HSM has an identity of its own, and work may go
        from one to another between two calls: so it is told which one signed.

        Args:
            message: of any length.

        Returns:
            The public key of the member that signed, SubjectPublicKeyInfo in DER,
            and the signature; EC: ECDSA, DER `Ecdsa-Sig-Value`; RSA: PKCS#1 v1.5.

        Raises:
            HsmUnavailableError: the HSM cannot be used now.
            KeyNotFoundError: a healthy HSM has no identity key.
        """
        digest = hashlib.sha256(message).digest()
        ref = objects.IDENTITY_KEY

        def work(link: HsmConnection) -> tuple[bytes, bytes]:
            private = link.private_key(ref)
            is_ec = private.key_type is pkcs11.KeyType.EC
            scheme = SignatureScheme.ECDSA if is_ec else SignatureScheme.RSA_PKCS1
            public = objects.public_key(link.session(ref.token), ref.cka_id)
            return spki(public), signatures.sign(private, digest, scheme)

        return await self._call(work)

    async def with_private_key(
        self, ref: KeyReference, use: Callable[[HsmRsaPrivateKey], _T]
    ) -> _T:
        """Hand a key to one of pyca's builders, in the HSM thread.

        Args:
            ref: the key.
            use: short, without side effects (it may run twice).

        Returns:
            What `use` returns.

        Raises:
            HsmUnavailableError: the HSM cannot be used now.
            KeyNotFoundError: a healthy HSM has no such key.
            HsmRefusedError: twins, or a key that may not sign.
        """

        def work(link: HsmConnection) -> _T:
            private = link.private_key(ref)
            public = objects.public_key(link.session(ref.token), ref.cka_id)
            return use(private_key_of(public, private))

        return await self._call(work, ref.token)

    async def tsa_key(self, public: bytes | None = None) -> KeyReference:
        """Where a key of the internal TSA is.

        Args:
            public: its public half, SubjectPublicKeyInfo in DER; the newest one's
                unless told.

        Raises:
            HsmUnavailableError: the HSM cannot be used now.
            KeyNotFoundError: a healthy HSM has none, or not that one.
        """

        def work(link: HsmConnection) -> KeyReference:
            session = link.session(TokenRole.PKI)
            if public is None:
                return tsa_keys.newest(session)
            return tsa_keys.of_key(session, public)

        return await self._call(work, TokenRole.PKI)

    async def keep_alive(self) -> None:
        """Make a test signature; the session does so by itself when idle.

        Raises:
            HsmUnavailableError: the HSM cannot be used now.
            KeyNotFoundError: a healthy HSM lacks the installation's own keys.
        """
        for role in TokenRole:
            await self._call(HsmConnection.exercise, role)
