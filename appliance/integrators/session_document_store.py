"""What sessions of the frame have brought, in SQL."""

from collections.abc import Sequence
from datetime import datetime

from sqlalchemy import ColumnElement, delete, func, or_, select, update

from appliance.database.tables import document, embed_session, embed_session_document
from appliance.database.upsert import insert_into
from appliance.domain.embedding import BroughtDocument
from appliance.domain.ids import IntegratorId
from appliance.domain.integrators.integrators import SessionState
from appliance.record.unit_of_work import Store

_C = embed_session_document.c
_S = embed_session.c


class SessionDocumentStore(Store):
    """Files that sessions have brought."""

    async def session_bytes(self, session: str) -> int:
        """What a session has brought, in bytes."""
        return await self._bytes_where(_C.session == session)

    async def integrator_bytes(self, integrator: IntegratorId) -> int:
        """What all sessions of an integrator have brought, in bytes."""
        return await self._bytes_where(_C.integrator == integrator)

    async def _bytes_where(self, condition: ColumnElement[bool]) -> int:
        query = select(func.coalesce(func.sum(_C.size_bytes), 0)).where(condition)
        # PostgreSQL's sum of whole numbers is a decimal.
        return int((await self._connection.execute(query)).scalar_one())

    async def add(self, brought: BroughtDocument, at: datetime) -> bool:
        """Record one; False for a file that the session has brought before."""
        result = await self._connection.execute(
            insert_into(self._connection, embed_session_document)
            .values(
                session=brought.session,
                integrator=brought.integrator,
                sha256=brought.sha256,
                size_bytes=brought.size_bytes,
                brought=at,
            )
            .on_conflict_do_nothing()
        )
        return result.rowcount == 1

    async def forget(self, session: str, sha256: str) -> None:
        """Forget one that was not kept."""
        await self._connection.execute(
            delete(embed_session_document).where(
                _C.session == session, _C.sha256 == sha256
            )
        )

    async def forget_idle(
        self, replaced: datetime, ended: datetime, limit: int
    ) -> Sequence[BroughtDocument]:
        """Forget what sessions do not sign any more, and give it.

        Args:
            replaced: nothing that was brought after that is forgotten: it may still
                be on its way.
            ended: whose time was over then is not renewed any more.
            limit: how many.
        """
        is_over = or_(
            _S.id.is_(None),
            _S.until <= ended,
            _S.state != SessionState.OPEN.value,
            _S.request.is_not(None),
        )
        is_replaced = or_(document.c.id.is_(None), document.c.sha256 != _C.sha256)
        idle = (
            select(embed_session_document, is_over.label("is_over"))
            .outerjoin(embed_session, _S.id == _C.session)
            .outerjoin(document, document.c.id == _S.document)
            .where(_C.brought < replaced, or_(is_over, is_replaced))
            .order_by(_C.brought)
            .limit(limit)
        )
        rows = (await self._connection.execute(idle)).all()
        over = {row.session for row in rows if row.is_over}
        await self._connection.execute(
            update(embed_session)
            .where(_S.id.in_(over), _S.request.is_(None))
            .values(document=None)
        )
        for row in rows:
            await self.forget(row.session, row.sha256)
        return [
            BroughtDocument(
                row.session, IntegratorId(row.integrator), row.sha256, row.size_bytes
            )
            for row in rows
        ]
