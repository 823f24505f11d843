"""What published documents still need: the record of the upkeep of their levels."""

from datetime import datetime, timedelta
from typing import Protocol

from appliance.domain.ids import IntegratorId, RequestId
from appliance.domain.requests.levels import Upkeep, UpkeepClaim, UpkeepCount


class UpkeepRecords(Protocol):
    """One row a published document, as long as something is due of it."""

    async def add(
        self, request: RequestId, integrator: IntegratorId, new: Upkeep, at: datetime
    ) -> None:
        """Record what a document will need."""
        ...

    async def any_due(self, at: datetime, *, outside: bool = False) -> bool:
        """Whether `claim_next` would give one."""
        ...

    async def claim_next(
        self, owner: str, at: datetime, lease: timedelta, *, outside: bool = False
    ) -> UpkeepClaim | None:
        """Take one that is due and that nobody has in hand.

        Args:
            owner: of the claim.
            at: now.
            lease: how long it is.
            outside: take those that are for the role with a network, or the others.
        """
        ...

    async def renew(self, claim: UpkeepClaim, until: datetime) -> bool:
        """Prolong the lease; False when another claim came since."""
        ...

    async def done(self, claim: UpkeepClaim, following: Upkeep | None) -> bool:
        """End a claim: with what is due next, or with nothing any more.

        Who stamps, and which role does it, stays as it is.

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

    async def counted(
        self, at: datetime, before: datetime | None = None
    ) -> list[UpkeepCount]:
        """What documents need, the longest waiting first.

        Args:
            at: now.
            before: count those alone that fell due by then; None: all.
        """
        ...
