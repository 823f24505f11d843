"""What a seal is bound to, by the record as it stands: as a worker computes it.

data = await consent_data(core, claim)
unlock = open_seal(private, claim.seal.sealed, data)
"""

from appliance.domain.signing.activation import Claim
from appliance.domain.signing.consent import ConsentSigner, consent_of
from appliance.keys.credential_store import CredentialStore
from appliance.people.person_store import PersonStore
from appliance.requests.request_store import RequestStore
from tests.support.installation.record import CoreFixture


async def consent_data(core: CoreFixture, claim: Claim) -> bytes:
    """The `info` of a claim's seal.

    Args:
        core: the record.
        claim: with a seal; its documents may be others than the record has.
    """
    async with core.store.read() as transaction:
        person = await PersonStore(transaction).get(claim.person)
        credential = await CredentialStore(transaction).get(claim.credential)
        views = await RequestStore(transaction).named(
            [document.request for document in claim.documents]
        )
    assert person is not None
    assert credential is not None
    assert claim.seal is not None
    consent = consent_of(
        claim,
        ConsentSigner.of(person, credential),
        {document.seq: views[document.request] for document in claim.documents},
        lambda view: core.settings.signature_profile.narrowed(view.wishes),
    )
    return consent.data(claim.seal.format)
