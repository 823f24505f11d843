"""Activations whose time is over: which they are, and how they end."""

from datetime import datetime

from sqlalchemy import or_, select, update
from sqlalchemy.ext.asyncio import AsyncConnection

from appliance.core.database.tables import (
    activation,
    activation_item,
    activation_seal,
    intent,
)
from appliance.domain.ids import ActivationId
from appliance.domain.records.activations import IntentRow, Overdue
from appliance.domain.vocab import ActivationState, ItemState
from appliance.keys.sealed_key_store import erase_seals
from appliance.signing.activations.activation_row_store import (
    TRIES,
    documents_of,
    is_in,
)
from appliance.signing.activations.intent_store import interrupt_intents


async def find_overdue(
    connection: AsyncConnection, at: datetime, attempts: int
) -> list[Overdue]:
    """Activations that nobody may go on with, and no lease holds; locked."""
    free = or_(activation.c.lease_until.is_(None), activation.c.lease_until <= at)
    late = or_(
        is_in(ActivationState.WAITING) & (activation.c.claim_by <= at),
        is_in(ActivationState.KEYING) & (activation.c.key_until <= at),
        is_in(ActivationState.KEYING) & (attempts <= TRIES),
        is_in(ActivationState.FINISHING) & (activation.c.finish_until <= at),
    )
    rows = await connection.execute(
        select(
            activation.c.id,
            activation.c.state,
            TRIES.label("tries"),
            activation.c.reason,
        )
        .where(free, late)
        .with_for_update(skip_locked=True)
    )
    return [
        Overdue(
            ActivationId(row.id),
            ActivationState(row.state),
            row.tries,
            await documents_of(connection, row.id),
            row.reason,
        )
        for row in rows.all()
    ]


async def end_overdue(
    connection: AsyncConnection,
    activation_id: ActivationId,
    then: ActivationState,
    at: datetime,
    reason: str,
) -> list[IntentRow]:
    """End one of `overdue`, erase its seals; gives the intents still open.

    The fencing number goes up, so that a worker that wakes late is refused.
    What is not to be finished any more is failed with it.
    """
    over = {ItemState.WAITING.value}
    if then is not ActivationState.FINISHING:
        over.add(ItemState.KEYED.value)
    await connection.execute(
        update(activation)
        .where(activation.c.id == activation_id)
        .values(
            state=then.value,
            reason=reason,
            lease_until=at,
            fence=activation.c.fence + 1,
        )
    )
    await erase_seals(connection, activation_seal, activation_id)
    await connection.execute(
        update(activation_item)
        .where(
            activation_item.c.activation == activation_id,
            activation_item.c.state.in_(over),
        )
        .values(state=ItemState.FAILED.value, reason=reason)
    )
    return await interrupt_intents(connection, intent.c.activation == activation_id, at)
