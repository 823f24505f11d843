"""The HSM as the worker sees it: the only opener of the HSM at run time.

    async with HsmSession(settings.hsm, load_profile("softhsm2")) as session:
        signature = await session.sign_digest(credential_key, digest)

One thread makes every PKCS#11 call, with one session a token; how a lost session
heals, and when callers are told that the HSM is away, is `worker.hsm_thread`.
"""

from collections.abc import Callable
from typing import Self, TypeVar

from appliance.call_watch import CallWatch
from appliance.domain.errors import HsmRefusedError, HsmUnavailableError
from appliance.domain.hsm import KeyAlgorithm, KeyReference, TokenRole
from appliance.domain.vocab import Environment
from appliance.settings import HsmSettings
from hsm_config import objects
from hsm_config.certificates import HsmRsaPrivateKey
from hsm_config.profile import HsmProfile
from worker.hsm_connection import HsmConnection, HsmStatus
from worker.hsm_thread import PROBE_S, HsmThread
from worker.hsm_tokens import make_connections

_T = TypeVar("_T")


class HsmSession:
    """Signs and keeps keys in the HSM's two tokens.

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
        self._thread: HsmThread | None = None

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
        self._thread = HsmThread(
            connections, self._watch, self._hsm.keep_alive_s, self._probe_s
        )
        await self._thread.start()

    async def close(self) -> None:
        """Stop watching, finish what runs, log out, end the thread.

        Raises:
            HsmUnavailableError: another process opened it.
        """
        if self._thread is not None:
            await self._thread.stop()
            self._thread = None

    async def sign_digest(self, ref: KeyReference, digest: bytes) -> bytes:
        """Sign a SHA-256 digest with a resident RSA key, PKCS#1 v1.5.

        Args:
            ref: the key.
            digest: 32 bytes.

        Returns:
            The signature, as long as the modulus.

        Raises:
            HsmUnavailableError: the HSM cannot be used now.
            KeyNotFoundError: a healthy HSM has no such key.
            HsmRefusedError: twins, or a key that may not sign.
        """
        return await self._call(
            lambda link: objects.sign_digest(link.private_key(ref), digest), ref.token
        )

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
            return use(
                HsmRsaPrivateKey(
                    public, lambda digest: objects.sign_digest(private, digest)
                )
            )

        return await self._call(work, ref.token)

    async def generate(self, ref: KeyReference, algorithm: KeyAlgorithm) -> bytes:
        """Generate a resident key pair: sensitive, not extractable, sign only.

        Args:
            ref: a CKA_ID on the firma token that nothing has yet.
            algorithm: an RSA kind.

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
            lambda link: objects.spki(
                objects.public_key(link.session(ref.token), ref.cka_id)
            ),
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
        """Do some work in the HSM thread.

        Raises:
            HsmUnavailableError: not opened.
        """
        if self._thread is None:
            msg = "not opened"
            raise HsmUnavailableError(msg)
        return await self._thread.call(work, role)


def _refuse_reserved(ref: KeyReference) -> None:
    """Keep the installation's own keys out of reach of the run time.

    Raises:
        HsmRefusedError: the key is on the pki token, or the keep-alive key.
    """
    if ref.token is not TokenRole.FIRMA or ref == objects.KEEP_ALIVE_KEY:
        msg = "the installation's own keys are made by `rubrica hsm init` alone"
        raise HsmRefusedError(msg)
