"""The signature request of a session: made with the right code, one a key.

An idempotency key belongs to the integrator and stands for one document and one
signer: whatever session comes with it again gets the same request, and so the same
signature.

Source: decisions "request of a frame", "no idemKey", "repeating firmar".
"""

from typing import Final

from appliance.domain.audit import AuditEvent
from appliance.domain.clock import Clock
from appliance.domain.errors import ApplianceError, ErrorCode
from appliance.domain.ids import RequestId
from appliance.domain.integration import EmbedSession
from appliance.domain.ports import LookupIndex
from appliance.domain.records import Records, Store
from appliance.domain.records.requests import FRAME_ORIGIN, NewRequest, StoredDocument
from appliance.domain.request import RequestView
from appliance.domain.vocab import EventKind, RequestState
from appliance.services.progress import Progress

_LOCK: Final = "frame-idem-key"
_GOES_ON: Final = frozenset(
    {RequestState.PENDING, RequestState.IN_PROGRESS, RequestState.SIGNED}
)


class FrameRequests:
    """Gives a session its request."""

    def __init__(
        self, store: Store, lookup: LookupIndex, clock: Clock, progress: Progress
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
        async with self._store.read() as records:
            used = await records.idempotency.remembered(
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
        async with self._store.write() as records:
            key = session.idem_key or session.id
            # Two tabs with one key: the second finds what the first made.
            await records.logins.lock(
                self._lookup.index(_LOCK, f"{session.integrator.id}|{key}")
            )
            now = await records.sessions.get(session.id, lock=True)
            if now is None or now.person is None:
                raise ApplianceError(ErrorCode.SESSION_IN_USE)
            if now.request is not None:
                return
            if now.document is None:
                raise ApplianceError(ErrorCode.DOCUMENT_EMPTY)
            document = await records.documents.get(now.document)
            if document is None:
                raise ApplianceError(ErrorCode.DOCUMENT_EMPTY)
            request = await self._earlier(records, now, document.sha256)
            if request is None:
                request = await self._make(records, now, document)
            if not await records.sessions.set_request(
                now.id, request, self._clock.now()
            ):
                raise ApplianceError(ErrorCode.SESSION_IN_USE)

    async def _earlier(
        self, records: Records, session: EmbedSession, sha256: str
    ) -> RequestId | None:
        """The request that this key stands for already, if it still goes on.

        Raises:
            ApplianceError: `IDEMKEY_CONFLICT`.
        """
        if session.idem_key is None:
            return None
        await records.idempotency.remember(
            _scope(session), session.idem_key, sha256, self._clock.now()
        )
        earlier = await records.sessions.of_idem_key(
            session.integrator.id, session.idem_key
        )
        if earlier is None or earlier.request is None:
            return None
        view = await records.requests.get(earlier.request, lock=True)
        if view is None or view.state not in _GOES_ON:
            return None
        if view.person != session.person:
            raise ApplianceError(ErrorCode.IDEMKEY_CONFLICT)
        await records.requests.prolong(view.id, session.until)
        return view.id

    async def _make(
        self, records: Records, session: EmbedSession, document: StoredDocument
    ) -> RequestId:
        person = session.person
        if person is None:
            raise ApplianceError(ErrorCode.SESSION_IN_USE)
        request = await records.requests.add(
            NewRequest(
                person=person,
                integrator=session.integrator.id,
                document=document.id,
                name=session.document_name or "documento.pdf",
                origin=FRAME_ORIGIN,
                created=self._clock.now(),
                expires=session.until,
            )
        )
        records.audit.add(
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
        async with self._store.read() as records:
            return await records.requests.of_person(
                session.person,
                {RequestState.PENDING},
                integrator=session.integrator.id,
            )

    async def choose(self, session: EmbedSession, request: RequestId) -> None:
        """Take one of those requests to be signed in this session.

        Raises:
            ApplianceError: `SOLICITUD_NOT_FOUND`, `SESSION_IN_USE`,
                `SESSION_TOKEN_EXPIRED`.
        """
        if request not in {view.id for view in await self.listed(session)}:
            raise ApplianceError(ErrorCode.SOLICITUD_NOT_FOUND)
        await self._progress.set_request(session, request)


def _scope(session: EmbedSession) -> str:
    return f"frame:{session.integrator.id}"
