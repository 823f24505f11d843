"""Intents in SQL: one row for each intended use of a key.

An intent is opened before the key is used and ends in exactly one of
`completada` and `interrumpida`.
"""

from datetime import datetime
from typing import Any

from sqlalchemy import ColumnElement, Row, insert, select, update
from sqlalchemy.ext.asyncio import AsyncConnection

from appliance.core.database.tables import intent
from appliance.domain.ids import ActivationId, new_id
from appliance.domain.records.activations import Claim, IntentRow
from appliance.domain.vocab import IntentState


async def open_intent(
    connection: AsyncConnection, claim: Claim, seq: int, digest: str, at: datetime
) -> None:
    """Record the exact digest about to be signed."""
    await connection.execute(
        insert(intent).values(
            id=new_id(),
            activation=claim.id,
            item=seq,
            attempt=claim.fence,
            digest=digest,
            state=IntentState.OPEN.value,
            at=at,
        )
    )


async def complete_intent(
    connection: AsyncConnection, claim: Claim, seq: int, at: datetime
) -> None:
    """Close the intent of this claim's use of the key."""
    await connection.execute(
        update(intent)
        .where(
            intent.c.activation == claim.id,
            intent.c.item == seq,
            intent.c.attempt == claim.fence,
            intent.c.state == IntentState.OPEN.value,
        )
        .values(state=IntentState.COMPLETED.value, closed=at)
    )


async def interrupt_intents(
    connection: AsyncConnection, which: ColumnElement[bool], at: datetime
) -> list[IntentRow]:
    """Close open intents whose outcome nobody will know; gives those closed."""
    rows = await connection.execute(
        update(intent)
        .where(which, intent.c.state == IntentState.OPEN.value)
        .values(state=IntentState.INTERRUPTED.value, closed=at)
        .returning(intent)
    )
    return [_intent(row) for row in rows]


async def intents_of(
    connection: AsyncConnection, activation: ActivationId
) -> list[IntentRow]:
    """All intents of an activation, oldest first."""
    rows = await connection.execute(
        select(intent)
        .where(intent.c.activation == activation)
        .order_by(intent.c.at, intent.c.item)
    )
    return [_intent(row) for row in rows]


def _intent(row: Row[Any]) -> IntentRow:
    return IntentRow(
        ActivationId(row.activation),
        row.item,
        row.attempt,
        row.digest,
        IntentState(row.state),
    )
