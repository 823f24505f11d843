"""Signature requests of an integrator's backend: made, seen, changed, taken back.

What belongs to another integrator is as absent as what does not exist. A call with an
idempotency key that is repeated makes nothing new: it gets what the first one made.

Source: docs/api.md "Requests of a backend".
"""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Final

from appliance.core.idempotency_store import IdempotencyStore
from appliance.core.unit_of_work import Database, Transaction
from appliance.documents.document_store import DocumentStore
from appliance.domain.audit import AuditEvent
from appliance.domain.clock import Clock
from appliance.domain.errors import (
    ApplianceError,
    ErrorCode,
    FieldInvalidError,
)
from appliance.domain.identity import Person
from appliance.domain.ids import IntegratorId, PersonId, ProcessId, RequestId
from appliance.domain.integrators.integrators import IntegratorCaller
from appliance.domain.ports import BlobStore, DocumentStream, LookupIndex
from appliance.domain.requests.history import RequestEvent
from appliance.domain.requests.levels import ProfileWishes
from appliance.domain.requests.new_request import StoredDocument
from appliance.domain.requests.process import (
    BACKEND_ORIGIN,
    NamedBy,
    ProcessDetails,
    ProcessFilter,
    ProcessNote,
    SigningProcess,
)
from appliance.domain.requests.request import (
    UNFINISHED,
    RequestView,
    SignedDocumentView,
    refuse_unsigned,
)
from appliance.domain.requests.uploads import DEFAULT_NAME
from appliance.domain.vocab import EventKind, RequestState
from appliance.identity.login import email_indexes
from appliance.integration.orders import (
    NamedSigner,
    ProcessChange,
    ProcessOrder,
)
from appliance.people.person_store import PersonStore
from appliance.requests.history_store import HistoryStore
from appliance.requests.intake import Intake, check_file_name
from appliance.requests.process_store import ProcessStore
from appliance.requests.recording import NewProcess, NewSigner, record
from appliance.requests.request_store import RequestStore
from appliance.requests.uploads import UploadedDocuments
from appliance.signing.requests import cancel_in

_SHOWN: Final = frozenset(
    {RequestState.PENDING, RequestState.IN_PROGRESS, RequestState.SIGNED}
)
"""States of a request that a session may be opened for: its outcome can be told too."""
_SIGNERS: Final = "firmantes"
"""The field of the signers, for errors."""


@dataclass(frozen=True, slots=True)
class Made:
    """What an order came to."""

    details: ProcessDetails
    is_repeated: bool
    """Whether an earlier call with its idempotency key made it."""


