"""An HSM that serves one record from now on, and none from before.

Must not run in a process that has the HSM open.
"""

from appliance.domain.errors import HsmRefusedError
from appliance.settings import Settings
from hsm_config import generation, replicas
from hsm_config.profile import load_profile
from hsm_config.token_alone import token_alone


def raise_generation(settings: Settings, least: int) -> int:
    """Give every member of the logical HSM a number above all that were given.

    Args:
        settings: the installation.
        least: what the record has.

    Returns:
        The number, which the record is to have.

    Raises:
        SettingsError: settings, profile or a PIN file cannot be used.
        HsmRefusedError: a token makes no pair that works.
        HsmUnavailableError: a module, a token or a PIN does not work.
    """
    profile = load_profile(settings.hsm.profile)
    with (
        token_alone(settings, settings.hsm.firma, profile) as (library, session),
        replicas.held(library, settings, profile) as others,
    ):
        sessions = [session, *(one.session for one in others)]
        number = max(least, *(generation.read(one) for one in sessions)) + 1
        for one in sessions:
            generation.write(one, number)
    return number


def refuse_left(settings: Settings, own: int) -> None:
    """Refuse to change the keys of an HSM that serves another restore of a record.

    Args:
        settings: the installation.
        own: number of the record.

    Raises:
        HsmRefusedError: it does.
        SettingsError: settings, profile or a PIN file cannot be used.
        HsmUnavailableError: the module, the token or its PIN does not work.
    """
    profile = load_profile(settings.hsm.profile)
    with token_alone(settings, settings.hsm.firma, profile) as (_, session):
        served = generation.read(session)
    if served > own:
        msg = (
            "the HSM serves another restore of this record, whose keys would be "
            "changed; if this is the one that goes on: rubrica hsm take-over"
        )
        raise HsmRefusedError(msg)
