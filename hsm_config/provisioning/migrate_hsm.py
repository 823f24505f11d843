"""A master key that an HSM and its successor share, so that keys can follow.

It is made in the old HSM, travels to the new one at its making, and can leave
neither from then on. Each HSM is used as its own make's profile says. What the new
one cannot open even so is told: the private keys are wrapped under their owners'
passwords, by the method of the old one.

Must not run in a process that has the HSM open.
"""

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from itertools import chain
from typing import Final

import pkcs11
from pkcs11 import Attribute
from pkcs11.exceptions import NoSuchToken

from appliance.domain.errors import HsmRefusedError, HsmUnavailableError
from appliance.domain.keys.hsm_keys import KeyAlgorithm, WrapMethod, WrappedKey
from appliance.settings import Settings, SettingsError
from hsm_config.pkcs11 import signatures
from hsm_config.pkcs11.key_exposure import refuse_readable
from hsm_config.pkcs11.key_pairs import load_spki
from hsm_config.pkcs11.key_wrapping import DoesNotUnwrapError, Wrapping
from hsm_config.pkcs11.master_keys import MasterKeys
from hsm_config.pkcs11.module import Library, find_token, log_in, module_path, opened
from hsm_config.pkcs11.pin import obtain_pin
from hsm_config.profile import HsmProfile, load_profile
from hsm_config.provisioning import generation, replicas
from hsm_config.provisioning.init_report import ProvisionReport
from hsm_config.provisioning.master_key_rotation import firma
from hsm_config.provisioning.master_key_transfer import transport
from hsm_config.provisioning.replicas import Member

FIRST_MASTER: Final = 1
"""What `hsm init` makes in an HSM that has no master key."""


@dataclass(frozen=True, slots=True)
class MasterKeyTransfer:
    """What a move between two HSMs has."""

    version: int
    """Of the master key that both hold."""
    made: bool
    """Whether it was made now."""
    method_w: WrapMethod
    """By which the old HSM wraps W so that both open it."""
    methods: frozenset[WrapMethod]
    """By which private keys may be wrapped that the new HSM opens."""
    algorithms: frozenset[KeyAlgorithm]
    """Of which it takes keys."""


@dataclass(frozen=True, slots=True)
class _Side:
    """A token, as its own make has it."""

    session: pkcs11.Session
    profile: HsmProfile

    @property
    def wrapping(self) -> Wrapping:
        return Wrapping(self.profile)

    @property
    def available(self) -> set[pkcs11.Mechanism]:
        return self.session.token.slot.get_mechanisms()

    def own_methods(self) -> list[WrapMethod]:
        """By which it wraps private keys, best first."""
        return self.wrapping.methods.wrapping(self.available)

    def opened_methods(self) -> frozenset[WrapMethod]:
        """By which keys may be wrapped that it opens, as its profile says."""
        return self.wrapping.methods.opened(self.available)


def share_master(settings: Settings, successor: Settings) -> MasterKeyTransfer:
    """See to it that an HSM and its successor hold one newest master key.

    Args:
        settings: the installation as it is.
        successor: the same with the new HSM, which `hsm init` has prepared; maybe of
            another make.

    Returns:
        What both share.

    Raises:
        SettingsError: settings, profile or a PIN file cannot be used; or both are
            tokens of one module with two configurations.
        HsmRefusedError: a make keeps keys resident only, the tokens have no way
            or no format in common, or hold different keys of one version.
        HsmUnavailableError: a module, a token or a PIN does not work.
    """
    with (
        firma(settings) as (library, session, profile),
        _successor(settings, profile, library, successor) as (members, its_profile),
    ):
        old, new = _Side(session, profile), _Side(members[0].session, its_profile)
        ways = _ways(old, new)
        version, made = _share(session, members)
        generation.carry(session, (one.session for one in members))
        # Shares it with the other members too, and bars it from leaving.
        with replicas.held(library, settings, profile) as others:
            replicas.provision(session, others, settings, profile, ProvisionReport())
        method_w, proven = _prove(old, new, version, ways)
        for one in members[1:]:
            replicas.refuse_other(
                new.session, one.session, version, its_profile, one.label
            )
        methods = (new.opened_methods() - set(old.own_methods())) | proven
    algorithms = frozenset(its_profile.keys.algorithms)
    return MasterKeyTransfer(version, made, method_w, methods, algorithms)


def _ways(old: _Side, new: _Side) -> list[WrapMethod]:
    """By which methods W may pass, best first; both HSMs must open them.

    Raises:
        HsmRefusedError: there is none.
    """
    of_old = [*old.own_methods(), WrapMethod.AES_KEY_WRAP]
    both = old.opened_methods() & new.opened_methods()
    ways = [method for method in of_old if method in both]
    if not ways:
        msg = (
            f"{new.profile.name} opens nothing that {old.profile.name} wraps: no key "
            "can follow (see `keys.wrap` and `keys.opens` of their profiles)"
        )
        raise HsmRefusedError(msg)
    return ways


