"""The frame's last steps: where the mark goes, the signature, and its outcome.

The signature is made by the same `Signing.sign` as firmar's; the host is told of it
with one event that never changes.

Source: decisions "Iframe", "delivery"; design §3.
"""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Mapping
from dataclasses import replace
from datetime import datetime
from typing import Final, Never
from urllib.parse import urlencode

from appliance.appearance.content import Stamping, picture_of
from appliance.appearance.preview import draw_stamp
from appliance.documents.docmdp_policy import (
    NewField,
    check_permitted,
    nearest_permitted,
    new_field,
    obstacle,
    wanted_field,
)
from appliance.documents.download_links import DownloadLinks
from appliance.domain.appearance.details import StampDetails
from appliance.domain.appearance.presets import preset, put
from appliance.domain.appearance.stamp import lay_out
from appliance.domain.appearance.text import StampSigner
from appliance.domain.audit.record import AuditEvent
from appliance.domain.clock import Clock
from appliance.domain.embedding import (
    EmbedSessionDocument,
    EmbedSessionSigner,
    EmbedSessionState,
    EmbedSessionView,
    PlaceChoice,
    Placement,
    SignOrder,
)
from appliance.domain.errors import (
    ApplianceError,
    ErrorCode,
    FieldInvalidError,
    HsmUnavailableError,
    PresetFixedError,
)
from appliance.domain.ids import RequestId
from appliance.domain.integrators.integrators import EmbedSession, SessionFault
from appliance.domain.ports import DocumentStream, PdfInspector
from appliance.domain.requests.backend_batch import BatchStanding
from appliance.domain.requests.request import (
    SignCommand,
    SignedDocumentView,
    Signer,
    refuse_unsigned,
)
from appliance.domain.requests.terms import SignatureTerms
from appliance.domain.signing_command import GivenParameters, SignParameters
from appliance.domain.vocab import EventKind, RequestState
from appliance.embedding.session_views import EmbedSessionViews
from appliance.integrators.session_store import SessionStore
from appliance.keys.signing_password import normalize
from appliance.people.person_store import PersonStore
from appliance.record.unit_of_work import Database, Transaction
from appliance.requests.request_batch_store import RequestBatchStore
from appliance.requests.request_store import RequestStore
from appliance.signing.requests import Requests, reject_in
from appliance.signing.sign import Signing
from appliance.signing.signer_readiness import check_signer

FACTORS: Final = ("otp",)
"""What a signer in a frame has proven before the signing password."""
SLOW_S: Final = 10.0
"""What a slow TSA adds to a signature, where a session is to try one."""
_TRIED: Final = "test mode"
TRIED_REASON: Final = "Rechazo de prueba"
"""What a signer writes who rejects as a session is to try it."""
_BARRED: Final = frozenset({ErrorCode.SIGN_LOCKED, ErrorCode.CERTIFICATE_NOT_USABLE})
"""What a signer is told who cannot sign, whatever the password."""


