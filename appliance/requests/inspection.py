"""What the sandbox says of stored documents, and says again when it learns more."""

from dataclasses import replace

from appliance.documents.document_store import DocumentStore
from appliance.domain.clock import Clock
from appliance.domain.documents.inspected import Inspection, as_it_came
from appliance.domain.ids import DocumentId, IntegratorId, new_id
from appliance.domain.ports import BlobStore, PdfInspector
from appliance.domain.requests.intake import StoredDocument
from appliance.domain.requests.request import UNFINISHED, RequestView
from appliance.record.unit_of_work import Database


class Inspections:
    """Keeps what is known of documents up to date.

    Args:
        store: the record.
        documents: where PDFs are.
        inspector: the sandbox.
        clock: the time.
    """

    def __init__(
        self,
        store: Database,
        documents: BlobStore,
        inspector: PdfInspector,
        clock: Clock,
    ) -> None:
        self._store = store
        self._documents = documents
        self._inspector = inspector
        self._clock = clock

    async def of(self, *parts: bytes) -> Inspection:
        """What this version says of a PDF.

        Args:
            parts: its bytes, one after the other.

        Raises:
            DocumentRefusedError: this version does not take it.
            ApplianceError: `SANDBOX_UNAVAILABLE`.
        """
        return await self._inspector.inspect(b"".join(parts))

    async def of_stored(self, integrator: IntegratorId, sha256: str) -> Inspection:
        """What this version says of a stored PDF.

        Args:
            integrator: whose.
            sha256: of its bytes, hex.

        Raises:
            DocumentRefusedError: this version does not take it.
            ApplianceError: `SANDBOX_UNAVAILABLE`, `STORE_UNAVAILABLE`.
        """
        return await self.of(await self._documents.get(integrator, sha256))

    async def current(self, view: RequestView) -> RequestView:
        """A request whose document is described as this version does.

        Of one that is over nothing depends on that any more: it stays as it is.

        Args:
            view: the request as it stands recorded.

        Raises:
            DocumentRefusedError: this version does not take the document.
            ApplianceError: `SANDBOX_UNAVAILABLE`, `STORE_UNAVAILABLE`.
        """
        if view.state not in UNFINISHED or not view.inspection.is_outdated:
            return view
        document = StoredDocument(
            DocumentId(new_id()),
            view.integrator,
            view.sha256,
            view.inspection,
            view.repair,
        )
        document = await self.current_document(document)
        return replace(view, inspection=document.inspection)

    async def current_document(self, document: StoredDocument) -> StoredDocument:
        """A document that is described as this version does.

        It is never written anew: somebody may have been shown it, or told its hash.

        Args:
            document: as it stands recorded.

        Raises:
            DocumentRefusedError: this version does not take it as it is.
            ApplianceError: `SANDBOX_UNAVAILABLE`, `STORE_UNAVAILABLE`.
        """
        if not document.inspection.is_outdated:
            return document
        found = await self.of_stored(document.integrator, document.sha256)
        new = replace(document, inspection=as_it_came(found, document.repair))
        async with self._store.write() as transaction:
            return await DocumentStore(transaction).add(new, self._clock.now())
