"""The documents of an activation in SQL: made, moved on, and found by their code."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Final

from sqlalchemy import and_, insert, select, update
from sqlalchemy.ext.asyncio import AsyncConnection

from appliance.core.database.tables import activation, activation_item, intent
from appliance.core.database.work_queue import fenced_update
from appliance.domain.activation import ActivationDocument, SignatureValue
from appliance.domain.ids import ActivationId, PersonId, RequestId
from appliance.domain.records.activations import (
    Claim,
    CodedItem,
)
from appliance.domain.vocab import IntentState, ItemState

_SIGNATURES: Final = (
    select(
        activation_item.c.request,
        activation_item.c.code,
        activation.c.person,
        intent.c.at,
    )
    .join(activation, activation.c.id == activation_item.c.activation)
    .join(
        intent,
        and_(
            intent.c.activation == activation_item.c.activation,
            intent.c.item == activation_item.c.seq,
            intent.c.state == IntentState.COMPLETED.value,
        ),
    )
    .where(activation_item.c.state == ItemState.DONE.value)
)
"""Published signatures: whose, of what, when their key was used."""


async def add_items(
    connection: AsyncConnection,
    activation_id: ActivationId,
    documents: Sequence[ActivationDocument],
) -> None:
    """Record the documents of a new activation, in order."""
    await connection.execute(
        insert(activation_item),
        [
            {
                "activation": activation_id,
                "seq": document.seq,
                "request": document.request,
                "document_sha256": document.document_sha256,
                "params": document.params.to_wire(),
                "params_sha256": document.params_sha256,
                "state": ItemState.WAITING.value,
                "reason": "",
                "stamp": document.details.to_json() or None,
                "code": document.code,
            }
            for document in documents
        ],
    )


async def key_item(
    connection: AsyncConnection, claim: Claim, seq: int, made: SignatureValue
) -> bool:
    """Store a signature value; False when fenced off."""
    values = {
        "state": ItemState.KEYED.value,
        "increment": made.increment,
        "contents_at": made.contents_at,
        "contents_length": made.contents_length,
        "signed_attributes": made.signed_attributes,
        "signature": made.value,
    }
    return await _moved(connection, claim, seq, values)


async def publish_item(connection: AsyncConnection, claim: Claim, seq: int) -> bool:
    """An item is published; False when fenced off.

    What was kept to publish it is of no more use and goes.
    """
    values = {
        "state": ItemState.DONE.value,
        "increment": None,
        "signed_attributes": None,
    }
    return await _moved(connection, claim, seq, values)


async def fail_item(
    connection: AsyncConnection, claim: Claim, seq: int, reason: str
) -> bool:
    """An item cannot be signed; False when fenced off."""
    values = {"state": ItemState.FAILED.value, "reason": reason}
    return await _moved(connection, claim, seq, values)


async def _moved(
    connection: AsyncConnection, claim: Claim, seq: int, values: Mapping[str, object]
) -> bool:
    """Change an item, under the lock of its activation's fenced row."""
    progress = {"progress": claim.fence}
    if not await fenced_update(connection, activation, claim.id, claim.fence, progress):
        return False
    await connection.execute(
        update(activation_item)
        .where(activation_item.c.activation == claim.id, activation_item.c.seq == seq)
        .values(**values)
    )
    return True


async def item_states(
    connection: AsyncConnection, activation_id: ActivationId
) -> set[ItemState]:
    """The states that an activation's items are in."""
    result = await connection.execute(
        select(activation_item.c.state)
        .where(activation_item.c.activation == activation_id)
        .distinct()
    )
    return {ItemState(word) for word in result.scalars()}


async def code_of_item(
    connection: AsyncConnection, request: RequestId
) -> tuple[str | None, datetime] | None:
    """Verification code of a request's published signature, and when it was made."""
    query = _SIGNATURES.where(activation_item.c.request == request)
    row = (await connection.execute(query)).first()
    return None if row is None else (row.code, row.at)


async def item_by_code(connection: AsyncConnection, code: str) -> CodedItem | None:
    """The published signature with a verification code."""
    query = _SIGNATURES.where(activation_item.c.code == code)
    row = (await connection.execute(query)).first()
    if row is None:
        return None
    return CodedItem(RequestId(row.request), PersonId(row.person), row.at)
