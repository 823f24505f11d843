"""What is kept for a call is gone with it, unless the call has recorded what it is.

A file must be durable before a row names it, so that it may be left behind: by a call
that is refused at its end, that breaks off, or whose process is killed. Each has
therefore a row of its own from before it is put in (`passing_document`), which goes in
the transaction that records what became of it. A call that does not come to that
removes its files itself; what a killed one left, chores do an hour later. A batch that
is prepared keeps its files under its id (`handed_on`), however long that takes. All of
it counts among what an integrator may have waiting, until it is gone.

What is deleted goes the same way. Others may have or bring the same file meanwhile:
who puts one in says so by a row first, and who removes one asks for such rows while
nobody can put it in (`BlobMaintenance.remove_unneeded`).
"""

import asyncio
from collections.abc import (
    AsyncIterator,
    Awaitable,
    Callable,
    Collection,
    Mapping,
    Sequence,
)
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta
from operator import attrgetter
from typing import Final

import structlog

from appliance.documents.document_bytes import sha256_of, size_of
from appliance.documents.document_store import DocumentStore
from appliance.documents.passing_document_store import (
    PassingDocumentStore,
    PassingFile,
)
from appliance.domain.audit.record import AuditEvent
from appliance.domain.clock import Clock
from appliance.domain.errors import DOCUMENTS_AWAY, ApplianceError, ErrorCode
from appliance.domain.ids import IntegratorId, new_id
from appliance.domain.ports import BlobMaintenance, DocumentBytes
from appliance.domain.vocab import EventKind
from appliance.record.unit_of_work import Database, Transaction

Demand = Callable[[Transaction, str], Awaitable[None]]
"""Refuses what a call is about to keep, by its rows and its id."""
_ABANDONED: Final = timedelta(hours=1)
"""No call takes so long; one that did finds its rows gone, and records nothing."""
_AGAIN: Final = timedelta(minutes=1)
"""After this it is tried once more to remove a file."""
_BATCH: Final = 200
_log: Final = structlog.get_logger(__name__)


@dataclass(slots=True)
class Keeping:
    """Files that are kept for a call, which is to record what they are."""

    call: str
    count: int
    """How many files; of two that are alike one."""
    is_recorded: bool = False
    """Whether that was asked for; it holds if nothing goes wrong after it."""

    async def recorded(self, transaction: Transaction) -> None:
        """They stay, once this transaction is committed.

        Args:
            transaction: the one that records what refers to them.

        Raises:
            ApplianceError: `STORE_UNAVAILABLE`: the call took so long that they were
                taken for left behind.
        """
        if await PassingDocumentStore(transaction).recorded(self.call) != self.count:
            raise ApplianceError(ErrorCode.STORE_UNAVAILABLE, sentence=DOCUMENTS_AWAY)
        self.is_recorded = True

    async def handed_on(self, transaction: Transaction, at: datetime) -> None:
        """They stay for what goes on under the call's id, once this is committed.

        Args:
            transaction: the one that records what goes on.
            at: the time.

        Raises:
            ApplianceError: `STORE_UNAVAILABLE`: as of `recorded`.
        """
        passing = PassingDocumentStore(transaction)
        if await passing.renew(self.call, at) != self.count:
            raise ApplianceError(ErrorCode.STORE_UNAVAILABLE, sentence=DOCUMENTS_AWAY)
        self.is_recorded = True


