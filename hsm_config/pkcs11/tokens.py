"""Making tokens: their folder, their PINs, C_InitToken.

Only for makes whose profile says that `rubrica hsm init` makes the tokens.
Each step can be repeated after a kill: the SO PIN is on the disk before the
token is made, so a token without a user PIN can always be completed.
"""

import ctypes
from pathlib import Path

import pkcs11
from pkcs11.exceptions import NoSuchToken

from appliance.domain.errors import HsmRefusedError
from appliance.settings import Settings, TokenSettings
from hsm_config.pkcs11.module import Library, find_token
from hsm_config.pkcs11.pin import (
    AskPin,
    Pin,
    given_pin,
    is_given,
    make_pin,
    obtain_pin,
    read_pin,
    write_new,
)
from hsm_config.profile import HsmProfile

_LABEL_BYTES = 32

_CONF = """\
# SoftHSM configuration, made by `rubrica hsm init`.
directories.tokendir = {folder}
objectstore.backend = file
log.level = ERROR
slots.removable = false
slots.mechanisms = ALL
# A forked child must not sign with its parent's login.
library.reset_on_fork = true
"""


def make_configuration(conf: Path) -> bool:
    """Write SoftHSM's configuration, with a token folder beside it.

    Args:
        conf: the file; one that exists is left alone.

    Returns:
        Whether it was written.
    """
    if conf.exists():
        return False
    folder = conf.parent / "tokens"
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    folder.chmod(0o700)
    write_new(conf, _CONF.format(folder=folder).encode(), 0o600)
    return True


def make_token(
    library: Library,
    token: TokenSettings,
    settings: Settings,
    profile: HsmProfile,
    ask: AskPin | None,
) -> tuple[str, ...]:
    """See to it that a token is there with its user PIN.

    Args:
        library: initialised.
        token: which of the two.
        settings: the installation.
        profile: its HSM's make.
        ask: asks an operator for a PIN, where the settings want that.

    Returns:
        What was made, for people; empty when nothing was missing.

    Raises:
        HsmRefusedError: two tokens have its label, or one is there whose PIN
            file is not, or it is missing and the HSM's owner makes tokens.
        SettingsError: a PIN file cannot be used.
        PKCS11Error: the module failed.
    """
    try:
        found = find_token(library, token.label)
    except NoSuchToken:
        _must_make(token, profile)
        return _make(library, token, settings, profile, ask)
    if found.flags & pkcs11.TokenFlag.USER_PIN_INITIALIZED:
        if token.pin_source == "file" and not is_given(token.pin_file):
            msg = f"token {token.label} is there, its PIN file {token.pin_file} is not"
            raise HsmRefusedError(msg)
        return ()
    _must_make(token, profile)
    return _set_user_pin(found, token, settings, profile, ask)


def _must_make(token: TokenSettings, profile: HsmProfile) -> None:
    if not profile.quirks.makes_tokens:
        msg = f"no token {token.label} with a user PIN; the HSM's owner makes it"
        raise HsmRefusedError(msg)


def _make(
    library: Library,
    token: TokenSettings,
    settings: Settings,
    profile: HsmProfile,
    ask: AskPin | None,
) -> tuple[str, ...]:
    made = []
    so_file = token.so_pin_file
    if not is_given(so_file):
        make_pin(so_file, profile.quirks.pin_chars)
        made.append(f"SO PIN file {so_file}")
    so_pin = read_pin(given_pin(so_file), settings.environment)
    _init_token(library, token.label, so_pin)
    made.append(f"token {token.label}")
    # A new token shows under its own slot only after a fresh start.
    library.reinitialize()
    found = find_token(library, token.label)
    return (*made, *_set_user_pin(found, token, settings, profile, ask))


def _init_token(library: Library, label: str, so_pin: Pin) -> None:
    """C_InitToken in a free slot.

    The binding lacks that one call; it is made on the very module that the
    binding has loaded, so nothing is on a command line where others see it.

    Raises:
        HsmRefusedError: no slot is free, or the module refuses.
    """
    encoded = label.encode()
    if not 0 < len(encoded) <= _LABEL_BYTES:
        msg = f"a token's label has 1 to {_LABEL_BYTES} bytes: {label!r}"
        raise HsmRefusedError(msg)
    free = [
        slot
        for slot in library.get_slots(token_present=True)
        if not slot.get_token().flags & pkcs11.TokenFlag.TOKEN_INITIALIZED
    ]
    if not free:
        msg = f"no free slot for token {label}"
        raise HsmRefusedError(msg)
    pin = so_pin.value.encode()
    result = ctypes.CDLL(library.so).C_InitToken(
        ctypes.c_ulong(free[0].slot_id),
        pin,
        ctypes.c_ulong(len(pin)),
        encoded.ljust(_LABEL_BYTES),
    )
    if result != 0:
        msg = f"C_InitToken for {label} answered {result:#x}"
        raise HsmRefusedError(msg)


def _set_user_pin(
    found: pkcs11.Token,
    token: TokenSettings,
    settings: Settings,
    profile: HsmProfile,
    ask: AskPin | None,
) -> tuple[str, ...]:
    made = []
    so_file = token.so_pin_file
    if not is_given(so_file):
        msg = f"token {token.label} has no user PIN and {so_file} is missing"
        raise HsmRefusedError(msg)
    if token.pin_source == "file" and not is_given(token.pin_file):
        make_pin(token.pin_file, profile.quirks.pin_chars)
        made.append(f"PIN file {token.pin_file}")
    pin = obtain_pin(token, settings.environment, ask)
    so_pin = read_pin(given_pin(so_file), settings.environment)
    session = found.open(rw=True, so_pin=so_pin.value)
    try:
        session.init_pin(pin.value)
    finally:
        session.close()
    return (*made, f"user PIN of token {token.label}")
