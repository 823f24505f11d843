"""Loading a PKCS#11 module, finding a token, logging in.

Everything here blocks, and belongs in the one thread of its process that calls
the module, which is started without mutexes; or, where `hsm.sessions` is more than
1, in several, of which one alone starts, ends and logs in (see docs/hsm.md).
"""

import os
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from functools import lru_cache
from pathlib import Path
from typing import Final, TypeAlias

import pkcs11
import structlog
from pkcs11._pkcs11 import lib
from pkcs11.exceptions import (
    MultipleTokensReturned,
    PinExpired,
    PinIncorrect,
    PinInvalid,
    PinLenRange,
    PinLocked,
    PKCS11Error,
    UserPinNotInitialized,
)

from appliance.domain.errors import HsmRefusedError, HsmUnavailableError
from appliance.domain.keys.hsm_keys import TokenRole
from appliance.settings import HsmSettings, SettingsError, TokenSettings
from hsm_config.pkcs11.pin import Pin
from hsm_config.pkcs11.raw_pkcs11 import LockingLibrary
from hsm_config.pkcs11.softhsm_files import keep_token_files, login_turn
from hsm_config.pkcs11.templates import ExplicitTemplates
from hsm_config.profile import HsmProfile, refuse_sessions

_log = structlog.get_logger(__name__)
Library: TypeAlias = lib
"""A loaded PKCS#11 module."""

_LET_IN: Final = "let the signing workers' user in: its folder, or the maker's group"
_PIN_ERRORS: Final = (
    PinExpired,
    PinIncorrect,
    PinInvalid,
    PinLenRange,
    PinLocked,
    UserPinNotInitialized,
)


class PinRefusedError(HsmUnavailableError):
    """The token did not take the PIN; trying again might lock it."""


def token_settings(hsm: HsmSettings, role: TokenRole) -> TokenSettings:
    """The settings of one of the two tokens."""
    return hsm.firma if role is TokenRole.FIRMA else hsm.pki


def members(hsm: HsmSettings) -> list[HsmSettings]:
    """The settings as each member of the logical HSM "firma" has them.

    Returns:
        One a member, `firma` being its token, `module` and `softhsm_conf` its
        own where it has some; the first member is the one named `hsm.firma`.
    """
    return [hsm] + [
        hsm.model_copy(
            update={
                "firma": TokenSettings(
                    label=one.label,
                    pin_source=one.pin_source,
                    pin_file=one.pin_file,
                ),
                "module": one.module or hsm.module,
                "softhsm_conf": one.config or hsm.softhsm_conf,
                "replicas": (),
            }
        )
        for one in hsm.replicas
    ]


def module_path(hsm: HsmSettings, profile: HsmProfile) -> Path:
    """Find the PKCS#11 module.

    Raises:
        SettingsError: the one named, or every one the profile knows, is missing, or
            this user may not see it.
    """
    candidates = profile.modules if hsm.module is None else (hsm.module,)
    for candidate in candidates:
        try:
            if candidate.is_file():
                return candidate
        except PermissionError as exc:
            msg = f"hsm.module: {candidate}: cannot be read ({exc.strerror}); {_LET_IN}"
            raise SettingsError(msg) from exc
    listed = ", ".join(str(candidate) for candidate in candidates)
    msg = f"hsm.module: no PKCS#11 module at {listed}"
    raise SettingsError(msg)


def start(hsm: HsmSettings, profile: HsmProfile) -> Library:
    """Load the module and initialise it, once.

    Args:
        hsm: the installation's HSM.
        profile: its make.

    Returns:
        The library; `stop` ends it.

    Raises:
        SettingsError: there is no module, or it serves one session alone.
        PKCS11Error: it does not start.
    """
    path = module_path(hsm, profile)
    refuse_sessions(hsm, profile)
    if profile.config_env and hsm.softhsm_conf is not None:
        # Read by the module at each C_Initialize.
        os.environ[profile.config_env] = str(hsm.softhsm_conf)
    _mend_tokens(hsm, profile)
    if hsm.sessions == 1:
        return pkcs11.lib(str(path))
    library = _locking(str(path))
    library.initialize()
    return library


@lru_cache
def _locking(path: str) -> Library:
    """A module for several threads, loaded once and then kept, as the binding does."""
    return LockingLibrary(path)


