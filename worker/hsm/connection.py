"""The PKCS#11 side of an `HsmSession`: one session of a token, logged in.

Every method runs in an HSM thread, and one thread at a time uses a session. An
exception of the binding goes no further than `TokenSessions.run`: a traceback holds
handles whose release calls the module, and it might be freed in another thread.
"""

import secrets
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum

import pkcs11

from appliance.domain.errors import (
    CredentialRefusedError,
    ErrorCode,
    HsmRefusedError,
    HsmUnavailableError,
)
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
from appliance.domain.vocab import StatementFault
from appliance.settings import HsmSettings
from hsm_config.pkcs11 import objects, signatures
from hsm_config.pkcs11.errors import HsmFault
from hsm_config.pkcs11.key_pairs import spki
from hsm_config.pkcs11.key_wrapping import DoesNotUnwrapError, Wrapping
from hsm_config.pkcs11.master_keys import MasterKeys
from hsm_config.pkcs11.pin import Pin
from hsm_config.pkcs11.raw_pkcs11 import SessionCalls
from hsm_config.pkcs11.unwrap_and_sign import OneUse
from hsm_config.profile import HsmProfile
from worker.hsm.module import HsmModule


class HsmStatus(StrEnum):
    """Whether keys can be used now."""

    READY = "ready"
    UNAVAILABLE = "unavailable"
    """Not opened, or away: the breaker is open, the probe is at work."""
    LEFT = "left"
    """Only of a worker: the HSM is there, and serves another restore of the record."""
    PIN = "pin"
    """A PIN was refused: nothing but a new start with the right one helps."""


class SessionLostError(HsmUnavailableError):
    """The module, a token or a session went away under a call.

    Args:
        reason: for operators.
        fault: `SESSION` or `DEVICE`.
    """

    def __init__(self, reason: str, fault: HsmFault = HsmFault.SESSION) -> None:
        super().__init__(reason)
        self.fault = fault


@dataclass(frozen=True, slots=True)
class HsmToken:
    """A token to connect to."""

    number: int
    """Among the tokens of the process, from 0; for the watch."""
    role: TokenRole
    label: str
    pin: Pin
    """Hidden from its repr."""
    hsm: HsmSettings
    """With the module and the configuration of this token."""
    profile: HsmProfile


