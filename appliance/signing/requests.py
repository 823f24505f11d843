"""A signer's own requests: list, see, preview, reject, fetch.

A request of somebody else is as absent as one that does not exist.
"""

from collections.abc import Collection
from typing import Final, Never

from appliance.admission.work_owner import working_for
from appliance.appearance.content import Stamping, picture_of
from appliance.documents.document_store import DocumentStore
from appliance.domain.appearance.stamp import lay_out
from appliance.domain.appearance.text import StampSigner
from appliance.domain.audit.record import AuditEvent
from appliance.domain.clock import Clock
from appliance.domain.errors import ApplianceError, DocumentRefusedError, ErrorCode
from appliance.domain.ids import PersonId, RequestId
from appliance.domain.ports import BlobStore, DocumentStream, PdfInspector
from appliance.domain.requests.preset import effective
from appliance.domain.requests.request import (
    UNFINISHED,
    Preview,
    RequestView,
    SignedDocumentView,
    SignedVersion,
    Signer,
    check_move,
    refuse_unsigned,
)
from appliance.domain.requests.terms import SignatureTerms
from appliance.domain.signing_command import GivenParameters
from appliance.domain.vocab import EventKind, RequestState
from appliance.keys.credential_store import CredentialStore
from appliance.people.person_store import PersonStore
from appliance.pki.validation.credential_statement import as_certified
from appliance.record.unit_of_work import Database, Transaction
from appliance.requests.history_store import HistoryStore
from appliance.requests.inspection import Inspections
from appliance.requests.process_store import ProcessStore
from appliance.requests.request_store import RequestStore
from appliance.requests.shown_document_store import ShownDocumentStore
from appliance.signing.reexamination import Reexamination
from appliance.signing.signing_order import end_rest

PREVIEW_DPI: Final = 96
"""Decisions "seeing before signing"."""


