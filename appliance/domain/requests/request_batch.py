"""What an integrator's backend asked one person to sign at once: many documents.

Each document is a process with one request of its own; the batch is what they have in
common.

Source: docs/integration.md "Ask for many at once".
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from appliance.domain.ids import (
    IntegratorId,
    ProcessId,
    RequestBatchId,
    RequestId,
    new_id,
)
from appliance.domain.requests.process import ProcessNote, SignerShown
from appliance.domain.vocab import RequestState

MOST_OF_BATCH: Final = 1_000
"""Documents of one batch (decisions "several at once")."""


@dataclass(frozen=True, slots=True)
class RequestBatch:
    """A batch as its integrator asked for it."""

    id: RequestBatchId
    integrator: IntegratorId
    created: datetime
    note: ProcessNote
    """Reference and metadata are the batch's own: its documents have theirs."""


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


@dataclass(frozen=True, slots=True)
class BatchStanding:
    """How a batch stands for its signer, in numbers."""

    states: Mapping[RequestState, int]
    """How many of its requests are in each state that there is one in."""
    seen: int
    """How many the signer has read."""
    unread: int
    """How many wait for the signature, and were not read yet."""

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


@dataclass(frozen=True, slots=True)
class BatchPage:
    """Documents of a batch, as its signer is shown the list."""

    documents: Sequence[BatchDocument]
    message: str | None
    """To the signer, where all of the batch have the same."""


@dataclass(frozen=True, slots=True)
class BatchDetails:
    """A batch, and how it stands."""

    batch: RequestBatch
    signer: SignerShown
    states: Mapping[RequestState, int]
    """How many of its requests are in each state that there is one in."""
