"""Work that waits in the rows of a table, claimed under leases with fencing numbers.

A claim is one conditional UPDATE that raises the fencing number; every later
write of the claimant names that number and touches no row once another came.
"""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, ClassVar, Protocol

from sqlalchemy import (
    ColumnElement,
    Row,
    Select,
    Table,
    func,
    or_,
    select,
    true,
    update,
)

from appliance.core.unit_of_work import Store

Rank = ColumnElement[Any] | None
"""What is claimed first, before what waits longest."""


class Leased(Protocol):
    """A claim, as its claimant knows it."""

    @property
    def id(self) -> str:
        """Of the row."""

    @property
    def fence(self) -> int:
        """Number of the claim."""


class LeasedQueue(Store):
    """The rows of one table, as work.

    What can be claimed, and in which order, each store says, for it depends on the
    claimant: its host, its tokens, whether it has a network.
    """

    table: ClassVar[Table]
    """With `id`, `created`, `lease_owner`, `lease_until` and `fence`."""
    tries: ClassVar[ColumnElement[Any]]
    """Claims of a row that came to nothing, or failures, since it last got on."""

    @classmethod
    def open(cls) -> ColumnElement[bool]:
        """Which rows a lease may hold, for their index; all, unless a store knows."""
        return true()

    @classmethod
    def unheld(cls, at: datetime) -> ColumnElement[bool]:
        """Whether no lease holds a row: it was never claimed, or was let go of."""
        until = cls.table.c.lease_until
        return or_(until.is_(None), until <= at)

    @classmethod
    def quarantined(cls, attempts: int) -> ColumnElement[bool]:
        """Whether a row was claimed so often in vain that it seems to kill workers."""
        return cls.tries >= attempts

    async def _any(self, claimable: ColumnElement[bool]) -> bool:
        """Whether `_claim` would find a row; the look takes no lock."""
        query = select(self.table.c.id).where(claimable).limit(1)
        return (await self._connection.execute(query)).first() is not None

    async def _next_tries(
        self, claimable: ColumnElement[bool], rank: Rank
    ) -> int | None:
        """The tries of the row that `_claim` would take, if there is one; no lock."""
        query = self._next(self.tries, claimable, rank)
        tries: int | None = (await self._connection.scalars(query)).one_or_none()
        return tries

    async def _claim(
        self,
        claimable: ColumnElement[bool],
        owner: str,
        until: datetime,
        rank: Rank = None,
        values: Mapping[str, object] | None = None,
    ) -> Row[Any] | None:
        """Take the claimable row that waits longest, of those that rank lowest.

        None when there is none. On PostgreSQL rows that another transaction is
        claiming are passed over.

        Args:
            claimable: which rows may be taken.
            owner: `<slot>/<process>`, or the slot.
            until: end of the lease.
            rank: see `Rank`.
            values: what else the claim changes.
        """
        columns = self.table.c
        first = self._next(columns.id, claimable, rank)
        oldest = first.with_for_update(skip_locked=True).scalar_subquery()
        lease = {"lease_owner": owner, "lease_until": until, "fence": columns.fence + 1}
        result = await self._connection.execute(
            update(self.table)
            .where(columns.id == oldest, claimable)
            .values(**lease, **(values or {}))
            .returning(self.table)
        )
        row: Row[Any] | None = result.one_or_none()
        return row

    def _next(
        self, what: ColumnElement[Any], claimable: ColumnElement[bool], rank: Rank
    ) -> Select[Any]:
        """A column of the claimable row that comes first.

        Rows take turns by since when nobody has them in hand. By their age, what is put
        off time and again would come before all that is new.
        """
        since = func.coalesce(self.table.c.lease_until, self.table.c.created)
        order = [since] if rank is None else [rank, since]
        return select(what).where(claimable).order_by(*order).limit(1)

    async def _fenced(self, claim: Leased, values: Mapping[str, object]) -> bool:
        """Change a claimed row; False when another claim came since."""
        result = await self._connection.execute(
            update(self.table)
            .where(self.table.c.id == claim.id, self.table.c.fence == claim.fence)
            .values(**values)
        )
        return result.rowcount == 1

    async def renew(self, claim: Leased, until: datetime) -> bool:
        """Prolong the lease; False when another claim came since."""
        return await self._fenced(claim, {"lease_until": until})

    async def release_of(self, owner_prefix: str, at: datetime) -> int:
        """End the leases of a dead process; how many there were."""
        columns = self.table.c
        result = await self._connection.execute(
            update(self.table)
            .where(
                self.open(),
                columns.lease_owner.startswith(owner_prefix, autoescape=True),
                columns.lease_until > at,
            )
            .values(lease_until=at)
        )
        return result.rowcount

    async def _fence_off(
        self, which: ColumnElement[bool], values: Mapping[str, object]
    ) -> Sequence[Row[Any]]:
        """Change rows that nobody holds, and give them as they are then.

        The fencing number goes up, so that a worker that wakes late is refused.
        """
        result = await self._connection.execute(
            update(self.table)
            .where(which)
            .values(fence=self.table.c.fence + 1, **values)
            .returning(self.table)
        )
        rows: Sequence[Row[Any]] = result.all()
        return rows
