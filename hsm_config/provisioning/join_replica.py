"""A member that comes later to the logical HSM "firma", or in a lost one's place.

The master keys in use are sealed and reach nobody any more. So a next one is made
that travels to every member at its making, as `hsm_config.provisioning.replicas`
tells, and the users' keys are moved under it as by any rotation. Source: design §4.

Must not run in a process that has the HSM open. Each step is looked at before it is
made, so that a killed run is completed by the next one.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import pkcs11
from pkcs11 import Attribute
from pkcs11.exceptions import NoSuchToken, PKCS11Error

from appliance.domain.errors import (
    ApplianceError,
    HsmRefusedError,
    HsmUnavailableError,
)
from appliance.settings import Settings
from hsm_config.pkcs11 import objects
from hsm_config.pkcs11.key_wrapping import Wrapping
from hsm_config.pkcs11.master_keys import MasterKeys, temporary
from hsm_config.pkcs11.module import describe, find_token, members, opened
from hsm_config.pkcs11.wrap_mechanisms import WrapMethods
from hsm_config.profile import HsmProfile, load_profile
from hsm_config.provisioning import replicas, signing_token
from hsm_config.provisioning.init import alone
from hsm_config.provisioning.init_report import ProvisionReport
from hsm_config.provisioning.master_key_rotation import firma
from hsm_config.provisioning.master_key_transfer import way_between
from hsm_config.provisioning.replicas import Member

_NO_MEMBER: Final = "hsm.replicas names no token that could join"


@dataclass(frozen=True, slots=True)
class Joined:
    """What a run did in the HSM."""

    version: int
    """The newest master key; every member holds it."""
    made: bool
    """Whether it was made now."""
    report: ProvisionReport
    """What was made and what was there."""
    forgotten: int
    """Worker identities that were pinned and belong to no member."""


def late_members(settings: Settings) -> list[str]:
    """Which tokens of the settings do not hold the newest master key, by label.

    Changes nothing. A token that is not there counts, where `hsm init` makes tokens.

    Raises:
        SettingsError: settings, profile or a PIN file cannot be used.
        HsmRefusedError: a resident-only make, no replicas, or no master key yet.
        HsmUnavailableError: a module, a token or a PIN does not work.
    """
    replicas.check_apart(settings)
    if not settings.hsm.replicas:
        raise HsmRefusedError(_NO_MEMBER)
    missing = _missing(settings)
    there = tuple(one for one in settings.hsm.replicas if one.label not in missing)
    hsm = settings.hsm.model_copy(update={"replicas": there})
    present = settings.model_copy(update={"hsm": hsm})
    with (
        firma(present) as (library, session, profile),
        replicas.held(library, present, profile) as others,
    ):
        newest = _versions(session)[-1]
        late = [one.label for one in others if not _has(one.session, newest)]
    return [*missing, *late]


def join_members(settings: Settings) -> Joined:
    """Have every token of the settings hold a newest master key that none gives away.

    Args:
        settings: the installation, `hsm.replicas` naming the new token beside those
            that stay.

    Returns:
        What was done; users' keys of earlier versions are still where they were.

    Raises:
        SettingsError: settings, profile or a PIN file cannot be used.
        HsmRefusedError: a resident-only make, no replicas, no master key yet, a worker
            identity that is not pinned; a token of another installation, one that
            cannot get a master key or does not wrap as the others do.
        HsmUnavailableError: a module, a token or a PIN does not work.
    """
    replicas.check_apart(settings)
    report = ProvisionReport()
    _make_tokens(settings, report)
    with (
        firma(settings) as (library, session, profile),
        replicas.held(library, settings, profile) as others,
    ):
        masters = MasterKeys(session)
        version = _versions(session)[-1]
        signing_token.refuse_unpinned(
            objects.public_key(session, objects.IDENTITY_KEY.cka_id), settings
        )
        for one in others:
            _refuse_stranger(session, one, profile)
        late = [one for one in others if not _has(one.session, version)]
        # One that can still leave was made by a run that was killed before it did.
        made = bool(late) and not masters.get(version)[Attribute.EXTRACTABLE]
        if made:
            for one in late:
                _refuse_unfit(session, one, profile)
            version += 1
            masters.make(version, to_travel=True)
            report.note(f"master key {version}", made=True)
        replicas.provision(session, others, settings, profile, report)
        forgotten = _pin(session, others, settings)
    return Joined(version, made, report, forgotten)


def _missing(settings: Settings) -> list[str]:
    """Replicas whose token is to be made yet."""
    profile = load_profile(settings.hsm.profile)
    if not profile.quirks.makes_tokens:
        return []
    missing = []
    try:
        with opened(settings.hsm, profile) as library:
            for own in members(settings.hsm)[1:]:
                conf = own.softhsm_conf
                label = own.firma.label
                if conf is not None and not conf.exists():
                    missing.append(label)
                    continue
                with replicas.library_of(own, settings.hsm, profile, library) as its:
                    try:
                        token = find_token(its, label)
                    except NoSuchToken:
                        missing.append(label)
                        continue
                    if not token.flags & pkcs11.TokenFlag.USER_PIN_INITIALIZED:
                        missing.append(label)
    except PKCS11Error as exc:
        raise HsmUnavailableError(describe(exc)) from exc
    return missing


def _make_tokens(settings: Settings, report: ProvisionReport) -> None:
    """The replicas' tokens, where the make has us make them.

    By themselves, for a token that is made starts the module anew.
    """
    profile = load_profile(settings.hsm.profile)
    try:
        with alone(settings.data_dir), opened(settings.hsm, profile) as library:
            replicas.make_tokens(library, settings, profile, report, None)
    except PKCS11Error as exc:
        raise HsmUnavailableError(describe(exc)) from exc


def _versions(session: pkcs11.Session) -> tuple[int, ...]:
    versions = MasterKeys(session).versions()
    if not versions:
        msg = "no master key (MWK); run `rubrica hsm init`"
        raise HsmRefusedError(msg)
    return versions


def _has(session: pkcs11.Session, version: int) -> bool:
    return version in MasterKeys(session).versions()


def _refuse_stranger(primary: pkcs11.Session, one: Member, profile: HsmProfile) -> None:
    """Refuse a token with master keys that are not this installation's.

    Raises:
        HsmRefusedError: it has some.
        PKCS11Error: a token failed.
    """
    ours = MasterKeys(primary).versions()
    for version in MasterKeys(one.session).versions():
        if version not in ours:
            msg = (
                f"token {one.label} holds master key {version}, which hsm.firma does "
                "not: it is another installation's, or was away when that one was "
                "destroyed; initialise it anew"
            )
            raise HsmRefusedError(msg)
        replicas.refuse_other(primary, one.session, version, profile, one.label)


def _refuse_unfit(primary: pkcs11.Session, one: Member, profile: HsmProfile) -> None:
    """Refuse a token, before anything is made, that could not serve as the others do.

    Raises:
        HsmRefusedError: it could not.
        PKCS11Error: a token failed.
    """
    way_between(primary, one.session)
    methods = WrapMethods(profile.keys)
    method = methods.pick(primary.token.slot.get_mechanisms())
    try:
        with temporary(one.session) as master:
            Wrapping(profile).generate(
                one.session, profile.keys.algorithms[0], (0, master), method
            )
    except (ApplianceError, PKCS11Error) as exc:
        why = exc.reason if isinstance(exc, HsmRefusedError) else type(exc).__name__
        msg = f"token {one.label} keeps no keys wrapped by {method}: {why}"
        raise HsmRefusedError(msg) from exc


def _pin(primary: pkcs11.Session, others: Sequence[Member], settings: Settings) -> int:
    """Have fronts know the members' worker identities, and those of no other token."""
    sessions = [primary, *(one.session for one in others)]
    cka_id = objects.IDENTITY_KEY.cka_id
    publics = [objects.public_key(session, cka_id) for session in sessions]
    return signing_token.pin_only(publics, settings)
