"""What an integrator asked for as one: a document, and who signs it, in turn."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Final

from appliance.domain.ids import (
    IntegratorId,
    PersonId,
    ProcessId,
    RequestBatchId,
    RequestId,
)
from appliance.domain.requests.request import RequestView, SignedVersion
from appliance.domain.requests.signer_bars import Bar
from appliance.domain.vocab import RequestState

BACKEND_ORIGIN: Final = "integrador"
"""`origin` of the requests that an integrator's backend made."""

DECIDING: Final = (
    RequestState.REJECTED,
    RequestState.FAILED,
    RequestState.CANCELLED,
    RequestState.EXPIRED,
    RequestState.IN_PROGRESS,
    RequestState.PENDING,
    RequestState.WAITING,
)
"""Of several who have the same turn and have not signed, the first of these decides:
who ended the process before those that ended with it, who signs before who does not."""


class NamedBy(StrEnum):
    """How an integrator said who is to sign: it is told no more of them than that."""

    CUIL = "cuil"
    EMAIL = "email"
    ID = "id"


@dataclass(frozen=True, slots=True)
class ProcessNote:
    """What an integrator's backend says of what it asks for."""

    api_key: str | None = None
    """Id of the key by which it asked; None where it did not."""
    reference: str | None = None
    """Its own name for it, up to 128 characters."""
    is_unique: bool = False
    """Whether no other process of the integrator may have that reference."""
    metadata: Mapping[str, str] = field(default_factory=dict)
    language: str | None = None
    """`es` or `en`: of what the signers are told; None: their own."""
    message: str | None = None
    """For the signers."""


NO_NOTE: Final = ProcessNote()


@dataclass(frozen=True, slots=True)
class SigningProcess:
    """A process as its integrator may see it."""

    id: ProcessId
    integrator: IntegratorId
    created: datetime
    note: ProcessNote
    requests: tuple[RequestView, ...]
    """In the order in which they are signed; one at least."""

    @property
    def state(self) -> RequestState:
        """That of the first request that is not signed; signed, where all are."""
        return self.deciding.state

    @property
    def deciding(self) -> RequestView:
        """The first request that is not signed, or the last one; see `DECIDING`."""
        unsigned = [
            view for view in self.requests if view.state is not RequestState.SIGNED
        ]
        return min(unsigned, key=_place, default=self.requests[-1])

    @property
    def original(self) -> RequestView:
        """The request on the document as it came."""
        return in_signing_order(self.requests)[0]


def in_signing_order(views: Sequence[RequestView]) -> list[RequestView]:
    """Requests of a process in the order in which they are signed, or were.

    Within a turn that is told by their documents: each is what the one before made.

    Args:
        views: in the order of `seq`.
    """
    return sorted(
        views, key=lambda view: (view.turn_number, view.inspection.size_bytes)
    )


def _place(view: RequestView) -> tuple[int, int, int]:
    return view.turn_number, DECIDING.index(view.state), view.seq


@dataclass(frozen=True, slots=True)
class SignerShown:
    """Who a request is for, as far as its integrator may know."""

    person: PersonId
    cuil: str | None
    name: str | None
    """None until they have signed; so is `cuil`, unless the integrator named it."""
    bar: Bar | None = None
    """Reason why they cannot sign a request that waits for them."""


@dataclass(frozen=True, slots=True)
class ProcessDetails:
    """All of one process."""

    process: SigningProcess
    signers: Mapping[RequestId, SignerShown]
    versions: Mapping[RequestId, Sequence[SignedVersion]]
    """Of each request's signed document, oldest first."""
    place: RequestId | None = None
    """The request by whose number it is listed, where it is."""


@dataclass(frozen=True, slots=True)
class ProcessFilter:
    """Which processes of an integrator are asked for."""

    state: RequestState | None = None
    reference: str | None = None
    cuil: str | None = None
    """Eleven digits: of one of the signers."""
    since: datetime | None = None
    until: datetime | None = None
    before: RequestId | None = None
    """The `place` of the last process of the page before."""
    batch: RequestBatchId | None = None
    """That they were asked for with."""
    limit: int = 50
