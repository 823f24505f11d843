"""What published documents still need: the record of the upkeep of their levels."""

from datetime import datetime, timedelta
from typing import Protocol

from appliance.domain.ids import IntegratorId, RequestId
from appliance.domain.levels import Upkeep, UpkeepClaim, UpkeepCount


class UpkeepRecords(Protocol):
    """One row a published document, as long as something is due of it."""

    async def add(
        self, request: RequestId, integrator: IntegratorId, new: Upkeep, at: datetime
    ) -> None:
        """Record what a document will need."""
        ...

    async def any_due(self, at: datetime) -> bool:
        """Whether `claim_next` would give one."""
        ...

    async def claim_next(
        self, owner: str, at: datetime, lease: timedelta
    ) -> UpkeepClaim | None:
        """Take one that is due and that nobody has in hand."""
        ...

    async def renew(self, claim: UpkeepClaim, until: datetime) -> bool:
        """Prolong the lease; False when another claim came since."""
        ...

    async def done(self, claim: UpkeepClaim, following: Upkeep | None) -> bool:
        """End a claim: with what is due next, or with nothing any more.

        False, and nothing is changed, when another claim came since.
        """
        ...

    async def failed(self, claim: UpkeepClaim, due: datetime, reason: str) -> bool:
        """End a claim that did not get on, to be taken again; False as `done`."""
        ...

    async def of_request(self, request: RequestId) -> Upkeep | None:
        """What a document still needs."""
        ...

    async def hasten(self, at: datetime) -> int:
        """Have every archived document stamped anew now; how many."""
        ...

    async def counted(self, at: datetime) -> list[UpkeepCount]:
        """What all documents need, the longest waiting first."""
        ...
