"""Removing what nobody needs from the store of documents.

What a session of the frame brought and did not sign is removed within minutes when
it was replaced, else an hour after the session's end. Whatever else came in and nothing
refers to (a call ended between file and record) is removed after some days; so is what
a killed writer left. What an integrator's backend uploaded is kept while it can be
named. What comes in again meanwhile counts as new: its row and its file say when that
was, and both are looked at once more when they are removed.
"""

from datetime import datetime, timedelta
from typing import Final

import structlog

from appliance.documents.document_store import DocumentStore
from appliance.documents.passing_documents import PassingDocuments
from appliance.documents.uploaded_document_store import UploadedDocumentStore
from appliance.domain.audit.record import AuditEvent
from appliance.domain.clock import Clock
from appliance.domain.ids import IntegratorId, new_id
from appliance.domain.ports import BlobMaintenance
from appliance.domain.vocab import EventKind
from appliance.integrators.session_document_store import SessionDocumentStore
from appliance.record.unit_of_work import Database
from appliance.settings import DocumentSettings

_log: Final = structlog.get_logger(__name__)
_LEFT_BEHIND: Final = timedelta(days=1)
"""No write takes so long."""
_BATCH: Final = 500
_REPLACED: Final = timedelta(minutes=5)
"""After this what a session brought may go; no upload takes so long."""
_ENDED: Final = timedelta(hours=1)
"""After a session's end it may still be renewed, and goes on with its document."""


class GarbageCollection:
    """The chore; any number of hosts may do it.

    Args:
        store: the record.
        documents: the files.
        clock: the time.
        settings: how long what is unused is kept.
    """

    def __init__(
        self,
        store: Database,
        documents: BlobMaintenance,
        clock: Clock,
        settings: DocumentSettings,
    ) -> None:
        self._store = store
        self._documents = documents
        self._clock = clock
        self._kept = timedelta(days=settings.unused_days)
        self._passing = PassingDocuments(store, documents, clock)

    async def run(self) -> int:
        """Do it once; how many files were removed.

        Raises:
            ApplianceError: `STORE_UNAVAILABLE`.
        """
        now = self._clock.now()
        left = await self._documents.clear(now - _LEFT_BEHIND)
        before = now - self._kept
        await self._forget_uploads(now)
        await self._forget(before)
        unused = 0
        async for integrator, names in self._documents.older(before):
            unused += await self._remove(integrator, names, before)
        if left or unused:
            _log.info("documents.swept", left_behind=left, unused=unused)
        return left + unused

    async def after_sessions(self) -> int:
        """Remove what sessions of the frame brought and do not sign; how many files.

        Raises:
            ApplianceError: `STORE_UNAVAILABLE`.
        """
        removed = 0
        while True:
            now = self._clock.now()
            async with self._store.write() as transaction:
                idle = await SessionDocumentStore(transaction).forget_idle(
                    now - _REPLACED, now - _ENDED, _BATCH
                )
                files: dict[IntegratorId, dict[str, int]] = {}
                for each in idle:
                    files.setdefault(each.integrator, {})[each.sha256] = each.size_bytes
                calls = {integrator: new_id() for integrator in files}
                for integrator, call in calls.items():
                    await self._passing.leave(
                        transaction, call, integrator, files[integrator]
                    )
            for call in calls.values():
                removed += await self._passing.remove(call)
            if len(idle) < _BATCH:
                return removed

    async def _forget_uploads(self, now: datetime) -> None:
        """Remove the rows of uploads whose time is over."""
        while True:
            async with self._store.write() as transaction:
                over = await UploadedDocumentStore(transaction).remove_over(now, _BATCH)
                for each in over:
                    transaction.audit.add(
                        AuditEvent(
                            EventKind.DOCUMENT_UPLOAD_REMOVED,
                            "system",
                            integrator=each.document.integrator,
                            detail=each.facts(),
                        )
                    )
            if len(over) < _BATCH:
                return

    async def _forget(self, before: datetime) -> None:
        """Forget rows first: a file is removed only when no row names it."""
        while True:
            async with self._store.write() as transaction:
                if (
                    await DocumentStore(transaction).forget_unused(before, _BATCH)
                    < _BATCH
                ):
                    return

    async def _remove(
        self, integrator: IntegratorId, names: list[str], before: datetime
    ) -> int:
        async with self._store.read() as transaction:
            named = await DocumentStore(transaction).named(integrator, names)
        removed = [
            sha256
            for sha256 in names
            if sha256 not in named
            and await self._documents.remove(integrator, sha256, before)
        ]
        if removed:
            async with self._store.write() as transaction:
                for sha256 in removed:
                    transaction.audit.add(
                        AuditEvent(
                            EventKind.DOCUMENT_REMOVED,
                            "system",
                            integrator=integrator,
                            detail={"documentSha256": sha256},
                        )
                    )
        return len(removed)
