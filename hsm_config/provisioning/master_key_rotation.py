"""A next master key on every member of the logical HSM, and the end of an old one.

Must not run in a process that has the HSM open: it starts and finalises the
module. Each step is looked at before it is made, so that a killed run is
completed by the next one.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

import pkcs11

from appliance.domain.errors import HsmRefusedError
from appliance.settings import Settings
from hsm_config.pkcs11.master_keys import MasterKeys
from hsm_config.pkcs11.module import Library
from hsm_config.profile import HsmProfile, load_profile
from hsm_config.provisioning import replicas
from hsm_config.provisioning.exclusive_access import token_alone
from hsm_config.provisioning.init_report import ProvisionReport

_RESIDENT_ONLY: Final = "this make keeps keys resident: there is no master key"


def next_master(settings: Settings, oldest: int | None) -> tuple[int, bool]:
    """See to it that there is a version which keys can move to.

    Args:
        settings: the installation.
        oldest: the oldest version that a key is under; None without keys. One
            older than the HSM's newest tells of a move that is not at its end,
            which makes no further version.

    Returns:
        The version, on every member, and whether it was made now.

    Raises:
        SettingsError: settings, profile or a PIN file cannot be used.
        HsmRefusedError: a resident-only make, no master key yet, or members that
            do not hold the same ones.
        HsmUnavailableError: the module, a token or a PIN does not work.
    """
    with (
        firma(settings) as (library, session, profile),
        replicas.held(library, settings, profile) as others,
    ):
        masters = MasterKeys(session)
        versions = masters.versions()
        if not versions:
            msg = "no master key (MWK); run `rubrica hsm init`"
            raise HsmRefusedError(msg)
        version = versions[-1]
        made = oldest is None or oldest >= version
        if made:
            replicas.refuse_late(session, others)
            version += 1
            masters.make(version, to_travel=bool(others))
        # Also completes what a killed run left: a version that is not yet on
        # every member, or could still leave its token.
        replicas.provision(session, others, settings, profile, ProvisionReport())
    return version, made


def destroy_master(settings: Settings, version: int) -> int:
    """Destroy a version on every member, for good.

    Args:
        settings: the installation.
        version: no key may be under it any more.

    Returns:
        On how many tokens it was.

    Raises:
        SettingsError: settings, profile or a PIN file cannot be used.
        HsmRefusedError: it is the newest one.
        HsmUnavailableError: the module, a token or a PIN does not work.
    """
    count = 0
    with (
        firma(settings) as (library, session, profile),
        replicas.held(library, settings, profile) as others,
    ):
        if version >= MasterKeys(session).newest():
            msg = f"master key {version} is not an old one"
            raise HsmRefusedError(msg)
        # The first member last: while it has the version, a killed run is seen.
        for one in others:
            count += MasterKeys(one.session).destroy(version)
        count += MasterKeys(session).destroy(version)
    return count


@contextmanager
def firma(
    settings: Settings,
) -> Iterator[tuple[Library, pkcs11.Session, HsmProfile]]:
    """The module and a session of `hsm.firma`, while nobody else changes its keys.

    Raises:
        HsmRefusedError: the make keeps keys resident only.
        HsmUnavailableError: the module, a token or a PIN does not work.
    """
    profile = load_profile(settings.hsm.profile)
    if profile.resident_only:
        raise HsmRefusedError(_RESIDENT_ONLY)
    with token_alone(settings, settings.hsm.firma, profile) as (library, session):
        yield library, session, profile
