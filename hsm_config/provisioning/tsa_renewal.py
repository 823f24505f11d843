"""A next key of the internal TSA on a running installation, and the end of an old one.

Must not run in a process that has the HSM open.
"""

from collections.abc import Collection

from appliance.domain.errors import HsmRefusedError, KeyNotFoundError
from appliance.domain.keys.hsm_keys import TokenRole
from appliance.settings import Settings
from hsm_config.pkcs11 import objects
from hsm_config.pkcs11.key_pairs import spki
from hsm_config.pkcs11.module import token_settings
from hsm_config.profile import load_profile
from hsm_config.provisioning import tsa_keys
from hsm_config.provisioning.exclusive_access import token_alone


def next_tsa_key(settings: Settings, certified: Collection[bytes]) -> tuple[int, bool]:
    """See to it that there is a generation that was never certified.

    Args:
        settings: the installation.
        certified: public keys that the TSA's certificates are of,
            SubjectPublicKeyInfo in DER. A newest generation that is none of them was
            left by a run that was killed, and is gone on with.

    Returns:
        The generation, which has signed once, and whether it was made now.

    Raises:
        SettingsError: settings, profile or a PIN file cannot be used.
        HsmRefusedError: twins, or the pair does not fit together.
        HsmUnavailableError: the module, the token or its PIN does not work.
    """
    profile = load_profile(settings.hsm.profile)
    own = token_settings(settings.hsm, TokenRole.PKI)
    with token_alone(settings, own, profile) as (_, session):
        generation = max(tsa_keys.generations(session), default=0)
        cka_id = tsa_keys.reference(max(generation, tsa_keys.FIRST)).cka_id
        try:
            public = spki(objects.public_key(session, cka_id))
            objects.self_test(session, cka_id)
        except KeyNotFoundError:
            # Half of a pair was certified by nobody.
            generation = max(generation, tsa_keys.FIRST)
        else:
            if public not in certified:
                return generation, False
            generation += 1
        cka_id = tsa_keys.reference(generation).cka_id
        label = tsa_keys.label_of(generation)
        objects.refuse_twins(session, label, cka_id)
        objects.make_anew(session, cka_id, label, profile.own_algorithm)
    return generation, True


def destroy_tsa_key(settings: Settings, generation: int) -> bool:
    """Destroy an earlier generation, for good; whether it was there.

    Args:
        settings: the installation.
        generation: not the newest one.

    Raises:
        SettingsError: settings, profile or a PIN file cannot be used.
        HsmRefusedError: it is the newest one.
        HsmUnavailableError: the module, the token or its PIN does not work.
    """
    profile = load_profile(settings.hsm.profile)
    own = token_settings(settings.hsm, TokenRole.PKI)
    with token_alone(settings, own, profile) as (_, session):
        if generation >= max(tsa_keys.generations(session), default=0):
            msg = f"TSA key {generation} is not an old one"
            raise HsmRefusedError(msg)
        return objects.destroy(session, tsa_keys.reference(generation).cka_id) > 0
