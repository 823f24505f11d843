"""The upkeep of published documents' levels in SQL."""

from datetime import datetime, timedelta
from typing import Final

from sqlalchemy import (
    ColumnElement,
    and_,
    case,
    delete,
    func,
    insert,
    not_,
    or_,
    select,
    update,
)

from appliance.database.tables import level_upkeep, outside_job, signature_request
from appliance.domain.ids import IntegratorId, RequestId, new_id
from appliance.domain.pki.outside_material import JobKind
from appliance.domain.requests.levels import INTERNAL, Upkeep, UpkeepClaim, UpkeepCount
from appliance.domain.vocab import SignatureLevel
from appliance.record.leased_queue import LeasedQueue

UPKEEPS_MOST: Final = 32
"""Documents at a time for whose upkeep something is fetched."""
_SINCE: ColumnElement[datetime] = func.coalesce(
    level_upkeep.c.since, level_upkeep.c.due, type_=level_upkeep.c.due.type
)
"""When what a document needs now fell due, or will."""


class LevelMaintenanceStore(LeasedQueue):
    """What published documents still need."""

    table, tries = level_upkeep, level_upkeep.c.tries

    async def add(
        self, request: RequestId, integrator: IntegratorId, new: Upkeep, at: datetime
    ) -> None:
        """Record what a document will need."""
        await self._connection.execute(
            insert(level_upkeep).values(
                id=new_id(),
                request=request,
                integrator=integrator,
                wanted=new.wanted.value,
                tsa=list(new.tsa),
                outside=new.outside,
                due=new.due,
                tries=0,
                reason="",
                created=at,
                fence=0,
            )
        )

    async def any_due(self, at: datetime) -> bool:
        """Whether `claim_next` would give one."""
        return await self._any(self.looking(level_upkeep.c.id, _claimable(at)))

    async def claim_next(
        self, owner: str, at: datetime, lease: timedelta
    ) -> UpkeepClaim | None:
        """Take one that is due and that nobody has in hand."""
        due = _claimable(at)
        claiming = self.claiming(due, level_upkeep.c.due)
        row = await self._claim(claiming, owner, at + lease)
        if row is None:
            return None
        return UpkeepClaim(
            id=row.id,
            request=RequestId(row.request),
            integrator=IntegratorId(row.integrator),
            wanted=SignatureLevel(row.wanted),
            tries=row.tries,
            fence=row.fence,
            tsa=INTERNAL if row.tsa is None else tuple(row.tsa),
            outside=row.outside,
        )

    async def wait(self, claim: UpkeepClaim, until: datetime) -> bool:
        """End a claim that waits for material; False when another claim came since.

        Nobody is named as its owner: whoever delivers the material may wake it.
        """
        return await self._fenced(claim, {"lease_owner": None, "lease_until": until})

    async def done(self, claim: UpkeepClaim, following: Upkeep | None) -> bool:
        """End a claim: with what is due next, or with nothing any more."""
        if following is not None:
            values = {
                "wanted": following.wanted.value,
                "due": following.due,
                "since": None,
                "tries": 0,
                "reason": "",
                "lease_until": None,
            }
            return await self._fenced(claim, values)
        result = await self._connection.execute(
            delete(level_upkeep).where(
                level_upkeep.c.id == claim.id, level_upkeep.c.fence == claim.fence
            )
        )
        return result.rowcount == 1

    async def failed(self, claim: UpkeepClaim, due: datetime, reason: str) -> bool:
        """End a claim that did not get on, to be taken again; False as `done`."""
        values = {
            "due": due,
            "since": _SINCE,
            "tries": claim.tries + 1,
            "reason": reason,
            "lease_until": None,
        }
        return await self._fenced(claim, values)

    async def of_request(self, request: RequestId) -> Upkeep | None:
        """What a document still needs."""
        query = select(level_upkeep).where(level_upkeep.c.request == request)
        row = (await self._connection.execute(query)).one_or_none()
        if row is None:
            return None
        tsa = INTERNAL if row.tsa is None else tuple(row.tsa)
        return Upkeep(SignatureLevel(row.wanted), row.due, tsa, row.outside)

    async def hasten(self, at: datetime) -> int:
        """Have every archived document stamped anew now; how many."""
        result = await self._connection.execute(
            update(level_upkeep)
            .where(
                level_upkeep.c.wanted == SignatureLevel.B_LTA.value,
                level_upkeep.c.due > at,
            )
            .values(due=at)
        )
        return result.rowcount

    async def counted(
        self, at: datetime, before: datetime | None = None
    ) -> list[UpkeepCount]:
        """What documents need, the longest waiting first."""
        is_below = case(
            (signature_request.c.level == level_upkeep.c.wanted, 0), else_=1
        ).label("is_below")
        oldest = func.min(_SINCE, type_=level_upkeep.c.due.type)
        groups = (level_upkeep.c.wanted, is_below, level_upkeep.c.reason)
        query = (
            select(
                *groups,
                func.count().label("documents"),
                func.sum(case((at >= _SINCE, 1), else_=0)).label("overdue"),
                oldest.label("oldest"),
            )
            .join(signature_request, signature_request.c.id == level_upkeep.c.request)
            .group_by(*groups)
            .order_by(oldest)
        )
        if before is not None:
            # Not `_SINCE`, which no index has.
            query = query.where(
                or_(level_upkeep.c.due <= before, level_upkeep.c.since <= before)
            )
        rows = await self._connection.execute(query)
        return [
            UpkeepCount(
                SignatureLevel(row.wanted),
                bool(row.is_below),
                row.reason,
                row.documents,
                int(row.overdue),
                row.oldest,
            )
            for row in rows
        ]


def _claimable(at: datetime) -> ColumnElement[bool]:
    """Due, and in nobody's hands.

    Of those that need servers outside a few at a time: each is read twice.
    """
    begun = select(outside_job.c.id).where(outside_job.c.id == level_upkeep.c.id)
    waiting = (
        select(func.count())
        .select_from(outside_job)
        .where(outside_job.c.kind == JobKind.UPKEEP.value)
        .scalar_subquery()
    )
    may_begin = or_(
        not_(level_upkeep.c.outside), begun.exists(), waiting < UPKEEPS_MOST
    )
    return and_(level_upkeep.c.due <= at, LevelMaintenanceStore.unheld(at), may_begin)
