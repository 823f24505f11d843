"""One token, opened by one command at a time."""

from collections.abc import Iterator
from contextlib import contextmanager

import pkcs11
from pkcs11.exceptions import NoSuchToken, PKCS11Error

from appliance.domain.errors import HsmUnavailableError
from appliance.settings import Settings, TokenSettings
from hsm_config.pkcs11.module import Library, describe, find_token, log_in, opened
from hsm_config.pkcs11.pin import obtain_pin
from hsm_config.profile import HsmProfile
from hsm_config.provisioning.init import alone


@contextmanager
def token_alone(
    settings: Settings, own: TokenSettings, profile: HsmProfile
) -> Iterator[tuple[Library, pkcs11.Session]]:
    """The module and a session of a token, while no other command changes its keys.

    Must not run in a process that has the HSM open.

    Args:
        settings: the installation.
        own: of the token.
        profile: its make.

    Raises:
        SettingsError: a PIN file or the module cannot be used.
        HsmUnavailableError: the module, the token or its PIN does not work.
    """
    try:
        with alone(settings.data_dir), opened(settings.hsm, profile) as library:
            token = find_token(library, own.label)
            pin = obtain_pin(own, settings.environment)
            yield library, log_in(token, pin)
    except NoSuchToken:
        msg = f"token {own.label} is away"
        raise HsmUnavailableError(msg) from None
    except PKCS11Error as exc:
        raise HsmUnavailableError(describe(exc)) from exc
