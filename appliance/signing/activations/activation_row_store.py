"""How activations and their items are read from SQL."""

from typing import Any, Final

from sqlalchemy import ColumnElement, Row, select
from sqlalchemy.ext.asyncio import AsyncConnection

from appliance.core.database.tables import activation, activation_item
from appliance.domain.activation import ActivationDocument, SignatureValue
from appliance.domain.appearance.details import PLAIN, StampDetails
from appliance.domain.ids import RequestId
from appliance.domain.requests.signing_command import SignParameters
from appliance.domain.vocab import ActivationState, ItemState

TRIES: Final = activation.c.fence - activation.c.progress
"""Claims since an item last came to a result."""


def is_in(state: ActivationState) -> ColumnElement[bool]:
    """Whether an activation is in a state."""
    return activation.c.state == state.value


async def documents_of(
    connection: AsyncConnection, activation_id: str
) -> tuple[ActivationDocument, ...]:
    """The documents of an activation, in order."""
    rows = await connection.execute(
        select(activation_item)
        .where(activation_item.c.activation == activation_id)
        .order_by(activation_item.c.seq)
    )
    return tuple(_document(row) for row in rows)


def _document(row: Row[Any]) -> ActivationDocument:
    signature = None
    # Of a published document the value alone is kept.
    if row.increment is not None and row.signature is not None:
        signature = SignatureValue(
            row.increment,
            row.contents_at,
            row.contents_length,
            row.signed_attributes,
            row.signature,
        )
    return ActivationDocument(
        seq=row.seq,
        request=RequestId(row.request),
        document_sha256=row.document_sha256,
        params=SignParameters.from_wire(row.params),
        params_sha256=row.params_sha256,
        state=ItemState(row.state),
        details=PLAIN if row.stamp is None else StampDetails.from_json(row.stamp),
        code=row.code,
        signature=signature,
    )
