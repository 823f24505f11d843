"""The audit's chains read again: whether every row is there, in order and unaltered.

Each process start has a chain of its own. Rows are read in steps, each in a
transaction of its own, so that memory is bounded and no long transaction stands in
anybody's way. A row once written never changes, and so the steps agree.
"""

import asyncio
from collections.abc import AsyncIterator
from typing import Final

from appliance.domain.audit.record import GENESIS, AuditRow, chain
from appliance.domain.console.lists import ChainView, Page, WriterRow
from appliance.domain.errors import ApplianceError, ErrorCode
from appliance.record import pagination
from appliance.record.audit_chain_store import AuditChainStore
from appliance.record.unit_of_work import Database

_STEP: Final = 500
"""Rows read at once."""
_WRITERS: Final = 20
"""Chains of a page."""
_PAGE_ROWS: Final = 20_000
"""Rows that are checked while somebody waits for a page: a second or two."""
_UNREADABLE: Final = (ValueError, TypeError, LookupError, RecursionError)
"""What an altered row may raise where it is read."""


class AuditChains:
    """Reads the audit's chains again.

    Args:
        store: the record.
    """

    def __init__(self, store: Database) -> None:
        self._store = store

    async def page(self, cursor: str = "") -> Page[WriterRow]:
        """Processes that wrote to the audit, newest first, not checked.

        Raises:
            ApplianceError: `QUERY_INVALID` for a cursor that is none.
        """
        after = pagination.read_instant(cursor)
        async with self._store.read() as transaction:
            rows = await AuditChainStore(transaction).writers(after, _WRITERS + 1)
        shown = tuple(rows[:_WRITERS])
        if len(rows) <= _WRITERS:
            return Page(shown, None)
        return Page(shown, pagination.instant(shown[-1].started, shown[-1].id))

    async def checked_page(
        self, cursor: str = ""
    ) -> Page[tuple[WriterRow, ChainView | None]]:
        """The same, checked as far as somebody waits for it; None: not checked.

        Raises:
            ApplianceError: `QUERY_INVALID` for a cursor that is none.
        """
        page = await self.page(cursor)
        left, checked = _PAGE_ROWS, []
        for writer in page.rows:
            fits = writer.n <= left
            left -= writer.n if fits else 0
            checked.append((writer, await self.check(writer) if fits else None))
        return Page(tuple(checked), page.following)

    async def every(self) -> AsyncIterator[ChainView]:
        """Each chain, checked; newest first."""
        cursor: str | None = ""
        while cursor is not None:
            page = await self.page(cursor)
            for writer in page.rows:
                yield await self.check(writer)
            cursor = page.following

    async def one(self, writer: str) -> ChainView:
        """A process's chain, checked.

        Raises:
            ApplianceError: `NOT_FOUND` for a writer that is none.
        """
        async with self._store.read() as transaction:
            row = await AuditChainStore(transaction).writer(writer)
        if row is None:
            raise ApplianceError(ErrorCode.NOT_FOUND)
        return await self.check(row)

    async def check(self, writer: WriterRow) -> ChainView:
        """Read a writer's rows again, up to the last that it had.

        Args:
            writer: as it stood; rows that it writes meanwhile are left out.
        """
        n, last, step = 0, GENESIS, _STEP
        while n < writer.n:
            try:
                rows = await self._rows(writer, n, step)
                right, last = await asyncio.to_thread(_follow, rows, n, last)
            except _UNREADABLE:
                if step == 1:
                    return ChainView(writer, n, n + 1)
                # One by one from here, to name the row that cannot be read.
                step = 1
                continue
            n += right
            if not rows or right < len(rows):
                return ChainView(writer, n, n + 1)
        # A row that was cut off with the ones after it shows in the last hash.
        if last != writer.hash:
            return ChainView(writer, n, n)
        async with self._store.read() as transaction:
            extra = await AuditChainStore(transaction).has_rows_beyond(writer.id)
        return ChainView(writer, n, n + 1 if extra else None)

    async def _rows(self, writer: WriterRow, above: int, step: int) -> list[AuditRow]:
        async with self._store.read() as transaction:
            rows = await AuditChainStore(transaction).writer_rows(
                writer.id, above, step
            )
        return [row for row in rows if row.n <= writer.n]


def _follow(rows: list[AuditRow], n: int, last: str) -> tuple[int, str]:
    """How many rows follow on a hash, and the hash of the last that does."""
    right = 0
    for row in rows:
        made = chain(row.writer, n + right + 1, last, row.at, row.event)
        if made != row:
            break
        last = row.hash
        right += 1
    return right, last
