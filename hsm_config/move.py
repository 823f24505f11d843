"""A master key that an HSM and its successor share, so that keys can follow.

It is made in the old HSM, travels to the new one at its making, and can leave
neither from then on. What the new HSM cannot open even so is told: the private
keys are wrapped under their owners' passwords, by the method of the old one.

Must not run in a process that has the HSM open.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final

import pkcs11
from pkcs11 import Attribute
from pkcs11.exceptions import NoSuchToken

from appliance.domain.errors import HsmRefusedError, HsmUnavailableError
from appliance.domain.hsm import KeyAlgorithm, WrapMethod
from appliance.settings import Settings, SettingsError
from hsm_config import replicas
from hsm_config.master_rotation import firma
from hsm_config.masters import Masters
from hsm_config.module import Library, find_token, log_in, module_path, opened
from hsm_config.pin import obtain_pin
from hsm_config.profile import HsmProfile, load_profile
from hsm_config.provision_report import ProvisionReport
from hsm_config.transport import transport
from hsm_config.wrap_methods import WrapMethods

FIRST_MASTER: Final = 1
"""What `hsm init` makes in an HSM that has no master key."""


@dataclass(frozen=True, slots=True)
class Passage:
    """What a move between two HSMs has."""

    version: int
    """Of the master key that both hold."""
    made: bool
    """Whether it was made now."""
    methods: frozenset[WrapMethod]
    """By which the new HSM opens wrapped keys."""
    algorithms: frozenset[KeyAlgorithm]
    """Of which it takes keys."""


def share_master(settings: Settings, successor: Settings) -> Passage:
    """See to it that an HSM and its successor hold one newest master key.

    Args:
        settings: the installation as it is.
        successor: the same with the new HSM, which `hsm init` has prepared.

    Returns:
        What both share.

    Raises:
        SettingsError: settings, profile or a PIN file cannot be used; or both are
            tokens of one module with two configurations.
        HsmRefusedError: a make keeps keys resident only, the tokens have no way
            in common, or hold different keys of one version.
        HsmUnavailableError: a module, a token or a PIN does not work.
    """
    with (
        firma(settings) as (library, session, profile),
        _successor(settings, profile, library, successor) as (new, its_profile),
    ):
        version, made = _share(session, new)
        # Shares it with the other members too, and bars it from leaving.
        with replicas.held(library, settings, profile) as others:
            replicas.provision(session, others, settings, profile, ProvisionReport())
        label = successor.hsm.firma.label
        replicas.refuse_other(session, new, version, profile, label)
        mechanisms = new.token.slot.get_mechanisms()
        its_methods = WrapMethods(its_profile.keys)
        methods = {
            method
            for method in its_profile.keys.wrap
            if its_methods.mechanism(method) in mechanisms
        }
    algorithms = frozenset(its_profile.keys.algorithms)
    return Passage(version, made, frozenset(methods), algorithms)


def _share(session: pkcs11.Session, new: pkcs11.Session) -> tuple[int, bool]:
    """The version that both hold, and whether it was made now."""
    masters, there = Masters(session), Masters(new).versions()
    newest = masters.newest()
    # Version 1 says nothing: each HSM made its own by `hsm init`.
    if newest in there and newest == there[-1] != FIRST_MASTER:
        return newest, False
    version = newest
    # A key that can still leave was made by a run that was killed before it did.
    made = newest in there or not masters.get(newest)[Attribute.EXTRACTABLE]
    if made:
        version = max(newest, *there) + 1
        masters.make(version, to_travel=True)
    transport(masters.get(version), new, version)
    return version, made


@contextmanager
def _successor(
    settings: Settings, profile: HsmProfile, library: Library, successor: Settings
) -> Iterator[tuple[pkcs11.Session, HsmProfile]]:
    """A session of the new HSM's token, in the same module or one of its own.

    Raises:
        SettingsError: one module would need two configurations.
        HsmRefusedError: its make keeps keys resident only.
        HsmUnavailableError: the token is away.
    """
    own, its_profile = successor.hsm, load_profile(successor.hsm.profile)
    if its_profile.resident_only:
        msg = f"{its_profile.name} keeps keys resident: none can move there"
        raise HsmRefusedError(msg)
    path = module_path(own, its_profile)
    if path == module_path(settings.hsm, profile):
        if own.softhsm_conf != settings.hsm.softhsm_conf:
            msg = f"a module ({path}) has one configuration in a process"
            raise SettingsError(msg)
        yield _token_session(library, successor), its_profile
        return
    with opened(own, its_profile) as other:
        yield _token_session(other, successor), its_profile


def _token_session(library: Library, successor: Settings) -> pkcs11.Session:
    own = successor.hsm.firma
    try:
        token = find_token(library, own.label)
    except NoSuchToken:
        msg = f"token {own.label} is away; `rubrica hsm init` prepares it"
        raise HsmUnavailableError(msg) from None
    return log_in(token, obtain_pin(own, successor.environment))