class PassingDocuments:
    """Keeps files for calls, and removes them.

    Args:
        store: the record.
        documents: the files.
        clock: the time.
    """

    def __init__(
        self, store: Database, documents: BlobMaintenance, clock: Clock
    ) -> None:
        self._store = store
        self._documents = documents
        self._clock = clock

    @asynccontextmanager
    async def keeping(
        self,
        integrator: IntegratorId,
        documents: Sequence[DocumentBytes],
        demand: Demand | None = None,
    ) -> AsyncIterator[Keeping]:
        """Keep files for the time of a block, and for good where it records them.

        Args:
            integrator: whose.
            documents: their bytes.
            demand: is asked before any is kept.

        Raises:
            ApplianceError: those of `BlobStore.put`; what `demand` raises.
        """
        distinct = {await sha256_of(each): each for each in documents}
        kept = Keeping(new_id(), len(distinct))
        if not distinct:
            yield kept
            return
        sizes = {sha256: size_of(each) for sha256, each in distinct.items()}
        putting: asyncio.Future[None] | None = None
        try:
            async with self._store.write() as transaction:
                await PassingDocumentStore(transaction).add(
                    kept.call, integrator, sizes, self._clock.now()
                )
                if demand is not None:
                    await demand(transaction, kept.call)
            putting = asyncio.ensure_future(
                self._documents.put_all(integrator, list(distinct.values()))
            )
            await _to_its_end(putting)
            yield kept
        except BaseException:
            kept.is_recorded = False
            raise
        finally:
            # While files are still being put in, all is left to chores.
            is_still = putting is None or putting.done()
            if not kept.is_recorded and is_still:
                came = sizes if putting is not None else {}
                await self._end(kept.call, came, integrator)

    async def leave(
        self,
        transaction: Transaction,
        call: str,
        integrator: IntegratorId,
        files: Mapping[str, int],
    ) -> None:
        """Have files leave, unless something else needs them; then call `remove`.

        Args:
            transaction: the one that forgets what needed them.
            call: an id that no other has.
            integrator: whose.
            files: size in bytes of each, by SHA-256 (hex).
        """
        await PassingDocumentStore(transaction).add(
            call, integrator, files, self._clock.now(), leaves=True
        )

    async def keep_more(
        self, call: str, integrator: IntegratorId, documents: Sequence[DocumentBytes]
    ) -> None:
        """Keep more files for something that goes on, durably.

        Args:
            call: under whose id it goes on.
            integrator: whose.
            documents: their bytes.

        Raises:
            ApplianceError: those of `BlobStore.put`.
        """
        distinct = {await sha256_of(each): each for each in documents}
        if not distinct:
            return
        sizes = {sha256: size_of(each) for sha256, each in distinct.items()}
        async with self._store.write() as transaction:
            await PassingDocumentStore(transaction).add_copies(
                call, integrator, sizes, self._clock.now()
            )
        await self._documents.put_all(integrator, list(distinct.values()))

    async def let_go(self, transaction: Transaction, call: str) -> None:
        """Have all files of a call leave, unless something else needs them.

        Args:
            transaction: the one that ends what needed them.
            call: that is over.
        """
        # As if tried a while ago, so that the next sweep, within seconds, takes them.
        tried = self._clock.now() - 2 * _AGAIN
        await PassingDocumentStore(transaction).let_go(call, tried)

    async def remove(self, call: str) -> int:
        """Remove what a call had kept and nothing needs; chores do what cannot be now.

        Args:
            call: that is over.

        Returns:
            How many files.
        """
        return await self._end(call, {})

    async def sweep(self) -> int:
        """Remove what calls have left behind; how many files.

        Raises:
            ApplianceError: `STORE_UNAVAILABLE`.
        """
        removed = 0
        while True:
            now = self._clock.now()
            async with self._store.write() as transaction:
                found = await PassingDocumentStore(transaction).let_go_of_some(
                    now - _ABANDONED, now - _AGAIN, now, _BATCH
                )
                await _forget_unneeded(transaction, found)
            for each in found:
                removed += await self._remove(each)
            if len(found) < _BATCH:
                return removed

    async def _end(
        self,
        call: str,
        files: Mapping[str, int],
        integrator: IntegratorId | None = None,
    ) -> int:
        """Remove what a call did not record; whatever fails is left to chores.

        Args:
            call: that is over.
            files: what it put in; where chores took it for dead, its rows are gone,
                and are made once more.
            integrator: whose.

        Returns:
            How many files were removed.
        """
        removed = 0
        try:
            async with self._store.write() as transaction:
                passing = PassingDocumentStore(transaction)
                now = self._clock.now()
                left = await passing.let_go(call, now)
                gone = files.keys() - {each.sha256 for each in left}
                if gone and integrator is not None:
                    again = {sha256: files[sha256] for sha256 in gone}
                    await passing.add(call, integrator, again, now, leaves=True)
                    left += [PassingFile(call, integrator, each) for each in again]
                await _forget_unneeded(transaction, left)
            for each in left:
                removed += await self._remove(each)
        except ApplianceError as exc:
            _log.warning("documents.left_behind", id=call, code=exc.code.value)
        return removed

    async def _remove(self, each: PassingFile) -> bool:
        """Remove a file that nothing needs, and forget it; whether it was removed.

        Raises:
            ApplianceError: `STORE_UNAVAILABLE`, `OVERLOADED`.
        """

        async def is_needed() -> bool:
            async with self._store.read() as transaction:
                return await DocumentStore(transaction).is_needed(
                    each.integrator, each.sha256
                )

        removed = await self._documents.remove_unneeded(
            each.integrator, each.sha256, is_needed
        )
        async with self._store.write() as transaction:
            passing = PassingDocumentStore(transaction)
            if await passing.still_referred_to(each.integrator, each.sha256):
                return removed
            await passing.forget(each)
            if removed:
                transaction.audit.add(_told(each))
        return removed


async def _forget_unneeded(
    transaction: Transaction, files: Collection[PassingFile]
) -> None:
    """Forget the documents that they are of, unless something refers to these."""
    # In one order, as in `DocumentStore.add_all`.
    for each in sorted(files, key=attrgetter("sha256")):
        await DocumentStore(transaction).forget_unneeded(each.integrator, each.sha256)


def _told(each: PassingFile) -> AuditEvent:
    """That a file was removed."""
    return AuditEvent(
        EventKind.DOCUMENT_REMOVED,
        "system",
        integrator=each.integrator,
        detail={"documentSha256": each.sha256},
    )


async def _to_its_end(work: asyncio.Future[None]) -> None:
    """Wait for something that goes on, in threads, after who waits has left.

    Raises:
        ApplianceError: what it raises.
        CancelledError: who waits has left; all the same it is over.
    """
    try:
        await asyncio.shield(work)
    except asyncio.CancelledError:
        await asyncio.wait([work])
        raise
