"""Taking a document in: size, sandbox, store, record, request."""

import re
import unicodedata
from collections.abc import AsyncIterator, Collection, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from appliance.documents.document_bytes import sha256_of
from appliance.documents.document_store import DocumentStore
from appliance.documents.examination import Examination, Examined
from appliance.documents.known_findings import KnownFindings
from appliance.documents.passing_document_store import PassingDocumentStore
from appliance.documents.passing_documents import Keeping, PassingDocuments
from appliance.domain.clock import Clock
from appliance.domain.documents.inspected import NAME_BYTES, Inspection
from appliance.domain.errors import (
    NOT_OF_WHAT_CAME,
    SIGNER_REPEATED,
    SIGNERS_TOO_MANY,
    ApplianceError,
    DocumentRefusedError,
    ErrorCode,
    SignersInvalidError,
)
from appliance.domain.ids import DocumentId, IntegratorId, RequestId, new_id
from appliance.domain.people.identity import Integrator, Person, format_cuil
from appliance.domain.ports import BlobMaintenance, DocumentBytes, PdfInspector
from appliance.domain.requests.intake import StoredDocument
from appliance.domain.requests.levels import NO_WISHES, ProfileWishes
from appliance.domain.text.unicode_nfc import nfc
from appliance.people.person_store import PersonStore
from appliance.people.signer_for_tests_store import seen_by
from appliance.record.unit_of_work import Database, Transaction
from appliance.requests.inspection import Inspections
from appliance.requests.recording import NewProcess, NewSigner, record
from appliance.settings import DocumentSettings

MAX_SIGNERS: Final = 50
"""Most people who sign one document in turn."""
# Separators, and what could make a name read other than it is.
# U+FFFD stands for bytes that were no text.
_FORBIDDEN: Final = re.compile(r'[/\\:*?"<>|\ufffd]')
_FORBIDDEN_KINDS: Final = frozenset({"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"})


