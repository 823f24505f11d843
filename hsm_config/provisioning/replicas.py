"""More tokens behind the logical HSM "firma": the same master keys in each.

A master key travels once, at its making: while it may still leave its token it
is wrapped by a public key whose private half was made in the receiving token and
dies there, and then its CKA_EXTRACTABLE is switched off for good. A key that may
not leave any more is copied by the vendor's cloning, or not at all.

Each member has its own keep-alive pair and worker identity; fronts pin them all.
"""

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import NamedTuple

import pkcs11
from pkcs11 import Attribute
from pkcs11.exceptions import NoSuchToken

from appliance.domain.errors import (
    HsmRefusedError,
    HsmUnavailableError,
)
from appliance.settings import HsmSettings, Settings, SettingsError
from hsm_config.pkcs11 import objects, signatures
from hsm_config.pkcs11.key_pairs import load_spki
from hsm_config.pkcs11.key_wrapping import DoesNotUnwrapError, Wrapping
from hsm_config.pkcs11.master_keys import MasterKeys
from hsm_config.pkcs11.module import (
    Library,
    find_token,
    log_in,
    members,
    module_path,
    opened,
)
from hsm_config.pkcs11.pin import AskPin, obtain_pin
from hsm_config.pkcs11.tokens import make_configuration, make_token
from hsm_config.profile import HsmProfile
from hsm_config.provisioning import generation, signing_token
from hsm_config.provisioning.init_report import ProvisionReport
from hsm_config.provisioning.master_key_transfer import seal, transport


def check_apart(settings: Settings) -> None:
    """Refuse members that could be taken for one another.

    Raises:
        SettingsError: two tokens of a module share a label, or two a PIN file.
    """
    hsm = settings.hsm
    tokens = [hsm.firma, hsm.pki, *hsm.replicas]
    labels = {(one.label, getattr(one, "module", None) or hsm.module) for one in tokens}
    files = {one.pin_file for one in tokens}
    if len(labels) < len(tokens) or len(files) < len(tokens):
        msg = "hsm.replicas: each token has a label and a PIN file of its own"
        raise SettingsError(msg)


def make_tokens(
    library: Library,
    settings: Settings,
    profile: HsmProfile,
    report: ProvisionReport,
    ask: AskPin | None,
) -> None:
    """See to it that each replica's token is there with its user PIN.

    Args:
        library: of `hsm.firma`, initialised; maybe re-initialised by this.
        settings: the installation.
        profile: its HSM's make.
        report: told what was made.
        ask: asks an operator for a PIN, where the settings want that.

    Raises:
        HsmRefusedError: as `make_token`.
        SettingsError: a PIN file or a module cannot be used.
        PKCS11Error: a module failed.
    """
    for own in members(settings.hsm)[1:]:
        conf = own.softhsm_conf
        if profile.config_env and profile.quirks.makes_tokens and conf:
            make_configuration(conf)
        with library_of(own, settings.hsm, profile, library) as its_library:
            news = make_token(its_library, own.firma, settings, profile, ask)
        report.made.extend(news)
        if not news:
            report.note(f"token {own.firma.label}", made=False)


class Member(NamedTuple):
    """One more token behind the logical HSM, opened."""

    label: str
    session: pkcs11.Session


def provision(
    primary: pkcs11.Session,
    others: Sequence[Member],
    settings: Settings,
    profile: HsmProfile,
    report: ProvisionReport,
) -> None:
    """Give each replica the master keys and keys of its own; then seal the former.

    Args:
        primary: session of `hsm.firma`, whose own keys are there.
        others: the replicas, all of them.
        settings: the installation.
        profile: its HSM's make.
        report: told what was made.

    Raises:
        HsmRefusedError: a member holds another master key of the same version, or
            lacks the newest, which may not leave its token any more.
        PKCS11Error: a token failed.
    """
    masters = MasterKeys(primary)
    versions = masters.versions()
    for label, session in others:
        signing_token.keep_alive_key(session, report)
        for version in versions:
            _share(primary, session, version, profile, label, report)
        made = signing_token.identity_key(session, profile)
        report.note(f"worker identity of token {label}", made=made)
        public = objects.public_key(session, objects.IDENTITY_KEY.cka_id)
        made = signing_token.pin_also(public, settings)
        report.note(f"pinned identity of token {label}", made=made)
    generation.carry(primary, (one.session for one in others))
    for version in versions:
        seal(masters.get(version))


