"""What a session of the frame is told of itself, read from the record."""

import math
from collections.abc import Mapping
from typing import Final
from uuid import UUID, uuid5

from cryptography import x509
from cryptography.x509.oid import NameOID

from appliance.documents.document_store import DocumentStore
from appliance.domain.audit.record import AuditEvent
from appliance.domain.clock import Clock
from appliance.domain.documents.inspected import signed_name
from appliance.domain.embedding import (
    EmbedSessionDocument,
    EmbedSessionSigned,
    EmbedSessionSigner,
    EmbedSessionState,
    EmbedSessionView,
    LegalWord,
)
from appliance.domain.errors import ApplianceError, error_of_reason
from appliance.domain.ids import RequestId, new_id
from appliance.domain.integrators.integrators import EmbedSession, SessionState
from appliance.domain.requests.backend_batch import BatchStanding
from appliance.domain.requests.intake import FRAME_ORIGIN
from appliance.domain.requests.request import RequestView, SignedDocumentView
from appliance.domain.vocab import EventKind, RequestState, VouchedBy
from appliance.embedding.session_steps import audit
from appliance.integrators.session_store import SessionStore
from appliance.keys.credential_store import CredentialStore
from appliance.people.person_store import PersonStore
from appliance.pki.validation.credential_statement import as_certified
from appliance.record.unit_of_work import Database, Transaction
from appliance.requests.process_store import ProcessStore
from appliance.requests.request_batch_store import RequestBatchStore
from appliance.requests.request_store import RequestStore
from appliance.signing.activations.activation_store import ActivationStore

PDF: Final = "application/pdf"
_STATES: Final = {
    RequestState.WAITING: EmbedSessionState.AUTHORISED,
    RequestState.PENDING: EmbedSessionState.AUTHORISED,
    RequestState.IN_PROGRESS: EmbedSessionState.SIGNING,
    RequestState.SIGNED: EmbedSessionState.SIGNED,
    RequestState.FAILED: EmbedSessionState.FAILED,
    RequestState.REJECTED: EmbedSessionState.REJECTED,
    RequestState.CANCELLED: EmbedSessionState.CANCELLED,
    RequestState.EXPIRED: EmbedSessionState.CANCELLED,
}


class EmbedSessionViews:
    """Reads sessions as their pages see them.

    Args:
        store: the record.
        clock: the time.
        verify_url: where the page of a signature is, without its code.
        trial: whether nothing that is signed here has legal effect.
    """

    def __init__(
        self, store: Database, clock: Clock, verify_url: str, *, trial: bool
    ) -> None:
        self._store = store
        self._clock = clock
        self._verify_url = verify_url
        self._trial = trial

    async def view(self, session: EmbedSession) -> EmbedSessionView:
        """All that a page is told of its session, as it stands now.

        Args:
            session: of the caller; read again.
        """
        async with self._store.read() as transaction:
            now = await SessionStore(transaction).get(session.id) or session
            request = (
                None
                if now.request is None
                else await RequestStore(transaction).get(now.request)
            )
            document = await _document(transaction, now, request)
            signer = await _signer(transaction, now, trial=self._trial)
            standing = await _standing(transaction, now)
            signed = (
                None
                if request is None or now.batch is not None
                else await DocumentStore(transaction).signed(request.id)
            )
            told = None
            if signed is not None:
                names = {signed.request: signed.file_name}
                told = (await self.signed(transaction, names))[signed.request]
        state = _state(now, request)
        if standing is not None:
            state = _state_of_batch(now, standing)
            if state is EmbedSessionState.SIGNED and now.completed is None:
                now = await self.complete_batch(now, standing)
        completed = now.completed
        if (
            state is EmbedSessionState.SIGNED
            and completed is None
            and signed is not None
        ):
            completed = await self._complete(now, signed)
        return EmbedSessionView(
            session=now,
            state=state,
            batch=standing,
            seconds_left=max(
                math.floor((now.until - self._clock.now()).total_seconds()), 0
            ),
            document=document,
            signer=signer,
            reason=None if now.batch else _reason(request),
            completed=completed,
            signed=told,
            withdrawn=(
                state is EmbedSessionState.CANCELLED
                and now.state is not SessionState.CANCELLED
            ),
            request=request,
        )

    async def signed(
        self, transaction: Transaction, names: Mapping[RequestId, str]
    ) -> dict[RequestId, EmbedSessionSigned]:
        """Read what the signer is told of each signature.

        Args:
            transaction: to read in.
            names: file name of each document, by its signed request.
        """
        coded = await ActivationStore(transaction).coded(names)
        found = {}
        for request, name in names.items():
            code, at = coded.get(request, (None, None))
            found[request] = EmbedSessionSigned(
                file_name=signed_name(name),
                at=at,
                verify_url=f"{self._verify_url}/{code}" if code else None,
            )
        return found

    async def _complete(
        self, session: EmbedSession, signed: SignedDocumentView
    ) -> dict[str, object]:
        """Store what is told of a signature: the first to ask decides for all."""
        async with self._store.write() as transaction:
            # Keeps two sessions of one request from telling two events.
            request = await RequestStore(transaction).get(signed.request, lock=True)
            told = await SessionStore(transaction).completed_of(signed.request)
            event_id = str(told["eventId"]) if told else event_id_of(request)
            payload = signature_told(session, signed, event_id)
            if await SessionStore(transaction).complete(session.id, payload):
                transaction.audit.add(_told(session, signed, payload))
                return payload
            stored = await SessionStore(transaction).get(session.id)
        return payload if stored is None else stored.completed or payload

    async def complete_batch(
        self, session: EmbedSession, standing: BatchStanding
    ) -> EmbedSession:
        """Store that a session's batch came to its end, once.

        Args:
            session: for that batch.
            standing: how the batch stands.

        Returns:
            The session after it.
        """
        async with self._store.write() as transaction:
            payload = standing.told()
            if await SessionStore(transaction).complete(session.id, payload):
                detail = {"batch": session.batch, "eventId": payload["eventId"]}
                audit(transaction, EventKind.SESSION_COMPLETED, session, detail)
            return await SessionStore(transaction).get(session.id) or session


