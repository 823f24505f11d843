"""What can be refused of a batch at no cost: all of it, before a document is examined.

Source: docs/integration.md "Ask for many at once".
"""

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import Final, cast

from appliance.documents.document_bytes import size_of
from appliance.domain.clock import Clock
from appliance.domain.errors import (
    ApplianceError,
    ErrorCode,
    Faults,
    FieldInvalidError,
)
from appliance.domain.ids import IntegratorId
from appliance.domain.people.identity import Person
from appliance.domain.ports import DocumentBytes, LookupIndex
from appliance.domain.requests.uploads import UploadedDocument
from appliance.integration.refusals import refused_for
from appliance.integration.requests.order import BatchDocument, BatchOrder, NamedSigner
from appliance.integration.requests.signer_lookup import person_named
from appliance.record.unit_of_work import Database
from appliance.requests.batch_queue import BatchQueue
from appliance.requests.intake import check_file_name
from appliance.requests.process_store import ProcessStore
from appliance.requests.request_batch_store import RequestBatchStore
from appliance.requests.uploads import UploadedDocuments

SIGNER: Final = "firmante"
"""The field of the signer, for errors."""


@dataclass(frozen=True, slots=True)
class ReadyBatch:
    """A batch that nothing is wrong with but perhaps its documents themselves."""

    signer: NamedSigner
    person: Person
    """Who that is."""
    uploads: dict[str, UploadedDocument]
    """Those that are named, by their ids."""


class BatchChecks:
    """Looks at orders of batches.

    Args:
        store: the record.
        uploads: what came before.
        lookup: finds people by e-mail.
        clock: the time.
        limit_bytes: of a document.
    """

    def __init__(
        self,
        store: Database,
        uploads: UploadedDocuments,
        lookup: LookupIndex,
        clock: Clock,
        limit_bytes: int,
    ) -> None:
        self._limit = limit_bytes
        self._store = store
        self._uploads = uploads
        self._lookup = lookup
        self._clock = clock

    async def ready(self, whose: IntegratorId, order: BatchOrder) -> ReadyBatch:
        """Look at an order.

        Args:
            whose: the integrator that orders.
            order: perhaps with faults of how it is written, which are told first.

        Raises:
            ApplianceError: all that is wrong: `FIELD_INVALID`, `FILENAME`,
                `DOCUMENT_NOT_FOUND`, `REFERENCE_IN_USE`, `PERSON_NOT_FOUND`.
        """
        faults = Faults(order.faults)
        if order.expires is not None and order.expires <= self._clock.now():
            faults.add(FieldInvalidError("vence", "a time to come"))
        for place, each in order.placed():
            with faults.collected():
                name_of(each, place)
        for refusal in _repeated(order):
            faults.add(refusal)
        uploads = await self._uploads.named(whose, uploads_of(order.documents))
        for place, each in order.placed():
            with faults.collected():
                demand_uploaded(uploads, place, each.document)
                _demand_own_bytes(uploads, place, each)
            with faults.collected():
                self._demand_size(place, each)
        for refusal in await self.references_in_use(whose, order):
            faults.add(refusal)
        person = await self._person(whose, order.signer)
        if order.signer is not None and person is None:
            faults.add(unknown_signer())
        faults.demand_none()
        # Where one of them is not there, a fault says so.
        return ReadyBatch(
            cast("NamedSigner", order.signer), cast("Person", person), uploads
        )

    async def references_in_use(
        self, whose: IntegratorId, order: BatchOrder
    ) -> list[ApplianceError]:
        """`REFERENCE_IN_USE`, for each that is, with its field and the other one's id.

        Args:
            whose: batches, their documents to come and processes are checked.
            order: whose references.
        """
        unique = {
            each.note.reference: place
            for place, each in order.placed()
            if each.note.is_unique and each.note.reference
        }
        found: list[ApplianceError] = []
        async with self._store.read() as transaction:
            if order.note.is_unique and order.note.reference:
                batch = await RequestBatchStore(transaction).of_reference(
                    whose, order.note.reference
                )
                if batch is not None:
                    found.append(reference_in_use("referencia", loteId=batch))
            taken = await ProcessStore(transaction).of_references(whose, unique.keys())
            held = await BatchQueue(transaction).of_references(whose, unique.keys())
        for reference, place in unique.items():
            field = field_of(place, "referencia")
            if reference in taken:
                found.append(reference_in_use(field, procesoId=taken[reference]))
            elif reference in held:
                found.append(reference_in_use(field, loteId=held[reference]))
        return found

    def _demand_size(self, place: int, document: BatchDocument) -> None:
        """Refuse a file that is empty or too large for a document.

        Raises:
            ApplianceError: `DOCUMENT_EMPTY`, `DOCUMENT_TOO_LARGE`, with the field.
        """
        if isinstance(document.document, str):
            return
        size_bytes = size_of(document.document)
        with refused_for(field_of(place, came_as(document)), document.part):
            if not size_bytes:
                raise ApplianceError(ErrorCode.DOCUMENT_EMPTY)
            if size_bytes > self._limit:
                raise ApplianceError(
                    ErrorCode.DOCUMENT_TOO_LARGE, params={"limit": self._limit}
                )

    async def _person(
        self, whose: IntegratorId, signer: NamedSigner | None
    ) -> Person | None:
        if signer is None:
            return None
        async with self._store.read() as transaction:
            return await person_named(transaction, self._lookup, signer, whose)


