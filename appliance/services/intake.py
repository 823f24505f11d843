"""Taking a document in: size, sandbox, store, record, request."""

import re
import unicodedata
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from appliance.domain.audit import AuditEvent
from appliance.domain.clock import Clock
from appliance.domain.document import Inspection
from appliance.domain.errors import ApplianceError, DocumentRefusedError, ErrorCode
from appliance.domain.ids import DocumentId, RequestId, new_id
from appliance.domain.person import Person
from appliance.domain.ports import DocumentStore, PdfInspector
from appliance.domain.records import Store
from appliance.domain.records.people import Integrator
from appliance.domain.records.requests import NewRequest, StoredDocument
from appliance.domain.vocab import EventKind
from appliance.settings import DocumentSettings

_NAME_BYTES: Final = 255
_NO_CHANGES: Final = 1
# Separators, and what could make a name read other than it is.
_FORBIDDEN: Final = re.compile(r'[/\\:*?"<>|]')
_FORBIDDEN_KINDS: Final = frozenset({"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"})


def check_file_name(name: str) -> str:
    """A document's file name, in NFC, or a refusal.

    Raises:
        ApplianceError: `FILENAME`: over 255 bytes, a path, control or
            direction characters, or not ending in `.pdf`.
    """
    name = unicodedata.normalize("NFC", name)
    bad = (
        not name.lower().endswith(".pdf")
        or name.startswith(".")
        or _FORBIDDEN.search(name)
        or any(unicodedata.category(char) in _FORBIDDEN_KINDS for char in name)
    )
    if bad or len(name.encode("utf-8", "surrogatepass")) > _NAME_BYTES:
        raise ApplianceError(ErrorCode.FILENAME)
    return name


@dataclass(frozen=True, slots=True)
class IntakeOrder:
    """A document and who is to sign it."""

    integrator_code: str
    cuil: str
    file_name: str
    expires: datetime | None
    origin: str
    actor: str


class Intake:
    """The use cases of documents that come in."""

    def __init__(
        self,
        store: Store,
        documents: DocumentStore,
        inspector: PdfInspector,
        clock: Clock,
        settings: DocumentSettings,
    ) -> None:
        self._store = store
        self._documents = documents
        self._inspector = inspector
        self._clock = clock
        self._settings = settings

    async def create_request(self, order: IntakeOrder, pdf: bytes) -> RequestId:
        """Take a PDF in and ask a person to sign it.

        Raises:
            DocumentRefusedError: the PDF cannot be signed.
            ApplianceError: `INTEGRATOR_NOT_FOUND`, `PERSON_NOT_FOUND`,
                `FILENAME`, `DOCUMENT_EMPTY`, `DOCUMENT_TOO_LARGE`,
                `SANDBOX_UNAVAILABLE`, `STORE_UNAVAILABLE`.
        """
        name = check_file_name(order.file_name)
        integrator, person = await self._parties(order)
        inspection = await self.inspect(pdf)
        sha256 = await self._documents.put(integrator.id, pdf)
        now = self._clock.now()
        async with self._store.write() as records:
            document = await records.documents.add(
                StoredDocument(DocumentId(new_id()), integrator.id, sha256, inspection),
                now,
            )
            request = await records.requests.add(
                NewRequest(
                    person=person.id,
                    integrator=integrator.id,
                    document=document.id,
                    name=name,
                    origin=order.origin,
                    created=now,
                    expires=order.expires,
                )
            )
            records.audit.add(
                AuditEvent(
                    EventKind.REQUEST_CREATED,
                    order.actor,
                    integrator=integrator.id,
                    request=request,
                    detail={
                        "documentSha256": sha256,
                        "pages": len(inspection.pages),
                        "findings": [kind.value for kind in inspection.findings],
                        "person": person.id,
                    },
                )
            )
        return request

    async def _parties(self, order: IntakeOrder) -> tuple[Integrator, Person]:
        async with self._store.read() as records:
            integrator = await records.people.integrator(order.integrator_code)
            person = await records.people.by_cuil(order.cuil)
        if integrator is None:
            raise ApplianceError(ErrorCode.INTEGRATOR_NOT_FOUND)
        if person is None:
            raise ApplianceError(ErrorCode.PERSON_NOT_FOUND)
        return integrator, person

    async def inspect(self, pdf: bytes) -> Inspection:
        """Have the sandbox look at a PDF, within the installation's limits.

        Raises:
            DocumentRefusedError: the PDF cannot be signed.
            ApplianceError: `DOCUMENT_EMPTY`, `DOCUMENT_TOO_LARGE`,
                `SANDBOX_UNAVAILABLE`.
        """
        if not pdf:
            raise ApplianceError(ErrorCode.DOCUMENT_EMPTY)
        limit = self._settings.limit_bytes
        if len(pdf) > limit:
            raise ApplianceError(ErrorCode.DOCUMENT_TOO_LARGE, params={"limit": limit})
        inspection = await self._inspector.inspect(pdf)
        if inspection.docmdp == _NO_CHANGES:
            raise DocumentRefusedError(ErrorCode.PDF_LOCKED, "certified with P=1")
        if len(inspection.pages) > self._settings.pages:
            raise DocumentRefusedError(ErrorCode.PDF_TOO_COMPLEX, "too many pages")
        return inspection
