"""The PKCS#11 side of an `HsmSession`: start, log in, run, drop.

Every method runs in the one HSM thread. No exception of the binding leaves it:
a traceback holds handles whose release calls the module, and it might be freed
in another thread.
"""

import secrets
import time
from collections.abc import Callable
from typing import Final, TypeVar

import pkcs11
from pkcs11 import exceptions as p11

from appliance.domain.errors import (
    ErrorCode,
    HsmRefusedError,
    HsmUnavailableError,
    KeyNotFoundError,
)
from appliance.domain.hsm import KeyReference, SignatureScheme, TokenRole
from appliance.settings import HsmSettings
from hsm_config import objects, signatures
from hsm_config.masters import Masters
from hsm_config.module import (
    Library,
    PinRefusedError,
    describe,
    find_token,
    log_in,
    login_refusal,
    start,
    starting,
    stop,
    token_settings,
)
from hsm_config.pin import Pin
from hsm_config.profile import HsmProfile

_T = TypeVar("_T")

_REFUSALS: Final = (
    p11.ArgumentsBad,
    p11.AttributeReadOnly,
    p11.AttributeSensitive,
    p11.AttributeTypeInvalid,
    p11.AttributeValueInvalid,
    p11.DataInvalid,
    p11.DataLenRange,
    p11.FunctionNotSupported,
    p11.KeySizeRange,
    p11.KeyTypeInconsistent,
    p11.MechanismInvalid,
    p11.MechanismParamInvalid,
    p11.TemplateIncomplete,
    p11.TemplateInconsistent,
)
"""What a healthy token says to a bad request. All else counts as a lost
session: starting anew is cheap, and vendors' codes are beyond listing."""


class SessionLostError(HsmUnavailableError):
    """The module, a token or a session went away under a call."""


class HsmConnection:
    """Module, one session a token, and handles of keys used before.

    Args:
        hsm: the installation's HSM.
        profile: its make.
        pins: one a token.
    """

    def __init__(
        self, hsm: HsmSettings, profile: HsmProfile, pins: dict[TokenRole, Pin]
    ) -> None:
        self._hsm = hsm
        self._profile = profile
        self._pins = pins
        self._library: Library | None = None
        self._sessions: dict[TokenRole, pkcs11.Session] = {}
        self._keys: dict[KeyReference, pkcs11.PrivateKey] = {}
        self._masters: Masters | None = None

    @property
    def profile(self) -> HsmProfile:
        """The HSM's make."""
        return self._profile

    def connect(self) -> None:
        """Drop everything, then start, find the tokens, log in, sign once.

        A start is tried again after a moment, for many processes starting at
        once disturb each other; a PIN never is.

        Raises:
            SessionLostError: it does not start, or a token or our own key in it
                is away.
            PinRefusedError: a token refuses its PIN.
            HsmRefusedError: two tokens share a label.
            SettingsError: there is no module.
        """
        tries = self._profile.quirks.start_tries
        for attempt in range(1, tries + 1):
            self.drop()
            with starting(self._hsm, self._profile):
                reason = self._start()
            if reason is None:
                return
            if attempt < tries:
                # Jitter, so that those that collided do not meet again.
                time.sleep((20 * attempt + secrets.randbelow(40 * attempt)) / 1000)
        self.drop()
        raise SessionLostError(reason or "")

    def _start(self) -> str | None:
        """Start, log in and sign once; the reason when it failed.

        Raises:
            PinRefusedError: a token refuses its PIN, or would rather not be asked.
        """
        try:
            self._library = start(self._hsm, self._profile)
            for role in TokenRole:
                token = find_token(self._library, token_settings(self._hsm, role).label)
                refusal = login_refusal(token.flags)
                if refusal is not None:
                    msg = f"token {token.label}: {refusal}"
                    raise PinRefusedError(msg)
                self._sessions[role] = log_in(token, self._pins[role])
            self._see_own_keys()
            self.exercise()
        except p11.PKCS11Error as exc:
            return describe(exc)
        except KeyNotFoundError as exc:
            return f"{exc.reason}; did `rubrica hsm init` run to its end?"
        return None

    def _see_own_keys(self) -> None:
        """Look up what `rubrica hsm init` made on firma besides the test key.

        Raises:
            KeyNotFoundError: it did not run to its end, or not since this version.
            HsmRefusedError: there are twins.
        """
        self.private_key(objects.IDENTITY_KEY)
        if not self._profile.resident_only:
            self.masters.get(self.masters.newest())

    def exercise(self) -> None:
        """Make a test signature on firma and see the CA's key on pki.

        A signature, not a digest: only it needs the login, the token's storage
        and the very mechanism that the next signer needs. On pki the CA's
        private key is only looked up (a private object shows to a logged-in
        session alone): a CA signs nothing for practice.

        Raises:
            KeyNotFoundError: `rubrica hsm init` did not run to its end.
            PKCS11Error: the token failed.
        """
        key = self.private_key(objects.KEEP_ALIVE_KEY)
        digest = secrets.token_bytes(32)
        signatures.sign(key, digest, SignatureScheme.RSA_PKCS1)
        objects.private_key(self.session(TokenRole.PKI), objects.CA_KEY.cka_id)

    def drop(self) -> None:
        """Forget handles and sessions, and finalise the module."""
        self._keys.clear()
        self._masters = None
        self._sessions.clear()
        if self._library is not None:
            stop(self._library)
            self._library = None

    def run(self, work: Callable[["HsmConnection"], _T]) -> _T:
        """Do some work, naming what goes wrong in our words.

        Raises:
            SessionLostError: a session, a token or the module was lost.
            HsmRefusedError: the token is fine and refuses this.
            ApplianceError: what the work itself raises.
        """
        try:
            return work(self)
        except _REFUSALS as exc:
            refused, reason = True, describe(exc)
        except p11.PKCS11Error as exc:
            refused, reason = False, describe(exc)
        # Outside the handlers, so that no context holds the binding's frames.
        if refused:
            raise HsmRefusedError(reason, ErrorCode.SIGNING_FAILED)
        raise SessionLostError(reason)

    def session(self, role: TokenRole) -> pkcs11.Session:
        """The session of one token.

        Raises:
            SessionLostError: there is none.
        """
        session = self._sessions.get(role)
        if session is None:
            msg = f"no session of token {role}"
            raise SessionLostError(msg)
        return session

    @property
    def masters(self) -> Masters:
        """The master keys, whose handles are looked up once a connection.

        Raises:
            SessionLostError: there is no session.
        """
        if self._masters is None:
            self._masters = Masters(self.session(TokenRole.FIRMA))
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

    def forget(self, ref: KeyReference) -> None:
        """Forget a handle, before its key is destroyed or made."""
        self._keys.pop(ref, None)