class BackendRequests:
    """The use cases of an integrator's backend around signature requests.

    Args:
        store: the record.
        documents: the files.
        intake: examines and keeps what comes in.
        uploads: what came before.
        lookup: finds people by e-mail.
        clock: the time.
    """

    def __init__(
        self,
        store: Database,
        documents: BlobStore,
        intake: Intake,
        uploads: UploadedDocuments,
        lookup: LookupIndex,
        clock: Clock,
    ) -> None:
        self._store = store
        self._documents = documents
        self._intake = intake
        self._uploads = uploads
        self._lookup = lookup
        self._clock = clock

    async def create(self, asking: IntegratorCaller, order: ProcessOrder) -> Made:
        """Take a document in and ask people to sign it, one after the other.

        Args:
            asking: who asks.
            order: what for.

        Raises:
            DocumentRefusedError: the PDF cannot be signed.
            FieldInvalidError: `vence` is over, or somebody is named twice.
            ApplianceError: `PERSON_NOT_FOUND`, `REFERENCE_IN_USE`,
                `IDEMKEY_CONFLICT`, `DOCUMENT_NOT_FOUND`, `FILENAME`, `DOCUMENT_EMPTY`,
                `DOCUMENT_TOO_LARGE`, `SANDBOX_UNAVAILABLE`, `STORE_UNAVAILABLE`.
        """
        if order.expires is not None and order.expires <= self._clock.now():
            raise FieldInvalidError("vence", "a time to come")
        fingerprint = await order.fingerprint()
        async with self._store.read() as transaction:
            earlier = await self._earlier(transaction, asking, order, fingerprint)
            people = [] if earlier else await self._people(transaction, order)
        if earlier is not None:
            return Made(await self.get(asking.integrator.id, earlier), is_repeated=True)
        brought = await self._brought(asking, order)
        async with (
            self._naming(asking, order.note),
            self._store.write() as transaction,
        ):
            earlier = await self._bound(transaction, asking, order, fingerprint)
            if earlier is None:
                document = brought or await self._uploaded(transaction, asking, order)
                new = self._process(asking, order, document, people)
                made = await self._record(transaction, asking, order, new)
        found = await self.get(asking.integrator.id, earlier or made)
        return Made(found, earlier is not None)

    async def _brought(
        self, asking: IntegratorCaller, order: ProcessOrder
    ) -> tuple[str, StoredDocument] | None:
        """The document that came with an order, examined and kept, and its name.

        Raises:
            DocumentRefusedError: the PDF cannot be signed.
            ApplianceError: `FILENAME`, and those of `Intake.keep`.
        """
        name = None if order.name is None else check_file_name(order.name)
        if isinstance(order.document, str):
            return None
        kept = await self._intake.keep(asking.integrator.id, order.document)
        return name or DEFAULT_NAME, kept

    async def _uploaded(
        self, transaction: Transaction, asking: IntegratorCaller, order: ProcessOrder
    ) -> tuple[str, StoredDocument]:
        """The same of a document that was uploaded before.

        Raises:
            ApplianceError: `DOCUMENT_NOT_FOUND`.
        """
        whose = asking.integrator.id
        found = await self._uploads.of(transaction, whose, str(order.document))
        return order.name or found.name, found.document

    async def _earlier(
        self,
        transaction: Transaction,
        asking: IntegratorCaller,
        order: ProcessOrder,
        fingerprint: str,
    ) -> ProcessId | None:
        """What a call with this key made before.

        Raises:
            ApplianceError: `IDEMKEY_CONFLICT`.
        """
        if order.idempotency_key is None:
            return None
        known = IdempotencyStore(transaction)
        used = await known.remembered(_scope(asking), order.idempotency_key)
        if used is None:
            return None
        if used != fingerprint:
            raise ApplianceError(ErrorCode.IDEMKEY_CONFLICT)
        made = await known.remembered(_made_scope(asking), order.idempotency_key)
        return None if made is None else ProcessId(made)

    async def _bound(
        self,
        transaction: Transaction,
        asking: IntegratorCaller,
        order: ProcessOrder,
        fingerprint: str,
    ) -> ProcessId | None:
        """The same, with the key bound to this order from now on.

        Of two calls at once the second waits here until the first has committed.
        """
        if order.idempotency_key is None:
            return None
        await IdempotencyStore(transaction).remember(
            _scope(asking), order.idempotency_key, fingerprint, self._clock.now()
        )
        return await self._earlier(transaction, asking, order, fingerprint)

    async def _people(
        self, transaction: Transaction, order: ProcessOrder
    ) -> list[Person]:
        """Who is to sign.

        Raises:
            ApplianceError: `PERSON_NOT_FOUND`, with the field.
            FieldInvalidError: somebody is there twice.
        """
        found: list[Person] = []
        for place, named in enumerate(order.signers):
            person = await self._person(transaction, named)
            field = f"{_SIGNERS}[{place}]"
            if person is None:
                raise ApplianceError(
                    ErrorCode.PERSON_NOT_FOUND, extras={"field": field}
                )
            if person.id in {other.id for other in found}:
                raise FieldInvalidError(field, "each person once")
            found.append(person)
        return found

    async def _person(
        self, transaction: Transaction, named: NamedSigner
    ) -> Person | None:
        people = PersonStore(transaction)
        if named.by is NamedBy.CUIL:
            return await people.by_cuil(named.value)
        if named.by is NamedBy.EMAIL:
            return await people.by_email_index(email_indexes(self._lookup, named.value))
        return await people.get(PersonId(named.value))

    def _process(
        self,
        asking: IntegratorCaller,
        order: ProcessOrder,
        document: tuple[str, StoredDocument],
        people: list[Person],
    ) -> NewProcess:
        name, kept = document
        return NewProcess(
            document=kept,
            name=name,
            signers=tuple(
                NewSigner(person.id, named.by)
                for person, named in zip(people, order.signers, strict=True)
            ),
            origin=BACKEND_ORIGIN,
            actor=asking.actor,
            created=self._clock.now(),
            expires=order.expires,
            wishes=ProfileWishes(level=order.level),
            note=order.note,
        )

    async def _record(
        self,
        transaction: Transaction,
        asking: IntegratorCaller,
        order: ProcessOrder,
        new: NewProcess,
    ) -> ProcessId:
        """Record a process, and bind its key to it.

        Raises:
            ApplianceError: `REFERENCE_IN_USE`.
        """
        requests = await record(transaction, new)
        first = await RequestStore(transaction).get(requests[0])
        if first is None:
            raise ApplianceError(ErrorCode.SOLICITUD_NOT_FOUND)
        if order.idempotency_key is not None:
            await IdempotencyStore(transaction).remember(
                _made_scope(asking), order.idempotency_key, first.process, new.created
            )
        return first.process

    @asynccontextmanager
    async def _naming(
        self, asking: IntegratorCaller, note: ProcessNote
    ) -> AsyncIterator[None]:
        """Say which process has a reference, where that is why something is refused.

        Raises:
            ApplianceError: `REFERENCE_IN_USE`, with its id.
        """
        try:
            yield
        except ApplianceError as refusal:
            if refusal.code is not ErrorCode.REFERENCE_IN_USE or not note.reference:
                raise
            async with self._store.read() as transaction:
                other = await ProcessStore(transaction).of_reference(
                    asking.integrator.id, note.reference
                )
            raise ApplianceError(
                refusal.code, extras={"field": "referencia", "procesoId": other}
            ) from refusal

    async def matching(
        self, whose: IntegratorId, asked: ProcessFilter
    ) -> list[ProcessDetails]:
        """An integrator's processes, newest first, without versions."""
        async with self._store.read() as transaction:
            found = await ProcessStore(transaction).matching(whose, asked)
            ids = [view.id for process in found for view in process.requests]
            signers = await ProcessStore(transaction).signers(ids)
        return [ProcessDetails(process, signers, {}) for process in found]

    async def get(self, whose: IntegratorId, wanted: ProcessId) -> ProcessDetails:
        """One process.

        Raises:
            ApplianceError: `SOLICITUD_NOT_FOUND`.
        """
        async with self._store.read() as transaction:
            process = await _process_of(transaction, whose, wanted)
            ids = [view.id for view in process.requests]
            signers = await ProcessStore(transaction).signers(ids)
            versions = {
                view.id: [
                    each
                    for each in await DocumentStore(transaction).holding(view.id)
                    if each.request == view.id
                ][::-1]
                for view in process.requests
                if view.state is RequestState.SIGNED
            }
        return ProcessDetails(process, signers, versions)

    async def history(
        self, whose: IntegratorId, wanted: ProcessId
    ) -> list[RequestEvent]:
        """What became of a process, oldest first.

        Raises:
            ApplianceError: `SOLICITUD_NOT_FOUND`.
        """
        async with self._store.read() as transaction:
            process = await _process_of(transaction, whose, wanted)
            ids = [view.id for view in process.requests]
            return await HistoryStore(transaction).of_requests(ids)

    async def change(
        self, asking: IntegratorCaller, wanted: ProcessId, change: ProcessChange
    ) -> ProcessDetails:
        """Say something else of a process.

        Raises:
            FieldInvalidError: `vence` is over.
            ApplianceError: `SOLICITUD_NOT_FOUND`, `REFERENCE_IN_USE`; `STATE` for
                what only matters until all have signed.
        """
        now = self._clock.now()
        if change.expires is not None and change.expires <= now:
            raise FieldInvalidError("vence", "a time to come")
        for_signers = change.is_expiry_given or {"language", "message"} & set(
            change.note
        )
        async with self._store.read() as transaction:
            before = await _process_of(transaction, asking.integrator.id, wanted)
        async with (
            self._naming(asking, change.of(before.note)),
            self._store.write() as transaction,
        ):
            process = await _process_of(transaction, asking.integrator.id, wanted)
            first = process.deciding
            if for_signers and first.state not in UNFINISHED:
                raise ApplianceError(
                    ErrorCode.STATE, params={"estado": first.state.value}
                )
            await ProcessStore(transaction).change(wanted, change.of(process.note))
            if change.is_expiry_given:
                await RequestStore(transaction).give_until(wanted, change.expires)
            fields = [*change.note, *(["expires"] if change.is_expiry_given else [])]
            transaction.audit.add(
                AuditEvent(
                    EventKind.REQUEST_CHANGED,
                    asking.actor,
                    integrator=asking.integrator.id,
                    request=first.id,
                    detail={"fields": sorted(fields)},
                )
            )
        return await self.get(asking.integrator.id, wanted)

    async def cancel(
        self, asking: IntegratorCaller, wanted: ProcessId, reason: str
    ) -> ProcessDetails:
        """Take back what is not signed yet.

        Args:
            asking: who.
            wanted: which.
            reason: in words, for whoever looks; may be empty.

        Raises:
            ApplianceError: `SOLICITUD_NOT_FOUND`; `IN_PROGRESS` while somebody's
                signature is being made; `STATE` once it is over.
        """
        async with self._store.write() as transaction:
            first = await _hold(transaction, asking.integrator.id, wanted)
            if first.state is RequestState.IN_PROGRESS:
                raise ApplianceError(ErrorCode.IN_PROGRESS)
            await cancel_in(transaction, first.id, asking.actor, reason)
        return await self.get(asking.integrator.id, wanted)

    async def to_sign(
        self, whose: IntegratorId, wanted: ProcessId | RequestId
    ) -> RequestId:
        """The request that a session is to be opened for.

        Args:
            whose: that asks.
            wanted: a process: the one whose turn it is, or the last one; or a
                request of one.

        Raises:
            ApplianceError: `SOLICITUD_NOT_FOUND`; `STATE` for one whose turn it is
                not yet, or that is over without a signature.
        """
        async with self._store.read() as transaction:
            if isinstance(wanted, str):
                view = (await _process_of(transaction, whose, wanted)).deciding
            else:
                found = await RequestStore(transaction).get(wanted)
                if found is None or found.integrator != whose:
                    raise ApplianceError(ErrorCode.SOLICITUD_NOT_FOUND)
                view = found
        if view.state not in _SHOWN:
            raise ApplianceError(ErrorCode.STATE, params={"estado": view.state.value})
        return view.id

    async def original(
        self, asking: IntegratorCaller, wanted: ProcessId
    ) -> tuple[RequestView, DocumentStream]:
        """The document as the first one is, or was, to sign it.

        Raises:
            ApplianceError: `SOLICITUD_NOT_FOUND`, `STORE_UNAVAILABLE`.
        """
        async with self._store.read() as transaction:
            process = await _process_of(transaction, asking.integrator.id, wanted)
        first = process.requests[0]
        pdf = await self._documents.stream(first.integrator, first.sha256)
        await self._note_download(asking, first, first.sha256)
        return first, pdf

    async def signed(
        self, asking: IntegratorCaller, wanted: ProcessId, sha256: str | None = None
    ) -> tuple[SignedDocumentView, DocumentStream]:
        """The document that all have signed, or any version of it.

        Args:
            asking: who.
            wanted: which.
            sha256: of a version, hex, be it of one that not all have signed; None:
                the newest, once all have.

        Raises:
            ApplianceError: `SOLICITUD_NOT_FOUND`, `NOT_SIGNED_YET`, `STATE` where it
                never will be, `NOT_FOUND` for a version that there is not,
                `STORE_UNAVAILABLE`.
        """
        async with self._store.read() as transaction:
            process = await _process_of(transaction, asking.integrator.id, wanted)
            if sha256 is None and process.state is not RequestState.SIGNED:
                refuse_unsigned(process.deciding, self._clock.now())
            found = await _version(transaction, process, sha256)
        if found is None:
            raise ApplianceError(ErrorCode.NOT_FOUND)
        view, document = found
        pdf = await self._documents.stream(document.integrator, document.sha256)
        await self._note_download(asking, view, document.sha256)
        return document, pdf

    async def _note_download(
        self, asking: IntegratorCaller, view: RequestView, sha256: str
    ) -> None:
        async with self._store.write() as transaction:
            transaction.audit.add(
                AuditEvent(
                    EventKind.DOCUMENT_DOWNLOADED,
                    asking.actor,
                    integrator=view.integrator,
                    request=view.id,
                    detail={"documentSha256": sha256},
                )
            )