class Requests:
    """The use cases around a signer's requests."""

    def __init__(
        self,
        store: Database,
        documents: BlobStore,
        inspector: PdfInspector,
        clock: Clock,
        stamping: Stamping,
    ) -> None:
        self._store = store
        self._stamping = stamping
        self._documents = documents
        self._inspector = inspector
        self._clock = clock
        inspections = Inspections(store, documents, inspector, clock)
        self._reexamination = Reexamination(store, inspections)

    async def list_for(
        self,
        person: PersonId,
        states: Collection[RequestState],
        limit: int | None = None,
        before: RequestId | None = None,
    ) -> list[RequestView]:
        """A person's requests in those states, newest first, to be told to them."""
        async with self._store.read() as transaction:
            views = await RequestStore(transaction).of_person(
                person, states, limit=limit, before=before
            )
            news = await ShownDocumentStore(transaction).unrecorded(views, drawn=False)
        await self._record(news, drawn=False)
        return views

    async def detail(self, person: PersonId, request: RequestId) -> RequestView:
        """One request as `get` gives it, to be told to its signer.

        Raises:
            DocumentRefusedError: as `get`.
            ApplianceError: as `get`.
        """
        view = await self.get(person, request)
        await self.note_shown([view], drawn=False)
        return view

    async def get(self, person: PersonId, request: RequestId) -> RequestView:
        """One request, its document described as this version does.

        Raises:
            DocumentRefusedError: this version does not take the document, and may
                take it at the next look.
            ApplianceError: `SOLICITUD_NOT_FOUND`, `SANDBOX_UNAVAILABLE`.
        """
        async with self._store.read() as transaction:
            view = await own_request(transaction, person, request)
        try:
            return await self._reexamination.current(view)
        except DocumentRefusedError:
            async with self._store.read() as transaction:
                now = await own_request(transaction, person, request)
            if now.state in UNFINISHED:
                raise
            return now

    async def message(self, view: RequestView) -> str | None:
        """What the integrator wrote to the signers, if anything.

        Args:
            view: the request.
        """
        async with self._store.read() as transaction:
            return await ProcessStore(transaction).message(view.process)

    async def versions(self, view: RequestView) -> list[SignedVersion]:
        """Every version of a request's signed document, oldest first.

        Args:
            view: the request; before it is signed there is none.

        Raises:
            ApplianceError: `STORE_UNAVAILABLE`.
        """
        if view.state is not RequestState.SIGNED:
            return []
        async with self._store.read() as transaction:
            holding = await DocumentStore(transaction).holding(view.id)
        return [each for each in reversed(holding) if each.request == view.id]

    async def original(
        self, person: PersonId, request: RequestId, *, goes_on: bool = False
    ) -> tuple[RequestView, DocumentStream]:
        """The document as it is to be signed; that it was seen is recorded.

        Args:
            person: its signer.
            request: which.
            goes_on: what is fetched is not its beginning: a reader of many parts is
                recorded once for each document, by its hash.

        Raises:
            ApplianceError: `SOLICITUD_NOT_FOUND`, `STORE_UNAVAILABLE`.
        """
        view = await self.get(person, request)
        pdf = await self._documents.stream(view.integrator, view.sha256)
        if not goes_on or await self._is_news(view):
            await self.note_seen(view)
        return view, pdf

    async def _is_news(self, view: RequestView) -> bool:
        """Return whether the signer is recorded as having fetched another document."""
        async with self._store.read() as transaction:
            shown = ShownDocumentStore(transaction)
            return bool(await shown.unrecorded([view], drawn=True))

    async def note_shown(self, views: Collection[RequestView], *, drawn: bool) -> None:
        """Record which documents a signer was shown, where that may matter.

        What stands recorded already, and what nobody else can change, costs no write.

        Args:
            views: requests, as they were shown.
            drawn: the document or a page of it was; else a list or an answer named it.
        """
        if not any(view.may_get_another_document for view in views):
            return
        async with self._store.read() as transaction:
            news = await ShownDocumentStore(transaction).unrecorded(views, drawn=drawn)
        await self._record(news, drawn=drawn)

    async def _record(self, views: Collection[RequestView], *, drawn: bool) -> None:
        if not views:
            return
        async with self._store.write() as transaction:
            await ShownDocumentStore(transaction).record(views, drawn=drawn)

    async def note_seen(self, view: RequestView, *, keep: bool = False) -> None:
        """Record that the signer was shown the document.

        Args:
            view: their request.
            keep: have the request itself tell it ever after, too.
        """
        async with self._store.write() as transaction:
            if keep:
                now = self._clock.now()
                await RequestStore(transaction).saw(view.id, now)
            await ShownDocumentStore(transaction).record([view], drawn=True)
            transaction.audit.add(
                AuditEvent(
                    EventKind.REQUEST_VIEWED,
                    f"person:{view.person}",
                    integrator=view.integrator,
                    request=view.id,
                    detail={"documentSha256": view.sha256},
                )
            )

    async def _note_previewed(self, view: RequestView) -> None:
        """Record that the signer was shown a page, once for each document.

        A preview is drawn at each change of the stamp; the history tells it once.
        """
        async with self._store.read() as transaction:
            history = await HistoryStore(transaction).of_requests([view.id])
        if any(
            each.event is EventKind.REQUEST_VIEWED
            and each.detail.get("documentSha256") == view.sha256
            for each in history
        ):
            await self.note_shown([view], drawn=True)
            return
        await self.note_seen(view)

    async def download(
        self,
        actor: str,
        request: RequestId,
        *,
        signed: bool,
        as_received: bool = False,
    ) -> tuple[str, str, DocumentStream]:
        """A document for an administrator; that they have it is recorded.

        Args:
            actor: for the audit.
            request: which.
            signed: the newest signed version; else what is to be signed.
            as_received: of what is signed as a copy, the file that came in.

        Returns:
            The file's name, its SHA-256 in hex, and where its bytes come from.

        Raises:
            ApplianceError: `SOLICITUD_NOT_FOUND`, `NOT_SIGNED_YET`, `STATE` where
                it never will be; `STORE_UNAVAILABLE`.
        """
        async with self._store.read() as transaction:
            view = await RequestStore(transaction).get(request)
            if view is None:
                raise ApplianceError(ErrorCode.SOLICITUD_NOT_FOUND)
            made = await DocumentStore(transaction).signed(request) if signed else None
        if signed and made is None:
            refuse_unsigned(view, self._clock.now())
        sha256 = view.sha256 if made is None else made.sha256
        if as_received and view.repair is not None:
            sha256 = view.repair.original_sha256
        pdf = await self._documents.stream(view.integrator, sha256)
        async with self._store.write() as transaction:
            transaction.audit.add(
                AuditEvent(
                    EventKind.DOCUMENT_DOWNLOADED,
                    actor,
                    integrator=view.integrator,
                    request=request,
                    detail={"documentSha256": sha256},
                )
            )
        return (view.document_name if made is None else made.file_name), sha256, pdf

    async def preview(
        self, person: PersonId, request: RequestId, given: GivenParameters
    ) -> Preview:
        """Where the stamp would lie, and that page with it.

        Raises:
            ApplianceError: `SOLICITUD_NOT_FOUND`, `PAGE_OUT_OF_RANGE`,
                `POSITION_OUT_OF_PAGE`, `SIGNATURE_FIELD_NOT_FOUND`, `PRESET_FIXED`,
                `SANDBOX_UNAVAILABLE`.
            DocumentRefusedError: the page cannot be drawn, or this version does not
                take the document.
        """
        async with self._store.read() as transaction:
            view = await own_request(transaction, person, request)
            if view.preset is not None:
                view.preset.check(given)
            params = effective(given, view.preset)
            signer = await PersonStore(transaction).get(person)
            credential = await CredentialStore(transaction).active(person)
            defaults = self._stamping.defaults(given, view.preset)
            details = await self._stamping.details(
                transaction, params, view.integrator, defaults
            )
            picture = await picture_of(transaction, details)
        if signer is None:
            raise ApplianceError(ErrorCode.SOLICITUD_NOT_FOUND)
        if credential is not None:
            signer = as_certified(signer, credential)
        view = await self._reexamination.current(view)
        named = StampSigner(signer.name, signer.cuil, signer.locale)
        now = self._clock.now()
        layout = lay_out(params, named, now, view.inspection, details)
        pdf = await self._documents.get(view.integrator, view.sha256)
        page = params.page if layout is None else layout.page
        with working_for(view.integrator):
            png = await self._inspector.render(pdf, page, layout, PREVIEW_DPI, picture)
        await self._note_previewed(view)
        return Preview(layout, page, SignatureTerms.of(params, view.inspection), png)

    async def reject(
        self, signer: Signer, request: RequestId, reason: str
    ) -> RequestView:
        """Refuse to sign, for good.

        Raises:
            ApplianceError: `SOLICITUD_NOT_FOUND`, `STATE`.
        """
        async with self._store.write() as transaction:
            return await reject_in(transaction, signer, request, reason)

    async def cancel(self, request: RequestId, actor: str) -> RequestView:
        """Take a request back, and those that wait for it.

        Args:
            request: `pendiente` or `en_espera`.
            actor: for the audit.

        Raises:
            ApplianceError: `SOLICITUD_NOT_FOUND`, `STATE`.
        """
        async with self._store.write() as transaction:
            return await cancel_in(transaction, request, actor)

    async def signed(
        self, person: PersonId | None, request: RequestId, sha256: str | None = None
    ) -> tuple[SignedDocumentView, DocumentStream]:
        """The signed document.

        Args:
            person: its signer, or None when the caller showed a valid `clave`.
            request: which.
            sha256: of the version that is meant, hex; None: the newest one.

        Raises:
            ApplianceError: `SOLICITUD_NOT_FOUND`, `NOT_SIGNED_YET`, `STATE` where
                it never will be; `NOT_FOUND` for a version that a signed one has
                not; `STORE_UNAVAILABLE`.
        """
        async with self._store.read() as transaction:
            view = await RequestStore(transaction).get(request)
            if person is not None:
                owned(view, person)
            if sha256 is None:
                document = await DocumentStore(transaction).signed(request)
            else:
                document = await DocumentStore(transaction).version(request, sha256)
        if document is None:
            self._refuse_document(view)
        pdf = await self._documents.stream(document.integrator, document.sha256)
        return document, pdf

    def _refuse_document(self, view: RequestView | None) -> Never:
        """Say why there is no document to hand out.

        Raises:
            ApplianceError: see `signed`.
        """
        if view is None:
            raise ApplianceError(ErrorCode.SOLICITUD_NOT_FOUND)
        if view.state is RequestState.SIGNED:
            # It has a document, and none of the hash that was asked for.
            raise ApplianceError(ErrorCode.NOT_FOUND)
        refuse_unsigned(view, self._clock.now())


