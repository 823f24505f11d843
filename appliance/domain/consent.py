"""What a person consents to: documents, the parameters of each, and the key's use.

It becomes an activation, which workers claim (`appliance.domain.records.activations`).

Source: design §3.
"""

from dataclasses import dataclass, field
from datetime import datetime

from appliance.domain.activation import Seal
from appliance.domain.appearance.details import PLAIN, StampDetails
from appliance.domain.ids import ActivationId, CredentialId, PersonId, RequestId
from appliance.domain.requests.signing_command import SignParameters


@dataclass(frozen=True, slots=True)
class NewItem:
    """One document to be signed under an activation."""

    request: RequestId
    document_sha256: str
    params: SignParameters
    params_sha256: str
    details: StampDetails = PLAIN
    """What its stamp shows besides."""
    code: str | None = None
    """Verification code in its QR code."""


@dataclass(frozen=True, slots=True)
class NewActivation:
    """A person's consent to sign exactly these documents with these parameters."""

    id: ActivationId
    person: PersonId
    credential: CredentialId
    factors: tuple[str, ...]
    created: datetime
    claim_by: datetime
    items: tuple[NewItem, ...]
    seals: tuple[Seal, ...] = field(repr=False)
    """The unlock key, once for each host that may sign."""
