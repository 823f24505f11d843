"""A claimed activation with all that signing it needs."""

from dataclasses import dataclass, field
from typing import Final

from appliance.appearance.content import picture_of
from appliance.core.unit_of_work import Transaction
from appliance.domain.activation import ActivationDocument
from appliance.domain.appearance.details import LogoPicture
from appliance.domain.identity import Credential, Person
from appliance.domain.records.activations import Claim
from appliance.domain.requests.request import RequestView
from appliance.identity.person_store import PersonStore
from appliance.keys.credential_store import CredentialStore
from appliance.signing.request_store import RequestStore

SUSPECT: Final = 3
"""Claims after which it is signed alone, so that it takes no other along."""


class SuspectWaitsError(Exception):
    """What is next is signed alone: nothing is to be begun before it."""


@dataclass(frozen=True, slots=True)
class ClaimedActivation:
    """A claim with all that signing its items needs."""

    claim: Claim
    person: Person | None
    credential: Credential | None
    requests: dict[int, RequestView]
    """By item."""
    pictures: dict[str, LogoPicture] = field(default_factory=dict)
    """Logos that items still to be signed show, by SHA-256."""

    def picture(self, item: ActivationDocument) -> LogoPicture | None:
        """The logo that an item's stamp shows."""
        logo = item.details.logo
        return None if logo is None else self.pictures.get(logo.sha256)

    @property
    def is_suspect(self) -> bool:
        """Whether earlier claims ended in a way that calls for signing it alone."""
        return self.claim.tries > SUSPECT


async def read_work(transaction: Transaction, claim: Claim) -> ClaimedActivation:
    """Read what stands beside a claim, now: person and key may have changed."""
    views = await RequestStore(transaction).named(
        [item.request for item in claim.documents]
    )
    shown = {item.details.logo: item.details for item in claim.documents}
    pictures = [await picture_of(transaction, details) for details in shown.values()]
    return ClaimedActivation(
        claim=claim,
        person=await PersonStore(transaction).get(claim.person),
        # Locked: a renewal either comes before this look, or sees the claim and
        # waits (see `Renewal.renewed`).
        credential=await CredentialStore(transaction).get(claim.credential, lock=True),
        requests={
            item.seq: views[item.request]
            for item in claim.documents
            if item.request in views
        },
        pictures={made.logo.sha256: made for made in pictures if made is not None},
    )