async def cancel_alone(
    transaction: Transaction,
    requests: Collection[RequestId],
    actor: str,
    reason: str,
) -> int:
    """Take several requests back that nobody waits for, as one step of a larger change.

    Args:
        transaction: the caller's.
        requests: some of them may be over: those stay as they are.
        actor: for the audit.
        reason: why, in words, or empty.

    Returns:
        How many were taken back.

    Raises:
        ApplianceError: `IN_PROGRESS` while any of them is being signed.
    """
    found = await RequestStore(transaction).standing(requests)
    if any(state is RequestState.IN_PROGRESS for state, _ in found.values()):
        raise ApplianceError(ErrorCode.IN_PROGRESS)
    pending = {
        request: integrator
        for request, (state, integrator) in found.items()
        if state is RequestState.PENDING
    }
    await RequestStore(transaction).cancel([*pending], reason)
    for request, integrator in pending.items():
        transaction.audit.add(
            AuditEvent(
                EventKind.REQUEST_CANCELLED,
                actor,
                integrator=integrator,
                request=request,
            )
        )
    return len(pending)


async def cancel_in(
    transaction: Transaction, request: RequestId, actor: str, reason: str = ""
) -> RequestView:
    """Take a request back, and those that wait for it, as one step of a larger change.

    Args:
        transaction: the caller's.
        request: `pendiente` or `en_espera`.
        actor: for the audit.
        reason: why, in words, or empty.

    Raises:
        ApplianceError: `SOLICITUD_NOT_FOUND`, `STATE`.
    """
    view = await RequestStore(transaction).get(request, lock=True)
    if view is None:
        raise ApplianceError(ErrorCode.SOLICITUD_NOT_FOUND)
    await RequestStore(transaction).move(
        request, view.state, RequestState.CANCELLED, reason
    )
    transaction.audit.add(
        AuditEvent(
            EventKind.REQUEST_CANCELLED,
            actor,
            integrator=view.integrator,
            request=request,
        )
    )
    await end_rest(transaction, request, RequestState.CANCELLED, actor)
    return await own_request(transaction, view.person, request)


