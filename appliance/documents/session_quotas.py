"""How much sessions of the frame may bring: nobody has to sign in to bring something.

Counted before a document is looked at or kept, by session and by integrator; what a
session does not sign is removed again (`garbage_collection`). The sum over an
integrator's sessions is not locked: as many uploads as run at once may pass it by
their own size.
"""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass

from appliance.documents.document_bytes import sha256_of, size_of
from appliance.domain.clock import Clock
from appliance.domain.embedding import BroughtDocument
from appliance.domain.errors import ApplianceError, ErrorCode
from appliance.domain.integrators.integrators import EmbedSession
from appliance.domain.ports import DocumentBytes
from appliance.domain.requests.intake import StoredDocument
from appliance.integrators.session_document_store import SessionDocumentStore
from appliance.integrators.session_store import SessionStore
from appliance.record.unit_of_work import Database
from appliance.settings import DocumentSettings


@dataclass(slots=True)
class Bringing:
    """A document that is being taken in."""

    is_kept: bool = False
    """Whether its file may be there, or yet come, whatever becomes of the call."""


class SessionQuotas:
    """Counts what sessions bring.

    Args:
        store: the record.
        clock: the time.
        settings: how much they may.
    """

    def __init__(
        self, store: Database, clock: Clock, settings: DocumentSettings
    ) -> None:
        self._store = store
        self._clock = clock
        self._settings = settings

    @asynccontextmanager
    async def bringing(
        self, session: EmbedSession, pdf: DocumentBytes
    ) -> AsyncIterator[Bringing]:
        """Count a document while it is taken in; uncount it where it is refused.

        A file is put in by threads that go on when the caller leaves. So one that may
        have been kept counts until chores have removed it, some minutes later.

        Raises:
            ApplianceError: `SESSION_DOCUMENTS`, `DOCUMENT_QUOTA`.
        """
        sha256 = await sha256_of(pdf)
        brought = BroughtDocument(
            session.id, session.integrator.id, sha256, size_of(pdf)
        )
        is_new = await self._count(brought)
        bringing = Bringing()
        try:
            yield bringing
        except BaseException:
            if not is_new or bringing.is_kept:
                raise
            async with self._store.write() as transaction:
                await SessionDocumentStore(transaction).forget(session.id, sha256)
            raise

    async def _count(self, brought: BroughtDocument) -> bool:
        """Count it, unless it is too much; whether it had not been before.

        Raises:
            ApplianceError: `SESSION_DOCUMENTS`, `DOCUMENT_QUOTA`.
        """
        of_session = max(self._settings.session_bytes, self._settings.limit_bytes)
        of_integrator = max(self._settings.integrator_bytes, of_session)
        async with self._store.write() as transaction:
            counted = SessionDocumentStore(transaction)
            # Others of this session wait until it is counted.
            await SessionStore(transaction).get(brought.session, lock=True)
            is_new = await counted.add(brought, self._clock.now())
            # Each refusal takes back what was added.
            if await counted.session_bytes(brought.session) > of_session:
                raise ApplianceError(ErrorCode.SESSION_DOCUMENTS)
            if await counted.integrator_bytes(brought.integrator) > of_integrator:
                raise ApplianceError(ErrorCode.DOCUMENT_QUOTA)
            return is_new

    async def count_copy(self, session: EmbedSession, kept: StoredDocument) -> None:
        """Count the repaired copy of a document, which is kept beside it."""
        if kept.repair is None:
            return
        size = kept.inspection.size_bytes
        copy = BroughtDocument(session.id, kept.integrator, kept.sha256, size)
        async with self._store.write() as transaction:
            await SessionDocumentStore(transaction).add(copy, self._clock.now())