class EmbedSessionSigning:
    """What the frame's page may do once its session has a request.

    Args:
        store: the record.
        clock: the time.
        views: reads sessions.
        signing: makes signatures.
        requests: hands documents out.
        links: makes download links.
        base_url: where those lead.
        stamping: what marks show.
        inspector: draws them.
    """

    def __init__(
        self,
        store: Database,
        clock: Clock,
        views: EmbedSessionViews,
        signing: Signing,
        requests: Requests,
        links: DownloadLinks,
        base_url: str,
        stamping: Stamping,
        inspector: PdfInspector,
    ) -> None:
        self._store = store
        self._stamping = stamping
        self._inspector = inspector
        self._clock = clock
        self._views = views
        self._signing = signing
        self._requests = requests
        self._links = links
        self._base_url = base_url

    async def placement(self, session: EmbedSession, choice: PlaceChoice) -> Placement:
        """Where the mark would lie, and what it looks like.

        Raises:
            ApplianceError: `PAGE_OUT_OF_RANGE`; `SESSION_IN_USE` before there is a
                request; as `check_permitted`, for a field that cannot be signed, or
                where no field can.
        """
        view = await self._views.view(session)
        placed, details = await self._placed(view, choice)
        if placed.layout is None:
            return placed
        async with self._store.read() as transaction:
            picture = await picture_of(transaction, details)
        # A place that is told in words and a box is better than no signature.
        with contextlib.suppress(ApplianceError):
            png = await draw_stamp(self._inspector, placed.layout, picture)
            return replace(placed, png=png)
        return placed

    async def _placed(
        self, view: EmbedSessionView, choice: PlaceChoice
    ) -> tuple[Placement, StampDetails]:
        """What the choice comes to, and what the mark shows besides.

        Raises:
            ApplianceError: as `placement`.
        """
        if view.document is None or view.signer is None or view.session.person is None:
            raise ApplianceError(ErrorCode.SESSION_IN_USE)
        async with self._store.read() as transaction:
            named = await _named(transaction, view, view.signer)
            details = await self._stamping.details(
                transaction,
                replace(view.document.look, visible=True),
                view.session.integrator.id,
                self._stamping.defaults(GivenParameters(), view.document.preset),
            )
        now = self._clock.now()
        params = _chosen(view.document, choice, named, now, details)
        layout = lay_out(params, named, now, view.document.inspection, details)
        terms = SignatureTerms.of(params, view.document.inspection)
        return Placement(params, layout, terms), details

    async def sign(self, session: EmbedSession, order: SignOrder) -> EmbedSessionView:
        """Sign; or give what signing gave.

        Raises:
            ApplianceError: those of `Signing.sign`; of a signer who cannot sign any
                more, as `check_signer`; `DOCUMENT_CHANGED` when another document was
                on the screen.
        """
        view = await self._views.view(session)
        session = view.session
        if view.state is EmbedSessionState.SIGNED:
            return view
        if view.state in {EmbedSessionState.CANCELLED, EmbedSessionState.REJECTED}:
            raise ApplianceError(ErrorCode.SESSION_IN_USE)
        if session.request is None or session.person is None or not view.document:
            raise ApplianceError(ErrorCode.SESSION_IN_USE)
        if session.batch is not None:
            raise ApplianceError(ErrorCode.SESSION_IN_USE)
        placed, _ = await self._placed(view, order.place)
        try:
            secret = normalize(order.password)
        except FieldInvalidError as exc:
            # No password is so short or long; nothing was tried, nothing counts.
            raise ApplianceError(ErrorCode.SIGN_PASSWORD_WRONG) from exc
        if session.fault is not None:
            await self.go_wrong(session)
        command = SignCommand(
            request=session.request,
            # The look is the request's, whose fields count where these are not given.
            given=GivenParameters.place_of(placed.params),
            password=secret,
            if_match=order.seen,
        )
        async with self.telling_why_barred(session):
            await self._signing.sign(command, signer_of(session))
        return await self._views.view(session)

    @contextlib.asynccontextmanager
    async def telling_why_barred(self, session: EmbedSession) -> AsyncIterator[None]:
        """Have a refusal that no password mends say since when, as after the code.

        Args:
            session: of the proven signer.

        Raises:
            ApplianceError: of a signer who cannot sign any more, as `check_signer`.
        """
        try:
            yield
        except ApplianceError as exc:
            if exc.code in _BARRED and session.person is not None:
                async with self._store.read() as transaction:
                    await check_signer(transaction, session.person, self._clock)
            raise

    async def go_wrong(self, session: EmbedSession) -> None:
        """Have happen what a session was opened to try.

        Raises:
            HsmUnavailableError: no HSM is to take it.
            ApplianceError: `SESSION_IN_USE`: it is rejected now, as from elsewhere.
        """
        if session.fault is SessionFault.BUSY:
            raise HsmUnavailableError(_TRIED)
        if session.fault is SessionFault.SLOW:
            await asyncio.sleep(SLOW_S)
        elif session.fault is SessionFault.REJECTION:
            await self.reject(session, TRIED_REASON)
            raise ApplianceError(ErrorCode.SESSION_IN_USE)

    async def view(
        self, session: EmbedSession, *, wait: bool = False
    ) -> EmbedSessionView:
        """Where the session stands.

        Args:
            session: of the caller.
            wait: while it is being signed, until that ends or `wait_s` is over.
        """
        view = await self._views.view(session)
        if not wait or view.state is not EmbedSessionState.SIGNING:
            return view
        if view.session.request is not None:
            with contextlib.suppress(ApplianceError):
                await self._signing.follow(view.session.request)
        return await self._views.view(session)

    async def completed(self, session: EmbedSession) -> dict[str, object]:
        """What the host is told of the signature, with a fresh download address.

        The address leads to the very bytes that are told of: a timestamp that is
        added later makes another version, with another hash.

        Raises:
            ApplianceError: `NOT_SIGNED_YET`; `STATE` where it never will be.

        Source: spec "Signature-completed payload".
        """
        view = await self._views.view(session)
        request = view.session.request
        if request is None:
            raise ApplianceError(ErrorCode.NOT_SIGNED_YET)
        if view.completed is None:
            await self._refuse_unsigned(request)
        return await self.handed_over(view.session, request, view.completed)

    async def handed_over(
        self, session: EmbedSession, request: RequestId, told: Mapping[str, object]
    ) -> dict[str, object]:
        """What is told of a signature, with a fresh address of its document.

        Args:
            session: that tells it.
            request: that is signed.
            told: without the address.
        """
        clave = await self._links.mint(request, f"person:{session.person}")
        sha256 = _object(told["document"])["sha256"]
        query = urlencode({"clave": clave, "sha256": sha256})
        url = f"{self._base_url}/solicitudes/{request}/documento?{query}"
        delivery = {**_object(told["delivery"]), "url": url}
        return {**told, "delivery": delivery}

    async def complete_batch(
        self, session: EmbedSession, standing: BatchStanding
    ) -> None:
        """Store that a session's batch is left at what is signed.

        Args:
            session: for that batch.
            standing: how the batch stands.
        """
        await self._views.complete_batch(session, standing)

    async def _refuse_unsigned(self, request: RequestId) -> Never:
        """Say why a session's request has no signed document.

        Raises:
            ApplianceError: see `completed`.
        """
        async with self._store.read() as transaction:
            view = await RequestStore(transaction).get(request)
        if view is None or view.state is RequestState.SIGNED:
            # Signed a moment ago: the session is told of it next.
            raise ApplianceError(ErrorCode.NOT_SIGNED_YET)
        refuse_unsigned(view, self._clock.now())

    async def signed(
        self, session: EmbedSession
    ) -> tuple[SignedDocumentView, DocumentStream]:
        """The signed document, as the host was told of it.

        Raises:
            ApplianceError: `NOT_SIGNED_YET`; `STATE` where it never will be;
                `STORE_UNAVAILABLE`.
        """
        if session.request is None:
            raise ApplianceError(ErrorCode.NOT_SIGNED_YET)
        told = _object((session.completed or {}).get("document"))
        sha256 = str(told["sha256"]) if told else None
        return await self._requests.signed(session.person, session.request, sha256)

    async def cancel(self, session: EmbedSession, *, by_signer: bool) -> None:
        """Leave a session without a signature; its request goes on waiting.

        Args:
            session: not signed and not being signed.
            by_signer: the signer leaves; else the host does.

        Raises:
            ApplianceError: `SESSION_IN_USE` for one that is done; `STATE` for one
                that is being signed.
        """
        async with self._store.write() as transaction:
            now = await self._over(transaction, session)
            left = {"session": now.public_id, "bySigner": by_signer}
            self._note(transaction, EventKind.SESSION_CANCELLED, now, now.request, left)
            await _refuse_of_batch(transaction, now)
            if now.batch is not None or now.request is None:
                return
            view = await RequestStore(transaction).get(now.request, lock=True)
            if view is not None and view.state is RequestState.IN_PROGRESS:
                raise ApplianceError(
                    ErrorCode.STATE, params={"estado": view.state.value}
                )
            if view is not None and view.state is RequestState.SIGNED:
                raise ApplianceError(ErrorCode.SESSION_IN_USE)

    async def reject(self, session: EmbedSession, reason: str) -> None:
        """Have the proven signer refuse to sign: session and request are over.

        Args:
            session: with a request.
            reason: what the signer wrote, or empty.

        Raises:
            ApplianceError: `SESSION_IN_USE` for one that is done or has no request;
                `STATE` for one that is signed or being signed.
        """
        async with self._store.write() as transaction:
            now = await self._over(transaction, session)
            if now.request is None or now.person is None or now.otp_at is None:
                raise ApplianceError(ErrorCode.SESSION_IN_USE)
            # The request's own row says what was done with it; nobody left a session.
            ended = {"session": now.public_id}
            self._note(transaction, EventKind.SESSION_ENDED, now, None, ended)
            await reject_in(transaction, signer_of(now), now.request, reason)

    async def _over(
        self, transaction: Transaction, session: EmbedSession
    ) -> EmbedSession:
        """End a session, and give it as it stands.

        Raises:
            ApplianceError: `SESSION_IN_USE`.
        """
        now = await SessionStore(transaction).get(session.id, lock=True)
        if now is None or not await SessionStore(transaction).cancel(
            session.id, self._clock.now()
        ):
            raise ApplianceError(ErrorCode.SESSION_IN_USE)
        return now

    @staticmethod
    def _note(
        transaction: Transaction,
        kind: EventKind,
        session: EmbedSession,
        request: RequestId | None,
        detail: Mapping[str, object],
    ) -> None:
        """Have the audit say how a session ended."""
        transaction.audit.add(
            AuditEvent(
                kind,
                f"person:{session.person}" if session.otp_at else "anonymous",
                integrator=session.integrator.id,
                request=request,
                detail=dict(detail),
            )
        )


