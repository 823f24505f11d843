"""What the sandbox says of stored documents, and says again when it learns more."""

from dataclasses import replace
from typing import Final

import structlog

from appliance.core.unit_of_work import Database
from appliance.documents.document_store import DocumentStore
from appliance.domain.clock import Clock
from appliance.domain.documents import INSPECTOR_VERSION, Inspection, as_it_came
from appliance.domain.errors import ApplianceError
from appliance.domain.ids import DocumentId, IntegratorId, RequestId, new_id
from appliance.domain.ports import BlobStore, PdfInspector
from appliance.domain.requests.new_request import StoredDocument
from appliance.domain.requests.request import RequestView
from appliance.requests.request_store import RequestStore

_log = structlog.get_logger(__name__)
_PAGE: Final = 200


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

        Args:
            view: the request as it stands recorded.

        Raises:
            DocumentRefusedError: this version does not take the document.
            ApplianceError: `SANDBOX_UNAVAILABLE`, `STORE_UNAVAILABLE`.
        """
        if view.inspection.inspector_version >= INSPECTOR_VERSION:
            return view
        found = await self.of_stored(view.integrator, view.sha256)
        inspection = as_it_came(found, view.repair)
        new = StoredDocument(
            DocumentId(new_id()), view.integrator, view.sha256, inspection
        )
        async with self._store.write() as transaction:
            await DocumentStore(transaction).add(new, self._clock.now())
        return replace(view, inspection=inspection)

    async def renew(self) -> int:
        """Bring those of all unfinished requests up to date; how many were.

        What cannot be inspected now is left to its signer's next look.
        """
        renewed, last = 0, RequestId(0)
        while True:
            async with self._store.read() as transaction:
                views = await RequestStore(transaction).unfinished(last, _PAGE)
            for view in views:
                try:
                    renewed += await self.current(view) is not view
                except ApplianceError as exc:
                    _log.warning(
                        "inspection.outdated", request=view.id, code=exc.code.value
                    )
            if len(views) < _PAGE:
                return renewed
            last = views[-1].id