@contextmanager
def starting(hsm: HsmSettings, profile: HsmProfile) -> Iterator[None]:
    """Start the module and log in inside this block, one process at a time.

    Only where the make wants it: others take any number at once.
    """
    with ExitStack() as stack:
        if profile.quirks.rewrites_tokens and hsm.softhsm_conf is not None:
            try:
                stack.enter_context(login_turn(hsm.softhsm_conf))
            except OSError as exc:
                # A turn is a courtesy: without it the start is tried again.
                _log.warning("hsm.no_turn", error=str(exc))
        yield


def _mend_tokens(hsm: HsmSettings, profile: HsmProfile) -> None:
    """Undo what a login that was killed did to a token; a failure is only told."""
    if not profile.quirks.rewrites_tokens or hsm.softhsm_conf is None:
        return
    try:
        mended = keep_token_files(hsm.softhsm_conf)
    except OSError as exc:
        # Whether the token can be used, the module itself will say.
        _log.warning("hsm.token_files_unreadable", error=str(exc))
        return
    for folder in mended:
        _log.warning("hsm.token_mended", folder=str(folder))


def stop(library: Library) -> None:
    """C_Finalize: ends every session and login of this process.

    A module that is beyond finalising is left as it is: the next start tells.
    """
    if library.initialized:
        try:
            library.finalize()
        except PKCS11Error:
            return


@contextmanager
def opened(hsm: HsmSettings, profile: HsmProfile) -> Iterator[Library]:
    """Hold the module for the commands of an operator.

    Yields:
        The library, initialised; it is finalised at the end.

    Raises:
        SettingsError: there is no module.
        HsmUnavailableError: it does not start.
    """
    try:
        library = start(hsm, profile)
    except PKCS11Error as exc:
        where = f" (configured by {hsm.softhsm_conf})" if hsm.softhsm_conf else ""
        msg = f"the module does not start{where}: {describe(exc)}"
        raise HsmUnavailableError(msg) from exc
    try:
        yield library
    finally:
        stop(library)
        # What was made or changed just now has its copy from the first login on.
        _mend_tokens(hsm, profile)


def find_token(library: Library, label: str) -> pkcs11.Token:
    """Find a token by its label.

    Raises:
        HsmRefusedError: two tokens bear it.
        NoSuchToken: none does.
    """
    try:
        return library.get_token(token_label=label)
    except MultipleTokensReturned:
        msg = f"two tokens are labelled {label}; relabel or remove one"
        raise HsmRefusedError(msg) from None


def login_refusal(flags: pkcs11.TokenFlag) -> str | None:
    """Say why a PIN must not even be tried by a program.

    Args:
        flags: what the token says of itself.

    Returns:
        The reason, or None when it may be tried. With one try left a person
        should make it (`rubrica hsm check` does), not a worker.
    """
    if flags & pkcs11.TokenFlag.USER_PIN_LOCKED:
        return "the PIN is locked"
    if flags & pkcs11.TokenFlag.USER_PIN_FINAL_TRY:
        return "one try of the PIN is left; run `rubrica hsm check` to use it"
    if not flags & pkcs11.TokenFlag.USER_PIN_INITIALIZED:
        return "the token has no user PIN yet; run `rubrica hsm init`"
    return None


def log_in(token: pkcs11.Token, pin: Pin) -> pkcs11.Session:
    """Open a read-write session and log in, trying the PIN once.

    Raises:
        PinRefusedError: the token says no to the PIN.
        PKCS11Error: anything else that goes wrong.
    """
    refusal: str
    try:
        return token.open(
            rw=True, user_pin=pin.value, attribute_mapper=ExplicitTemplates()
        )
    except _PIN_ERRORS as exc:
        refusal = f"token {token.label}: {describe(exc)}"
    raise PinRefusedError(refusal)


def open_beside(session: pkcs11.Session) -> pkcs11.Session:
    """One more read-write session of a token that this process is logged in to.

    Closing it does not log the process out, as closing `session` would.

    Args:
        session: of `log_in`.

    Raises:
        PKCS11Error: the token does not open it.
    """
    return session.token.open(rw=True, attribute_mapper=ExplicitTemplates())


def describe(exc: PKCS11Error) -> str:
    """Name a PKCS#11 failure: its kind, and its text where it has one."""
    text = str(exc)
    return f"{type(exc).__name__}: {text}" if text else type(exc).__name__