async def _refuse_of_batch(transaction: Transaction, session: EmbedSession) -> None:
    """Demand that nothing of a session's batch is being signed, and some of it waits.

    Raises:
        ApplianceError: `STATE`; `SESSION_IN_USE` for one of which all is done.
    """
    if session.batch is None or session.person is None:
        return
    standing = await RequestBatchStore(transaction).standing(
        session.batch, session.person
    )
    if standing.signing:
        word = RequestState.IN_PROGRESS.value
        raise ApplianceError(ErrorCode.STATE, params={"estado": word})
    if standing.signed and not standing.pending:
        raise ApplianceError(ErrorCode.SESSION_IN_USE)


def signer_of(session: EmbedSession) -> Signer:
    """The proven signer of a session, as signing knows them.

    Args:
        session: after the code was right.

    Raises:
        ApplianceError: `SESSION_IN_USE`: nobody is.
    """
    if session.person is None:
        raise ApplianceError(ErrorCode.SESSION_IN_USE)
    return Signer(
        person=session.person,
        actor=f"person:{session.person}",
        factors=FACTORS,
        authenticated_at=session.otp_at or session.issued,
    )


async def _named(
    transaction: Transaction, view: EmbedSessionView, signer: EmbedSessionSigner
) -> StampSigner:
    """Whom the mark names, in the signer's own language."""
    person = view.session.person
    found = None if person is None else await PersonStore(transaction).get(person)
    return StampSigner(signer.name, signer.cuil, found.locale if found else "es")


