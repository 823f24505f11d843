"""The order of a process's requests in SQL: who comes after, whose turn it is."""

from sqlalchemy import and_, select, update
from sqlalchemy.ext.asyncio import AsyncConnection

from appliance.core.database.tables import signature_request
from appliance.domain.ids import DocumentId, ProcessId, RequestId
from appliance.domain.requests.request import UNFINISHED, RequestView
from appliance.domain.vocab import RequestState
from appliance.signing.request_view_store import REQUEST_VIEWS, request_view


async def requests_of(
    connection: AsyncConnection, process: ProcessId
) -> list[RequestView]:
    """The requests of a process, in order."""
    query = REQUEST_VIEWS.where(signature_request.c.process == process).order_by(
        signature_request.c.seq
    )
    return [request_view(row) for row in await connection.execute(query)]


async def lock_later(
    connection: AsyncConnection, process: ProcessId, seq: int
) -> list[RequestView]:
    """Those after a place in it, in order; others are kept from moving them."""
    query = (
        REQUEST_VIEWS.where(signature_request.c.process == process)
        .where(signature_request.c.seq > seq)
        .order_by(signature_request.c.seq)
        .with_for_update(of=signature_request)
    )
    return [request_view(row) for row in await connection.execute(query)]


async def take_turn(
    connection: AsyncConnection, request: RequestId, document: DocumentId
) -> bool:
    """Move `en_espera` → `pendiente` on a document; False if it did not wait."""
    result = await connection.execute(
        update(signature_request)
        .where(
            signature_request.c.id == request,
            signature_request.c.state == RequestState.WAITING.value,
        )
        .values(state=RequestState.PENDING.value, document=document)
    )
    return result.rowcount == 1


async def stalled_requests(
    connection: AsyncConnection, after: RequestId, limit: int
) -> list[RequestId]:
    """Requests that wait although the one before them is over."""
    before = signature_request.alias("before")
    rows = await connection.execute(
        select(signature_request.c.id)
        .join(
            before,
            and_(
                before.c.process == signature_request.c.process,
                before.c.seq == signature_request.c.seq - 1,
            ),
        )
        .where(
            signature_request.c.id > after,
            signature_request.c.state == RequestState.WAITING.value,
            before.c.state.not_in([state.value for state in UNFINISHED]),
        )
        .order_by(signature_request.c.id)
        .limit(limit)
    )
    return [RequestId(number) for number in rows.scalars()]