async def reject_in(
    transaction: Transaction, signer: Signer, request: RequestId, reason: str
) -> RequestView:
    """Refuse to sign, as one step of a larger change.

    Args:
        transaction: the caller's.
        signer: whose request it is.
        request: which.
        reason: what they wrote, or empty.

    Raises:
        ApplianceError: `SOLICITUD_NOT_FOUND`, `STATE`.
    """
    found = await RequestStore(transaction).get(request, lock=True)
    view = owned(found, signer.person)
    check_move(view.state, RequestState.REJECTED)
    await RequestStore(transaction).move(
        request, view.state, RequestState.REJECTED, reason
    )
    transaction.audit.add(
        AuditEvent(
            EventKind.REQUEST_REJECTED,
            signer.actor,
            integrator=view.integrator,
            request=request,
        )
    )
    await end_rest(transaction, request, RequestState.REJECTED, signer.actor)
    return await own_request(transaction, signer.person, request)


async def own_request(
    transaction: Transaction, person: PersonId, request: RequestId
) -> RequestView:
    """A request of that person; anybody else's is as absent.

    Raises:
        ApplianceError: `SOLICITUD_NOT_FOUND`.
    """
    return owned(await RequestStore(transaction).get(request), person)


def owned(view: RequestView | None, person: PersonId) -> RequestView:
    """What was found of a request, if it is that person's.

    Raises:
        ApplianceError: `SOLICITUD_NOT_FOUND`.
    """
    if view is None or view.person != person:
        raise ApplianceError(ErrorCode.SOLICITUD_NOT_FOUND)
    return view