def _chosen(
    document: EmbedSessionDocument,
    choice: PlaceChoice,
    named: StampSigner,
    now: datetime,
    details: StampDetails,
) -> SignParameters:
    """What a choice comes to: its place, and the look of the preset if there is one.

    Raises:
        FieldInvalidError: there is no preset.
        PresetFixedError: the place is not the signer's to choose.
        ApplianceError: as `check_permitted`.
    """
    if choice.preset:
        return _as_preset(document)
    if document.preset is not None and document.preset.fixed:
        raise PresetFixedError("corner")
    if choice.field is not None:
        return _in_field(document, choice.field)
    inspection = document.inspection
    of = choice.page, named, now, inspection, details, document.look
    if choice.x is not None and choice.y is not None:
        wanted = put(choice.x, choice.y, *of)
    else:
        wanted = preset(choice.corner, *of)
    params = nearest_permitted(wanted, inspection)
    if params.field is None and new_field(inspection) is NewField.NONE:
        raise ApplianceError(ErrorCode.PDF_LOCKED)
    return params


def _as_preset(document: EmbedSessionDocument) -> SignParameters:
    """Sign as whoever asked for it wants it; what is not fixed may give way.

    Raises:
        FieldInvalidError: there is no preset.
        ApplianceError: as `check_permitted`.
    """
    if document.preset is None:
        raise FieldInvalidError("preset")
    params = document.look
    if not document.preset.fixed and params.field is None:
        params = nearest_permitted(params, document.inspection)
    check_permitted(document.inspection, params, followed=document.followed)
    return params


def _in_field(document: EmbedSessionDocument, name: str) -> SignParameters:
    """Sign in one of the document's own fields.

    Raises:
        ApplianceError: it cannot be signed, as `check_permitted`.
    """
    field = wanted_field(document.inspection.signing, name)
    look = replace(document.look, page=1, x=None, y=None, visible=True)
    params = replace(look, field=field.name)
    found = obstacle(field, params.restriction, document.followed)
    if found is not None:
        raise found
    return params


def _object(value: object) -> dict[str, object]:
    return dict(value) if isinstance(value, dict) else {}
