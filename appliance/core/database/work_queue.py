"""Leases with fencing numbers, alike for activations and HSM tasks.

A claim is one conditional UPDATE that raises the fencing number; every later
write of the claimant names that number and touches no row once another came.
"""

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from sqlalchemy import ColumnElement, Row, Table, func, select, update
from sqlalchemy.ext.asyncio import AsyncConnection


async def claim_one(
    connection: AsyncConnection,
    table: Table,
    claimable: ColumnElement[bool],
    owner: str,
    until: datetime,
    values: Mapping[str, object],
    rank: ColumnElement[Any] | None = None,
) -> Row[Any] | None:
    """Take the claimable row that waits longest, of those that rank lowest.

    None when there is none. On PostgreSQL rows that another transaction is claiming
    are passed over.
    """
    first = [] if rank is None else [rank]
    oldest = (
        select(table.c.id)
        .where(claimable)
        .order_by(*first, free_since(table))
        .limit(1)
        .with_for_update(skip_locked=True)
        .scalar_subquery()
    )
    result = await connection.execute(
        update(table)
        .where(table.c.id == oldest, claimable)
        .values(lease_owner=owner, lease_until=until, fence=table.c.fence + 1, **values)
        .returning(table)
    )
    row: Row[Any] | None = result.one_or_none()
    return row


def free_since(table: Table) -> ColumnElement[Any]:
    """Since when nobody has a claimable row in hand: by that they take turns.

    By their age, what is put off time and again would come before all that is new.
    """
    return func.coalesce(table.c.lease_until, table.c.created)


async def fenced_update(
    connection: AsyncConnection,
    table: Table,
    row_id: str,
    fence: int,
    values: Mapping[str, object],
) -> bool:
    """Change a claimed row; False when another claim came since."""
    result = await connection.execute(
        update(table)
        .where(table.c.id == row_id, table.c.fence == fence)
        .values(**values)
    )
    return result.rowcount == 1


async def release(
    connection: AsyncConnection, table: Table, owner_prefix: str, at: datetime
) -> int:
    """End the leases of a dead process; how many there were."""
    result = await connection.execute(
        update(table)
        .where(
            table.c.lease_owner.startswith(owner_prefix, autoescape=True),
            table.c.lease_until > at,
        )
        .values(lease_until=at)
    )
    return result.rowcount
