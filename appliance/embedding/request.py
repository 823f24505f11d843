"""The signature request of a session: made with the right code, one a key.

An idempotency key belongs to the integrator and stands for one document and one
signer: whatever session comes with it again gets the same request, and so the same
signature, or the same refusal. Where nothing came of a request (its time ran out, or
it could not be signed), the key makes another.

Source: decisions "request of a frame", "no idemKey", "repeating firmar".
"""

from typing import Final

from appliance.admission.login_attempt_store import LoginAttemptStore
from appliance.documents.document_store import DocumentStore
from appliance.domain.audit.record import AuditEvent
from appliance.domain.clock import Clock
from appliance.domain.errors import ApplianceError, ErrorCode
from appliance.domain.ids import RequestId
from appliance.domain.integrators.integrators import EmbedSession
from appliance.domain.ports import LookupIndex
from appliance.domain.requests.intake import FRAME_ORIGIN, NewRequest, StoredDocument
from appliance.domain.requests.request import RequestView
from appliance.domain.vocab import EventKind, RequestState
from appliance.embedding.session_steps import SessionSteps
from appliance.integrators.session_store import SessionStore
from appliance.record.idempotency_store import IdempotencyStore
from appliance.record.unit_of_work import Database, Transaction
from appliance.requests.request_store import RequestStore

_LOCK: Final = "frame-idem-key"
_SETTLED: Final = frozenset(
    {
        RequestState.IN_PROGRESS,
        RequestState.SIGNED,
        RequestState.REJECTED,
        RequestState.CANCELLED,
    }
)
"""What somebody has decided: the signer, or the integrator who withdrew it."""
_GOES_ON: Final = _SETTLED | {RequestState.WAITING, RequestState.PENDING}


