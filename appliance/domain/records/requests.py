"""Signature requests, documents and signed documents."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Final, Protocol

from appliance.domain.documents import Inspection, Repair
from appliance.domain.ids import (
    ActivationId,
    DocumentId,
    IntegratorId,
    PersonId,
    ProcessId,
    RequestId,
)
from appliance.domain.requests.levels import NO_WISHES, ProfileWishes
from appliance.domain.requests.request import (
    RequestView,
    SignedDocumentView,
    SignedVersion,
)
from appliance.domain.vocab import RequestState

FRAME_ORIGIN: Final = "sesion"
"""`origin` of the requests that a session of the frame made."""


@dataclass(frozen=True, slots=True)
class StoredDocument:
    """A document of an integrator that was inspected and kept."""

    id: DocumentId
    integrator: IntegratorId
    sha256: str
    inspection: Inspection
    repair: Repair | None = None
    """Where it comes from, when it is the repaired copy of a damaged file."""

    def facts(self) -> dict[str, object]:
        """What the audit keeps of it."""
        facts: dict[str, object] = {
            "documentSha256": self.sha256,
            "pages": len(self.inspection.pages),
            "findings": [kind.value for kind in self.inspection.findings],
        }
        if self.repair is not None:
            facts["originalSha256"] = self.repair.original_sha256
            facts["damage"] = [each.value for each in self.repair.damage]
        return facts


@dataclass(frozen=True, slots=True)
class NewRequest:
    """A signature request to be recorded."""

    person: PersonId
    integrator: IntegratorId
    document: DocumentId
    name: str
    origin: str
    """Where it came from: `operador`, or `FRAME_ORIGIN`."""
    created: datetime
    expires: datetime | None
    wishes: ProfileWishes = NO_WISHES


class DocumentRecords(Protocol):
    """Documents and signed documents."""

    async def add(self, document: StoredDocument, at: datetime) -> StoredDocument:
        """Record a document, or give the one with the same bytes."""
        ...

    async def repaired(
        self, integrator: IntegratorId, original_sha256: str
    ) -> StoredDocument | None:
        """The first repaired copy that was made of a damaged file."""
        ...

    async def get(self, document: DocumentId) -> StoredDocument | None:
        """A document by id."""
        ...

    async def sealed(
        self, request: RequestId, view: SignedDocumentView, at: datetime
    ) -> None:
        """Record a version of a request's signed document.

        Once for each version: whoever comes second fails, and with it all else
        of its transaction.
        """
        ...

    async def signed(self, request: RequestId) -> SignedDocumentView | None:
        """The newest version of a request's signed document."""
        ...

    async def signed_of(
        self, requests: Collection[RequestId]
    ) -> dict[RequestId, SignedDocumentView]:
        """The signed documents of those requests that have one."""
        ...

    async def stamped_between(
        self, since: datetime, until: datetime, after: tuple[int, int], limit: int
    ) -> list[SignedDocumentView]:
        """Versions with a timestamp, made in that time, by request and version.

        Args:
            since: the beginning, included.
            until: the end, included.
            after: request and version of the last one seen.
            limit: how many at most.
        """
        ...

    async def version(
        self, request: RequestId, sha256: str
    ) -> SignedDocumentView | None:
        """The version of a request's signed document that has this hash."""
        ...

    async def holding(self, request: RequestId) -> list[SignedVersion]:
        """All signed documents that hold a request's signature.

        Every version of its own, and of those who signed after it; newest first.
        """
        ...

    async def forget_unused(self, before: datetime, limit: int) -> int:
        """Forget documents that came in before then, for nothing; how many."""
        ...

    async def forget_these(
        self, integrator: IntegratorId, sha256: Collection[str], before: datetime
    ) -> int:
        """Forget those of an integrator's documents that nothing refers to; how many.

        None that came in later, and none that a session of the frame has brought.
        """
        ...

    async def named(
        self, integrator: IntegratorId, sha256: Collection[str]
    ) -> set[str]:
        """Which of these are named by anything of that integrator's."""
        ...


class RequestRecords(Protocol):
    """Signature requests."""

    async def add(self, new: NewRequest) -> RequestId:
        """Record a request, `pendiente`, in a process of its own."""
        ...

    async def follow(self, request: RequestId, new: NewRequest) -> RequestId:
        """Record one, `en_espera`, whose turn comes after another one's.

        Its document is the process's first until then.
        """
        ...

    async def of_process(self, process: ProcessId) -> list[RequestView]:
        """The requests of a process, in order."""
        ...

    async def lock_later(self, process: ProcessId, seq: int) -> list[RequestView]:
        """Those after a place in it, in order; others are kept from moving them."""
        ...

    async def take_turn(self, request: RequestId, document: DocumentId) -> bool:
        """Move `en_espera` → `pendiente` on a document; False if it did not wait."""
        ...

    async def unfinished(self, after: RequestId, limit: int) -> list[RequestView]:
        """Requests that are not over, by number, those above one."""
        ...

    async def stalled(self, after: RequestId, limit: int) -> list[RequestId]:
        """Requests that wait although the one before them is over, in order.

        Args:
            after: the last one of an earlier look; 0 for the first look.
            limit: how many at most.
        """
        ...

    async def get(
        self, request: RequestId, *, lock: bool = False
    ) -> RequestView | None:
        """A request by id; `lock` keeps others from moving it."""
        ...

    async def named(
        self, requests: Collection[RequestId], *, lock: bool = False
    ) -> dict[RequestId, RequestView]:
        """Those requests that there are; `lock` as in `get`, in the order of ids."""
        ...

    async def in_progress(self, requests: Collection[RequestId]) -> int:
        """How many of those requests are `en_proceso`."""
        ...

    async def of_person(
        self,
        person: PersonId,
        states: Collection[RequestState],
        *,
        limit: int | None = None,
        before: RequestId | None = None,
        integrator: IntegratorId | None = None,
    ) -> list[RequestView]:
        """A person's requests in those states, newest first.

        Those that a session of the frame made belong to it and are left out.

        Args:
            person: whose.
            states: which.
            limit: most that are given, or None for all.
            before: only those with a smaller number, or None.
            integrator: only its, or None for everybody's.
        """
        ...

    async def all(self, limit: int) -> list[RequestView]:
        """The newest requests of anybody, for operators."""
        ...

    async def begin(
        self, wanted: Mapping[RequestId, str], activation: ActivationId
    ) -> int:
        """Move `pendiente` → `en_proceso`; how many were `pendiente`.

        Args:
            wanted: fingerprint of the command, by request.
            activation: that signs them.
        """
        ...

    async def move(
        self,
        request: RequestId,
        now: RequestState,
        then: RequestState,
        reason: str = "",
        *,
        level: str | None = None,
    ) -> bool:
        """Move along a legal edge; False if it was not in state `now`."""
        ...

    async def recovered(self, request: RequestId, level: str) -> bool:
        """Have a request be signed whose document was found after a restore.

        False, and nothing is done, where it is neither `pendiente` nor `en_proceso`.

        Args:
            request: which.
            level: that its document has reached.
        """
        ...

    async def raised(self, request: RequestId, level: str) -> None:
        """Set the level that a signed request's document has reached."""
        ...

    async def prolong(self, request: RequestId, until: datetime) -> None:
        """Give a request of a session more time to be signed."""
        ...

    async def overdue(self, at: datetime, limit: int) -> list[RequestId]:
        """Requests whose time to be signed is over."""
        ...
