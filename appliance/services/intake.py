"""Taking a document in: size, sandbox, store, record, request."""

import hashlib
import re
import unicodedata
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Final

from appliance.domain.audit import AuditEvent
from appliance.domain.clock import Clock
from appliance.domain.document import FindingKind, Inspection, Repair
from appliance.domain.errors import ApplianceError, DocumentRefusedError, ErrorCode
from appliance.domain.ids import DocumentId, IntegratorId, RequestId, new_id
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


@dataclass(frozen=True, slots=True)
class _Examined:
    """A PDF that can be signed, and where it comes from."""

    pdf: bytes = field(repr=False)
    inspection: Inspection
    repair: Repair | None


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
        kept = await self.keep(integrator.id, pdf)
        now = self._clock.now()
        async with self._store.write() as records:
            document = await records.documents.add(kept, now)
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
                    detail={**document.facts(), "person": person.id},
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

    async def keep(self, integrator: IntegratorId, pdf: bytes) -> StoredDocument:
        """Examine a PDF and keep its bytes; a damaged one is repaired first.

        Returns:
            The document to be recorded: the PDF, or the repaired copy of it.

        Raises:
            DocumentRefusedError: the PDF cannot be signed.
            ApplianceError: `DOCUMENT_EMPTY`, `DOCUMENT_TOO_LARGE`,
                `SANDBOX_UNAVAILABLE`, `STORE_UNAVAILABLE`.

        Source: docs/documents.md; decisions "PDFs".
        """
        self._demand_size(pdf)
        examined = await self._earlier_copy(integrator, pdf) or await self._examine(pdf)
        self._demand_allowed(examined.inspection)
        if examined.repair is not None:
            await self._documents.put(integrator, pdf)
        sha256 = await self._documents.put(integrator, examined.pdf)
        return StoredDocument(
            DocumentId(new_id()),
            integrator,
            sha256,
            examined.inspection,
            examined.repair,
        )

    def _demand_size(self, pdf: bytes) -> None:
        """Refuse what is empty or too large.

        Raises:
            ApplianceError: `DOCUMENT_EMPTY` or `DOCUMENT_TOO_LARGE`.
        """
        if not pdf:
            raise ApplianceError(ErrorCode.DOCUMENT_EMPTY)
        limit = self._settings.limit_bytes
        if len(pdf) > limit:
            raise ApplianceError(ErrorCode.DOCUMENT_TOO_LARGE, params={"limit": limit})

    async def _earlier_copy(
        self, integrator: IntegratorId, pdf: bytes
    ) -> _Examined | None:
        """The copy that was made when the same damaged file came before."""
        original = hashlib.sha256(pdf).hexdigest()
        async with self._store.read() as records:
            earlier = await records.documents.repaired(integrator, original)
        if earlier is None:
            return None
        copy = await self._documents.get(integrator, earlier.sha256)
        inspection = await self._inspector.inspect(copy)
        return _Examined(copy, _as_repaired(inspection), earlier.repair)

    async def _examine(self, pdf: bytes) -> _Examined:
        """Have the sandbox look at a PDF, and repair it where that helps.

        Raises:
            DocumentRefusedError: it can be neither signed nor repaired.
        """
        inspection: Inspection | None = None
        try:
            inspection = await self._inspector.inspect(pdf)
        except DocumentRefusedError as refusal:
            if refusal.code is not ErrorCode.PDF_MALFORMED:
                raise
        if inspection is not None and not _is_to_repair(inspection):
            return _Examined(pdf, inspection, None)
        try:
            repaired = await self._inspector.repair(pdf)
            described = await self._inspector.inspect(repaired.pdf)
            _demand_sound(described)
        except DocumentRefusedError:
            if inspection is None:
                raise
            return _Examined(pdf, inspection, None)
        origin = Repair(hashlib.sha256(pdf).hexdigest(), repaired.damage)
        return _Examined(repaired.pdf, _as_repaired(described), origin)

    def _demand_allowed(self, inspection: Inspection) -> None:
        """Refuse what the installation does not sign.

        Raises:
            DocumentRefusedError: `PDF_LOCKED`, `PDF_TOO_COMPLEX` or
                `PDF_NOT_ALLOWED`.
        """
        if inspection.docmdp == _NO_CHANGES:
            raise DocumentRefusedError(ErrorCode.PDF_LOCKED, "certified with P=1")
        if len(inspection.pages) > self._settings.pages:
            raise DocumentRefusedError(ErrorCode.PDF_TOO_COMPLEX, "too many pages")
        refused = [
            kind.value for kind in inspection.findings if kind in self._settings.refuse
        ]
        if refused:
            kinds = ", ".join(refused)
            raise DocumentRefusedError(
                ErrorCode.PDF_NOT_ALLOWED,
                kinds,
                params={"kinds": kinds},
                extras={"avisos": refused},
            )


def _is_to_repair(inspection: Inspection) -> bool:
    """Whether a readable file is damaged and may still be changed."""
    return FindingKind.DAMAGED in inspection.findings and not inspection.signatures


def _demand_sound(copy: Inspection) -> None:
    """Refuse a repaired copy that is no better, or is not what was asked for.

    Raises:
        DocumentRefusedError: `PDF_MALFORMED`.
    """
    if copy.signatures or FindingKind.DAMAGED in copy.findings:
        raise DocumentRefusedError(ErrorCode.PDF_MALFORMED, "still damaged")


def _as_repaired(inspection: Inspection) -> Inspection:
    """The inspection of a copy, with the finding that it is one."""
    findings = {*inspection.findings, FindingKind.REPAIRED}
    return replace(inspection, findings=tuple(sorted(findings)))