def event_id_of(request: RequestView | None) -> str:
    """The name of the event that tells of a signature for the first time.

    Of a request of a batch every session gives it the same one.

    Args:
        request: that is signed.
    """
    if request is None or request.batch is None:
        return new_id()
    return str(uuid5(UUID(request.batch), str(request.id)))


def signature_told(
    session: EmbedSession, signed: SignedDocumentView, event_id: str
) -> dict[str, object]:
    """The completed event, without what changes from one telling to the next.

    Args:
        session: that tells it.
        signed: the document.
        event_id: of the event.

    Source: spec "Signature-completed payload"; decisions "delivery".
    """
    limit = session.integrator.delivery_limit_bytes
    mode = "binary" if signed.size_bytes <= limit else "url"
    payload: dict[str, object] = {"eventId": event_id}
    if session.idem_key is not None:
        payload["idemKey"] = session.idem_key
    return {
        **payload,
        "signedDocId": str(signed.request),
        "document": {
            "fileName": signed.file_name,
            "sha256": signed.sha256,
            "size": signed.size_bytes,
            "mime": PDF,
        },
        "delivery": {"mode": mode},
    }


def _told(
    session: EmbedSession, signed: SignedDocumentView, payload: dict[str, object]
) -> AuditEvent:
    return AuditEvent(
        EventKind.SESSION_COMPLETED,
        f"person:{session.person}",
        integrator=session.integrator.id,
        request=signed.request,
        detail={"session": session.public_id, "eventId": payload["eventId"]},
    )


def _state(session: EmbedSession, request: RequestView | None) -> EmbedSessionState:
    if session.state is SessionState.CANCELLED:
        return _left(request)
    return EmbedSessionState.OPEN if request is None else _STATES[request.state]


def _state_of_batch(
    session: EmbedSession, standing: BatchStanding
) -> EmbedSessionState:
    """Where a session for a batch stands: it is signed once nothing of it waits."""
    if standing.signing:
        return EmbedSessionState.SIGNING
    if session.completed is not None:
        return EmbedSessionState.SIGNED
    if session.state is SessionState.CANCELLED:
        return EmbedSessionState.CANCELLED
    if standing.pending:
        return EmbedSessionState.AUTHORISED
    ended = (RequestState.SIGNED, RequestState.FAILED, RequestState.REJECTED)
    for state in ended:
        if standing.states.get(state):
            return _STATES[state]
    return EmbedSessionState.CANCELLED


def _left(request: RequestView | None) -> EmbedSessionState:
    """What became of a session that somebody left."""
    if request is None:
        return EmbedSessionState.CANCELLED
    state = _STATES[request.state]
    # A call that was under way as they left has signed after all.
    made = state in {EmbedSessionState.SIGNING, EmbedSessionState.SIGNED}
    if state is EmbedSessionState.REJECTED or (made and request.origin == FRAME_ORIGIN):
        return state
    return EmbedSessionState.CANCELLED


def _reason(request: RequestView | None) -> ApplianceError | None:
    return None if request is None else error_of_reason(request.state, request.reason)


async def _standing(
    transaction: Transaction, session: EmbedSession
) -> BatchStanding | None:
    """How the batch of a session stands; nothing before its signer is proven."""
    if session.batch is None or session.person is None or session.otp_at is None:
        return None
    return await RequestBatchStore(transaction).standing(session.batch, session.person)


async def _document(
    transaction: Transaction, session: EmbedSession, request: RequestView | None
) -> EmbedSessionDocument | None:
    """The document that the signer is to see."""
    if request is not None:
        return EmbedSessionDocument(
            request.document_name,
            request.sha256,
            request.inspection,
            request.followed,
            await ProcessStore(transaction).message(request.process),
            request.preset,
            request.repair,
        )
    if session.document is None:
        return None
    stored = await DocumentStore(transaction).get(session.document)
    if stored is None:
        return None
    name = session.document_name or ""
    return EmbedSessionDocument(
        name, stored.sha256, stored.inspection, repair=stored.repair
    )


async def _signer(
    transaction: Transaction, session: EmbedSession, *, trial: bool
) -> EmbedSessionSigner | None:
    """The proven signer; of one who is only matched nothing is told.

    Whoever vouched for a person: in a trial no signature has any legal effect.
    """
    if session.person is None or session.otp_at is None:
        return None
    person = await PersonStore(transaction).get(session.person)
    if person is None:
        return None
    credential = await CredentialStore(transaction).active(session.person)
    issuer, legal = "", LegalWord.ELECTRONIC
    if credential is not None:
        issuer = _issuer(credential.certificate)
        person = as_certified(person, credential)
        if credential.vouched_by in {VouchedBy.DEMO, VouchedBy.TEST}:
            legal = LegalWord.DEMO
    if trial:
        legal = LegalWord.DEMO
    return EmbedSessionSigner(person.name, person.cuil, issuer, legal)


def _issuer(certificate: bytes) -> str:
    issuer = x509.load_der_x509_certificate(certificate).issuer
    names = issuer.get_attributes_for_oid(NameOID.COMMON_NAME)
    return str(names[0].value) if names else ""
