"""How activations and their items are read from SQL."""

from typing import Any, Final

from sqlalchemy import ColumnElement, Row, select
from sqlalchemy.ext.asyncio import AsyncConnection

from appliance.core.database.tables import activation, activation_item
from appliance.domain.appearance.details import PLAIN, StampDetails
from appliance.domain.ids import RequestId
from appliance.domain.records.activations import Item
from appliance.domain.requests.signing_command import SignParameters
from appliance.domain.vocab import ActivationState, ItemState

TRIES: Final = activation.c.fence - activation.c.progress
"""Claims since an item last came to a result."""


def is_in(state: ActivationState) -> ColumnElement[bool]:
    """Whether an activation is in a state."""
    return activation.c.state == state.value


async def items_of(connection: AsyncConnection, activation_id: str) -> tuple[Item, ...]:
    """The items of an activation, in order."""
    rows = await connection.execute(
        select(activation_item)
        .where(activation_item.c.activation == activation_id)
        .order_by(activation_item.c.seq)
    )
    return tuple(_item(row) for row in rows)


def _item(row: Row[Any]) -> Item:
    return Item(
        seq=row.seq,
        request=RequestId(row.request),
        document_sha256=row.document_sha256,
        params=SignParameters.from_wire(row.params),
        params_sha256=row.params_sha256,
        state=ItemState(row.state),
        details=PLAIN if row.stamp is None else StampDetails.from_json(row.stamp),
        increment=row.increment,
        contents_at=row.contents_at or 0,
        contents_length=row.contents_length or 0,
        signed_attributes=row.signed_attributes,
        signature=row.signature,
    )
