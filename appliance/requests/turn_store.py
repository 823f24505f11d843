"""Whose turn it is, in SQL: turns given, moved on, and left behind."""

from collections.abc import Collection
from typing import Any, Final

from sqlalchemy import (
    ColumnElement,
    FromClause,
    Select,
    exists,
    func,
    or_,
    select,
    update,
)

from appliance.database.tables import document, signature_request
from appliance.domain.ids import DocumentId, RequestId
from appliance.domain.requests.request import UNFINISHED, RequestView
from appliance.domain.vocab import RequestState
from appliance.record.unit_of_work import Store, Transaction
from appliance.requests.request_store import RequestStore, holds

_UNFINISHED: Final = [state.value for state in UNFINISHED]
_ENDED: Final = [
    state.value
    for state in RequestState
    if state not in UNFINISHED and state is not RequestState.SIGNED
]
_OTHER: Final = signature_request.alias("other")
_ITS: Final = document.alias("its")


def turn_of(request: FromClause) -> ColumnElement[int]:
    """As `RequestView.turn_number`.

    Args:
        request: `signature_request`, or an alias of it.
    """
    return func.coalesce(request.c.turn, request.c.seq + 1)


_EARLIER: Final = exists().where(
    _OTHER.c.process == signature_request.c.process,
    turn_of(_OTHER) < turn_of(signature_request),
    _OTHER.c.state.in_(_UNFINISHED),
)
_IS_HELD: Final = exists(
    select(_OTHER.c.id)
    .join(_ITS, _ITS.c.id == _OTHER.c.document)
    .where(
        _OTHER.c.process == signature_request.c.process,
        _OTHER.c.turn == signature_request.c.turn,
        _OTHER.c.id != signature_request.c.id,
        or_(
            _OTHER.c.state.in_(_ENDED),
            (_OTHER.c.state == RequestState.SIGNED.value)
            & holds(_OTHER, _ITS, document),
        ),
    )
    .correlate(signature_request, document)
)
_WAITING: Final[Select[Any]] = select(signature_request.c.id).where(
    signature_request.c.state == RequestState.WAITING.value, ~_EARLIER
)
_LEFT: Final[Select[Any]] = (
    select(signature_request.c.id)
    .join(document, document.c.id == signature_request.c.document)
    .where(
        signature_request.c.turn.is_not(None),
        signature_request.c.state == RequestState.PENDING.value,
        _IS_HELD,
    )
)


class TurnStore(Store):
    """The order of the requests of processes."""

    def __init__(self, transaction: Transaction) -> None:
        super().__init__(transaction)
        self._requests = RequestStore(transaction)

    async def lock_rest(self, view: RequestView) -> list[RequestView]:
        """Others of its turn and all of later ones; nobody else moves them.

        Whoever asks has locked its turn: locks are only ever taken onwards, so that
        no two wait for each other.

        Returns:
            Them, in the order of `seq`.
        """
        after: ColumnElement[bool] = signature_request.c.seq > view.seq
        if view.turn is not None:
            after = after | (signature_request.c.turn == view.turn)
        rows = await self._connection.execute(
            select(signature_request.c.id)
            .where(
                signature_request.c.process == view.process,
                signature_request.c.id != view.id,
                after,
            )
            .order_by(signature_request.c.id)
            .with_for_update()
        )
        found = await self._requests.named([RequestId(each) for each in rows.scalars()])
        return sorted(found.values(), key=lambda each: each.seq)

    async def take(self, requests: Collection[RequestId], on: DocumentId) -> None:
        """Move requests `en_espera` → `pendiente` on a document; others stay."""
        await self._connection.execute(
            update(signature_request)
            .where(
                signature_request.c.id.in_(requests),
                signature_request.c.state == RequestState.WAITING.value,
            )
            .values(state=RequestState.PENDING.value, document=on)
        )

    async def move_on(self, requests: Collection[RequestId], to: DocumentId) -> None:
        """Have requests that are `pendiente` be on what another of their turn made."""
        await self._connection.execute(
            update(signature_request)
            .where(
                signature_request.c.id.in_(requests),
                signature_request.c.state == RequestState.PENDING.value,
            )
            .values(document=to)
        )

    async def stalled(self, after: RequestId, limit: int) -> list[RequestId]:
        """Requests that wait although all before them are over, in order.

        And those that can be signed, but for one of their turn that is over: it was
        signed and they are not on what it made, or it never will be.
        """
        found: list[RequestId] = []
        for query in (_WAITING, _LEFT):
            rows = await self._connection.execute(
                query.where(signature_request.c.id > after)
                .order_by(signature_request.c.id)
                .limit(limit)
            )
            found += map(RequestId, rows.scalars())
        return sorted(found)[:limit]