class HsmConnection:
    """One session of a token, and handles of keys used before.

    Args:
        token: which.
        module: that it is reached through.

        beside: the connections of the token, itself among them once all are made.
    """

    def __init__(
        self,
        token: HsmToken,
        module: HsmModule,
        beside: Sequence["HsmConnection"],
    ) -> None:
        self.token = token
        self.module = module

        self._beside = beside
        self.last_use = 0.0
        """Monotonic time of the last call, in seconds."""
        self._session: pkcs11.Session | None = None
        self._keys: dict[KeyReference, pkcs11.PrivateKey] = {}
        self._residents: dict[ResidentKey, pkcs11.PrivateKey] = {}
        self._masters: MasterKeys | None = None
        self._one_use: OneUse | None = None

    @property
    def is_connected(self) -> bool:
        """Whether it has a session, as far as it knows."""
        return self._session is not None

    def hold(self, session: pkcs11.Session) -> None:
        """Use a session, of a token that this process is logged in to."""
        self._session = session

    def see_own_keys(self) -> None:
        """Look up what `rubrica hsm init` made on firma besides the test key.

        Raises:
            KeyNotFoundError: it did not run to its end, or not since this version.
            HsmRefusedError: there are twins.
        """
        if self.token.role is TokenRole.FIRMA:
            self.private_key(objects.IDENTITY_KEY)
            if not self.token.profile.resident_only:
                self.masters.get(self.masters.newest())

    def exercise(self) -> None:
        """Make a test signature on firma; see the CA's key on pki.

        A signature, not a digest: only it needs the login, the token's storage
        and the very mechanism that the next signer needs. On pki the CA's
        private key is only looked up (a private object shows to a logged-in
        session alone): a CA signs nothing for practice.

        Raises:
            KeyNotFoundError: `rubrica hsm init` did not run to its end.
            PKCS11Error: the token failed.
        """
        if self.token.role is TokenRole.PKI:
            self.look_up_own()
            return
        key = self.private_key(objects.KEEP_ALIVE_KEY)
        digest = secrets.token_bytes(32)
        signatures.sign(key, digest, SignatureScheme.RSA_PKCS1)

    def look_up_own(self) -> None:
        """See a key that every token of ours has, looked up anew.

        Raises:
            KeyNotFoundError: the token went away, were it for a moment.
            PKCS11Error: the token failed.
        """
        own = objects.KEEP_ALIVE_KEY
        if self.token.role is TokenRole.PKI:
            own = objects.CA_KEY
        objects.private_key(self.session(self.token.role), own.cka_id)

    def forget_all(self) -> None:
        """Let go of session and handles."""
        self._keys.clear()
        self._residents.clear()
        self._masters = None
        self._one_use = None
        self._session = None

    def sign_all(
        self,
        key: KeyReference | ResidentKey | WrappedKey,
        digests: Iterable[bytes],
        scheme: SignatureScheme,
        digest_algorithm: DigestAlgorithm,
        made: Callable[[bytes], object],
    ) -> None:
        """Sign digests with a key, wherever it is kept, one after the other.

        Args:
            key: which; a wrapped one is unwrapped once. A reference names a key of
                the installation: a user's is named together with its public key.
            digests: as long as their algorithm says, asked for one by one.
            scheme: how.
            digest_algorithm: what made the digests.
            made: told each value, as `signatures.sign` gives it, before the next one
                is made.

        Raises:
            KeyNotFoundError: there is no such key, or no such master key.
            CredentialRefusedError: see `resident_key`.
            HsmRefusedError: there are twins, a blob that does not open, a key
                that may not sign so, or a reference to a user's key.
            PKCS11Error: the token failed.
        """
        if isinstance(key, KeyReference | ResidentKey):
            if isinstance(key, ResidentKey):
                private = self.resident_key(key)
            else:
                private = self.own_key(key)
            for digest in digests:
                made(signatures.sign(private, digest, scheme, digest_algorithm))
            return
        master = self.masters.get(key.master)
        orders = (
            signatures.order_for(key.algorithm, digest, scheme, digest_algorithm)
            for digest in digests
        )
        if self._one_use is None:
            calls = SessionCalls(self.module.running, self.session(TokenRole.FIRMA))
            self._one_use = OneUse(calls, self.token.profile)
        try:
            self._one_use.sign_all(key, master, orders, made)
        except DoesNotUnwrapError:
            self.exercise()  # a bad blob, or a token in trouble: a healthy one signs
            raise

    def generate_wrapped(self, algorithm: KeyAlgorithm) -> WrappedKey:
        """Make a pair, wrapped, under the newest master key.

        Raises:
            KeyNotFoundError: there is no master key.
            HsmRefusedError: the make wraps no keys, or the key can be read.
            PKCS11Error: the token failed.
        """
        session = self.session(TokenRole.FIRMA)
        version = self.masters.newest()
        master = version, self.masters.get(version)
        wrapping = Wrapping(self.token.profile)
        method = wrapping.methods.pick(session.token.slot.get_mechanisms())
        return wrapping.generate(session, algorithm, master, method)

    def rewrap(
        self,
        wrapped: tuple[bytes, WrapMethod],
        old: int,
        new: int,
        method: WrapMethod | None,
    ) -> tuple[bytes, WrapMethod]:
        """Wrap W by another master key, or by another method.

        Args:
            wrapped: W as a master key wraps it, and how.
            old: version of that master key.
            new: version of the one that shall.
            method: by which it shall; the make's own unless told.

        Raises:
            KeyNotFoundError: there is no such master key.
            HsmRefusedError: the blob does not open.
            PKCS11Error: the token failed.
        """
        wrapping = Wrapping(self.token.profile)
        if method is None:
            slot = self.session(TokenRole.FIRMA).token.slot
            method = wrapping.methods.pick(slot.get_mechanisms())
        keys = self.masters.get(old), self.masters.get(new)
        try:
            return wrapping.rewrap(*wrapped, *keys, method), method
        except DoesNotUnwrapError:
            self.exercise()  # as in `sign_all`
            raise

    def session(self, role: TokenRole) -> pkcs11.Session:
        """The token's session.

        Args:
            role: what the caller takes the token for.

        Raises:
            SessionLostError: there is none.
            HsmRefusedError: this is the other token.
        """
        if role is not self.token.role:
            msg = f"work for token {role} was given to {self.token.role}"
            raise HsmRefusedError(msg, ErrorCode.INTERNAL)
        if self._session is None:
            msg = f"no session of token {self.token.label}"
            raise SessionLostError(msg)
        return self._session

    @property
    def masters(self) -> MasterKeys:
        """The master keys, whose handles are looked up once a connection.

        Raises:
            SessionLostError: there is no session.
            HsmRefusedError: this is the pki token.
        """
        if self._masters is None:
            self._masters = MasterKeys(self.session(TokenRole.FIRMA))
        return self._masters

    def private_key(self, ref: KeyReference) -> pkcs11.PrivateKey:
        """A private key's handle, looked up once a connection.

        A look-up is linear in the token's objects (70 ms at 2,000 pairs).

        Raises:
            KeyNotFoundError: this session shows none.
            HsmRefusedError: it shows twins.
        """
        key = self._keys.get(ref)
        if key is None:
            key = objects.private_key(self.session(ref.token), ref.cka_id)
            self._keys[ref] = key
        return key

    def own_key(self, ref: KeyReference) -> pkcs11.PrivateKey:
        """A handle of one of the installation's private keys; see `private_key`.

        Raises:
            KeyNotFoundError: this session shows none.
            HsmRefusedError: it is a user's key, or the session shows twins.
        """
        if not ref.is_own:
            msg = "a user's key is used together with its public key alone"
            raise HsmRefusedError(msg, ErrorCode.INTERNAL)
        return self.private_key(ref)

    def resident_key(self, key: ResidentKey) -> pkcs11.PrivateKey:
        """A handle of a user's key on the token, looked up once a connection.

        Only here a row's CKA_ID becomes a key. The public key on the token has to be
        the certified one.

        Raises:
            KeyNotFoundError: this session lacks one half of the pair.
            CredentialRefusedError: the CKA_ID is that of another key, or of one of
                the installation's.
            HsmRefusedError: this session shows twins.
        """
        private = self._residents.get(key)
        if private is None:
            if key.reference.is_own:
                told = "its row names one of the installation's own keys"
                raise CredentialRefusedError(StatementFault.RESIDENT, told)
            session = self.session(TokenRole.FIRMA)
            if spki(objects.public_key(session, key.cka_id)) != key.spki:
                told = f"another key has CKA_ID {key.cka_id.hex()}"
                raise CredentialRefusedError(StatementFault.RESIDENT, told)
            private = objects.private_key(session, key.cka_id)
            self._residents[key] = private
        return private

    def forget(self, ref: KeyReference) -> None:
        """Forget a handle, before its key is destroyed or made."""
        for one in self._beside:
            one._keys.pop(ref, None)  # noqa: SLF001 (our own kind)
            for key in [each for each in one._residents if each.reference == ref]:  # noqa: SLF001
                one._residents.pop(key, None)  # noqa: SLF001