def check_file_name(name: str) -> str:
    """A document's file name, in NFC and without blanks around it, or a refusal.

    Raises:
        ApplianceError: `FILENAME`: over 255 bytes, a path, control or
            direction characters, or not ending in `.pdf`.
    """
    name = nfc(name.strip(" "), NAME_BYTES) or ""
    bad = (
        not name.lower().endswith(".pdf")
        or name.startswith(".")
        or _FORBIDDEN.search(name)
        or any(unicodedata.category(char) in _FORBIDDEN_KINDS for char in name)
    )
    if bad or len(name.encode("utf-8", "surrogatepass")) > NAME_BYTES:
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
        documents: BlobMaintenance,
        inspector: PdfInspector,
        clock: Clock,
        settings: DocumentSettings,
    ) -> None:
        self._store = store
        self._documents = documents
        self._examination = Examination(inspector, settings)
        self._known = KnownFindings()
        self._clock = clock
        self.inspections = Inspections(store, documents, inspector, clock)
        """Findings of documents that came in before."""
        self.passing = PassingDocuments(store, documents, clock)
        """What files are kept by, until it is recorded what they are."""
        self._most = max(settings.integrator_bytes, settings.limit_bytes)

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
        examined = await self.examined(integrator.id, pdf)
        new = NewProcess(
            document=await stored_as(integrator.id, examined),
            name=name,
            signers=tuple(NewSigner(person.id) for person in people),
            origin=order.origin,
            actor=order.actor,
            created=self._clock.now(),
            expires=order.expires,
            wishes=order.wishes,
        )
        async with (
            self.keeping(integrator.id, [(pdf, examined)]) as kept,
            self._store.write() as transaction,
        ):
            await kept.recorded(transaction)
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

    async def examined(
        self, integrator: IntegratorId, pdf: DocumentBytes, *, repairs: bool = True
    ) -> Examined:
        """Examine a PDF, and have it written anew if need be. Nothing of it is kept.

        Args:
            integrator: whose.
            pdf: its bytes.
            repairs: whether a copy may be made; else what needs one is refused.

        Raises:
            DocumentRefusedError: the PDF cannot be signed.
            ApplianceError: `DOCUMENT_EMPTY`, `DOCUMENT_TOO_LARGE`, `OVERLOADED`,
                `SANDBOX_UNAVAILABLE`, `STORE_UNAVAILABLE`.

        Source: docs/documents.md; decisions "PDFs".
        """
        as_it_is = () if repairs else (0,)
        (found,) = await self.examined_all(integrator, [pdf], as_it_is)
        if isinstance(found, ApplianceError):
            raise found
        return found

    async def examined_all(
        self,
        integrator: IntegratorId,
        pdfs: Sequence[DocumentBytes],
        as_they_are: Collection[int] = (),
    ) -> list[Examined | ApplianceError]:
        """Examine several PDFs, small ones together; none that is known already.

        Args:
            integrator: whose.
            pdfs: their bytes.
            as_they_are: indices of those of which no copy may be made.

        Returns:
            In order: what `examined` gives, or how it refuses.

        Raises:
            ApplianceError: none of them is to blame for it (`NOT_OF_WHAT_CAME`).
        """
        if not pdfs:
            return []
        hashes = [await sha256_of(pdf) for pdf in pdfs]
        distinct = dict(zip(hashes, pdfs, strict=True))
        known, damaged = await self._known_of(integrator, distinct.keys())
        fresh = {
            sha256: pdf
            for sha256, pdf in distinct.items()
            if sha256 not in known and sha256 not in damaged
        }
        described = await self._examination.inspect_together(list(fresh.values()))
        for sha256, inspection in zip(fresh, described, strict=True):
            if inspection is not None:
                known[sha256] = inspection
        found: list[Examined | ApplianceError] = []
        done: dict[tuple[str, bool], Examined] = {}
        for at, (sha256, pdf) in enumerate(zip(hashes, pdfs, strict=True)):
            repairs = at not in as_they_are
            key = (sha256, repairs)
            try:
                if key not in done:
                    done[key] = await self._one(
                        integrator,
                        pdf,
                        known.get(sha256),
                        is_damaged=sha256 in damaged,
                        repairs=repairs,
                    )
                found.append(done[key])
            except ApplianceError as refusal:
                if refusal.code in NOT_OF_WHAT_CAME:
                    raise
                found.append(refusal)
        for (sha256, _), examined in done.items():
            if examined.repair is None:
                self._known.note(integrator, sha256, examined.inspection)
        return found

    async def _known_of(
        self, integrator: IntegratorId, hashes: Collection[str]
    ) -> tuple[dict[str, Inspection], set[str]]:
        """What was said of files before, and which of them were damaged."""
        async with self._store.read() as transaction:
            known, damaged = await DocumentStore(transaction).known(integrator, hashes)
        for sha256 in hashes:
            lately = self._known.get(integrator, sha256)
            if lately is not None:
                known.setdefault(sha256, lately)
        return known, damaged

    async def _one(
        self,
        integrator: IntegratorId,
        pdf: DocumentBytes,
        inspection: Inspection | None,
        *,
        is_damaged: bool,
        repairs: bool,
    ) -> Examined:
        """Examine one, by what is known of it if that is enough.

        Args:
            integrator: whose.
            pdf: its bytes.
            inspection: what the sandbox has said of it, where it has.
            is_damaged: whether a copy of it was made before.
            repairs: whether one may be made.

        Raises:
            DocumentRefusedError: the PDF cannot be signed.
            ApplianceError: as `examined`.
        """
        examined = None
        if is_damaged and repairs:
            examined = await self._earlier_copy(integrator, pdf)
        elif inspection is not None:
            examined = self._examination.accept(pdf, inspection, repairs=repairs)
        return examined or await self._examination.examine(pdf, repairs=repairs)

    @asynccontextmanager
    async def keeping(
        self,
        integrator: IntegratorId,
        documents: Sequence[tuple[DocumentBytes, Examined]],
    ) -> AsyncIterator[Keeping]:
        """Keep what was examined while it is recorded; see `PassingDocuments`.

        Args:
            integrator: whose.
            documents: as they came, and what was found of them.

        Raises:
            ApplianceError: as `keeping_files`.
        """
        async with self.keeping_files(integrator, files_of(documents)) as kept:
            yield kept

    @asynccontextmanager
    async def keeping_files(
        self, integrator: IntegratorId, files: Sequence[DocumentBytes]
    ) -> AsyncIterator[Keeping]:
        """Keep files while it is recorded what they are for; see `PassingDocuments`.

        Args:
            integrator: whose.
            files: their bytes.

        Raises:
            ApplianceError: `DOCUMENT_QUOTA` where too much of the integrator's waits:
                files of batches in preparation, and what calls before left behind;
                `STORAGE_FULL`, `STORE_UNAVAILABLE`.
        """

        async def demand(transaction: Transaction, call: str) -> None:
            passing = PassingDocumentStore(transaction)
            others = await passing.passing_bytes(integrator, but_call=call)
            if others > self._most:
                raise ApplianceError(ErrorCode.DOCUMENT_QUOTA)

        async with self.passing.keeping(integrator, files, demand) as kept:
            yield kept

    async def put(
        self, integrator: IntegratorId, came: DocumentBytes, examined: Examined
    ) -> None:
        """Keep one that the record has counted already, for a session of the frame.

        Args:
            integrator: whose.
            came: as it came.
            examined: what was found of it.

        Raises:
            ApplianceError: `STORAGE_FULL`, `STORE_UNAVAILABLE`.
        """
        await self._documents.put_all(integrator, files_of([(came, examined)]))

    async def _earlier_copy(
        self, integrator: IntegratorId, pdf: DocumentBytes
    ) -> Examined | None:
        """The copy that was made when the same damaged file came before."""
        original = await sha256_of(pdf)
        async with self._store.read() as transaction:
            earlier = await DocumentStore(transaction).repaired(integrator, original)
        if earlier is None or earlier.repair is None:
            return None
        try:
            copy = await self._documents.get(integrator, earlier.sha256)
        except ApplianceError:
            # It may just have been deleted; the file that came is there.
            return None
        try:
            return await self._examination.examine_copy(copy, earlier.repair)
        except DocumentRefusedError:
            # An earlier version made it; this one makes another, or refuses as well.
            return None


def files_of(
    documents: Sequence[tuple[DocumentBytes, Examined]],
) -> list[DocumentBytes]:
    """The files that are kept: of a damaged one both it and its copy.

    Args:
        documents: as they came, and what was found of them.
    """
    return [
        file
        for came, examined in documents
        for file in (
            (examined.pdf,) if examined.repair is None else (came, examined.pdf)
        )
    ]


async def stored_as(integrator: IntegratorId, examined: Examined) -> StoredDocument:
    """The document to be recorded: the PDF, or the repaired copy of it.

    Args:
        integrator: whose.
        examined: what was found of it.
    """
    return StoredDocument(
        DocumentId(new_id()),
        integrator,
        await sha256_of(examined.pdf),
        examined.inspection,
        examined.repair,
    )
