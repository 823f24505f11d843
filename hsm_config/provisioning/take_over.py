"""An HSM that serves one record from now on, and none from before.

Must not run in a process that has the HSM open.
"""

import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

import pkcs11

from appliance.domain.errors import HsmRefusedError
from appliance.domain.keys.generation import Generation
from appliance.settings import Settings
from hsm_config.profile import load_profile
from hsm_config.provisioning import generation, replicas
from hsm_config.provisioning.exclusive_access import token_alone

_MARK_BYTES: Final = 8
_OUTRUN: Final = (
    "another take-over of this HSM was under way at the same time, and has it: nothing "
    "was changed in this record; if this is the one that goes on, run it again when "
    "the other has ended"
)


def raise_generation(settings: Settings, least: int) -> Generation:
    """Give every member of the logical HSM a take-over above all that were given.

    Args:
        settings: the installation.
        least: number of the one that the record has.

    Returns:
        It; the record is to have it.

    Raises:
        SettingsError: settings, profile or a PIN file cannot be used.
        HsmRefusedError: a token makes no pair that works; or another host has taken
            over meanwhile.
        HsmUnavailableError: a module, a token or a PIN does not work.
    """
    with _members(settings) as sessions:
        highest = max(least, *(generation.read(one).number for one in sessions))
        taken = Generation(highest + 1, secrets.token_hex(_MARK_BYTES))
        for one in sessions:
            generation.write(one, taken)
    # SoftHSM may hide from who wrote what another process wrote meanwhile, until the
    # module is started anew. So looked at, the last one finds, and removes, all others.
    with _members(settings) as sessions:
        for one in sessions:
            generation.write(one, taken)
        if any(generation.read(one) != taken for one in sessions):
            raise HsmRefusedError(_OUTRUN)
    return taken


@contextmanager
def _members(settings: Settings) -> Iterator[list[pkcs11.Session]]:
    """A session of each member, while no other command of this host changes its keys.

    Raises:
        SettingsError: settings, profile or a PIN file cannot be used.
        HsmUnavailableError: a module, a token or a PIN does not work.
    """
    profile = load_profile(settings.hsm.profile)
    with (
        token_alone(settings, settings.hsm.firma, profile) as (library, session),
        replicas.held(library, settings, profile) as others,
    ):
        yield [session, *(one.session for one in others)]


def refuse_left(settings: Settings, own: Generation) -> None:
    """Refuse to change the keys of an HSM that serves another restore of a record.

    Args:
        settings: the installation.
        own: of the record.

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
