"""Documents that an integrator's backend uploads once, and names later.

What can be named is a row of its own over a document of the store: it goes when its
integrator deletes it or its time is over, and the document goes with everything else
that nothing refers to. A request that was made of it keeps the document.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from appliance.documents.document_bytes import sha256_of, size_of
from appliance.documents.document_store import DocumentStore
from appliance.documents.passing_document_store import PassingDocumentStore
from appliance.documents.passing_documents import Keeping
from appliance.documents.uploaded_document_store import UploadedDocumentStore
from appliance.domain.audit.record import AuditEvent
from appliance.domain.clock import Clock
from appliance.domain.errors import ApplianceError, ErrorCode
from appliance.domain.ids import IntegratorId, UploadId, is_id, new_id
from appliance.domain.ports import BlobStore, DocumentBytes, DocumentStream
from appliance.domain.requests.intake import StoredDocument
from appliance.domain.requests.uploads import UploadedDocument, UploadOrder
from appliance.domain.vocab import EventKind
from appliance.record.idempotency_store import IdempotencyStore
from appliance.record.unit_of_work import Database, Transaction
from appliance.requests.intake import Intake, check_file_name, files_of, stored_as
from appliance.settings import DocumentSettings


@dataclass(frozen=True, slots=True)
class Uploaded:
    """What an upload came to."""

    upload: UploadedDocument
    is_repeated: bool
    """It was there by the same idempotency key."""


class UploadedDocuments:
    """The use cases of documents that backends upload.

    Args:
        store: the record.
        documents: the files.
        intake: examines and keeps them.
        clock: the time.
        settings: how many, how large, and for how long.
    """

    def __init__(
        self,
        store: Database,
        documents: BlobStore,
        intake: Intake,
        clock: Clock,
        settings: DocumentSettings,
    ) -> None:
        self._store = store
        self._documents = documents
        self._intake = intake
        self._clock = clock
        self._kept = timedelta(days=settings.upload_days)
        self._most = max(settings.integrator_bytes, settings.limit_bytes)

    async def take(self, order: UploadOrder, pdf: DocumentBytes) -> Uploaded:
        """Examine a document and keep it under an id.

        Args:
            order: whose it is, and how it is called.
            pdf: its bytes.

        Raises:
            DocumentRefusedError: it cannot be signed.
            ApplianceError: `FILENAME`, `DOCUMENT_EMPTY`, `DOCUMENT_TOO_LARGE`,
                `DOCUMENT_QUOTA`, `OVERLOADED`, `SANDBOX_UNAVAILABLE`,
                `STORAGE_FULL`, `STORE_UNAVAILABLE`; `IDEMKEY_CONFLICT` where the
                idempotency key stands for another file, `DOCUMENT_NOT_FOUND` where
                what it stands for is gone.
        """
        name = check_file_name(order.name)
        sha256 = await sha256_of(pdf)
        async with self._store.read() as transaction:
            earlier = await self._earlier(transaction, order, name, sha256)
            if earlier is not None:
                return Uploaded(earlier, is_repeated=True)
            await self._demand_room(transaction, order.integrator, sha256, size_of(pdf))
        examined = await self._intake.examined(
            order.integrator, pdf, repairs=order.repairs
        )
        stored = await stored_as(order.integrator, examined)

        async def demand(transaction: Transaction, _: str) -> None:
            await self._demand_room(transaction, order.integrator, sha256, 0)

        files = files_of([(pdf, examined)])
        keeping = self._intake.passing.keeping(order.integrator, files, demand)
        async with keeping as kept:
            return await self._record(order, name, size_of(pdf), stored, kept)

    async def _demand_room(
        self, transaction: Transaction, integrator: IntegratorId, sha256: str, size: int
    ) -> None:
        """Refuse a document that is too much with what waits already.

        Nothing is locked: as many uploads as run at once may pass it by their size.

        Args:
            transaction: the caller's.
            integrator: whose.
            sha256: of the document as it came: what waits of it counts no more.
            size: in bytes; 0 where it is among what is on its way in.

        Raises:
            ApplianceError: `DOCUMENT_QUOTA`.
        """
        waiting = await UploadedDocumentStore(transaction).waiting_bytes(
            integrator, sha256
        )
        passing = await PassingDocumentStore(transaction).passing_bytes(
            integrator, but_sha256=(sha256,) if size else ()
        )
        if waiting + passing + size > self._most:
            raise ApplianceError(ErrorCode.DOCUMENT_QUOTA)

    async def _record(
        self,
        order: UploadOrder,
        name: str,
        size_bytes: int,
        stored: StoredDocument,
        kept: Keeping,
    ) -> Uploaded:
        """Record what is kept.

        Args:
            order: whose it is.
            name: its own.
            size_bytes: of the file as it came.
            stored: the document, or its repaired copy.
            kept: its files.
        """
        sha256 = stored.repair.original_sha256 if stored.repair else stored.sha256
        now = self._clock.now()
        ident = UploadId(new_id())
        async with self._store.write() as transaction:
            if order.idempotency_key is not None:
                # Whoever comes second waits here until the first one is recorded.
                stands = await IdempotencyStore(transaction).bind(
                    _scope(order.integrator), order.idempotency_key, ident, now
                )
                if stands != ident:
                    there = await self._same(
                        transaction, order, stands or "", name, sha256
                    )
                    return Uploaded(there, is_repeated=True)
            await kept.recorded(transaction)
            document = await DocumentStore(transaction).add(stored, now)
            new = UploadedDocument(
                ident, document, name, now, now + self._kept, order.repairs
            )
            await UploadedDocumentStore(transaction).add(new, size_bytes, order.api_key)
            transaction.audit.add(
                AuditEvent(
                    EventKind.DOCUMENT_UPLOADED,
                    order.actor,
                    integrator=order.integrator,
                    detail={**document.facts(), **new.facts()},
                )
            )
        return Uploaded(new, is_repeated=False)

    async def is_repeated(self, whose: IntegratorId, key: str | None) -> bool:
        """Whether something was uploaded with this idempotency key before."""
        if key is None:
            return False
        async with self._store.read() as transaction:
            known = IdempotencyStore(transaction)
            return await known.remembered(_scope(whose), key) is not None

    async def _earlier(
        self, transaction: Transaction, order: UploadOrder, name: str, sha256: str
    ) -> UploadedDocument | None:
        """What the idempotency key of an upload stands for already.

        Raises:
            ApplianceError: `IDEMKEY_CONFLICT`, `DOCUMENT_NOT_FOUND`.
        """
        if order.idempotency_key is None:
            return None
        stands = await IdempotencyStore(transaction).remembered(
            _scope(order.integrator), order.idempotency_key
        )
        if stands is None:
            return None
        return await self._same(transaction, order, stands, name, sha256)

    async def _same(
        self,
        transaction: Transaction,
        order: UploadOrder,
        stands: str,
        name: str,
        sha256: str,
    ) -> UploadedDocument:
        """What an idempotency key stands for, which must be this order of this file.

        Raises:
            ApplianceError: `IDEMKEY_CONFLICT`, `DOCUMENT_NOT_FOUND`.
        """
        alive = await self._alive(transaction, order.integrator, (stands,))
        found = _demand(alive, stands)
        if not found.is_of(name, sha256, repairs=order.repairs):
            raise ApplianceError(ErrorCode.IDEMKEY_CONFLICT)
        return found

    async def get(
        self, integrator: IntegratorId, documento_id: str
    ) -> UploadedDocument:
        """One of an integrator's.

        Raises:
            ApplianceError: `DOCUMENT_NOT_FOUND`: unknown, another integrator's,
                deleted, or its time is over.
        """
        found = await self.named(integrator, (documento_id,))
        return _demand(found, documento_id)

    async def named(
        self, integrator: IntegratorId, documento_ids: Collection[str]
    ) -> dict[str, UploadedDocument]:
        """Those of several ids, any text, that are an integrator's and can be named."""
        async with self._store.read() as transaction:
            return await self._alive(transaction, integrator, documento_ids)

    async def content(
        self, integrator: IntegratorId, documento_id: str
    ) -> tuple[UploadedDocument, DocumentStream]:
        """The same, and its bytes; of a damaged file those of the repaired copy.

        Raises:
            ApplianceError: `DOCUMENT_NOT_FOUND`, `STORE_UNAVAILABLE`.
        """
        found = await self.get(integrator, documento_id)
        return found, await self._documents.stream(integrator, found.document.sha256)

    async def page(
        self,
        integrator: IntegratorId,
        before: tuple[datetime, str] | None,
        limit: int,
    ) -> Sequence[UploadedDocument]:
        """Those of an integrator's, newest first.

        Args:
            integrator: whose.
            before: time and id of the one that the page begins after; None: the first.
            limit: how many.
        """
        async with self._store.read() as transaction:
            return await UploadedDocumentStore(transaction).page(
                integrator, self._clock.now(), before, limit
            )

    async def remove(
        self, integrator: IntegratorId, actor: str, documento_id: str
    ) -> None:
        """Have one be named no more; requests that were made of it stay.

        What nothing else needs is gone from the store when this returns; what could
        not be removed counts until it is.

        Raises:
            ApplianceError: `DOCUMENT_NOT_FOUND`.
        """
        async with self._store.write() as transaction:
            alive = await self._alive(transaction, integrator, (documento_id,))
            found = _demand(alive, documento_id)
            came = await UploadedDocumentStore(transaction).remove(integrator, found.id)
            if came is None:
                raise ApplianceError(ErrorCode.DOCUMENT_NOT_FOUND)
            document = found.document
            files = {document.sha256: document.inspection.size_bytes}
            if document.repair is not None:
                files[document.repair.original_sha256] = came
            await self._intake.passing.leave(transaction, found.id, integrator, files)
            transaction.audit.add(
                AuditEvent(
                    EventKind.DOCUMENT_UPLOAD_REMOVED,
                    actor,
                    integrator=integrator,
                    detail=found.facts(),
                )
            )
        await self._intake.passing.remove(found.id)

    async def hold(
        self,
        transaction: Transaction,
        integrator: IntegratorId,
        documento_ids: Collection[str],
    ) -> dict[str, UploadedDocument]:
        """Have documents that something is made of be there when the caller ends.

        Args:
            transaction: the caller's, which writes what refers to the documents.
            integrator: whose.
            documento_ids: as the caller was given them, any text.

        Returns:
            Those that can be named; somebody may have deleted the others by now, and
            their documents with them.
        """
        found = await self._alive(transaction, integrator, documento_ids)
        held = {each.document.id for each in found.values()}
        there = await DocumentStore(transaction).renew(held, self._clock.now())
        return {name: each for name, each in found.items() if each.document.id in there}

    async def _alive(
        self,
        transaction: Transaction,
        integrator: IntegratorId,
        documento_ids: Collection[str],
    ) -> dict[str, UploadedDocument]:
        """Those that can be named, by their ids as they were given."""
        ids = {UploadId(each) for each in documento_ids if is_id(each)}
        if not ids:
            return {}
        now = self._clock.now()
        found = await UploadedDocumentStore(transaction).named(integrator, ids)
        return {str(name): each for name, each in found.items() if each.until > now}


def _demand(
    found: Mapping[str, UploadedDocument], documento_id: str
) -> UploadedDocument:
    """One of those that were found.

    Raises:
        ApplianceError: `DOCUMENT_NOT_FOUND`.
    """
    if documento_id not in found:
        raise ApplianceError(ErrorCode.DOCUMENT_NOT_FOUND)
    return found[documento_id]


def _scope(integrator: IntegratorId) -> str:
    return f"integration-upload:{integrator}"
