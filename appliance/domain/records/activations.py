"""Activations, their items and intents: the record of one use of a key.

Every write of a worker names the fencing number of its claim and touches no row
when another claim came since: a worker that was frozen and thawed can do no harm.
"""

from dataclasses import dataclass, field
from datetime import datetime, timedelta

from appliance.domain.activation import ActivationBinding, BoundItem, Seal
from appliance.domain.appearance.details import PLAIN, StampDetails
from appliance.domain.ids import ActivationId, CredentialId, PersonId, RequestId
from appliance.domain.requests.signing_command import SignParameters
from appliance.domain.vocab import ActivationState, IntentState, ItemState


@dataclass(frozen=True, slots=True)
class Item:
    """One document of an activation as it stands."""

    seq: int
    """From 0."""
    request: RequestId
    document_sha256: str
    params: SignParameters
    params_sha256: str
    state: ItemState
    details: StampDetails = PLAIN
    """What its stamp shows besides."""
    increment: bytes | None = field(repr=False, default=None)
    """What is appended to the document, its Contents still empty."""
    contents_at: int = 0
    """Offset of the hex string in the increment, in bytes."""
    contents_length: int = 0
    """Length of the hex string, in bytes."""
    signed_attributes: bytes | None = field(repr=False, default=None)
    signature: bytes | None = field(repr=False, default=None)


@dataclass(frozen=True, slots=True)
class Claim:
    """An activation in the hands of one worker."""

    id: ActivationId
    person: PersonId
    credential: CredentialId
    state: ActivationState
    fence: int
    """Number of this claim; also the number of the attempt."""
    factors: tuple[str, ...]
    created: datetime
    claim_by: datetime
    key_until: datetime
    items: tuple[Item, ...]
    tries: int = 1
    """Claims since one of the items last came to a result, this one among them."""
    seal: Seal | None = field(repr=False, default=None)
    """What this host may open; None once no key is needed any more."""
    outside: bool = False
    """Whether it was handed to the role that has a network."""

    def binding(self, key_version: int) -> ActivationBinding:
        """What the seal is bound to, by what stands recorded now.

        Args:
            key_version: of the credential's key.
        """
        return ActivationBinding(
            activation=self.id,
            person=self.person,
            credential=self.credential,
            key_version=key_version,
            items=tuple(
                BoundItem(item.request, item.document_sha256, item.params, item.details)
                for item in self.items
            ),
            factors=self.factors,
            created=self.created,
            claim_by=self.claim_by,
        )


@dataclass(frozen=True, slots=True)
class LeasePolicy:
    """Whose claims they are, and how long a claim and its phases last."""

    host: str
    """Whose seals can be opened: without one only what needs no key is taken."""
    lease: timedelta
    key: timedelta
    """For the key phase, plus a second an item."""
    finish: timedelta
    attempts: int
    """Claims without a result after which an activation is given up as poisonous;
    in the finish phase it is then taken only after a lease's time of rest."""
    suspect: int
    """Claims without a result after which it may be what ends its workers."""
    outside: bool = False
    """Whether the claimant has a network and no keys: it takes what was handed to it
    and nothing else."""


@dataclass(frozen=True, slots=True)
class SignatureValue:
    """What a use of the key yielded for one item."""

    increment: bytes = field(repr=False)
    contents_at: int
    contents_length: int
    signed_attributes: bytes = field(repr=False)
    signature: bytes = field(repr=False)


@dataclass(frozen=True, slots=True)
class Overdue:
    """An activation whose time, or whose attempts, are over."""

    id: ActivationId
    state: ActivationState
    tries: int
    """Claims since one of the items last came to a result."""
    items: tuple[Item, ...]
    reason: str = ""
    """What it waited for at last, or nothing."""


@dataclass(frozen=True, slots=True)
class CodedItem:
    """A published signature, found by its verification code."""

    request: RequestId
    person: PersonId
    signed_at: datetime
    """When its key was used."""


@dataclass(frozen=True, slots=True)
class IntentRow:
    """One intended use of a key."""

    activation: ActivationId
    item: int
    attempt: int
    digest: str
    state: IntentState