def _share(session: pkcs11.Session, new: Sequence[Member]) -> tuple[int, bool]:
    """The version that both hold, and whether it was made now."""
    masters = MasterKeys(session)
    there = [MasterKeys(one.session).versions() for one in new]
    version, made = masters.newest(), False
    # A key that can still leave was made by a run that was killed before it did.
    if not masters.get(version)[Attribute.EXTRACTABLE]:
        # Version 1 says nothing: each HSM made its own by `hsm init`.
        shared = all(versions[-1:] == (version,) for versions in there)
        if shared and version != FIRST_MASTER:
            return version, False
        version, made = max(version, *chain.from_iterable(there)) + 1, True
        masters.make(version, to_travel=True)
    for one, versions in zip(new, there, strict=True):
        if version not in versions:
            transport(masters.get(version), one.session, version)
    return version, made


def _prove(
    old: _Side, new: _Side, version: int, ways: Sequence[WrapMethod]
) -> tuple[WrapMethod, frozenset[WrapMethod]]:
    """Have the new HSM sign with keys that were made in the old one.

    What a make opens depends on more than its lists: one takes a private key with
    padding behind it, and no W; one lists a mechanism, and encrypts alone by it.

    Args:
        old: where keys are.
        new: where they go to.
        version: of the master key that both hold.
        ways: by which W may pass, best first.

    Returns:
        The method by which W passes, and those of private keys that sign there.

    Raises:
        HsmRefusedError: none sign, or the new HSM shows the keys that it unwraps.
        PKCS11Error: a token failed.
    """
    master = version, MasterKeys(old.session).get(version)
    keys = [
        old.wrapping.make(old.session, algorithm, master, method)
        for method in old.own_methods()
        for algorithm in _kinds(old.profile, new.profile)
    ]
    for way in ways:
        failed = {key.method_k for key in keys if not _follows(old, new, key, way)}
        proven = {key.method_k for key in keys} - failed
        if proven:
            return way, frozenset(proven)
    msg = (
        f"{new.profile.name} opens no key that was made in {old.profile.name} under "
        f"master key {version}: they hold different ones, or have no format in common"
    )
    raise HsmRefusedError(msg)


def _follows(old: _Side, new: _Side, key: WrappedKey, way: WrapMethod) -> bool:
    """Whether a key signs in the new HSM once its W was wrapped for the way there."""
    master = MasterKeys(old.session).get(key.master)
    blob_w = old.wrapping.rewrap(key.blob_w, key.method_w, master, master, way)
    moved = replace(key, blob_w=blob_w, method_w=way)
    for side in (old, new):
        try:
            with side.wrapping.unwrapped(
                moved, MasterKeys(side.session).get(key.master)
            ) as private:
                refuse_readable(private)
                signatures.self_test(private, load_spki(key.spki))
        except DoesNotUnwrapError:
            return False
    return True


def _kinds(old: HsmProfile, new: HsmProfile) -> list[KeyAlgorithm]:
    """One RSA and one EC that both makes have: each has ways of its own."""
    both = [one for one in old.keys.algorithms if one in new.keys.algorithms]
    return list({one.is_ec: one for one in reversed(both)}.values())


@contextmanager
def _successor(
    settings: Settings, profile: HsmProfile, library: Library, successor: Settings
) -> Iterator[tuple[list[Member], HsmProfile]]:
    """Sessions of the new HSM's tokens, in the same module or one of its own.

    Raises:
        SettingsError: one module would need two configurations.
        HsmRefusedError: its make keeps keys resident only.
        HsmUnavailableError: a token is away.
    """
    own, its_profile = successor.hsm, load_profile(successor.hsm.profile)
    if its_profile.resident_only:
        msg = f"{its_profile.name} keeps keys resident: none can move there"
        raise HsmRefusedError(msg)
    path = module_path(own, its_profile)
    with ExitStack() as stack:
        its_library = library
        if path != module_path(settings.hsm, profile):
            its_library = stack.enter_context(opened(own, its_profile))
        elif own.softhsm_conf != settings.hsm.softhsm_conf:
            msg = f"a module ({path}) has one configuration in a process"
            raise SettingsError(msg)
        first = Member(own.firma.label, _token_session(its_library, successor))
        others = stack.enter_context(replicas.held(its_library, successor, its_profile))
        yield [first, *others], its_profile


def _token_session(library: Library, successor: Settings) -> pkcs11.Session:
    own = successor.hsm.firma
    try:
        token = find_token(library, own.label)
    except NoSuchToken:
        msg = f"token {own.label} is away; `rubrica hsm init` prepares it"
        raise HsmUnavailableError(msg) from None
    return log_in(token, obtain_pin(own, successor.environment))
