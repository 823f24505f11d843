"""Making batches: many documents that one person is asked to sign, by one call.

All of it or nothing: what can be refused is refused, with its place, before anything is
recorded; then all is recorded in one transaction, by a few statements. Documents that
were uploaded before were examined then, and are not again.

Source: docs/integration.md "Ask for many at once".
"""

import asyncio
from collections.abc import AsyncIterator, Collection
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Final, TypeAlias

from appliance.core.unit_of_work import Database, Transaction
from appliance.domain.clock import Clock
from appliance.domain.errors import ApplianceError, ErrorCode, FieldInvalidError
from appliance.domain.identity import Person
from appliance.domain.ids import IntegratorId, RequestBatchId, new_id
from appliance.domain.integrators.integrators import IntegratorCaller
from appliance.domain.ports import DocumentBytes, LookupIndex
from appliance.domain.requests.levels import ProfileWishes
from appliance.domain.requests.new_request import StoredDocument
from appliance.domain.requests.preset import SignaturePreset, WishedPreset
from appliance.domain.requests.process import BACKEND_ORIGIN
from appliance.domain.requests.request_batch import RequestBatch
from appliance.domain.requests.uploads import DEFAULT_NAME, UploadedDocument
from appliance.integration.order_keys import OrderKey, is_key_known
from appliance.integration.ordering import SETTLING_S
from appliance.integration.orders import BatchDocument, BatchOrder
from appliance.integration.refusals import refused_for, refused_within
from appliance.integration.signer_lookup import person_named
from appliance.requests.intake import Intake, check_file_name
from appliance.requests.presets import Presets
from appliance.requests.process_store import ProcessStore
from appliance.requests.recording import NewProcess, NewSigner, record_all
from appliance.requests.request_batch_store import RequestBatchStore
from appliance.requests.uploads import UploadedDocuments

_SIGNER: Final = "firmante"
"""The field of the signer, for errors."""
_Settling: TypeAlias = tuple[str, WishedPreset]
"""SHA-256 of a document, and the look and place that its signature is to have."""


@dataclass(frozen=True, slots=True)
class MadeBatch:
    """What an order came to."""

    batch: RequestBatchId
    is_repeated: bool
    """Whether an earlier call with its idempotency key made it."""


@dataclass(frozen=True, slots=True)
class _Asked:
    """One document of an order, ready to be recorded."""

    name: str
    stored: StoredDocument
    signer: NewSigner