class EmbedSessionRequests:
    """Gives a session its request."""

    def __init__(
        self, store: Database, lookup: LookupIndex, clock: Clock, progress: SessionSteps
    ) -> None:
        self._store = store
        self._lookup = lookup
        self._clock = clock
        self._progress = progress

    async def check_key(self, session: EmbedSession, sha256: str) -> None:
        """Refuse a document where the key stands for another one.

        Args:
            session: with or without a key.
            sha256: of the document that came.

        Raises:
            ApplianceError: `IDEMKEY_CONFLICT`.
        """
        if session.idem_key is None:
            return
        async with self._store.read() as transaction:
            used = await IdempotencyStore(transaction).remembered(
                _scope(session), session.idem_key
            )
        if used is not None and used != sha256:
            raise ApplianceError(ErrorCode.IDEMKEY_CONFLICT)

    async def give(self, session: EmbedSession) -> None:
        """Make the request of a session whose signer is proven, or find it.

        Raises:
            ApplianceError: `IDEMKEY_CONFLICT`, `SESSION_IN_USE`,
                `SESSION_TOKEN_EXPIRED`, `DOCUMENT_EMPTY` without a document.
        """
        async with self._store.write() as transaction:
            await self._alone(transaction, session)
            now = await SessionStore(transaction).get(session.id, lock=True)
            if now is None or now.person is None:
                raise ApplianceError(ErrorCode.SESSION_IN_USE)
            if now.request is not None:
                return
            if now.document is None:
                raise ApplianceError(ErrorCode.DOCUMENT_EMPTY)
            document = await DocumentStore(transaction).get(now.document)
            if document is None:
                raise ApplianceError(ErrorCode.DOCUMENT_EMPTY)
            request = await self._earlier(transaction, now, document)
            if request is None:
                request = await self._make(transaction, now, document)
            if not await SessionStore(transaction).set_request(
                now.id, request, self._clock.now()
            ):
                raise ApplianceError(ErrorCode.SESSION_IN_USE)
            await self._bind(transaction, now, request)

    async def take_up(self, session: EmbedSession) -> None:
        """Have a proven session without a document show what its key came to.

        Nothing changes where the key is new, or stands for what still waits.

        Raises:
            ApplianceError: `IDEMKEY_CONFLICT`, `SESSION_IN_USE`.
        """
        if session.idem_key is None:
            return
        async with self._store.write() as transaction:
            await self._alone(transaction, session)
            now = await SessionStore(transaction).get(session.id, lock=True)
            if now is None or now.request is not None:
                return
            settled = await self._settled(transaction, now)
            if settled is not None and not await SessionStore(transaction).set_request(
                now.id, settled, self._clock.now()
            ):
                raise ApplianceError(ErrorCode.SESSION_IN_USE)

    async def give_wanted(self, session: EmbedSession, wanted: RequestId) -> None:
        """Have a proven session show the request that it was opened for.

        Args:
            session: of the person whose request it is.
            wanted: that request, whatever has become of it.

        Raises:
            ApplianceError: `SESSION_IN_USE`, `SESSION_TOKEN_EXPIRED`.
        """
        async with self._store.write() as transaction:
            await self._alone(transaction, session)
            now = await SessionStore(transaction).get(session.id, lock=True)
            if now is None or now.request == wanted:
                return
            await self._progress.set_request_in(transaction, session, wanted)
            await self._bind(transaction, session, wanted)

    async def _alone(self, transaction: Transaction, session: EmbedSession) -> None:
        """Two tabs with one key: the second finds what the first made."""
        key = session.idem_key or session.id
        await LoginAttemptStore(transaction).lock(
            self._lookup.index(_LOCK, f"{session.integrator.id}|{key}")
        )

    async def _earlier(
        self, transaction: Transaction, session: EmbedSession, document: StoredDocument
    ) -> RequestId | None:
        """The request that this key stands for already, if it goes on or is settled.

        Raises:
            ApplianceError: `IDEMKEY_CONFLICT`.
        """
        if session.idem_key is None:
            return None
        await IdempotencyStore(transaction).remember(
            _scope(session), session.idem_key, document.sha256, self._clock.now()
        )
        view = await self._bound(transaction, session, lock=True)
        if view is None or view.state not in _GOES_ON:
            return None
        # One that was picked from the list may be of another document; and the same
        # bytes may be a copy in one session and come as they are in another.
        same = (view.sha256, view.repair) == (document.sha256, document.repair)
        if view.person != session.person or not same:
            raise ApplianceError(ErrorCode.IDEMKEY_CONFLICT)
        if view.state not in _SETTLED:
            await RequestStore(transaction).prolong(view.id, session.until)
        return view.id

    async def _settled(
        self, transaction: Transaction, session: EmbedSession
    ) -> RequestId | None:
        """The request of this key, if somebody has decided about it.

        Raises:
            ApplianceError: `IDEMKEY_CONFLICT`: another person did.
        """
        view = await self._bound(transaction, session)
        if view is None or view.state not in _SETTLED:
            return None
        if view.person != session.person:
            raise ApplianceError(ErrorCode.IDEMKEY_CONFLICT)
        return view.id

    @staticmethod
    async def _bound(
        transaction: Transaction, session: EmbedSession, *, lock: bool = False
    ) -> RequestView | None:
        """The request that a key stands for; locked, kept from others."""
        if session.idem_key is None:
            return None
        bound = await IdempotencyStore(transaction).remembered(
            _request_scope(session), session.idem_key
        )
        if bound is not None:
            return await RequestStore(transaction).get(RequestId(int(bound)), lock=lock)
        # Made before keys were bound to requests: its session may still be there.
        earlier = await SessionStore(transaction).of_idem_key(
            session.integrator.id, session.idem_key
        )
        if earlier is None or earlier.request is None:
            return None
        return await RequestStore(transaction).get(earlier.request, lock=lock)

    async def _bind(
        self, transaction: Transaction, session: EmbedSession, request: RequestId
    ) -> None:
        """Have a key stand for a request, for longer than its session is kept."""
        if session.idem_key is not None:
            await IdempotencyStore(transaction).rebind(
                _request_scope(session),
                session.idem_key,
                str(request),
                self._clock.now(),
            )

    async def _make(
        self, transaction: Transaction, session: EmbedSession, document: StoredDocument
    ) -> RequestId:
        person = session.person
        if person is None:
            raise ApplianceError(ErrorCode.SESSION_IN_USE)
        request = await RequestStore(transaction).add(
            NewRequest(
                person=person,
                integrator=session.integrator.id,
                document=document.id,
                name=session.document_name or "documento.pdf",
                origin=FRAME_ORIGIN,
                created=self._clock.now(),
                expires=session.until,
                original_sha256=document.original_sha256,
            )
        )
        transaction.audit.add(
            AuditEvent(
                EventKind.REQUEST_CREATED,
                f"person:{person}",
                integrator=session.integrator.id,
                request=request,
                detail={
                    "session": session.public_id,
                    **document.facts(),
                    "person": person,
                },
            )
        )
        return request

    async def listed(self, session: EmbedSession) -> list[RequestView]:
        """The proven signer's pending requests of this integrator.

        Raises:
            ApplianceError: `IDENTITY_MISMATCH` before the signer is proven.
        """
        if session.person is None or session.otp_at is None:
            raise ApplianceError(ErrorCode.IDENTITY_MISMATCH)
        async with self._store.read() as transaction:
            found = await RequestStore(transaction).of_person(
                session.person,
                {RequestState.PENDING},
                integrator=session.integrator.id,
            )
        return [view for view in found if session.wanted in {None, view.id}]

    async def choose(self, session: EmbedSession, request: RequestId) -> None:
        """Take one of those requests to be signed in this session.

        Where the session's key came to an end meanwhile, in another tab, it is that
        one that the session shows.

        Raises:
            ApplianceError: `SOLICITUD_NOT_FOUND`, `SESSION_IN_USE`,
                `SESSION_TOKEN_EXPIRED`, `IDEMKEY_CONFLICT`.
        """
        if request not in {view.id for view in await self.listed(session)}:
            raise ApplianceError(ErrorCode.SOLICITUD_NOT_FOUND)
        async with self._store.write() as transaction:
            await self._alone(transaction, session)
            await SessionStore(transaction).get(session.id, lock=True)
            settled = await self._settled(transaction, session)
            taken = request if settled is None else settled
            await self._progress.set_request_in(transaction, session, taken)
            await self._bind(transaction, session, taken)


def _request_scope(session: EmbedSession) -> str:
    """Where it is kept which request a key stands for."""
    return f"frame-request:{session.integrator.id}"


def _scope(session: EmbedSession) -> str:
    return f"frame:{session.integrator.id}"
