"""Unlock keys sealed to hosts, alike for activations and HSM tasks."""

from collections.abc import Iterable

from sqlalchemy import Column, ColumnElement, Table, delete, insert, select
from sqlalchemy.ext.asyncio import AsyncConnection

from appliance.domain.signing.activation import Seal


def _subject(table: Table) -> Column[str]:
    """The column that names what the seals belong to: the first of the key."""
    return table.primary_key.columns[0]


async def add_seals(
    connection: AsyncConnection, table: Table, subject: str, seals: Iterable[Seal]
) -> None:
    """Record what was sealed for an activation or a task."""
    rows = [
        {
            _subject(table).name: subject,
            "host": seal.host,
            "epoch": seal.epoch,
            "sealed": seal.sealed,
        }
        for seal in seals
    ]
    if rows:
        await connection.execute(insert(table), rows)


async def seals_of(
    connection: AsyncConnection, table: Table, subject: str
) -> list[Seal]:
    """What stands sealed for an activation or a task, by host."""
    rows = await connection.execute(
        select(table).where(_subject(table) == subject).order_by(table.c.host)
    )
    return [Seal(row.host, row.epoch, row.sealed) for row in rows]


async def erase_seals(
    connection: AsyncConnection, table: Table, subject: str, host: str | None = None
) -> None:
    """Forget what was sealed, to every host or to one."""
    wanted = _subject(table) == subject
    if host is not None:
        wanted &= table.c.host == host
    await connection.execute(delete(table).where(wanted))


def is_sealed(
    table: Table, subject: ColumnElement[str], host: str | None = None
) -> ColumnElement[bool]:
    """Whether something is sealed to any host, or to one, as a condition."""
    wanted = _subject(table) == subject
    if host is not None:
        wanted &= table.c.host == host
    # By name: `SELECT *` needs a right on what is sealed as well.
    return select(_subject(table)).where(wanted).exists()
