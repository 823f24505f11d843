"""What an integrator's backend asked one person to sign at once: many documents.

Each document is a process with one request of its own; the batch is what they have in
common. The requests exist once every document was examined: until then it is prepared.

Source: docs/integration.md "Ask for many at once".
"""

import hashlib
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from appliance.domain.documents.inspected import CameDocument, FindingKind
from appliance.domain.errors import ApplianceError
from appliance.domain.ids import (
    IntegratorId,
    PersonId,
    ProcessId,
    RequestBatchId,
    RequestId,
    new_id,
)
from appliance.domain.requests.preset import SignaturePreset, WishedPreset
from appliance.domain.requests.process import NamedBy, ProcessNote, SignerShown
from appliance.domain.requests.terms import SignatureTerms
from appliance.domain.vocab import (
    BatchState,
    Openings,
    RequestState,
    SignatureLevel,
)

MOST_OF_BATCH: Final = 1_000
"""Documents of one batch (decisions "several at once")."""
_SAMPLE_PART: Final = 10
"""One document in so many is in the sample."""
_SAMPLE: Final = (3, 20)
"""Fewest and most documents of a sample."""


@dataclass(frozen=True, slots=True)
class RequestBatch:
    """A batch as its integrator asked for it."""

    id: RequestBatchId
    integrator: IntegratorId
    created: datetime
    note: ProcessNote
    """Reference and metadata are the batch's own: its documents have theirs."""
    state: BatchState = BatchState.READY
    person: PersonId | None = None
    """The signer; None for batches of before version 0005 of the tables."""
    named_by: NamedBy | None = None
    total: int = 0
    """Documents that it was asked for with; 0 for batches of before version 0005."""
    examined: int = 0
    """Documents that were examined."""
    faults: tuple[ApplianceError, ...] = ()
    """Faults of a refused batch, in the order of its documents."""
    reason: str = ""
    """Why its integrator took it back before it was ready."""
    openings: Openings = Openings.ALL
    """Documents that its signer has to open before signing."""


@dataclass(frozen=True, slots=True)
class BatchToPrepare:
    """Order of a batch, besides the batch and its documents."""

    actor: str
    """The caller, as the audit names it."""
    expires: datetime | None
    level: SignatureLevel | None
    idempotency_key: str | None


@dataclass(frozen=True, slots=True)
class DocumentToPrepare:
    """One document of a batch whose requests do not exist yet."""

    place: int
    """From 0, in the order in which they are signed."""
    name: str
    """File name, checked."""
    field: str
    """Name of the field that brought it: faults name it."""
    part: str | None
    """Part of a multipart body that it came in."""
    sha256: str | None
    """SHA-256 of the file that came with the batch, hex; None for an upload."""
    size_bytes: int
    """Size of that file; 0 for an upload."""
    document: CameDocument | None
    """Document to be signed; None until it is examined."""
    reference: str | None
    is_unique: bool
    metadata: Mapping[str, str]
    wished: WishedPreset | None
    """Look and place of its signature, as they were asked for."""
    preset: SignaturePreset | None = None
    """Look and place of its signature, once it is settled."""
    is_settled: bool = False
    fault: ApplianceError | None = None
    repairs: bool = True
    """Whether a copy may be written anew and signed in its place."""

    @property
    def is_open(self) -> bool:
        """True until the document is either settled or at fault."""
        return not self.is_settled and self.fault is None


@dataclass(frozen=True, slots=True)
class SettledDocument:
    """Outcome of the examination of one document of a batch."""

    place: int
    document: CameDocument | None = None
    """Document to be signed: the file, or its repaired copy."""
    preset: SignaturePreset | None = None
    fault: ApplianceError | None = None


@dataclass(frozen=True, slots=True)
class BatchMember:
    """One document of a batch, in short."""

    process: ProcessId
    request: RequestId
    """Numbers grow in the order of the batch."""
    reference: str | None
    name: str
    """File name of the document."""
    sha256: str
    """Of the document to be signed, hex."""
    state: RequestState
    reason: str


def to_be_opened(
    batch: RequestBatchId, openings: Openings, requests: Collection[RequestId]
) -> frozenset[RequestId]:
    """Requests of a batch whose document has to be opened before it is signed.

    A sample is the same each time it is drawn, and nobody who makes the batch knows it
    before: it follows from ids that the appliance gives.

    Args:
        batch: their batch.
        openings: of the batch.
        requests: all of the batch, in whatever state.
    """
    if openings is Openings.ALL:
        return frozenset(requests)
    if openings is Openings.NONE:
        return frozenset()
    least, most = _SAMPLE
    size = min(most, max(least, -(-len(requests) // _SAMPLE_PART)))

    def drawn(request: RequestId) -> bytes:
        return hashlib.sha256(f"{batch}/{request}".encode()).digest()

    return frozenset(sorted(requests, key=drawn)[:size])


@dataclass(frozen=True, slots=True)
class BatchStanding:
    """How a batch stands for its signer, in numbers."""

    states: Mapping[RequestState, int]
    """How many of its requests are in each state that there is one in."""
    seen: int
    """How many the signer has read."""
    unread: int
    """How many wait for the signature, have to be read first, and were not read yet."""
    openings: Openings = Openings.ALL

    @property
    def total(self) -> int:
        """All of its requests."""
        return sum(self.states.values())

    @property
    def signed(self) -> int:
        """Those that are signed."""
        return self.states.get(RequestState.SIGNED, 0)

    @property
    def signing(self) -> int:
        """Those whose signature is being made."""
        return self.states.get(RequestState.IN_PROGRESS, 0)

    @property
    def failed(self) -> int:
        """Those that cannot be signed."""
        return self.states.get(RequestState.FAILED, 0)

    @property
    def rejected(self) -> int:
        """Those that the signer refused."""
        return self.states.get(RequestState.REJECTED, 0)

    @property
    def pending(self) -> int:
        """Those that can still be signed."""
        waiting = self.states.get(RequestState.WAITING, 0)
        return waiting + self.states.get(RequestState.PENDING, 0)

    def told(self) -> dict[str, object]:
        """What the host of a session is told of its end, as JSON; a new event."""
        return {"eventId": new_id(), "total": self.total, "signed": self.signed}


@dataclass(frozen=True, slots=True)
class BatchDocument:
    """One document of a batch, as its signer is shown the list."""

    request: RequestId
    name: str
    """File name of the document."""
    pages: int
    state: RequestState
    reason: str
    """Error code of the last failure, or empty."""
    is_seen: bool
    """Whether the signer has read it."""
    terms: SignatureTerms
    """Terms of its signature."""
    has_to_be_opened: bool = True
    """False for one that may be signed without having been read."""
    findings: tuple[FindingKind, ...] = ()
    """What its signer is warned of."""
    signatures: int = 0
    """Signatures that the document bears already."""


@dataclass(frozen=True, slots=True)
class BatchDetails:
    """A batch, and how it stands."""

    batch: RequestBatch
    signer: SignerShown
    states: Mapping[RequestState, int]
    """How many of its requests are in each state that there is one in."""

    @property
    def total(self) -> int:
        """Number of its documents."""
        return self.batch.total or sum(self.states.values())

    @property
    def examined(self) -> int:
        """Number of its documents that were examined."""
        return self.total if self.batch.total == 0 else self.batch.examined
