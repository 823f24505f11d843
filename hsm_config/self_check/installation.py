"""What `rubrica hsm check` says of the installation's own keys and certificates.

Each function returns what is good to know, and raises where something is amiss.
"""

import pkcs11

from appliance.domain.clock import Clock
from appliance.domain.errors import HsmRefusedError, KeyNotFoundError
from appliance.secrets.admitted_hosts import listed as listed_hosts
from appliance.secrets.host_key import fingerprint, key_text, read_host_key
from appliance.secrets.own_host import own_name
from appliance.settings import Settings
from hsm_config.pkcs11 import key_pairs, objects
from hsm_config.pkcs11.master_keys import MasterKeys
from hsm_config.profile import HsmProfile
from hsm_config.provisioning import (
    ca_certificates,
    pki_token,
    replicas,
    signing_token,
    tsa_keys,
)


def masters(session: pkcs11.Session) -> str:
    """Every master key is there once.

    Raises:
        KeyNotFoundError: there is none.
        HsmRefusedError: there are twins.
    """
    keys = MasterKeys(session)
    newest = keys.newest()
    versions = keys.versions()
    for version in versions:
        keys.get(version)
    listed = ", ".join(str(version) for version in versions)
    return f"versions {listed}; new keys are wrapped by {newest}"


def same_masters(
    primary: pkcs11.Session, member: pkcs11.Session, profile: HsmProfile, label: str
) -> str:
    """A member holds what `hsm.firma` holds: one opens the other's.

    One that joined later lacks earlier versions, and the keys that are under them.

    Raises:
        KeyNotFoundError: it lacks the newest one.
        HsmRefusedError: it holds another one of that version.
    """
    versions, there = MasterKeys(primary).versions(), MasterKeys(member).versions()
    for version in versions:
        if version in there or version == versions[-1]:
            replicas.refuse_other(primary, member, version, profile, label)
    listed = ", ".join(str(one) for one in versions if one in there)
    told = f"versions {listed}, the same as those of hsm.firma"
    lacking = ", ".join(str(one) for one in versions if one not in there)
    return f"{told}; it joined after {lacking}" if lacking else told


def identity(session: pkcs11.Session, settings: Settings) -> str:
    """The worker identity signs, and its public half is pinned.

    Raises:
        KeyNotFoundError: it is not there.
        HsmRefusedError: it does not sign, or is not the pinned one.
    """
    cka_id = objects.IDENTITY_KEY.cka_id
    objects.self_test(session, cka_id)
    public = objects.public_key(session, cka_id)
    signing_token.refuse_unpinned(public, settings)
    path = signing_token.identity_path(settings)
    return f"{key_pairs.algorithm_of(public)}, pinned in {path}"


def host_key(settings: Settings) -> str:
    """Describe this host's own key, and its admission on this machine.

    Raises:
        SettingsError: the key cannot be used, or the list of hosts not be read.
        HsmRefusedError: there is none, or another one is admitted here.
    """
    key = read_host_key(settings.host_key_file)
    if key is None:
        msg = f"{settings.host_key_file} is not there; run `rubrica hsm host-key`"
        raise HsmRefusedError(msg)
    name, path = own_name(), settings.signing_hosts_file
    admitted = listed_hosts(path).get(name)
    if admitted is None:
        told = "not admitted on this machine, which needs that for fronts of its own"
    elif admitted == key.public:
        told = f"admitted in {path}"
    else:
        msg = (
            f"{path} admits {name} by another key: rubrica hsm admit {name} "
            f"{key_text(key.public)}"
        )
        raise HsmRefusedError(msg)
    return f"{name}, fingerprint {fingerprint(key.public)}; {told}"


def keep_alive(session: pkcs11.Session) -> str:
    """The key of test signatures signs.

    Raises:
        KeyNotFoundError: it is not there.
        HsmRefusedError: it does not sign.
    """
    objects.self_test(session, objects.KEEP_ALIVE_KEY.cka_id)
    return "signs"


def authority(session: pkcs11.Session, settings: Settings, clock: Clock) -> str:
    """Root, CA, responder and TSA: keys that sign, certificates in date.

    Raises:
        HsmRefusedError: one of these is not so.
    """
    held = (
        ("root", objects.ROOT_KEY, ca_certificates.read_root(settings)),
        ("CA", objects.CA_KEY, ca_certificates.read_ca(settings)),
    )
    for name, ref, certificate in held:
        objects.self_test(session, ref.cka_id)
        if certificate.public_key() != objects.public_key(session, ref.cka_id):
            msg = f"the {name} certificate is of another key than the token's"
            raise HsmRefusedError(msg)
        if not certificate.not_valid_before_utc <= clock.now():
            msg = f"the {name} certificate is not valid yet: look at the clock"
            raise HsmRefusedError(msg)
        if not clock.now() <= certificate.not_valid_after_utc:
            msg = f"the {name} certificate has expired"
            raise HsmRefusedError(msg)
    newest = max(tsa_keys.generations(session), default=tsa_keys.FIRST)
    for label, ref in (
        (objects.OCSP_LABEL, objects.OCSP_KEY),
        (tsa_keys.label_of(newest), tsa_keys.reference(newest)),
    ):
        try:
            objects.self_test(session, ref.cka_id)
        except KeyNotFoundError as exc:
            msg = f"{label} is not there; run `rubrica hsm init`"
            raise HsmRefusedError(msg) from exc
    pki_token.check_certificates(settings)
    _, _, ca = held[1]
    until = ca.not_valid_after_utc.date().isoformat()
    return f"{ca.subject.rfc4514_string()}, until {until}, keys match, chain holds"
