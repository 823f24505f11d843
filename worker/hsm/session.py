"""The HSM as the worker sees it: the only opener of the HSM at run time.

    async with HsmSession(settings.hsm, load_profile("softhsm2")) as session:
        signature = await session.sign(key, digest, SignatureScheme.RSA_PKCS1)

Threads of its own make every PKCS#11 call: one, or as many as `hsm.sessions` says, each
with a session a token. How a lost session heals, and when callers are told that the HSM
is away, is `worker.hsm.executor`.
"""

import asyncio
import hashlib
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field
from typing import Final, Self, TypeVar

import pkcs11

from appliance.domain.errors import (
    ApplianceError,
    HsmRefusedError,
    HsmUnavailableError,
)
from appliance.domain.keys.generation import Generation
from appliance.domain.keys.hsm_keys import (
    DigestAlgorithm,
    KeyAlgorithm,
    KeyReference,
    ResidentKey,
    SignatureScheme,
    TokenRole,
    WrapMethod,
    WrappedKey,
)
from appliance.domain.vocab import Environment
from appliance.runtime.hang_watchdog import CallWatch
from appliance.settings import HsmSettings
from hsm_config.pkcs11 import objects, signatures
from hsm_config.pkcs11.key_pairs import spki
from hsm_config.profile import HsmProfile
from hsm_config.provisioning import generation, tsa_keys
from hsm_config.provisioning.ca_certificates import HsmRsaPrivateKey, private_key_of
from worker.hsm.connection import HsmConnection, HsmStatus
from worker.hsm.executor import PROBE_S, HsmThreads
from worker.hsm.tokens import make_connections

_T = TypeVar("_T")
_FIRST_S: Final = 0.005
"""What a signature is taken to need before any was made, in seconds."""
_REMEMBERED: Final = 16
"""Signatures by which it is judged what the next ones take."""


@dataclass(frozen=True, slots=True)
class SignedDigests:
    """What came of signing several digests."""

    values: list[bytes] = field(repr=False)
    """Of the first ones, in their order."""
    failed: ApplianceError | None = None
    """Why there are no more."""


