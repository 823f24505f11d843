"""Documents as their signers last fetched them, in SQL.

Only a signature of somebody else gives a request another document: of one who has the
same turn, or an earlier one. Other requests have no row, and cost no statement.

Source: decisions "seeing before signing".
"""

from collections.abc import Collection, Iterable
from typing import Final

from sqlalchemy import bindparam, select, update

from appliance.database.tables import shown_document
from appliance.database.upsert import insert_into
from appliance.domain.ids import RequestId
from appliance.domain.requests.request import UNFINISHED, RequestView
from appliance.domain.vocab import RequestState
from appliance.record.unit_of_work import Store

_OF: Final = select(shown_document).where(
    shown_document.c.request.in_(bindparam("requests", expanding=True))
)


_AT_ONCE: Final = 1_000
"""Requests of one query: a list has no bound, a statement's parameters do."""


class ShownDocumentStore(Store):
    """The SHA-256 of what a request's signer last fetched.

    A document that was drawn (its file, a preview, a page) counts for more than one
    that a list or an answer named: programs fetch lists that nobody reads.
    """

    async def unrecorded(
        self, views: Iterable[RequestView], *, drawn: bool
    ) -> list[RequestView]:
        """Those of some requests whose record is to be written.

        Args:
            views: as they are shown to their signer.
            drawn: their documents are; else they are named.
        """
        concerned = [view for view in views if view.may_get_another_document]
        known = await self._of(concerned)
        return [
            view
            for view in concerned
            if _is_news(view, known.get(view.id), drawn=drawn)
        ]

    async def record(self, views: Collection[RequestView], *, drawn: bool) -> None:
        """Record what the signer of each request was shown.

        Args:
            views: as they were shown.
            drawn: their documents were; else they were named, which changes no row
                of one that was drawn.
        """
        rows = [
            {"request": view.id, "sha256": view.sha256, "drawn": drawn}
            for view in views
            if view.may_get_another_document
        ]
        if not rows:
            return
        insert = insert_into(self._connection, shown_document)
        # One statement for all rows: it goes to the server once, prepared.
        await self._connection.execute(
            insert.on_conflict_do_update(
                index_elements=["request"],
                set_={"sha256": insert.excluded.sha256, "drawn": drawn},
                where=None if drawn else shown_document.c.drawn.is_(False),
            ),
            rows,
        )

    async def changed(self, views: Iterable[RequestView]) -> dict[RequestId, bool]:
        """Requests whose document is another one than their signer last fetched.

        Args:
            views: as they stand now.

        Returns:
            Of each whether the earlier document was drawn. Who fetched nothing is
            not among them.
        """
        concerned = [view for view in views if view.may_get_another_document]
        known = await self._of(concerned)
        return {
            view.id: known[view.id][1]
            for view in concerned
            if view.id in known and known[view.id][0] != view.sha256
        }

    async def refused(self, requests: Collection[RequestId]) -> None:
        """Have a list suffice to go on by: the signer knows of the change now.

        Args:
            requests: that were not signed, since their documents had changed.
        """
        await self._connection.execute(
            update(shown_document)
            .where(shown_document.c.request.in_(requests))
            .values(drawn=False)
        )

    async def _of(
        self, views: Collection[RequestView]
    ) -> dict[RequestId, tuple[str, bool]]:
        """SHA-256 and whether it was drawn, of those that have a row."""
        ids = [view.id for view in views]
        known: dict[RequestId, tuple[str, bool]] = {}
        for start in range(0, len(ids), _AT_ONCE):
            given = {"requests": ids[start : start + _AT_ONCE]}
            for row in await self._connection.execute(_OF, given):
                known[RequestId(row.request)] = (row.sha256, row.drawn)
        return known


def _is_news(view: RequestView, known: tuple[str, bool] | None, *, drawn: bool) -> bool:
    """Return whether what is shown has to be recorded.

    A request in the last document that it gets needs no row where it has none.
    """
    if view.state not in UNFINISHED:
        return False
    if known is None:
        return view.shared or view.state is RequestState.WAITING
    sha256, was_drawn = known
    if was_drawn and not drawn:
        return False
    return sha256 != view.sha256 or drawn is not was_drawn
