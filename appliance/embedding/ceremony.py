"""The use cases of the signing frame, from the first message to the request.

Every step is checked against the record, whatever the page believes: a document is
examined before it counts, and a request exists only for a proven signer. The
signature itself is in `frame_signing`.

Source: decisions "Iframe"; design §3.
"""

from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Final, Never, TypeAlias

from appliance.documents.document_store import DocumentStore
from appliance.documents.page_pictures import PagePictures, PageWanted
from appliance.documents.session_quotas import SessionQuotas
from appliance.domain.audit.record import AuditEvent
from appliance.domain.clock import Clock
from appliance.domain.embedding import (
    Claim,
    EmbedSessionDocument,
    EmbedSessionView,
    InitOrder,
    OpenedFrame,
)
from appliance.domain.errors import (
    DOCUMENT_IS_KNOWN,
    ApplianceError,
    ErrorCode,
    PageOutOfRangeError,
    error_of_reason,
)
from appliance.domain.ids import RequestId
from appliance.domain.integrators.integrators import EmbedSession, PageKind
from appliance.domain.ports import (
    BlobStore,
    DocumentBytes,
    DocumentStream,
    PdfInspector,
)
from appliance.domain.requests.request import RequestView
from appliance.domain.vocab import EventKind, RequestState
from appliance.embedding.identification import EmbedSessionIdentity
from appliance.embedding.request import EmbedSessionRequests
from appliance.embedding.session import Sessions
from appliance.embedding.session_steps import SessionSteps
from appliance.embedding.session_views import EmbedSessionViews
from appliance.integrators.integrator_store import IntegratorStore
from appliance.integrators.session_store import SessionStore
from appliance.record.unit_of_work import Database, Transaction
from appliance.requests.intake import Intake, check_file_name, stored_as
from appliance.requests.request_store import RequestStore
from appliance.settings import DocumentSettings
from appliance.signing.requests import Requests
from appliance.signing.signer_readiness import check_signer

PAGE_DPI: Final = 96
ReadDocument: TypeAlias = Callable[[], Awaitable[DocumentBytes]]
"""Reads a document that is on its way."""


