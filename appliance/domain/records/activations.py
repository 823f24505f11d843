"""Activations, their items and intents: the record of one use of a key.

Every write of a worker names the fencing number of its claim and touches no row
when another claim came since: a worker that was frozen and thawed can do no harm.
"""

from collections.abc import Collection
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Protocol

from appliance.domain.activation import ActivationBinding, BoundItem, Seal
from appliance.domain.appearance.details import PLAIN, StampDetails
from appliance.domain.consent import NewActivation
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
class Terms:
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
class KeyedItem:
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


class ActivationRecords(Protocol):
    """Activations, items and intents."""

    async def add(self, new: NewActivation) -> None:
        """Record an activation, waiting to be claimed."""
        ...

    async def state(self, activation: ActivationId) -> tuple[ActivationState, str]:
        """State and reason of an activation."""
        ...

    async def by_code(self, code: str) -> CodedItem | None:
        """The published signature with a verification code."""
        ...

    async def coded(self, request: RequestId) -> tuple[str | None, datetime] | None:
        """Verification code of a published signature, if it has one, and its time."""
        ...

    async def keying(self, person: PersonId) -> bool:
        """Whether an activation of a person is still to use their key."""
        ...

    async def seals(self, activation: ActivationId) -> list[Seal]:
        """What stands sealed for an activation, by host."""
        ...

    async def unseal(self, claim: Claim) -> int | None:
        """Erase the claim's seal, which cannot be opened; how many others are left.

        None, and nothing is done, when fenced off.
        """
        ...

    async def next_claims(
        self,
        at: datetime,
        terms: Terms,
        *,
        single: bool = False,
        without: Collection[PersonId] = (),
    ) -> int | None:
        """How often what `claim_next` would take was claimed without a result.

        None when there is nothing to take; it changes nothing.
        """
        ...

    async def claim_next(
        self,
        owner: str,
        at: datetime,
        terms: Terms,
        *,
        single: bool = False,
        without: Collection[PersonId] = (),
    ) -> Claim | None:
        """Take an activation that nobody has in hand: a suspect, or what waits longest.

        The role with a network takes what was tried least. One conditional UPDATE;
        the fencing number goes up by one.

        Args:
            owner: of the claim.
            at: now.
            terms: of the claim.
            single: take none of several documents.
            without: take none of these people's.
        """
        ...

    async def renew(self, claim: Claim, until: datetime) -> bool:
        """Prolong the lease, to the end of its phase at the most.

        False when another claim came since.
        """
        ...

    async def release_of(self, owner_prefix: str, at: datetime) -> int:
        """End the leases of a dead process; how many there were."""
        ...

    async def drop(self, claim: Claim, at: datetime) -> bool:
        """Give the activation back unfinished, to be claimed again.

        Here, and in `hand_out`, the claim killed nobody, and counts as no try.
        """
        ...

    async def put_off(
        self, claim: Claim, until: datetime, reason: str, *, counted: bool
    ) -> bool:
        """Give the activation back, to be claimed again only then, and say why.

        Args:
            claim: of the caller.
            until: when it may be.
            reason: what it waits for.
            counted: whether the claim counts as a try without a result.
        """
        ...

    async def hand_out(self, claim: Claim, at: datetime, reason: str) -> bool:
        """Give it to the role that has a network, and say for what.

        A reason that is there already stays.
        """
        ...

    async def interrupt_intents(self, claim: Claim, at: datetime) -> list[IntentRow]:
        """Close the open intents of earlier claims; gives those closed."""
        ...

    async def interrupt_item(
        self, claim: Claim, seq: int, at: datetime
    ) -> list[IntentRow]:
        """Close the open intents of an item that is given up; gives those closed."""
        ...

    async def intend(self, claim: Claim, seq: int, digest: str, at: datetime) -> bool:
        """Record the exact digest about to be signed; False when fenced off."""
        ...

    async def keyed(
        self, claim: Claim, seq: int, made: KeyedItem, at: datetime
    ) -> bool:
        """Store a signature value and close its intent; False when fenced off."""
        ...

    async def item_done(self, claim: Claim, seq: int) -> bool:
        """An item is published; False when fenced off."""
        ...

    async def item_failed(self, claim: Claim, seq: int, reason: str) -> bool:
        """An item cannot be signed; False when fenced off."""
        ...

    async def settle(self, claim: Claim, at: datetime, reason: str = "") -> None:
        """Let the activation's state follow from its items'.

        None left to key: `finishing`; none left at all: `done`, or `failed`
        with the reason when none was signed. Either way its seals are erased.
        """
        ...

    async def overdue(self, at: datetime, attempts: int) -> list[Overdue]:
        """Activations that nobody may go on with, and no lease holds; locked.

        Args:
            at: now; past their time by then.
            attempts: claims that a key phase may have had without a result.
        """
        ...

    async def end_overdue(
        self, activation: ActivationId, then: ActivationState, at: datetime, reason: str
    ) -> list[IntentRow]:
        """End one of `overdue`, erase its seals; gives the intents still open."""
        ...

    async def any_in_hand(self, credential: CredentialId) -> bool:
        """Whether a worker has an activation of that credential in hand."""
        ...

    async def intents(self, activation: ActivationId) -> list[IntentRow]:
        """All intents of an activation, oldest first."""
        ...
