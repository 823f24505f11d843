"""Taking a document in: size, sandbox, store, record, request."""

import re
import unicodedata
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from appliance.core.unit_of_work import Database
from appliance.documents.document_store import DocumentStore
from appliance.documents.examination import Examination, Examined, sha256_of
from appliance.domain.clock import Clock
from appliance.domain.errors import (
    SIGNER_REPEATED,
    SIGNERS_TOO_MANY,
    ApplianceError,
    ErrorCode,
    SignersInvalidError,
)
from appliance.domain.identity import Integrator, Person, format_cuil
from appliance.domain.ids import DocumentId, IntegratorId, RequestId, new_id
from appliance.domain.ports import BlobStore, DocumentBytes, PdfInspector
from appliance.domain.requests.levels import NO_WISHES, ProfileWishes
from appliance.domain.requests.new_request import StoredDocument
from appliance.domain.text.unicode_nfc import nfc
from appliance.people.person_store import PersonStore
from appliance.people.signer_for_tests_store import seen_by
from appliance.requests.recording import NewProcess, NewSigner, record
from appliance.settings import DocumentSettings

MAX_SIGNERS: Final = 50
"""Most people who sign one document in turn."""
_NAME_BYTES: Final = 255
# Separators, and what could make a name read other than it is.
_FORBIDDEN: Final = re.compile(r'[/\\:*?"<>|]')
_FORBIDDEN_KINDS: Final = frozenset({"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"})


def check_file_name(name: str) -> str:
    """A document's file name, in NFC, or a refusal.

    Raises:
        ApplianceError: `FILENAME`: over 255 bytes, a path, control or
            direction characters, or not ending in `.pdf`.
    """
    name = nfc(name, _NAME_BYTES) or ""
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
    """Of who signs first."""
    file_name: str
    expires: datetime | None
    origin: str
    actor: str
    then: tuple[str, ...] = ()
    """CUILs of those who sign after, each in turn, on what the one before made."""
    wishes: ProfileWishes = NO_WISHES
    """How it is to be signed, where the integrator's profile is not meant."""


class Intake:
    """The use cases of documents that come in."""

    def __init__(
        self,
        store: Database,
        documents: BlobStore,
        inspector: PdfInspector,
        clock: Clock,
        settings: DocumentSettings,
    ) -> None:
        self._store = store
        self._documents = documents
        self._examination = Examination(inspector, settings)
        self._clock = clock

    async def create_request(self, order: IntakeOrder, pdf: bytes) -> RequestId:
        """Take a PDF in and ask a person, or several in turn, to sign it.

        Returns:
            The request of who signs first, `pendiente`.

        Raises:
            DocumentRefusedError: the PDF cannot be signed.
            SignersInvalidError: somebody twice, or too many.
            ApplianceError: `INTEGRATOR_NOT_FOUND`, `PERSON_NOT_FOUND`,
                `FILENAME`, `DOCUMENT_EMPTY`, `DOCUMENT_TOO_LARGE`,
                `SANDBOX_UNAVAILABLE`, `STORE_UNAVAILABLE`.
        """
        return (await self.create_requests(order, pdf))[0]

    async def create_requests(self, order: IntakeOrder, pdf: bytes) -> list[RequestId]:
        """The same; gives the requests of all, in order.

        Raises:
            ApplianceError: as `create_request`.
        """
        name = check_file_name(order.file_name)
        integrator, people = await self._parties(order)
        kept = await self.keep(integrator.id, pdf)
        new = NewProcess(
            document=kept,
            name=name,
            signers=tuple(NewSigner(person.id) for person in people),
            origin=order.origin,
            actor=order.actor,
            created=self._clock.now(),
            expires=order.expires,
            wishes=order.wishes,
        )
        async with self._store.write() as transaction:
            return await record(transaction, new)

    async def _parties(self, order: IntakeOrder) -> tuple[Integrator, list[Person]]:
        cuils = (order.cuil, *order.then)
        twice = next((cuil for cuil in cuils if cuils.count(cuil) > 1), None)
        if len(cuils) > MAX_SIGNERS:
            raise SignersInvalidError(
                SIGNERS_TOO_MANY, count=len(cuils), most=MAX_SIGNERS
            )
        if twice is not None:
            raise SignersInvalidError(SIGNER_REPEATED, cuil=format_cuil(twice))
        async with self._store.read() as transaction:
            integrator = await PersonStore(transaction).integrator(
                order.integrator_code
            )
            found = [await PersonStore(transaction).by_cuil(cuil) for cuil in cuils]
            if integrator is None:
                raise ApplianceError(ErrorCode.INTEGRATOR_NOT_FOUND)
            found = [
                await seen_by(transaction, person, integrator.id) for person in found
            ]
        if found[0] is None:
            raise ApplianceError(ErrorCode.PERSON_NOT_FOUND)
        people = [person for person in found if person is not None]
        if len(people) < len(found):
            raise ApplianceError(ErrorCode.PERSON_NOT_FOUND, extras={"field": "then"})
        return integrator, people

    async def keep(
        self, integrator: IntegratorId, pdf: DocumentBytes
    ) -> StoredDocument:
        """Examine a PDF and keep its bytes; a damaged one is repaired first.

        Returns:
            The document to be recorded: the PDF, or the repaired copy of it.

        Raises:
            DocumentRefusedError: the PDF cannot be signed.
            ApplianceError: `DOCUMENT_EMPTY`, `DOCUMENT_TOO_LARGE`,
                `SANDBOX_UNAVAILABLE`, `STORE_UNAVAILABLE`.

        Source: docs/documents.md; decisions "PDFs".
        """
        examined = await self._earlier_copy(
            integrator, pdf
        ) or await self._examination.examine(pdf)
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

    async def _earlier_copy(
        self, integrator: IntegratorId, pdf: DocumentBytes
    ) -> Examined | None:
        """The copy that was made when the same damaged file came before."""
        original = await sha256_of(pdf)
        async with self._store.read() as transaction:
            earlier = await DocumentStore(transaction).repaired(integrator, original)
        if earlier is None or earlier.repair is None:
            return None
        copy = await self._documents.get(integrator, earlier.sha256)
        return await self._examination.examine_copy(copy, earlier.repair)