class HsmSession:
    """The HSM's tokens, opened: signs, and keeps keys in them.

    What a call takes and returns is plain data: no handle of the binding leaves the
    HSM's threads.

    Args:
        hsm: the installation's HSM.
        profile: its make.
        watch: the process's words for whoever ends calls that hang; by default
            nobody does.
        environment: in PROD, a PIN file open to others is refused.
        number: of the process among its kind, from 1: of the members of the
            logical HSM each one prefers another.
        probe_s: time between two tries to reach an HSM that is away, seconds.
    """

    def __init__(
        self,
        hsm: HsmSettings,
        profile: HsmProfile,
        *,
        watch: CallWatch | None = None,
        environment: Environment = Environment.PROD,
        number: int = 1,
        probe_s: float = PROBE_S,
    ) -> None:
        self._hsm = hsm
        self._profile = profile
        self._watch = watch or CallWatch()
        self._environment = environment
        self._number = number
        self._probe_s = probe_s
        self._thread: HsmThreads | None = None
        # Of several sessions one is left to who has a single digest.
        self._long_calls = asyncio.Semaphore(max(1, hsm.sessions - 1))
        self._group_s = hsm.group_ms / 1000
        self._signature_s = _FIRST_S

    @property
    def status(self) -> HsmStatus:
        """Whether users' keys can be used now."""
        return self.status_of(TokenRole.FIRMA)

    @property
    def reason(self) -> str:
        """What is not as it should be with any token, in English, for operators."""
        if self._thread is None:
            return "not opened"
        reasons = (self._thread.reason(role) for role in TokenRole)
        return "; ".join(reason for reason in reasons if reason)

    def status_of(self, role: TokenRole) -> HsmStatus:
        """Whether the keys of a role's token can be used now."""
        thread = self._thread
        return HsmStatus.UNAVAILABLE if thread is None else thread.status(role)

    async def __aenter__(self) -> Self:
        await self.open()
        return self

    async def __aexit__(self, *_exc: object) -> None:
        await self.close()

    async def open(self) -> None:
        """Read the PINs, start the module, log in, begin to watch.

        An HSM that is away, or a PIN that is refused, is no error here but a
        `status`: a process that ended instead would be started again, and each
        start would use up a try of the PIN.

        Raises:
            SettingsError: a PIN file or the module cannot be used.
            HsmUnavailableError: opened already.
        """
        if self._thread is not None:
            msg = "this session was opened already"
            raise HsmUnavailableError(msg)
        connections = make_connections(
            self._hsm, self._profile, self._environment, self._number, self._watch
        )
        self._thread = HsmThreads(
            connections, self._watch, self._hsm.keep_alive_s, self._probe_s
        )
        await self._thread.start()

    async def close(self) -> None:
        """Stop watching, finish what runs, log out, end the threads.

        Raises:
            HsmUnavailableError: another process opened it.
        """
        if self._thread is not None:
            await self._thread.stop()
            self._thread = None

    async def sign(
        self,
        key: KeyReference | ResidentKey | WrappedKey,
        digest: bytes,
        scheme: SignatureScheme,
        digest_algorithm: DigestAlgorithm = DigestAlgorithm.SHA256,
    ) -> bytes:
        """Sign a digest with a user's key, or with one of the installation's.

        A wrapped key is unwrapped, used once and destroyed. A resident one is used
        only if the key with its CKA_ID is the certified one.

        Args:
            key: which, of the kind that the scheme is for; a reference names a key
                of the installation.
            digest: as long as its algorithm says.
            scheme: how.
            digest_algorithm: what made the digest.

        Returns:
            RSA: the value, as long as the modulus. ECDSA: DER `Ecdsa-Sig-Value`.

        Raises:
            HsmUnavailableError: the HSM cannot be used now.
            KeyNotFoundError: a healthy HSM has no such key, or no such master key.
            CredentialRefusedError: the CKA_ID is that of another key.
            HsmRefusedError: twins, a blob that does not open, a key that may
                not sign so, or a reference to a user's key.
        """
        done = await self.sign_all(key, (digest,), scheme, digest_algorithm)
        if done.failed is not None:
            raise done.failed
        return done.values[0]

    async def sign_all(
        self,
        key: KeyReference | ResidentKey | WrappedKey,
        digests: Sequence[bytes],
        scheme: SignatureScheme,
        digest_algorithm: DigestAlgorithm = DigestAlgorithm.SHA256,
        made: Callable[[bytes], object] | None = None,
    ) -> SignedDigests:
        """Sign digests one after the other, a wrapped key unwrapped once for all.

        Whoever has one digest waits for `hsm.group_ms` of it at most: calls of several
        leave one session to such, or take turns at the only one. What is not signed
        in that time is in another call, for which a key is unwrapped again.

        Args:
            key: which, of the kind that the scheme is for.
            digests: as long as their algorithm says.
            scheme: how.
            digest_algorithm: what made the digests.
            made: told each value in the HSM's thread, before the next one is made.

        Returns:
            The values made, and why there are no more, as `sign` raises it.
        """
        values: list[bytes] = []
        began = 0.0

        def keep(value: bytes) -> None:
            nonlocal began
            values.append(value)
            now = time.perf_counter()
            self._signature_s += (now - began - self._signature_s) / _REMEMBERED
            began = now
            if made is not None:
                made(value)

        def left() -> Iterator[bytes]:
            # Where a lost session is opened anew, from where it was lost on.
            until = time.perf_counter() + self._group_s
            for digest in digests[len(values) :]:
                yield digest
                if time.perf_counter() > until:
                    return

        def work(link: HsmConnection) -> None:
            nonlocal began
            began = time.perf_counter()
            link.sign_all(key, left(), scheme, digest_algorithm, keep)

        role = key.token if isinstance(key, KeyReference) else TokenRole.FIRMA
        try:
            while len(values) < len(digests):
                async with self._long_calls if len(digests) > 1 else nullcontext():
                    await self._call(work, role)
        except ApplianceError as exc:
            return SignedDigests(values, exc)
        return SignedDigests(values)

    @property
    def group_size(self) -> int:
        """How many signatures it makes in `hsm.group_ms`, judging by the last ones."""
        return max(1, int(self._group_s / self._signature_s))

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
        return await self._call(lambda link: link.generate_wrapped(algorithm))

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
            lambda link: link.rewrap((blob_w, method_w), old, new, method)
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
            private = link.own_key(ref)
            is_ec = private.key_type is pkcs11.KeyType.EC
            scheme = SignatureScheme.ECDSA if is_ec else SignatureScheme.RSA_PKCS1
            public = objects.public_key(link.session(ref.token), ref.cka_id)
            return spki(public), signatures.sign(private, digest, scheme)

        return await self._call(work)

    async def with_private_key(
        self, ref: KeyReference, use: Callable[[HsmRsaPrivateKey], _T]
    ) -> _T:
        """Hand a key of the installation to one of pyca's builders, in an HSM thread.

        Args:
            ref: the key.
            use: short, without side effects (it may run twice).

        Returns:
            What `use` returns.

        Raises:
            HsmUnavailableError: the HSM cannot be used now.
            KeyNotFoundError: a healthy HSM has no such key.
            HsmRefusedError: twins, a user's key, or one that may not sign.
        """

        def work(link: HsmConnection) -> _T:
            private = link.own_key(ref)
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

    async def _call(
        self,
        work: Callable[[HsmConnection], _T],
        role: TokenRole = TokenRole.FIRMA,
    ) -> _T:
        """Do some work in an HSM thread; it may run twice, or on another member.

        Args:
            work: on a connection to a token of that role.
            role: which token it is for.

        Raises:
            HsmUnavailableError: the HSM cannot be used now, or was not opened.
            ApplianceError: what the work raises.
        """
        if self._thread is None:
            msg = "not opened"
            raise HsmUnavailableError(msg)
        return await self._thread.call(work, role)


def _refuse_reserved(ref: KeyReference) -> None:
    """Keep the installation's own keys out of reach of the run time.

    Raises:
        HsmRefusedError: the key is on the pki token, or one of our own.
    """
    if ref.is_own:
        msg = "the installation's own keys are made by `rubrica hsm init` alone"
        raise HsmRefusedError(msg)
