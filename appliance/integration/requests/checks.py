"""What can be refused of a request before the places of its signers are looked for.

All that is wrong is told together, in order. Who is known here is told only to who
has something to be signed: people come after the document.

Source: docs/integration.md "Ask for signatures".
"""

from dataclasses import dataclass
from typing import Final

from appliance.documents.examination import Examined
from appliance.domain.clock import Clock
from appliance.domain.errors import (
    ApplianceError,
    DocumentRefusedError,
    ErrorCode,
    Faults,
    FieldInvalidError,
)
from appliance.domain.ids import IntegratorId
from appliance.domain.people.identity import Person
from appliance.domain.ports import DocumentBytes, LookupIndex
from appliance.domain.requests.intake import StoredDocument
from appliance.domain.requests.uploads import DEFAULT_NAME
from appliance.integration.refusals import refused_for
from appliance.integration.requests.order import ProcessOrder
from appliance.integration.requests.signer_lookup import person_named
from appliance.record.unit_of_work import Database
from appliance.requests.intake import Intake, check_file_name, stored_as
from appliance.requests.process_store import ProcessStore
from appliance.requests.uploads import UploadedDocuments

SIGNERS: Final = "firmantes"
"""The field of the signers, for errors."""


@dataclass(frozen=True, slots=True)
class WantedDocument:
    """The document of an order, and what it is called there."""

    name: str
    stored: StoredDocument
    came: tuple[DocumentBytes, Examined] | None = None
    """What is to be kept: it came with the order; None: it is kept already."""


@dataclass(frozen=True, slots=True)
class ReadyOrder:
    """An order that nothing is wrong with but perhaps the places of its signatures."""

    document: WantedDocument
    people: tuple[Person, ...]
    """Its signers, in turn."""


class OrderChecks:
    """Looks at orders of requests.

    Args:
        store: the record.
        intake: examines what comes in.
        uploads: what came before.
        lookup: finds people by e-mail.
        clock: the time.
    """

    def __init__(
        self,
        store: Database,
        intake: Intake,
        uploads: UploadedDocuments,
        lookup: LookupIndex,
        clock: Clock,
    ) -> None:
        self._store = store
        self._intake = intake
        self._uploads = uploads
        self._lookup = lookup
        self._clock = clock

    async def ready(self, whose: IntegratorId, order: ProcessOrder) -> ReadyOrder:
        """Look at an order.

        Args:
            whose: the integrator that orders.
            order: perhaps with faults of how it is written, which are told first.

        Raises:
            DocumentRefusedError: the PDF cannot be signed.
            ApplianceError: all that is wrong: `FIELD_INVALID`, `FILENAME`,
                `REFERENCE_IN_USE`, `DOCUMENT_NOT_FOUND`, those of `Intake.examined`,
                `PERSON_NOT_FOUND`.
        """
        faults = Faults(order.faults)
        name, document = order.name, None
        if order.expires is not None and order.expires <= self._clock.now():
            faults.add(FieldInvalidError("vence", "a time to come"))
        with faults.collected(), refused_for("documento.nombre"):
            name = None if name is None else check_file_name(name)
        with faults.collected():
            await self._demand_reference_free(whose, order)
        try:
            with faults.collected():
                document = await self._document(whose, order, name)
        except ApplianceError:
            # It cannot be looked at now: what is wrong anyway is told all the same.
            faults.demand_none()
            raise
        people = [] if document is None else await self._people(whose, order, faults)
        return ReadyOrder(faults.unless_any(document), tuple(people))

    async def _demand_reference_free(
        self, whose: IntegratorId, order: ProcessOrder
    ) -> None:
        """Refuse a reference that is to be unique and is another one's.

        Raises:
            ApplianceError: `REFERENCE_IN_USE`, with its id.
        """
        reference = order.note.reference
        if not order.note.is_unique or not reference:
            return
        async with self._store.read() as transaction:
            other = await ProcessStore(transaction).of_reference(whose, reference)
        if other is not None:
            raise ApplianceError(
                ErrorCode.REFERENCE_IN_USE,
                extras={"field": "referencia", "procesoId": other},
            )

    async def _document(
        self, whose: IntegratorId, order: ProcessOrder, name: str | None
    ) -> WantedDocument | None:
        """What is to be signed: it came with the order, or was uploaded.

        Args:
            whose: the integrator that orders.
            order: that it is of.
            name: of the document; None: as it was uploaded, or `DEFAULT_NAME`.

        Returns:
            None: a fault says that none is named.

        Raises:
            DocumentRefusedError: the PDF cannot be signed.
            ApplianceError: `DOCUMENT_NOT_FOUND`, those of `Intake.examined`.
        """
        if order.document is None:
            return None
        if isinstance(order.document, str):
            uploaded = await self._uploads.get(whose, order.document)
            if uploaded.document.repair is not None and not order.repairs:
                raise DocumentRefusedError(ErrorCode.PDF_AMBIGUOUS, "a copy")
            # An upgrade may have come since.
            known = await self._intake.inspections.current_document(uploaded.document)
            return WantedDocument(name or uploaded.name, known)
        examined = await self._intake.examined(
            whose, order.document, repairs=order.repairs
        )
        stored = await stored_as(whose, examined)
        came = (order.document, examined)
        return WantedDocument(name or DEFAULT_NAME, stored, came)

    async def _people(
        self, whose: IntegratorId, order: ProcessOrder, faults: Faults
    ) -> list[Person]:
        """Who is to sign, without those that something is wrong with.

        Args:
            whose: the integrator that orders.
            order: that they are of.
            faults: where that is added: nobody whom this integrator can ask, or
                somebody who is there twice.
        """
        found: list[Person] = []
        async with self._store.read() as transaction:
            for place, named in order.placed():
                person = await person_named(transaction, self._lookup, named, whose)
                field = f"{SIGNERS}[{place}]"
                if person is None:
                    faults.add(
                        ApplianceError(
                            ErrorCode.PERSON_NOT_FOUND, extras={"field": field}
                        )
                    )
                elif person.id in {other.id for other in found}:
                    faults.add(FieldInvalidError(field, "each person once"))
                else:
                    found.append(person)
        return found
