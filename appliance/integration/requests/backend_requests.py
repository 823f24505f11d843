"""Signature requests of an integrator's backend: seen, changed, taken back, fetched.

What belongs to another integrator is as absent as what does not exist.

Source: docs/integration.md.
"""

from appliance.documents.document_store import DocumentStore
from appliance.domain.audit.record import AuditEvent
from appliance.domain.clock import Clock
from appliance.domain.errors import (
    ApplianceError,
    ErrorCode,
    FieldInvalidError,
    FieldMissingError,
)
from appliance.domain.ids import IntegratorId, ProcessId, RequestId
from appliance.domain.integrators.integrators import IntegratorCaller
from appliance.domain.ports import BlobStore, DocumentStream
from appliance.domain.requests.history import RequestEvent
from appliance.domain.requests.process import (
    ProcessDetails,
    ProcessFilter,
    SigningProcess,
    in_signing_order,
)
from appliance.domain.requests.request import (
    SHOWN,
    UNFINISHED,
    RequestView,
    SignedDocumentView,
    refuse_unsigned,
)
from appliance.domain.vocab import EventKind, RequestState
from appliance.integration.requests.creation import naming_the_other
from appliance.integration.requests.order import ProcessChange
from appliance.record.unit_of_work import Database, Transaction, demand
from appliance.requests.history_store import HistoryStore
from appliance.requests.process_store import ProcessStore
from appliance.requests.request_store import RequestStore
from appliance.signing.requests import cancel_in


class BackendRequests:
    """The use cases of an integrator's backend around signature requests.

    Args:
        store: the record.
        documents: the files.
        clock: the time.
    """

    def __init__(
        self,
        store: Database,
        documents: BlobStore,
        clock: Clock,
    ) -> None:
        self._store = store
        self._documents = documents
        self._clock = clock

    async def matching(
        self, whose: IntegratorId, asked: ProcessFilter
    ) -> list[ProcessDetails]:
        """An integrator's processes, newest first, without versions."""
        async with self._store.read() as transaction:
            found = await ProcessStore(transaction).matching(whose, asked)
            ids = [view.id for _, process in found for view in process.requests]
            signers = await ProcessStore(transaction).signers(ids)
        return [ProcessDetails(process, signers, {}, place) for place, process in found]

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
            FieldMissingError: no reference for one that is to be unique.
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
            naming_the_other(self._store, asking.integrator.id, change.of(before.note)),
            self._store.write() as transaction,
        ):
            first = await _hold(transaction, asking.integrator.id, wanted)
            await demand(transaction)
            if for_signers and first.state not in UNFINISHED:
                raise ApplianceError(
                    ErrorCode.STATE, params={"estado": first.state.value}
                )
            # As it stands now: others may have changed it until it was held.
            process = await _process_of(transaction, asking.integrator.id, wanted)
            await _change(transaction, asking, process, first, change)
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
            if first.state is RequestState.IN_PROGRESS or first.held:
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
        if view.state not in SHOWN:
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
        first = process.original
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


async def _change(
    transaction: Transaction,
    asking: IntegratorCaller,
    process: SigningProcess,
    first: RequestView,
    change: ProcessChange,
) -> None:
    """Write what is new of a process that is held; nothing where nothing is.

    Raises:
        FieldMissingError: no reference for one that is to be unique.
        ApplianceError: `REFERENCE_IN_USE`.
    """
    note = change.of(process.note)
    if change.note.get("is_unique") and note.reference is None:
        raise FieldMissingError("referencia", "1..128 characters", "string")
    fields = [
        name
        for name in change.note
        if getattr(note, name) != getattr(process.note, name)
    ]
    if change.is_expiry_given and change.expires != first.expires:
        fields.append("expires")
        await RequestStore(transaction).give_until(process.id, change.expires)
    if not fields:
        return
    await ProcessStore(transaction).change(process.id, note)
    transaction.audit.add(
        AuditEvent(
            EventKind.REQUEST_CHANGED,
            asking.actor,
            integrator=asking.integrator.id,
            request=first.id,
            detail={"fields": sorted(fields)},
        )
    )


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
    for view in reversed(in_signing_order(process.requests)):
        found = (
            await documents.signed(view.id)
            if sha256 is None
            else await documents.version(view.id, sha256)
        )
        if found is not None:
            return view, found
    return None