async def _process_of(
    transaction: Transaction, whose: IntegratorId, wanted: ProcessId
) -> SigningProcess:
    """A process of that integrator; anybody else's is as absent.

    Raises:
        ApplianceError: `SOLICITUD_NOT_FOUND`.
    """
    found = await ProcessStore(transaction).get(whose, wanted)
    if found is None:
        raise ApplianceError(ErrorCode.SOLICITUD_NOT_FOUND)
    return found


async def _hold(
    transaction: Transaction, whose: IntegratorId, wanted: ProcessId
) -> RequestView:
    """The request that decides about a process, kept from others.

    Raises:
        ApplianceError: `SOLICITUD_NOT_FOUND`.
    """
    while True:
        process = await _process_of(transaction, whose, wanted)
        held = await RequestStore(transaction).get(process.deciding.id, lock=True)
        if held is None:
            raise ApplianceError(ErrorCode.SOLICITUD_NOT_FOUND)
        # Signed while this waited for it: it is the next one's turn.
        if held.state is not RequestState.SIGNED or not held.followed:
            return held


async def _version(
    transaction: Transaction, process: SigningProcess, sha256: str | None
) -> tuple[RequestView, SignedDocumentView] | None:
    """The newest signed version of a process, or the one of a hash."""
    documents = DocumentStore(transaction)
    for view in reversed(process.requests):
        found = (
            await documents.signed(view.id)
            if sha256 is None
            else await documents.version(view.id, sha256)
        )
        if found is not None:
            return view, found
    return None


def _scope(asking: IntegratorCaller) -> str:
    """Where it is kept what a key was first used for."""
    return f"backend-order:{asking.integrator.id}"


def _made_scope(asking: IntegratorCaller) -> str:
    """Where it is kept what that came to."""
    return f"backend-made:{asking.integrator.id}"
