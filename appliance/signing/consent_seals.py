"""Seals of an activation: its unlock key, sealed to each host that may sign it.

Each seal is bound to the consent in the format of the key that it is sealed to, so
that hosts of this version and of the one before can sign the same activation.

Source: design §4 "Activation keys"; docs/keys.md "From the password to the key".
"""

from appliance.domain.signing.activation import ActivationKey, Seal
from appliance.domain.signing.consent import Consent
from appliance.keys.key_encryption import seal_to_each


def seal_consent(
    hosts: tuple[ActivationKey, ...], unlock: bytes, consent: Consent
) -> tuple[Seal, ...]:
    """Seal an unlock key to each host.

    Args:
        hosts: as `SigningHosts.live` gave them.
        unlock: 32 bytes.
        consent: what the seals are bound to.
    """
    data = {each: consent.data(each) for each in {key.format for key in hosts}}
    return tuple(
        seal for key in hosts for seal in seal_to_each((key,), unlock, data[key.format])
    )
