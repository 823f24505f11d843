"""A credential as the internal CA would have certified it, without an HSM.

held = await hold(store, person, CUIL, now)
pem = bundle(outside.certify(held.spki, CUIL), outside.issuing)
"""

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from cryptography import x509

from appliance.domain.ids import CredentialId, PersonId
from appliance.domain.keys.hsm_keys import KeyAlgorithm
from appliance.domain.pki.certificates import CertificateRecord, serial_text
from appliance.domain.vocab import CertificateKind
from appliance.keys.credential_store import CredentialStore
from appliance.pki.certificate_store import CertificateStore
from appliance.record.unit_of_work import Database
from tests.support.installation.record import new_credential
from tests.support.pki.outside_ca import OutsideCa, der, ec_key, named, spki_of


@dataclass(frozen=True)
class Held:
    """A credential in the record, and what made it."""

    id: CredentialId
    spki: bytes
    certificate: x509.Certificate
    ca: OutsideCa
    """Stands for the internal CA."""


async def hold(
    store: Database, person: PersonId, cuil: str, now: datetime, **changes: Any
) -> Held:
    """Record a credential with its certificate.

    Args:
        store: the record.
        person: whose.
        cuil: eleven digits.
        now: aware.
        changes: fields of the credential, and `name` of its holder.
    """
    key = ec_key()
    ca = OutsideCa(now, "Rúbrica DEMO SIN VALIDEZ")
    start = changes.pop("not_before", now - timedelta(days=1))
    end = changes.pop("not_after", now + timedelta(days=365))
    subject = named(changes.pop("name", "Ana Pérez"), f"CUIL {cuil}")
    made = ca.certify(spki_of(key), cuil, start=start, end=end, subject=subject)
    credential = new_credential(
        person,
        **{
            "algorithm": KeyAlgorithm.EC_P256,
            "spki": spki_of(key),
            "certificate": der(made),
            "chain": (der(ca.issuing),),
            "not_before": made.not_valid_before_utc,
            "not_after": made.not_valid_after_utc,
            **changes,
        },
    )
    async with store.write() as transaction:
        await CredentialStore(transaction).add(credential)
        await CertificateStore(transaction).add(
            CertificateRecord(
                serial_text(made.serial_number),
                CertificateKind.SIGNER,
                "0" * 40,
                credential.id,
                der(made),
                credential.not_before,
                credential.not_after,
            )
        )
    return Held(credential.id, spki_of(key), made, ca)