class BackendBatchOrders:
    """Makes the batches that integrators' backends ask for.

    Args:
        store: the record.
        intake: examines and keeps what comes in.
        uploads: what came before.
        presets: settle look and place.
        lookup: finds people by e-mail.
        clock: the time.
    """

    def __init__(
        self,
        store: Database,
        intake: Intake,
        uploads: UploadedDocuments,
        presets: Presets,
        lookup: LookupIndex,
        clock: Clock,
    ) -> None:
        self._store = store
        self._intake = intake
        self._uploads = uploads
        self._presets = presets
        self._lookup = lookup
        self._clock = clock

    async def is_repeated(self, whose: IntegratorId, key: str | None) -> bool:
        """Whether an order with this idempotency key was made before."""
        return await is_key_known(self._store, whose, key)

    async def create(self, asking: IntegratorCaller, order: BatchOrder) -> MadeBatch:
        """Ask one person to sign many documents.

        Args:
            asking: who asks.
            order: what for.

        Raises:
            DocumentRefusedError: a PDF cannot be signed, or not searched.
            FieldInvalidError: `vence` is over, or a reference is there twice.
            ApplianceError: `PERSON_NOT_FOUND`, `REFERENCE_IN_USE`,
                `IDEMKEY_CONFLICT`, `OVERLOADED` where settling it takes too long; with
                the document's field those of `BackendOrders.create`.
        """
        whose = asking.integrator.id
        key = OrderKey(whose, order.idempotency_key, await order.fingerprint())
        async with self._store.read() as transaction:
            earlier = await key.made(transaction)
        if earlier is not None:
            return MadeBatch(RequestBatchId(earlier), is_repeated=True)
        if order.expires is not None and order.expires <= self._clock.now():
            raise FieldInvalidError("vence", "a time to come")
        _demand_distinct(order.documents)
        try:
            async with asyncio.timeout(SETTLING_S):
                asked = await self._settled(whose, order)
        except TimeoutError as exc:
            raise ApplianceError(ErrorCode.OVERLOADED) from exc
        async with (
            self._naming_the_other(whose, order),
            self._store.write() as transaction,
        ):
            now = self._clock.now()
            earlier = await key.bind(transaction, now)
            if earlier is not None:
                return MadeBatch(RequestBatchId(earlier), is_repeated=True)
            batch = RequestBatch(RequestBatchId(new_id()), whose, now, order.note)
            await self._hold(transaction, whose, order.documents)
            await RequestBatchStore(transaction).add(batch)
            await record_all(transaction, _processes(asking, order, asked, batch))
            await key.stands_for(transaction, batch.id, now)
        return MadeBatch(batch.id, is_repeated=False)

    async def _settled(self, whose: IntegratorId, order: BatchOrder) -> list[_Asked]:
        """Every document with its name, and what its signature is to look like.

        Raises:
            ApplianceError: as `create`.
        """
        # Before the person: who is known here is told to who has something to be
        # signed.
        found = await self._uploads.named(whose, _uploads_of(order.documents))
        kept = [
            await self._kept(whose, place, each, found)
            for place, each in enumerate(order.documents)
        ]
        async with self._store.read() as transaction:
            person = await person_named(transaction, self._lookup, order.signer, whose)
        if person is None:
            raise ApplianceError(ErrorCode.PERSON_NOT_FOUND, extras={"field": _SIGNER})
        settled: dict[_Settling, SignaturePreset] = {}
        return [
            _Asked(
                name, stored, await self._signer(place, order, person, stored, settled)
            )
            for place, (name, stored) in enumerate(kept)
        ]

    async def _kept(
        self,
        whose: IntegratorId,
        place: int,
        wanted: BatchDocument,
        uploads: dict[str, UploadedDocument],
    ) -> tuple[str, StoredDocument]:
        """What one document is called, and its bytes, kept.

        Raises:
            DocumentRefusedError: the PDF cannot be signed.
            ApplianceError: `FILENAME`, `DOCUMENT_NOT_FOUND`, those of `Intake.keep`.
        """
        with refused_for(_field(place, "nombre"), wanted.part):
            name = None if wanted.name is None else check_file_name(wanted.name)
        if not isinstance(wanted.document, str):
            came_as = "contenido" if wanted.part is None else "archivo"
            with refused_for(_field(place, came_as), wanted.part):
                kept = await self._intake.keep(whose, wanted.document)
            return name or DEFAULT_NAME, kept
        _demand(uploads, place, wanted.document)
        upload = uploads[wanted.document]
        return name or upload.name, upload.document

    async def _signer(
        self,
        place: int,
        order: BatchOrder,
        person: Person,
        document: StoredDocument,
        settled: dict[_Settling, SignaturePreset],
    ) -> NewSigner:
        """Who signs one document, and what they bring to it.

        Args:
            place: of the document.
            order: that it is of.
            person: who signs.
            document: its bytes are kept.
            settled: what was found for the same wish of the same bytes before.

        Raises:
            ApplianceError: those of `Presets.settle`, with the field.
        """
        wished = order.documents[place].wished or order.signer.wished
        if wished is None:
            return NewSigner(person.id, order.signer.by)
        settling = (document.sha256, wished)
        if settling not in settled:
            with refused_within(_field(place, "sello")):
                preset = await self._presets.settle(document, wished, person)
            settled[settling] = preset
        return NewSigner(person.id, order.signer.by, settled[settling])

    async def _hold(
        self,
        transaction: Transaction,
        whose: IntegratorId,
        documents: Collection[BatchDocument],
    ) -> None:
        """Have all that was uploaded be there still.

        Raises:
            ApplianceError: `DOCUMENT_NOT_FOUND`: one was deleted meanwhile.
        """
        held = await self._uploads.hold(transaction, whose, _uploads_of(documents))
        for place, each in enumerate(documents):
            _demand(held, place, each.document)

    @asynccontextmanager
    async def _naming_the_other(
        self, whose: IntegratorId, order: BatchOrder
    ) -> AsyncIterator[None]:
        """Say which reference is in use by what, where that is why it is refused.

        Raises:
            ApplianceError: `REFERENCE_IN_USE`, with the field and the other one's id.
        """
        try:
            yield
        except ApplianceError as refusal:
            if refusal.code is not ErrorCode.REFERENCE_IN_USE:
                raise
            refusal.extras.update(await self._other(whose, order))
            raise

    async def _other(self, whose: IntegratorId, order: BatchOrder) -> dict[str, object]:
        unique = {
            each.note.reference: place
            for place, each in enumerate(order.documents)
            if each.note.is_unique and each.note.reference
        }
        async with self._store.read() as transaction:
            if order.note.is_unique and order.note.reference:
                batch = await RequestBatchStore(transaction).of_reference(
                    whose, order.note.reference
                )
                if batch is not None:
                    return {"field": "referencia", "loteId": batch}
            taken = await ProcessStore(transaction).of_references(whose, unique.keys())
        for reference, place in unique.items():
            if reference in taken:
                field = _field(place, "referencia")
                return {"field": field, "procesoId": taken[reference]}
        return {}


def _processes(
    asking: IntegratorCaller,
    order: BatchOrder,
    asked: Collection[_Asked],
    batch: RequestBatch,
) -> list[NewProcess]:
    """What is to be recorded, in order."""
    return [
        NewProcess(
            document=each.stored,
            name=each.name,
            signers=(each.signer,),
            origin=BACKEND_ORIGIN,
            actor=asking.actor,
            created=batch.created,
            expires=order.expires,
            wishes=ProfileWishes(level=order.level),
            note=said.note,
            batch=batch.id,
        )
        for said, each in zip(order.documents, asked, strict=True)
    ]


def _demand_distinct(documents: Collection[BatchDocument]) -> None:
    """Refuse a reference that two documents want for themselves.

    Raises:
        FieldInvalidError: the second one's.
    """
    seen: set[str | None] = set()
    for place, each in enumerate(documents):
        if not each.note.is_unique:
            continue
        if each.note.reference in seen:
            raise FieldInvalidError(_field(place, "referencia"), "each once")
        seen.add(each.note.reference)


def _uploads_of(documents: Collection[BatchDocument]) -> set[str]:
    """The ids of those that were uploaded."""
    return {each.document for each in documents if isinstance(each.document, str)}


def _field(place: int, name: str) -> str:
    """A field of one document, for errors."""
    return f"documentos[{place}].{name}"


def _demand(there: Collection[str], place: int, wanted: DocumentBytes | str) -> None:
    """Refuse an upload that is not there.

    Raises:
        ApplianceError: `DOCUMENT_NOT_FOUND`, with the field.
    """
    if isinstance(wanted, str) and wanted not in there:
        field = _field(place, "documentoId")
        raise ApplianceError(ErrorCode.DOCUMENT_NOT_FOUND, extras={"field": field})
