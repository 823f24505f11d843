"""Activations, their documents and intents: the record of one use of a key.

Every write of a worker names the fencing number of its claim and touches no row
when another claim came since: a worker that was frozen and thawed can do no harm.
"""

from dataclasses import dataclass, field
from datetime import datetime, timedelta

from appliance.domain.activation import (
    Activation,
    ActivationDocument,
    Seal,
)
from appliance.domain.ids import ActivationId, PersonId, RequestId
from appliance.domain.vocab import ActivationState, IntentState


@dataclass(frozen=True, slots=True)
class Claim(Activation):
    """An activation in the hands of one worker."""

    state: ActivationState
    fence: int
    """Number of this claim; also the number of the attempt."""
    key_until: datetime
    tries: int = 1
    """Claims since a document last came to a result, this one among them."""
    seal: Seal | None = field(repr=False, default=None)
    """What this host may open; None once no key is needed any more."""
    outside: bool = False
    """Whether it was handed to the role that has a network."""


@dataclass(frozen=True, slots=True)
class LeasePolicy:
    """Whose claims they are, and how long a claim and its phases last."""

    host: str
    """Whose seals can be opened: without one only what needs no key is taken."""
    lease: timedelta
    key: timedelta
    """For the key phase, plus a second a document."""
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
class Overdue:
    """An activation whose time, or whose attempts, are over."""

    id: ActivationId
    state: ActivationState
    tries: int
    """Claims since a document last came to a result."""
    documents: tuple[ActivationDocument, ...]
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