class Ceremony:
    """What the frame's page may do until there is a request."""

    def __init__(
        self,
        *,
        store: Database,
        documents: BlobStore,
        inspector: PdfInspector,
        clock: Clock,
        sessions: Sessions,
        progress: SessionSteps,
        identity: EmbedSessionIdentity,
        frame_requests: EmbedSessionRequests,
        intake: Intake,
        requests: Requests,
        views: EmbedSessionViews,
        settings: DocumentSettings,
    ) -> None:
        self._store = store
        self._documents = documents
        self._quotas = SessionQuotas(store, clock, settings)
        self._pictures = PagePictures(documents, inspector, settings.pictures_bytes)
        self._clock = clock
        self._sessions = sessions
        self._progress = progress
        self._identity = identity
        self._frame_requests = frame_requests
        self._intake = intake
        self._requests = requests
        self._views = views
        self._settings = settings

    # -- opening ------------------------------------------------------------------

    async def init(self, order: InitOrder) -> OpenedFrame:
        """Take an initial message: a bearer for its token.

        Returns:
            The bearer that holds from now on; earlier ones of the session are over.

        Raises:
            ApplianceError: `SESSION_TOKEN_INVALID`, `SESSION_TOKEN_EXPIRED`;
                `INIT_INVALID` for a token of another integrator than the page's, or
                a document where the session was opened for a request or a batch;
                `SESSION_IN_USE` for new content after the signer was proven.
        """
        await self._check_page(order)
        # One transaction: an init that is refused leaves the page that has the
        # session its bearer.
        async with self._store.write() as transaction:
            opened = await self._sessions.exchange_in(transaction, order.token)
            session = await self._progress.init_in(
                transaction, opened.session, order.nonce, order.idem_key, order.sha256
            )
            if order.brings_document and session.is_for_something:
                _refuse_init("document", DOCUMENT_IS_KNOWN)
            if order.brings_document and not session.host_document:
                await SessionStore(transaction).by_host(session.id, self._clock.now())
                session = replace(session, host_document=True)
        return OpenedFrame(opened.bearer, await self._views.view(session))

    async def other_session(self, order: InitOrder) -> str:
        """Public id of a token's session if it is not the page's; else empty.

        What is wrong with a token, `init` says.
        """
        page = await self._sessions.page(None, order.page)
        session = await self._sessions.page(order.token, None)
        is_other = (
            session.kind is PageKind.LIVE
            and session.integrator_code == page.integrator_code
            and session.session_public_id != page.session_public_id
        )
        return session.session_public_id if is_other else ""

    async def _check_page(self, order: InitOrder) -> None:
        """Keep a token from being used past its own integrator's list of origins.

        Raises:
            ApplianceError: `INIT_INVALID`.
        """
        page = await self._sessions.page(None, order.page)
        session = await self._sessions.page(order.token, None)
        known = session.session_public_id != ""
        if known and session.integrator_code != page.integrator_code:
            _refuse_init("sessionToken")

    async def renew(self, bearer: str, token: str) -> OpenedFrame:
        """Go on under a new token; what was done is carried over.

        The same bearer and token again give the same session: whose answer was
        lost asks again.

        Args:
            bearer: of the session so far, whose time may be over.
            token: a fresh one of the same integrator.

        Raises:
            ApplianceError: `SESSION_TOKEN_INVALID`, `SESSION_TOKEN_EXPIRED`,
                `INIT_INVALID` for another integrator's, `SESSION_IN_USE` for one
                that was used, or where another token has taken over already.
        """
        old = await self._sessions.by_bearer(bearer, late=True)
        page = await self._sessions.page(token, None)
        if page.session_public_id and page.integrator_code != old.integrator.code:
            _refuse_init("sessionToken")
        async with self._store.write() as transaction:
            opened = await self._sessions.exchange_in(transaction, token)
            if opened.session.id != old.id:
                await self._carry_over(transaction, old.id, opened.session)
        return OpenedFrame(opened.bearer, await self._views.view(opened.session))

    async def _carry_over(
        self, transaction: Transaction, old: str, new: EmbedSession
    ) -> None:
        """Have a session go on where another one stands; once.

        Raises:
            ApplianceError: `SESSION_IN_USE`.
        """
        # As it stands now: a step may have ended since the caller was admitted.
        before = await SessionStore(transaction).get(old, lock=True)
        if before is None:
            raise ApplianceError(ErrorCode.SESSION_TOKEN_EXPIRED)
        if before.successor == new.id:
            return
        # A token for something else must not go on with this one's document.
        if new.wanted not in {None, before.wanted} or new.batch not in {
            None,
            before.batch,
        }:
            raise ApplianceError(ErrorCode.SESSION_IN_USE)
        now = self._clock.now()
        if not await SessionStore(transaction).carry_over(before, new.id, now):
            raise ApplianceError(ErrorCode.SESSION_IN_USE)
        if before.request is not None:
            await RequestStore(transaction).prolong(before.request, new.until)
        transaction.audit.add(
            AuditEvent(
                EventKind.SESSION_RENEWED,
                f"integrator:{new.integrator.id}",
                integrator=new.integrator.id,
                detail={"before": before.public_id, "after": new.public_id},
            )
        )

    async def warn_legacy(self, public_id: str) -> None:
        """Record that a page sent an API key to the frame (its value never came).

        Args:
            public_id: of the session whose page was told so.
        """
        page = await self._sessions.page(None, public_id)
        if not page.integrator_code:
            return
        async with self._store.write() as transaction:
            integrator = await IntegratorStore(transaction).get(page.integrator_code)
            transaction.audit.add(
                AuditEvent(
                    EventKind.LEGACY_CREDENTIALS,
                    "anonymous",
                    integrator=None if integrator is None else integrator.id,
                    detail={"session": public_id},
                )
            )

    # -- document and signer --------------------------------------------------------

    async def take_document(
        self,
        session: EmbedSession,
        name: str,
        pdf: DocumentBytes | ReadDocument,
        *,
        by_host: bool = False,
    ) -> EmbedSessionView:
        """Examine a document and make it the session's.

        Args:
            session: that brings it.
            name: of its file.
            pdf: its bytes, or what reads them: it is called once the document is
                counted.
            by_host: the host sent it; else the signer brings it.

        Raises:
            DocumentRefusedError: it cannot be signed.
            ApplianceError: `FILENAME`, `DOCUMENT_EMPTY`, `DOCUMENT_TOO_LARGE`,
                `IDEMKEY_CONFLICT`, `SESSION_IN_USE` once there is a request,
                `SESSION_DOCUMENTS`, `DOCUMENT_QUOTA`, `OVERLOADED`,
                `SANDBOX_UNAVAILABLE`, `STORAGE_FULL`, `SESSION_TOKEN_EXPIRED`.
        """
        if session.request is not None or session.is_for_something:
            raise ApplianceError(ErrorCode.SESSION_IN_USE)
        most = self._settings.per_session
        await self._progress.count_document(session, most, by_host=by_host)
        name = check_file_name(name)
        if callable(pdf):
            pdf = await pdf()
        async with self._quotas.bringing(session, pdf) as bringing:
            examined = await self._intake.examined(session.integrator.id, pdf)
            kept = await stored_as(session.integrator.id, examined)
            await self._quotas.count_copy(session, kept)
            bringing.is_kept = True
            await self._intake.put(session.integrator.id, pdf, examined)
        await self._frame_requests.check_key(session, kept.sha256)
        async with self._store.write() as transaction:
            document = await DocumentStore(transaction).add(kept, self._clock.now())
        session = await self._progress.set_document(session, document.came, name)
        if session.otp_at is not None:
            await self._frame_requests.give(session)
        return await self._views.view(session)

    async def note_host_document(self, session: EmbedSession) -> None:
        """Note that the host has sent a document, one that never came here included."""
        async with self._store.write() as transaction:
            await SessionStore(transaction).by_host(session.id, self._clock.now())

    async def document(
        self, session: EmbedSession
    ) -> tuple[EmbedSessionDocument, DocumentStream]:
        """The document to be signed, and its bytes.

        That the page has fetched it does not mean that anybody read it: see `saw`.
        Whatever part of it the page takes, it counts as fetched by its hash.

        Raises:
            ApplianceError: `SOLICITUD_NOT_FOUND`, `STORE_UNAVAILABLE`.
        """
        view = await self._views.view(session)
        if view.document is None:
            raise ApplianceError(ErrorCode.SOLICITUD_NOT_FOUND)
        integrator = session.integrator.id
        pdf = await self._documents.stream(integrator, view.document.sha256)
        await self._note_shown(view)
        return view.document, pdf

    async def _note_shown(self, view: EmbedSessionView) -> None:
        """Record what the signer fetched: signing elsewhere goes by it, too."""
        if view.request is not None:
            await self._requests.note_shown([view.request], drawn=True)

    async def saw(self, session: EmbedSession, sha256: str) -> None:
        """The signer was shown the document.

        Args:
            session: with a request.
            sha256: of what was on the screen, hex.

        Raises:
            RequestFailedError: the request failed for good, by a code that else passes.
            ApplianceError: `SESSION_IN_USE` before there is a request;
                `DOCUMENT_CHANGED` when it was another document; as `error_of_reason`,
                where the request has failed.
        """
        if session.request is None or session.person is None:
            raise ApplianceError(ErrorCode.SESSION_IN_USE)
        view = await self._requests.get(session.person, session.request)
        ended = error_of_reason(view.state, view.reason)
        if view.state is RequestState.FAILED and ended is not None:
            raise ended
        if view.sha256 != sha256:
            raise ApplianceError(ErrorCode.DOCUMENT_CHANGED)
        await self._requests.note_seen(view, keep=session.batch is not None)

    async def page_picture(self, session: EmbedSession, page: int) -> bytes:
        """One page of the document as a PNG, for browsers that cannot draw it.

        Raises:
            PageOutOfRangeError: no such page.
            ApplianceError: `SOLICITUD_NOT_FOUND`, `OVERLOADED`,
                `SANDBOX_UNAVAILABLE`, `STORE_UNAVAILABLE`.
            DocumentRefusedError: it cannot be drawn.
        """
        view = await self._views.view(session)
        if view.document is None:
            raise ApplianceError(ErrorCode.SOLICITUD_NOT_FOUND)
        pages = len(view.document.inspection.pages)
        if not 1 <= page <= pages:
            raise PageOutOfRangeError(page, pages)
        wanted = PageWanted(session.integrator.id, view.document.sha256, page, PAGE_DPI)
        png = await self._pictures.get(wanted)
        await self._note_shown(view)
        return png

    async def identify(self, session: EmbedSession, claim: Claim, address: str) -> bool:
        """Match who the signer says to be; False when the CUIL must be asked for.

        Raises:
            ApplianceError: those of `EmbedSessionIdentity.match`.
        """
        if session.otp_at is not None:
            return True
        return await self._identity.match(session, claim, address)

    async def prove(
        self, session: EmbedSession, code: str, address: str
    ) -> EmbedSessionView:
        """Take the signer's code; with the document there, make the request.

        Raises:
            ApplianceError: those of `EmbedSessionIdentity.prove` and, once the code
                was right, of `check_signer`; `IDEMKEY_CONFLICT`.
        """
        if session.otp_at is None:
            session = await self._proven(session, code, address)
        if session.person is not None:
            async with self._store.read() as transaction:
                await check_signer(transaction, session.person, self._clock)
        # Of the code and a document that come at once, whichever is recorded later
        # finds the other: both go by the session as their own step left it.
        if session.wanted is not None:
            await self._frame_requests.give_wanted(session, session.wanted)
        elif session.document is not None:
            await self._frame_requests.give(session)
        elif session.batch is None:
            await self._frame_requests.take_up(session)
        return await self._views.view(session)

    async def _proven(
        self, session: EmbedSession, code: str, address: str
    ) -> EmbedSession:
        """Have the signer proven, by this call or by the same one a moment ago.

        Raises:
            ApplianceError: those of `EmbedSessionIdentity.prove`.
        """
        try:
            return await self._identity.prove(session, code, address)
        except ApplianceError as exc:
            if exc.code is not ErrorCode.OTP_INVALID:
                raise
            now = (await self._views.view(session)).session
            if now.otp_at is None or now.person != session.person:
                raise
            return now

    async def waiting(self, session: EmbedSession) -> list[RequestView]:
        """The proven signer's pending requests of this integrator, newest first.

        Raises:
            ApplianceError: `IDENTITY_MISMATCH`.
        """
        found = await self._frame_requests.listed(session)
        await self._requests.note_shown(found, drawn=False)
        return found

    async def choose(
        self, session: EmbedSession, request: RequestId
    ) -> EmbedSessionView:
        """Take one of those requests.

        Raises:
            ApplianceError: `SOLICITUD_NOT_FOUND`, `SESSION_IN_USE`.
        """
        await self._frame_requests.choose(session, request)
        return await self._views.view(session)


def _refuse_init(field: str, sentence: str | None = None) -> Never:
    """Refuse an initial message with a field that cannot be.

    Raises:
        ApplianceError: `INIT_INVALID`.
    """
    raise ApplianceError(
        ErrorCode.INIT_INVALID,
        params={"field": field},
        extras={"field": field},
        sentence=sentence,
    )
