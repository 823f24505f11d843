"""The installation's own keys on the firma token, and the file that pins them.

The keep-alive pair, the first master key (MWK 1) and the worker identity, whose
public half fronts read from a file. Looked at before they are made; what looks
like a loss is refused, never made anew. Source: design §4.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Final

import pkcs11
from cryptography.hazmat.primitives import serialization
from pkcs11.exceptions import PKCS11Error

from appliance.domain.errors import HsmRefusedError, KeyNotFoundError
from appliance.domain.keys.hsm_keys import KeyAlgorithm
from appliance.settings import Settings
from hsm_config.pkcs11 import objects
from hsm_config.pkcs11.key_pairs import PublicKey
from hsm_config.pkcs11.master_keys import MasterKeys
from hsm_config.pkcs11.pin import replace_file, write_new
from hsm_config.profile import HsmProfile
from hsm_config.provisioning.init_report import ProvisionReport

KEEP_ALIVE_ALGORITHM: Final = KeyAlgorithm.RSA_2048


def identity_path(settings: Settings) -> Path:
    """Where the worker identities' public keys stand (PEM, readable by all)."""
    return settings.data_dir / "pki" / "worker-identity.pem"


def provision(
    session: pkcs11.Session,
    settings: Settings,
    profile: HsmProfile,
    report: ProvisionReport,
) -> None:
    """Make what is missing of the token's own keys, and pin the identity.

    Args:
        session: of the firma token, logged in, read-write.
        settings: the installation.
        profile: its HSM's make.
        report: told what was made and what was there.

    Raises:
        HsmRefusedError: twins, or an identity that is pinned and lost.
        PKCS11Error: the token failed.
    """
    keep_alive_key(session, report)
    if not profile.resident_only:
        _first_master(session, report, to_travel=bool(settings.hsm.replicas))
    _identity(session, settings, profile, report)


def keep_alive_key(session: pkcs11.Session, report: ProvisionReport) -> None:
    """A pair for test signatures; a broken one is simply made again."""
    cka_id = objects.KEEP_ALIVE_KEY.cka_id
    objects.refuse_twins(session, objects.KEEP_ALIVE_LABEL, cka_id)
    try:
        objects.self_test(session, cka_id)
    except (KeyNotFoundError, HsmRefusedError, PKCS11Error):
        label = objects.KEEP_ALIVE_LABEL
        objects.make_anew(session, cka_id, label, KEEP_ALIVE_ALGORITHM)
        report.note("keep-alive key", made=True)
    else:
        report.note("keep-alive key", made=False)


def _first_master(
    session: pkcs11.Session, report: ProvisionReport, *, to_travel: bool
) -> None:
    """A master key where there is none; each one there is looked up for twins."""
    masters = MasterKeys(session)
    versions = masters.versions()
    for version in versions:
        masters.get(version)
        report.note(f"master key {version}", made=False)
    if not versions:
        masters.make(1, to_travel=to_travel)
        report.note("master key 1", made=True)


def _identity(
    session: pkcs11.Session,
    settings: Settings,
    profile: HsmProfile,
    report: ProvisionReport,
) -> None:
    """The worker identity, and the file by which fronts know it.

    Raises:
        HsmRefusedError: the file pins another key, or one that is lost.
    """
    path = identity_path(settings)
    try:
        objects.self_test(session, objects.IDENTITY_KEY.cka_id)
    except KeyNotFoundError as exc:
        if path.exists():
            msg = f"{path} is there, its key is not; remove it to pin a new one"
            raise HsmRefusedError(msg) from exc
    made = identity_key(session, profile)
    report.note("worker identity", made=made)
    public = objects.public_key(session, objects.IDENTITY_KEY.cka_id)
    _pin(public, settings, report)


def identity_key(session: pkcs11.Session, profile: HsmProfile) -> bool:
    """The worker identity's pair, made where there is none.

    Returns:
        Whether it was made.

    Raises:
        HsmRefusedError: there are twins.
        PKCS11Error: the token failed.
    """
    cka_id = objects.IDENTITY_KEY.cka_id
    objects.refuse_twins(session, objects.IDENTITY_LABEL, cka_id)
    try:
        objects.self_test(session, cka_id)
    except KeyNotFoundError:
        kind = profile.own_algorithm
        objects.make_anew(session, cka_id, objects.IDENTITY_LABEL, kind)
        return True
    return False


def _pin(public: PublicKey, settings: Settings, report: ProvisionReport) -> None:
    """Write the file, or see that it names this very key.

    Raises:
        HsmRefusedError: it does not.
    """
    path = identity_path(settings)
    made = not path.exists()
    if made:
        path.parent.mkdir(mode=0o755, parents=True, exist_ok=True)
        write_new(path, pem_of(public), 0o644)
    refuse_unpinned(public, settings)
    report.note(f"pinned identity {path}", made=made)


def refuse_unpinned(public: PublicKey, settings: Settings) -> None:
    """See that the file pins a worker identity.

    Args:
        public: of the token's worker identity.
        settings: the installation.

    Raises:
        HsmRefusedError: it is not there, or pins others alone.
    """
    path = identity_path(settings)
    try:
        pinned = path.read_bytes()
    except OSError as exc:
        msg = f"{path} cannot be read; run `rubrica hsm init`"
        raise HsmRefusedError(msg) from exc
    if pem_of(public) not in pinned:
        msg = f"{path} pins another key than the token's worker identity"
        raise HsmRefusedError(msg)


def pin_also(public: PublicKey, settings: Settings) -> bool:
    """Pin one more identity beside those that the file has; whether it was new.

    Args:
        public: of a member's worker identity.
        settings: the installation, whose file is there.
    """
    path = identity_path(settings)
    pinned = path.read_bytes()
    if pem_of(public) in pinned:
        return False
    replace_file(path, pinned + pem_of(public), 0o644)
    return True


def pin_only(publics: Sequence[PublicKey], settings: Settings) -> int:
    """Pin these identities and no other; how many others that ends.

    Args:
        publics: of all members, that of `hsm.firma` first.
        settings: the installation, whose file is there.
    """
    path = identity_path(settings)
    before, after = path.read_bytes(), b"".join(pem_of(public) for public in publics)
    if before != after:
        replace_file(path, after, 0o644)
    known = sum(pem_of(public) in before for public in publics)
    return before.count(b"-----BEGIN PUBLIC KEY-----") - known


def pem_of(public: PublicKey) -> bytes:
    """A worker identity as the file has it."""
    return public.public_bytes(
        serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
    )