def name_of(document: BatchDocument, place: int) -> str | None:
    """What a document is called in its order, in NFC.

    Args:
        document: that it is of.
        place: where it stands.

    Raises:
        ApplianceError: `FILENAME`, with the field.
    """
    with refused_for(field_of(place, "nombre"), document.part):
        return None if document.name is None else check_file_name(document.name)


def demand_uploaded(
    there: Collection[str], place: int, wanted: DocumentBytes | str
) -> None:
    """Refuse an upload that is not there.

    Args:
        there: ids of those that are.
        place: of the document.
        wanted: its bytes, or its id.

    Raises:
        ApplianceError: `DOCUMENT_NOT_FOUND`, with the field.
    """
    if isinstance(wanted, str) and wanted not in there:
        field = field_of(place, "documentoId")
        raise ApplianceError(ErrorCode.DOCUMENT_NOT_FOUND, extras={"field": field})


def _demand_own_bytes(
    uploads: Mapping[str, UploadedDocument], place: int, wanted: BatchDocument
) -> None:
    """Refuse an upload that is kept as a copy, where none is to be signed.

    Raises:
        ApplianceError: `PDF_AMBIGUOUS`, with the field.
    """
    if wanted.repairs or not isinstance(wanted.document, str):
        return
    if uploads[wanted.document].document.repair is not None:
        field = field_of(place, "documentoId")
        raise ApplianceError(ErrorCode.PDF_AMBIGUOUS, extras={"field": field})


def uploads_of(documents: Collection[BatchDocument]) -> set[str]:
    """The ids of those that were uploaded."""
    return {each.document for each in documents if isinstance(each.document, str)}


def field_of(place: int, name: str) -> str:
    """A field of one document, for errors."""
    return f"documentos[{place}].{name}"


def came_as(document: BatchDocument) -> str:
    """Name of the field that brought a document, for errors."""
    if isinstance(document.document, str):
        return "documentoId"
    return "contenido" if document.part is None else "archivo"


def unknown_signer() -> ApplianceError:
    """Refusal of a signer whom the integrator cannot ask."""
    return ApplianceError(ErrorCode.PERSON_NOT_FOUND, extras={"field": SIGNER})


def reference_in_use(field: str, **other: object) -> ApplianceError:
    """Refusal of a reference that something else has for itself.

    Args:
        field: that the reference came in.
        other: name and id of what has it.
    """
    return ApplianceError(ErrorCode.REFERENCE_IN_USE, extras={"field": field, **other})


def _repeated(order: BatchOrder) -> Iterator[ApplianceError]:
    """What is wrong where two documents want the same reference for themselves."""
    seen: set[str | None] = set()
    for place, each in order.placed():
        if not each.note.is_unique:
            continue
        if each.note.reference in seen:
            yield FieldInvalidError(field_of(place, "referencia"), "once")
        seen.add(each.note.reference)