def _share(
    primary: pkcs11.Session,
    replica: pkcs11.Session,
    version: int,
    profile: HsmProfile,
    label: str,
    report: ProvisionReport,
) -> None:
    """Have a replica hold a master key that the primary holds.

    One that came later lacks what was sealed before; what is in use it must have.

    Raises:
        HsmRefusedError: it holds another, or lacks the newest, which may not
            travel any more.
        PKCS11Error: a token failed.
    """
    masters = MasterKeys(primary)
    master = masters.get(version)
    made = version not in MasterKeys(replica).versions()
    if made and not master[Attribute.EXTRACTABLE]:
        if version != masters.newest():
            report.note(f"no master key {version} on token {label}", made=False)
            return
        raise HsmRefusedError(_lacks(label, version))
    if made:
        transport(master, replica, version)
    refuse_other(primary, replica, version, profile, label)
    report.note(f"master key {version} on token {label}", made=made)


def refuse_late(primary: pkcs11.Session, others: Sequence[Member]) -> None:
    """Refuse replicas that lack a newest master key that could not reach them.

    Raises:
        HsmRefusedError: one does.
        PKCS11Error: a token failed.
    """
    masters = MasterKeys(primary)
    newest = masters.newest()
    if masters.get(newest)[Attribute.EXTRACTABLE]:
        return
    for label, session in others:
        if newest not in MasterKeys(session).versions():
            raise HsmRefusedError(_lacks(label, newest))


def _lacks(label: str, version: int) -> str:
    """Say of a token that it lacks a master key that is sealed."""
    return (
        f"token {label} lacks master key {version}, which cannot leave its token any "
        "more: `rubrica hsm join` brings it in by a new one; or clone it by the HSM's "
        "own means, or take the replica out of the settings"
    )


def refuse_other(
    primary: pkcs11.Session,
    replica: pkcs11.Session,
    version: int,
    profile: HsmProfile,
    label: str,
) -> None:
    """Refuse a replica whose master key does not open what the primary's wrapped.

    Args:
        primary: session of `hsm.firma`.
        replica: session of the other member.
        version: of the master key.
        profile: the make of both.
        label: of the replica's token.

    Raises:
        KeyNotFoundError: one of them lacks it.
        HsmRefusedError: it does not.
        PKCS11Error: a token failed.
    """
    mechanisms = primary.token.slot.get_mechanisms()
    wrapping = Wrapping(profile)
    master = version, MasterKeys(primary).get(version)
    key = wrapping.generate(
        primary, profile.keys.algorithms[0], master, wrapping.methods.pick(mechanisms)
    )
    try:
        with wrapping.unwrapped(key, MasterKeys(replica).get(version)) as private:
            signatures.self_test(private, load_spki(key.spki))
    except DoesNotUnwrapError as exc:
        msg = f"token {label} holds another master key {version} than hsm.firma"
        raise HsmRefusedError(msg) from exc


@contextmanager
def held(
    library: Library,
    settings: Settings,
    profile: HsmProfile,
    ask: AskPin | None = None,
) -> Iterator[list[Member]]:
    """A session of each replica's token, all of them at once.

    Args:
        library: of `hsm.firma`, initialised.
        settings: the installation.
        profile: its HSM's make.
        ask: asks an operator for a PIN, where the settings want that.

    Raises:
        HsmUnavailableError: a token is away.
        PKCS11Error: a token failed.
    """
    with ExitStack() as stack:
        yield [
            Member(
                own.firma.label,
                stack.enter_context(_session(own, settings, profile, library, ask)),
            )
            for own in members(settings.hsm)[1:]
        ]


@contextmanager
def _session(
    own: HsmSettings,
    settings: Settings,
    profile: HsmProfile,
    library: Library,
    ask: AskPin | None,
) -> Iterator[pkcs11.Session]:
    """A session of one member's token.

    Raises:
        HsmUnavailableError: the token is away.
    """
    with library_of(own, settings.hsm, profile, library) as its_library:
        try:
            token = find_token(its_library, own.firma.label)
        except NoSuchToken:
            msg = f"token {own.firma.label} is away"
            raise HsmUnavailableError(msg) from None
        yield log_in(token, obtain_pin(own.firma, settings.environment, ask))


@contextmanager
def library_of(
    own: HsmSettings, hsm: HsmSettings, profile: HsmProfile, library: Library
) -> Iterator[Library]:
    """A member's module: that of `hsm.firma`, or one of its own for a while.

    Args:
        own: the member's settings.
        hsm: the installation's.
        profile: the make of both.
        library: of `hsm.firma`, initialised.

    Raises:
        SettingsError: there is no module.
        HsmUnavailableError: it does not start.
    """
    if module_path(own, profile) == module_path(hsm, profile):
        yield library
        return
    with opened(own, profile) as other:
        yield other
