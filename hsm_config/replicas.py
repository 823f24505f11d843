"""More tokens behind the logical HSM "firma": the same master keys in each.

A master key travels once, at its making: while it may still leave its token it
is wrapped by a public key whose private half was made in the receiving token and
dies there, and then its CKA_EXTRACTABLE is switched off for good. A key that may
not leave any more is copied by the vendor's cloning, or not at all.

Each member has its own keep-alive pair and worker identity; fronts pin them all.
"""

import os
import secrets
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pkcs11
from cryptography.hazmat.primitives import serialization
from pkcs11 import Attribute
from pkcs11.exceptions import NoSuchToken

from appliance.domain.errors import (
    HsmRefusedError,
    HsmUnavailableError,
)
from appliance.settings import HsmSettings, Settings, SettingsError
from hsm_config import firma_keys, objects, signatures
from hsm_config.masters import Masters
from hsm_config.module import (
    Library,
    find_token,
    log_in,
    members,
    module_path,
    opened,
)
from hsm_config.pairs import load_spki
from hsm_config.pin import AskPin, obtain_pin
from hsm_config.profile import HsmProfile
from hsm_config.provision_report import ProvisionReport
from hsm_config.tokens import make_configuration, make_token
from hsm_config.transport import seal, transport
from hsm_config.wrapping import DoesNotUnwrapError, Wrapping


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


def provision(
    library: Library,
    primary: pkcs11.Session,
    settings: Settings,
    profile: HsmProfile,
    report: ProvisionReport,
    ask: AskPin | None,
) -> None:
    """Give each replica the master keys and keys of its own; then seal the former.

    Args:
        library: of `hsm.firma`, initialised.
        primary: session of `hsm.firma`, whose own keys are there.
        settings: the installation.
        profile: its HSM's make.
        report: told what was made.
        ask: asks an operator for a PIN, where the settings want that.

    Raises:
        HsmRefusedError: a member holds another master key of the same version, or
            lacks one that may not leave its token any more.
        HsmUnavailableError: a token is away.
        PKCS11Error: a token failed.
    """
    masters = Masters(primary)
    versions = masters.versions()
    with ExitStack() as open_until_sealed:
        for own in members(settings.hsm)[1:]:
            session = open_until_sealed.enter_context(
                _session(own, settings, profile, library, ask)
            )
            firma_keys.keep_alive_key(session, report)
            for version in versions:
                _share(primary, session, version, profile, own.firma.label, report)
            _identity(session, settings, profile, own.firma.label, report)
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

    Raises:
        HsmRefusedError: it holds another, or this one may not travel any more.
        PKCS11Error: a token failed.
    """
    master = Masters(primary).get(version)
    made = version not in Masters(replica).versions()
    if made:
        if not master[Attribute.EXTRACTABLE]:
            msg = (
                f"token {label} lacks master key {version}, which cannot leave its "
                "token any more: clone it by the HSM's own means, or take the "
                "replica out of the settings"
            )
            raise HsmRefusedError(msg)
        transport(master, replica, version)
    refuse_other_master(primary, replica, version, profile, label)
    report.note(f"master key {version} on token {label}", made=made)


def refuse_other_master(
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
    master = version, Masters(primary).get(version)
    key = wrapping.generate(
        primary, profile.keys.algorithms[0], master, wrapping.methods.pick(mechanisms)
    )
    try:
        with wrapping.unwrapped(key, Masters(replica).get(version)) as private:
            signatures.self_test(private, load_spki(key.spki))
    except DoesNotUnwrapError as exc:
        msg = f"token {label} holds another master key {version} than hsm.firma"
        raise HsmRefusedError(msg) from exc


def _identity(
    session: pkcs11.Session,
    settings: Settings,
    profile: HsmProfile,
    label: str,
    report: ProvisionReport,
) -> None:
    """The member's own identity, pinned beside the others'.

    Raises:
        HsmRefusedError: there are twins.
        PKCS11Error: the token failed.
    """
    made = firma_keys.identity_key(session, profile)
    report.note(f"worker identity of token {label}", made=made)
    public = objects.public_key(session, objects.IDENTITY_KEY.cka_id)
    pem = public.public_bytes(
        serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
    )
    path = firma_keys.identity_path(settings)
    pinned = path.read_bytes()
    if pem not in pinned:
        _replace(path, pinned + pem)
        report.note(f"pinned identity of token {label}", made=True)


def _replace(path: Path, content: bytes) -> None:
    """Put a file in another's place, whole or not at all."""
    new = path.with_name(f".{path.name}.{secrets.token_hex(4)}")
    new.touch(mode=0o644)
    with new.open("wb") as file:
        os.fchmod(file.fileno(), 0o644)
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
    new.replace(path)


def sessions(
    library: Library, settings: Settings, profile: HsmProfile
) -> Iterator[pkcs11.Session]:
    """A session of each replica's token, one after the other.

    Args:
        library: of `hsm.firma`, initialised.
        settings: the installation.
        profile: its HSM's make.

    Raises:
        HsmUnavailableError: a token is away.
        PKCS11Error: a token failed.
    """
    for own in members(settings.hsm)[1:]:
        with _session(own, settings, profile, library, None) as session:
            yield session


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
