"""How a session of the frame goes on: init, document, person, code, request, end.

Each step is one conditional change: of any number of tabs and retries, what was
first holds, and what comes too late is told so.

Source: decisions "repeated init", "request of a frame", "no idemKey".
"""

from appliance.domain.audit.record import AuditEvent
from appliance.domain.clock import Clock
from appliance.domain.documents.inspected import CameDocument
from appliance.domain.errors import ApplianceError, ErrorCode
from appliance.domain.ids import PersonId, RequestId
from appliance.domain.integrators.integrators import EmbedSession, SessionState
from appliance.domain.vocab import EventKind
from appliance.integrators.session_store import SessionStore
from appliance.record.unit_of_work import Database, Transaction


class SessionSteps:
    """The use cases of a session that is exchanged.

    Args:
        store: the record.
        clock: the time.
    """

    def __init__(self, store: Database, clock: Clock) -> None:
        self._store = store
        self._clock = clock

    async def init(
        self, session: EmbedSession, nonce: str, idem_key: str | None, init_sha256: str
    ) -> EmbedSession:
        """Take an initial message: the first, the same again, or new content.

        Args:
            session: of its bearer.
            nonce: of the message.
            idem_key: of the message, or None.
            init_sha256: fingerprint of its content; the same changes nothing.

        Raises:
            ApplianceError: `SESSION_IN_USE` for new content once the signer has
                proven who they are; `SESSION_TOKEN_EXPIRED`.
        """
        async with self._store.write() as transaction:
            return await self.init_in(
                transaction, session, nonce, idem_key, init_sha256
            )

    async def init_in(
        self,
        transaction: Transaction,
        session: EmbedSession,
        nonce: str,
        idem_key: str | None,
        init_sha256: str,
    ) -> EmbedSession:
        """Take an initial message as one step of a larger change.

        Args:
            transaction: the caller's.
            session: as `init`.
            nonce: as `init`.
            idem_key: as `init`.
            init_sha256: as `init`.

        Raises:
            ApplianceError: as `init`.
        """
        now = await self._fresh(transaction, session)
        if now.init_sha256 == init_sha256:
            return now
        done = await SessionStore(transaction).init(
            session.id, nonce, idem_key, init_sha256, self._clock.now()
        )
        return await self._changed(
            transaction,
            session,
            EventKind.SESSION_INIT,
            {"before": now.init_sha256, "after": init_sha256},
            done=done,
        )

    async def count_document(
        self, session: EmbedSession, most: int, *, by_host: bool = False
    ) -> None:
        """Count one more document that a session brings, before it is looked at.

        Args:
            session: that brings it.
            most: that it may bring.
            by_host: its host does, not the signer.

        Raises:
            ApplianceError: `SESSION_DOCUMENTS` when it brought as many already;
                `SESSION_IN_USE` when it was left or signed; `SESSION_TOKEN_EXPIRED`.
        """
        async with self._store.write() as transaction:
            _check_open(await self._fresh(transaction, session))
            now = self._clock.now()
            if by_host:
                await SessionStore(transaction).by_host(session.id, now)
            if not await SessionStore(transaction).count_document(
                session.id, most, now
            ):
                raise ApplianceError(ErrorCode.SESSION_DOCUMENTS)

    async def count_code(self, session: EmbedSession, most: int) -> None:
        """Count one more code that a session tries, before it is looked at.

        Args:
            session: that tries it.
            most: that it may try.

        Raises:
            ApplianceError: `SESSION_CODES` when it tried as many already;
                `SESSION_IN_USE` when it was left or signed; `SESSION_TOKEN_EXPIRED`.
        """
        async with self._store.write() as transaction:
            _check_open(await self._fresh(transaction, session))
            now = self._clock.now()
            if not await SessionStore(transaction).count_code(session.id, most, now):
                raise ApplianceError(ErrorCode.SESSION_CODES)

    async def set_document(
        self, session: EmbedSession, document: CameDocument, name: str
    ) -> EmbedSession:
        """Load or replace the session's document.

        Raises:
            ApplianceError: `SESSION_IN_USE` once it is being signed;
                `SESSION_TOKEN_EXPIRED`.
        """
        async with self._store.write() as transaction:
            now = await self._fresh(transaction, session)
            done = await SessionStore(transaction).set_document(
                session.id, document, name, self._clock.now()
            )
            return await self._changed(
                transaction,
                session,
                EventKind.SESSION_DOCUMENT,
                {"before": now.document and now.document.id, "after": document.id},
                done=done,
            )

    async def set_person(
        self, session: EmbedSession, person: PersonId | None
    ) -> EmbedSession:
        """Say whom the signer was matched with; None for nobody.

        Raises:
            ApplianceError: `SESSION_IN_USE` once that is proven;
                `SESSION_TOKEN_EXPIRED`.
        """
        async with self._store.write() as transaction:
            now = await self._fresh(transaction, session)
            done = await SessionStore(transaction).set_person(
                session.id, person, self._clock.now()
            )
            return await self._changed(
                transaction,
                session,
                EventKind.SESSION_IDENTIFIED,
                {"before": now.person, "after": person},
                done=done,
            )

    async def set_otp_in(
        self, transaction: Transaction, session: EmbedSession, person: PersonId
    ) -> EmbedSession:
        """The matched person gave a right code.

        Raises:
            ApplianceError: `SESSION_IN_USE` where another was matched
                meanwhile; `SESSION_TOKEN_EXPIRED`.
        """
        await self._fresh(transaction, session)
        done = await SessionStore(transaction).set_otp(
            session.id, person, self._clock.now()
        )
        return await self._changed(
            transaction,
            session,
            EventKind.SESSION_OTP_RIGHT,
            {"person": person},
            done=done,
        )

    async def set_request(
        self, session: EmbedSession, request: RequestId
    ) -> EmbedSession:
        """Bind the request that the session signs.

        Raises:
            ApplianceError: `SESSION_IN_USE` where another is bound or no code
                was given; `SESSION_TOKEN_EXPIRED`.
        """
        async with self._store.write() as transaction:
            return await self.set_request_in(transaction, session, request)

    async def set_request_in(
        self, transaction: Transaction, session: EmbedSession, request: RequestId
    ) -> EmbedSession:
        """Bind the request as one step of a larger change.

        Raises:
            ApplianceError: as `set_request`.
        """
        now = await self._fresh(transaction, session)
        done = await SessionStore(transaction).set_request(
            session.id, request, self._clock.now()
        )
        return await self._changed(
            transaction,
            session,
            EventKind.SESSION_REQUEST,
            {"before": now.request, "after": request},
            done=done,
            request=request,
        )

    async def complete(
        self, session: EmbedSession, payload: dict[str, object]
    ) -> dict[str, object]:
        """Store what is told of the signature; it is told so ever after.

        Args:
            session: that signed; its time may be over.
            payload: plain JSON values, without the document's bytes.

        Returns:
            What is stored: of any number of callers, the first one's.

        Raises:
            ApplianceError: `SESSION_IN_USE` where there is no request.
        """
        async with self._store.write() as transaction:
            if await SessionStore(transaction).complete(session.id, payload):
                audit(
                    transaction,
                    EventKind.SESSION_COMPLETED,
                    session,
                    {"eventId": payload.get("eventId")},
                    request=session.request,
                )
                return payload
            stored = await SessionStore(transaction).get(session.id)
        if stored is None or stored.completed is None:
            raise ApplianceError(ErrorCode.SESSION_IN_USE)
        return stored.completed

    async def _fresh(
        self, transaction: Transaction, session: EmbedSession
    ) -> EmbedSession:
        """The session as it stands, kept from others; over is over.

        Raises:
            ApplianceError: `SESSION_TOKEN_EXPIRED`.
        """
        now = await SessionStore(transaction).get(session.id, lock=True)
        if now is None or is_over(now, self._clock):
            raise ApplianceError(ErrorCode.SESSION_TOKEN_EXPIRED)
        return now

    async def _changed(
        self,
        transaction: Transaction,
        session: EmbedSession,
        event: EventKind,
        detail: dict[str, object],
        *,
        done: bool,
        request: RequestId | None = None,
    ) -> EmbedSession:
        """Record a change, and give the session after it.

        Raises:
            ApplianceError: `SESSION_IN_USE` when it was not done.
        """
        after = await SessionStore(transaction).get(session.id)
        if not done or after is None:
            raise ApplianceError(ErrorCode.SESSION_IN_USE)
        audit(transaction, event, session, detail, request=request)
        return after


def _check_open(session: EmbedSession) -> None:
    """Demand that nobody left a session and nothing is signed in it.

    Raises:
        ApplianceError: `SESSION_IN_USE`.
    """
    if session.state is not SessionState.OPEN:
        raise ApplianceError(ErrorCode.SESSION_IN_USE)


def is_over(session: EmbedSession, clock: Clock) -> bool:
    """Whether a session opens nothing any more.

    Args:
        session: as it stands.
        clock: the time.
    """
    return session.state is SessionState.ENDED or clock.now() >= session.until


def audit(
    transaction: Transaction,
    event: EventKind,
    session: EmbedSession,
    detail: dict[str, object] | None = None,
    request: RequestId | None = None,
) -> None:
    """Record a step of a session.

    Args:
        transaction: the caller's.
        event: what.
        session: whose.
        detail: what was before and is after.
        request: that it is about.
    """
    actor = "anonymous" if session.person is None else f"person:{session.person}"
    transaction.audit.add(
        AuditEvent(
            event,
            actor,
            integrator=session.integrator.id,
            request=request,
            detail={"session": session.public_id, **(detail or {})},
        )
    )
