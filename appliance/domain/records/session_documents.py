"""What sessions of the frame have brought, until it is signed or goes."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from appliance.domain.ids import IntegratorId


@dataclass(frozen=True, slots=True)
class BroughtDocument:
    """A file that a session has brought, or the repaired copy of one."""

    session: str
    integrator: IntegratorId
    sha256: str
    size_bytes: int


class SessionDocumentRecords(Protocol):
    """Files that sessions have brought."""

    async def session_bytes(self, session: str) -> int:
        """What a session has brought, in bytes."""
        ...

    async def integrator_bytes(self, integrator: IntegratorId) -> int:
        """What all sessions of an integrator have brought, in bytes."""
        ...

    async def add(self, brought: BroughtDocument, at: datetime) -> bool:
        """Record one; False for a file that the session has brought before."""
        ...

    async def forget(self, session: str, sha256: str) -> None:
        """Forget one that was not kept."""
        ...

    async def forget_idle(
        self, replaced: datetime, ended: datetime, limit: int
    ) -> Sequence[BroughtDocument]:
        """Forget what sessions do not sign any more, and give it.

        That is what came in before `replaced` and is not the document of an open
        session, and whatever a session brought that has a request, or was over by
        `ended`. Such a one has no document any more, unless there is a request of it.

        Args:
            replaced: see above.
            ended: see above.
            limit: how many at most.
        """
        ...
