"""A session for a batch: its documents read one by one, and signed by one password.

The signature is made by the same `Signing.begin` as firmar/lote's; the record says how
each document stands, so a page that comes back finds what it left.

Source: decisions "several at once", "Iframe"; docs/integration.md "A session for a
batch".
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from appliance.documents.document_store import DocumentStore
from appliance.domain.embedding import (
    BatchBegun,
    BatchPage,
    EmbedSessionState,
    EmbedSessionView,
)
from appliance.domain.errors import ApplianceError, ErrorCode, FieldInvalidError
from appliance.domain.ids import PersonId, RequestBatchId, RequestId
from appliance.domain.integrators.integrators import (
    EmbedSession,
    SessionFault,
    SessionState,
)
from appliance.domain.ports import DocumentStream
from appliance.domain.requests.request import RequestView, SignedDocumentView
from appliance.domain.requests.signing_batch import SignBatch
from appliance.domain.signing_command import GivenParameters
from appliance.domain.vocab import RequestState
from appliance.embedding.session_steps import SessionSteps
from appliance.embedding.session_views import (
    EmbedSessionViews,
    event_id_of,
    signature_told,
)
from appliance.embedding.signing import (
    TRIED_REASON,
    EmbedSessionSigning,
    signer_of,
)
from appliance.integrators.session_store import SessionStore
from appliance.keys.signing_password import normalize
from appliance.record.unit_of_work import Database, Transaction
from appliance.requests.request_batch_store import RequestBatchStore
from appliance.requests.request_store import RequestStore
from appliance.signing.requests import Requests, reject_in
from appliance.signing.sign import Signing

PAGE: Final = 200
"""Documents that are listed at once."""


@dataclass(frozen=True, slots=True)
class _Own:
    """What a session for a batch signs, and for whom."""

    batch: RequestBatchId
    person: PersonId


class EmbedSessionBatches:
    """What the frame's page may do in a session for a batch.

    Args:
        store: the record.
        alone: what a session for one request does.
        signing: makes signatures.
        requests: hands documents out.
        progress: moves sessions on.
        views: reads what signers are told of signatures.
    """

    def __init__(
        self,
        store: Database,
        alone: EmbedSessionSigning,
        signing: Signing,
        requests: Requests,
        progress: SessionSteps,
        views: EmbedSessionViews,
    ) -> None:
        self._store = store
        self._alone = alone
        self._signing = signing
        self._requests = requests
        self._progress = progress
        self._views = views

    async def documents(self, session: EmbedSession, after: RequestId) -> BatchPage:
        """Up to `PAGE` documents of the batch, in order.

        Args:
            session: of the proven signer.
            after: the request of the last one that is known; 0: from the first.

        Raises:
            ApplianceError: `SESSION_IN_USE`: it is for no batch, or nobody is proven.
        """
        own = _own(session)
        async with self._store.read() as transaction:
            batches = RequestBatchStore(transaction)
            found = await batches.documents(own.batch, own.person, after, PAGE)
            names = {
                each.request: each.name
                for each in found
                if each.state is RequestState.SIGNED
            }
            signed = await self._views.signed(transaction, names)
            return BatchPage(found, signed, await batches.message(own.batch))

    async def open(self, session: EmbedSession, request: RequestId) -> EmbedSessionView:
        """Have one document of the batch be the one that is read.

        Args:
            session: of the proven signer.
            request: that waits for the signature.

        Raises:
            ApplianceError: `SOLICITUD_NOT_FOUND` for one that is not of it, or waits
                no more; `SESSION_IN_USE`, `SESSION_TOKEN_EXPIRED`.
        """
        own = _own(session)
        async with self._store.write() as transaction:
            view = await _member(transaction, own, request)
            if view.state is not RequestState.PENDING:
                raise ApplianceError(ErrorCode.SOLICITUD_NOT_FOUND)
            await self._progress.set_request_in(transaction, session, request)
        return await self._alone.view(session)

    async def sign(self, session: EmbedSession, password: str) -> BatchBegun:
        """Begin to sign all that waits, once each of it was read.

        Args:
            session: of the proven signer.
            password: the signing password, as typed.

        Returns:
            How it stands now: the page asks how it goes on.

        Raises:
            ApplianceError: `DOCUMENT_CHANGED` where some of it was not read;
                `SESSION_IN_USE` for a session that is over, or where nothing waits;
                those of `Signing.begin`.
        """
        view = await self._alone.view(session)
        own = _own(view.session)
        if view.state in {EmbedSessionState.SIGNED, EmbedSessionState.SIGNING}:
            return BatchBegun(view, {})
        if view.state is not EmbedSessionState.AUTHORISED or view.batch is None:
            raise ApplianceError(ErrorCode.SESSION_IN_USE)
        if view.batch.unread:
            raise ApplianceError(ErrorCode.DOCUMENT_CHANGED)
        try:
            secret = normalize(password)
        except FieldInvalidError as exc:
            # No password is so short or long; nothing was tried, nothing counts.
            raise ApplianceError(ErrorCode.SIGN_PASSWORD_WRONG) from exc
        waiting = await self._waiting(own)
        await self._go_wrong(view.session, waiting)
        command = SignBatch(tuple(waiting), GivenParameters(), secret)
        signer = signer_of(view.session)
        async with (
            self._alone.telling_why_barred(view.session),
            self._signing.begin(waiting, command, signer) as begun,
        ):
            refused = begun.refused
        return BatchBegun(await self._alone.view(session), refused)

    async def _waiting(self, own: _Own) -> list[RequestId]:
        """What of the batch can still be signed, in order."""
        async with self._store.read() as transaction:
            found = await RequestBatchStore(transaction).requests_of(
                own.batch, own.person
            )
        return [each for each in found if found[each] is RequestState.PENDING]

    async def _go_wrong(
        self, session: EmbedSession, waiting: Sequence[RequestId]
    ) -> None:
        """Have happen what a session was opened to try.

        Raises:
            HsmUnavailableError: no HSM is to take it.
            ApplianceError: `SESSION_IN_USE`: all of it is rejected now, as from
                elsewhere.
        """
        if session.fault is not SessionFault.REJECTION:
            await self._alone.go_wrong(session)
            return
        async with self._store.write() as transaction:
            for request in waiting:
                await reject_in(transaction, signer_of(session), request, TRIED_REASON)
        raise ApplianceError(ErrorCode.SESSION_IN_USE)

    async def reject(self, session: EmbedSession, reason: str) -> EmbedSessionView:
        """Have the signer refuse the document that is read; the others go on waiting.

        Args:
            session: of the proven signer.
            reason: what the signer wrote, or empty.

        Raises:
            ApplianceError: `SESSION_IN_USE` for a session that is over, or where none
                is read; `STATE` for one that is signed or being signed.
        """
        async with self._store.write() as transaction:
            now = await SessionStore(transaction).get(session.id, lock=True)
            if now is None or now.request is None:
                raise ApplianceError(ErrorCode.SESSION_IN_USE)
            _own(now)
            if now.state is not SessionState.OPEN:
                raise ApplianceError(ErrorCode.SESSION_IN_USE)
            await reject_in(transaction, signer_of(now), now.request, reason)
        return await self._alone.view(session)

    async def finish(self, session: EmbedSession) -> EmbedSessionView:
        """Leave it at what is signed; the rest goes on waiting.

        Args:
            session: of the proven signer, some of whose batch is signed.

        Raises:
            ApplianceError: `SESSION_IN_USE` where nothing is signed, or some of it is
                being signed.
        """
        view = await self._alone.view(session)
        standing = view.batch
        if standing is None or standing.signing or not standing.signed:
            raise ApplianceError(ErrorCode.SESSION_IN_USE)
        if view.state is EmbedSessionState.AUTHORISED:
            await self._alone.complete_batch(view.session, standing)
        return await self._alone.view(session)

    async def completed(
        self, session: EmbedSession, request: RequestId
    ) -> dict[str, object]:
        """What the host is told of one signature, with a fresh download address.

        Args:
            session: of the proven signer.
            request: one of the batch.

        Raises:
            ApplianceError: `SOLICITUD_NOT_FOUND`, `NOT_SIGNED_YET`.
        """
        view, signed = await self._signed(session, request)
        told = signature_told(session, signed, event_id_of(view))
        return await self._alone.handed_over(session, request, told)

    async def signed(
        self, session: EmbedSession, request: RequestId
    ) -> tuple[SignedDocumentView, DocumentStream]:
        """One signed document, as the host was told of it.

        Args:
            session: of the proven signer.
            request: one of the batch.

        Raises:
            ApplianceError: `SOLICITUD_NOT_FOUND`, `NOT_SIGNED_YET`,
                `STORE_UNAVAILABLE`.
        """
        _, signed = await self._signed(session, request)
        return await self._requests.signed(session.person, request, signed.sha256)

    async def _signed(
        self, session: EmbedSession, request: RequestId
    ) -> tuple[RequestView, SignedDocumentView]:
        """A member and its signed document, as it was made.

        Raises:
            ApplianceError: `SOLICITUD_NOT_FOUND`, `NOT_SIGNED_YET`.
        """
        own = _own(session)
        async with self._store.read() as transaction:
            view = await _member(transaction, own, request)
            signed = await DocumentStore(transaction).first_signed(request)
        if view.state is not RequestState.SIGNED or signed is None:
            raise ApplianceError(ErrorCode.NOT_SIGNED_YET)
        return view, signed


def _own(session: EmbedSession) -> _Own:
    """What a session signs, and for whom.

    Raises:
        ApplianceError: `SESSION_IN_USE`: it is for no batch, or nobody is proven.
    """
    if session.batch is None or session.person is None or session.otp_at is None:
        raise ApplianceError(ErrorCode.SESSION_IN_USE)
    return _Own(session.batch, session.person)


async def _member(
    transaction: Transaction, own: _Own, request: RequestId
) -> RequestView:
    """One request of a batch; any other is as absent.

    Raises:
        ApplianceError: `SOLICITUD_NOT_FOUND`.
    """
    view = await RequestStore(transaction).get(request)
    if view is None or (view.batch, view.person) != (own.batch, own.person):
        raise ApplianceError(ErrorCode.SOLICITUD_NOT_FOUND)
    return view
