"""What can be asked of the HSM, each an awaitable that runs in the HSM thread.

`HsmSession` inherits these and adds opening, healing and closing. What a call
takes and returns is plain data: no handle of the binding leaves the thread.
"""

from appliance.domain.errors import HsmRefusedError
from appliance.domain.generation import Generation
from appliance.domain.keys import (
    DigestAlgorithm,
    KeyAlgorithm,
    KeyReference,
    SignatureScheme,
    TokenRole,
    WrapMethod,
    WrappedKey,
)
from hsm_config.pkcs11 import objects
from hsm_config.pkcs11.key_pairs import spki
from hsm_config.provisioning import generation
from worker.hsm import wrapped_keys
from worker.hsm.connection import HsmConnection
from worker.hsm.installation_keys import HsmOwnKeys


class HsmCalls(HsmOwnKeys):
    """Signs and keeps keys in the HSM's two tokens."""

    async def sign(
        self,
        key: KeyReference | WrappedKey,
        digest: bytes,
        scheme: SignatureScheme,
        digest_algorithm: DigestAlgorithm = DigestAlgorithm.SHA256,
    ) -> bytes:
        """Sign a digest with a resident key, or with a wrapped one.

        A wrapped key is unwrapped, used once and destroyed.

        Args:
            key: which, of the kind that the scheme is for.
            digest: as long as its algorithm says.
            scheme: how.
            digest_algorithm: what made the digest.

        Returns:
            RSA: the value, as long as the modulus. ECDSA: DER `Ecdsa-Sig-Value`.

        Raises:
            HsmUnavailableError: the HSM cannot be used now.
            KeyNotFoundError: a healthy HSM has no such key, or no such master key.
            HsmRefusedError: twins, a blob that does not open, or a key that may
                not sign so.
        """
        role = key.token if isinstance(key, KeyReference) else TokenRole.FIRMA
        return await self._call(
            lambda link: wrapped_keys.sign(link, key, digest, scheme, digest_algorithm),
            role,
        )

    async def generate_wrapped(self, algorithm: KeyAlgorithm) -> WrappedKey:
        """Make a pair that leaves nothing in the HSM; it has signed once.

        Args:
            algorithm: its kind.

        Raises:
            HsmUnavailableError: the HSM cannot be used now.
            KeyNotFoundError: a healthy HSM has no master key.
            HsmRefusedError: this HSM wraps no keys, makes no such keys, or lets
                an unwrapped key be read.
        """
        return await self._call(lambda link: wrapped_keys.generate(link, algorithm))

    async def rewrap(
        self,
        blob_w: bytes,
        method_w: WrapMethod,
        old: int,
        new: int,
        method: WrapMethod | None = None,
    ) -> tuple[bytes, WrapMethod]:
        """Wrap a credential's W by another master key; no password is needed.

        Args:
            blob_w: W, wrapped by the old master key.
            method_w: how it is wrapped.
            old: version of the master key that wraps it.
            new: version of the one that shall.
            method: by which it shall; the make's own unless told.

        Returns:
            The new blob and how it is wrapped.

        Raises:
            HsmUnavailableError: the HSM cannot be used now.
            KeyNotFoundError: a healthy HSM lacks one of the master keys.
            HsmRefusedError: the blob does not open.
        """
        return await self._call(
            lambda link: wrapped_keys.rewrap(link, (blob_w, method_w), old, new, method)
        )

    async def master_versions(self) -> tuple[int, ...]:
        """Versions of the master keys on the token, ascending.

        Raises:
            HsmUnavailableError: the HSM cannot be used now.
        """
        return await self._call(lambda link: link.masters.versions())

    async def generation(self) -> Generation:
        """The last take-over; `NONE` when there was none.

        Raises:
            HsmUnavailableError: the HSM cannot be used now.
            HsmRefusedError: a pair that is labelled as one is of no take-over.
        """
        return await self._call(
            lambda link: generation.read(link.session(TokenRole.FIRMA))
        )

    async def generate(self, ref: KeyReference, algorithm: KeyAlgorithm) -> bytes:
        """Generate a resident key pair: sensitive, not extractable, sign only.

        Args:
            ref: a CKA_ID on the firma token that nothing has yet.
            algorithm: its kind.

        Returns:
            The public key, SubjectPublicKeyInfo in DER.

        Raises:
            HsmUnavailableError: the HSM cannot be used now.
            HsmRefusedError: the CKA_ID is taken, is ours, or on the pki token.
        """
        _refuse_reserved(ref)
        begun = False

        def work(link: HsmConnection) -> bytes:
            nonlocal begun
            session = link.session(ref.token)
            link.forget(ref)
            if begun:
                # The session was lost under our own generation: what stands
                # under this id now, complete or not, is of that try.
                objects.destroy(session, ref.cka_id)
            objects.refuse_taken(session, ref.cka_id)
            begun = True
            label = f"rubrica-{ref.cka_id.hex()}"
            return objects.generate(session, ref.cka_id, label, algorithm)

        return await self._call(work)

    async def destroy(self, ref: KeyReference) -> int:
        """Destroy all that has this CKA_ID; nothing there is no error.

        Args:
            ref: a key on the firma token.

        Returns:
            How many objects there were.

        Raises:
            HsmUnavailableError: the HSM cannot be used now.
            HsmRefusedError: the key is ours, or on the pki token.
        """
        _refuse_reserved(ref)

        def work(link: HsmConnection) -> int:
            session = link.session(ref.token)
            link.forget(ref)
            count = objects.destroy(session, ref.cka_id)
            if not count:
                # A token that is away looks empty; this key never is.
                objects.private_key(session, objects.KEEP_ALIVE_KEY.cka_id)
            return count

        return await self._call(work)

    async def public_key(self, ref: KeyReference) -> bytes:
        """The public key, SubjectPublicKeyInfo in DER.

        Raises:
            HsmUnavailableError: the HSM cannot be used now.
            KeyNotFoundError: a healthy HSM has no such key.
            HsmRefusedError: there are twins.
        """
        return await self._call(
            lambda link: spki(objects.public_key(link.session(ref.token), ref.cka_id)),
            ref.token,
        )

    async def self_test(self, ref: KeyReference) -> None:
        """Sign something random and verify it with the public key.

        Raises:
            HsmUnavailableError: the HSM cannot be used now.
            KeyNotFoundError: a healthy HSM lacks one half of the pair.
            HsmRefusedError: twins, or the halves do not fit.
        """
        await self._call(
            lambda link: objects.self_test(link.session(ref.token), ref.cka_id),
            ref.token,
        )


def _refuse_reserved(ref: KeyReference) -> None:
    """Keep the installation's own keys out of reach of the run time.

    Raises:
        HsmRefusedError: the key is on the pki token, or one of our own.
    """
    if ref.token is not TokenRole.FIRMA or ref in objects.OWN_KEYS:
        msg = "the installation's own keys are made by `rubrica hsm init` alone"
        raise HsmRefusedError(msg)
