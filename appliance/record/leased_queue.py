"""Work that waits in the rows of a table, claimed under leases with fencing numbers.

A claim is one conditional UPDATE that raises the fencing number; every later
write of the claimant names that number and touches no row once another came.
"""

from collections.abc import Mapping, Sequence
from datetime import datetime
from functools import cache
from typing import Any, ClassVar, Protocol

from sqlalchemy import (
    ColumnElement,
    Row,
    Select,
    Table,
    bindparam,
    func,
    or_,
    select,
    true,
    update,
)
from sqlalchemy.sql import ClauseElement
from sqlalchemy.sql.dml import ReturningUpdate, Update

from appliance.record.unit_of_work import Store

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

    async def _any(
        self, looking: Select[Any], given: Mapping[str, object] | None = None
    ) -> bool:
        """Whether a look finds a row; it takes no lock."""
        return (await self._connection.execute(looking, given)).first() is not None

    async def _claim(
        self,
        claiming: ReturningUpdate[Any],
        owner: str,
        until: datetime,
        given: Mapping[str, object] | None = None,
    ) -> Row[Any] | None:
        """Take a row; None when there is none.

        Args:
            claiming: as `claiming` made it.
            owner: `<slot>/<process>`, or the slot.
            until: end of the lease.
            given: what it has as `bindparam`s.
        """
        lease = {"claim_owner": owner, "claim_until": until}
        result = await self._connection.execute(claiming, {**lease, **(given or {})})
        row: Row[Any] | None = result.one_or_none()
        return row

    @classmethod
    def claiming(
        cls,
        claimable: ColumnElement[bool],
        rank: Rank = None,
        values: Mapping[str, object] | None = None,
    ) -> ReturningUpdate[Any]:
        """How the claimable row is taken that waits longest, of those ranked lowest.

        Made once where it is executed often: to make it costs more than to do it. On
        PostgreSQL rows that another transaction is claiming are passed over.

        Args:
            claimable: which rows may be taken, with `bindparam`s for what changes.
            rank: see `Rank`.
            values: what else the claim changes.
        """
        columns = cls.table.c
        first = cls.looking(columns.id, claimable, rank)
        oldest = first.with_for_update(skip_locked=True).scalar_subquery()
        lease = {
            "lease_owner": bindparam("claim_owner"),
            "lease_until": bindparam("claim_until"),
            "fence": columns.fence + 1,
        }
        return (
            update(cls.table)
            .where(columns.id == oldest, claimable)
            .values(**lease, **(values or {}))
            .returning(cls.table)
        )

    @classmethod
    def looking(
        cls, what: ColumnElement[Any], claimable: ColumnElement[bool], rank: Rank = None
    ) -> Select[Any]:
        """A column of the claimable row that comes first.

        Rows take turns by since when nobody has them in hand. By their age, what is put
        off time and again would come before all that is new.
        """
        since = func.coalesce(cls.table.c.lease_until, cls.table.c.created)
        order = [since] if rank is None else [rank, since]
        return select(what).where(claimable).order_by(*order).limit(1)

    async def _fenced(self, claim: Leased, values: Mapping[str, object]) -> bool:
        """Change a claimed row; False when another claim came since."""
        # Plain values are given, so that one statement serves all claims.
        plain = {
            name: value
            for name, value in values.items()
            if not isinstance(value, ClauseElement)
        }
        statement = _fenced_update(self.table, tuple(plain))
        if len(plain) < len(values):
            made = {name: values[name] for name in values.keys() - plain.keys()}
            statement = statement.values(made)
        given: dict[str, object] = {f"new_{name}": plain[name] for name in plain}
        given |= {"claimed": claim.id, "claimed_fence": claim.fence}
        result = await self._connection.execute(statement, given)
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


@cache
def _fenced_update(table: Table, names: tuple[str, ...]) -> Update:
    """How columns of a row are changed that is still claimed."""
    new = {name: bindparam(f"new_{name}", type_=table.c[name].type) for name in names}
    return (
        update(table)
        .where(
            table.c.id == bindparam("claimed"),
            table.c.fence == bindparam("claimed_fence"),
        )
        .values(new)
    )
