"""Sessions of the frame: opened by a backend with its API key, used by a page.

A token and a bearer are 256 random bits each, kept as keyed hashes; both end
1,800 s after the session was opened, sharp.

Source: spec "States and transitions", "Authentication"; decisions "tokenSession",
"API keys", "reload of the frame".
"""

import re
import secrets
from collections.abc import Awaitable, Callable
from datetime import timedelta
from typing import Final

from appliance.domain.audit.record import AuditEvent
from appliance.domain.clock import Clock
from appliance.domain.errors import ApplianceError, DomainInvalidError, ErrorCode
from appliance.domain.ids import IntegratorId, RequestBatchId, RequestId, new_id
from appliance.domain.integrators.api_keys import ApiKeyScope
from appliance.domain.integrators.integrators import (
    SESSION_S,
    Bearer,
    EmbedSession,
    FramePage,
    IntegratorCaller,
    KeyRow,
    NewSession,
    NewSessionRow,
    PageKind,
    SessionFault,
    SessionState,
)
from appliance.domain.integrators.key_networks import LOCAL
from appliance.domain.integrators.origins import LONGEST, parse_origin
from appliance.domain.ports import LookupIndex
from appliance.domain.vocab import Environment, EventKind, RequestState
from appliance.embedding.session_steps import audit, is_over
from appliance.integrators.api_key_auth import ApiKeyAuth
from appliance.integrators.integrator_store import IntegratorStore
from appliance.integrators.logo_store import LogoStore
from appliance.integrators.session_store import SessionStore
from appliance.people.person_store import PersonStore
from appliance.record.unit_of_work import Database, Transaction
from appliance.requests.request_batch_store import RequestBatchStore
from appliance.requests.request_store import RequestStore
from appliance.settings import Settings

_BEGUN: Final = frozenset(
    {RequestState.IN_PROGRESS, RequestState.SIGNED, RequestState.FAILED}
)
_TOKEN_BYTES: Final = 32
_TOKEN = re.compile(r"[A-Za-z0-9_-]{43}", re.ASCII)
_PUBLIC_BYTES: Final = 12
_PUBLIC = re.compile(r"[0-9a-f]{24}", re.ASCII)
_LONGEST: Final = 256
"""Most characters of a token or bearer that are looked at."""
_BLOCKED_KEPT: Final = 100
"""Blocked origins kept for each integrator."""
# What a page without an allowed origin says of itself: a scheme and a host.
_ORIGIN = re.compile(r"[a-z][a-z0-9+.-]*://[a-z0-9.\[\]:_-]+", re.ASCII)


class Sessions:
    """The use cases of the session endpoint and of the frame's token.

    Args:
        store: the record.
        lookup: makes the hashes that tokens are kept as.
        clock: the time.
        settings: environment and event prefix.
    """

    def __init__(
        self, store: Database, lookup: LookupIndex, clock: Clock, settings: Settings
    ) -> None:
        self._store = store
        self._lookup = lookup
        self._clock = clock
        self._keys = ApiKeyAuth(store, lookup, clock, settings.environment)
        self._environment = settings.environment
        self._event_prefix = settings.event_prefix
        self._factor_age = timedelta(seconds=settings.auth.factor_age_s)

    async def open(
        self,
        integrator_id: str,
        api_key: str,
        address: str = LOCAL,
        admit: Callable[[str], Awaitable[None]] | None = None,
        *,
        from_browser: bool = False,
    ) -> NewSession:
        """Open a session for an integrator's backend.

        Args:
            integrator_id: the integrator's code, or its UUID.
            api_key: as it came.
            address: where the call came from: an IP address, or `LOCAL`.
            admit: is given the id of a key that is good, and may refuse by raising.
            from_browser: the call shows marks of a browser: it is refused,
                and the key flagged.

        Returns:
            The token, shown once.

        Raises:
            ApplianceError: `API_KEY_INVALID`, whichever of the two is not
                right; `API_KEY_MISSING`, `API_KEY_ENVIRONMENT`;
                `API_KEY_IN_BROWSER`; `API_KEY_ADDRESS`; `INTEGRATOR_DISABLED`;
                `API_KEY_SCOPE`.

        Source: spec "POST {web_url}/api/integration/session/new".
        """
        row = await self._keys.demand(
            api_key,
            ApiKeyScope.SESSIONS_WRITE,
            address,
            integrator=integrator_id,
            from_browser=from_browser,
        )
        if admit is not None:
            await admit(row.key.id)
        return await self._open(row)

    async def open_for(
        self,
        asking: IntegratorCaller,
        wanted: RequestId | RequestBatchId | None,
        fault: SessionFault | None = None,
    ) -> NewSession:
        """Open a session in which one request or one batch is signed and no other.

        Args:
            asking: whose backend, by a key that may.
            wanted: a request or a batch of that integrator, which its signer alone
                sees; None: any, as with `open`.
            fault: what is to go wrong in it.

        Returns:
            The token, shown once.

        Raises:
            ApplianceError: `API_KEY_INVALID`, `INTEGRATOR_DISABLED`; `FIELD_UNKNOWN`
                for a fault in PROD.
        """
        if fault is not None and self._environment is not Environment.PREPROD:
            raise ApplianceError(ErrorCode.FIELD_UNKNOWN, extras={"field": "falla"})
        async with self._store.read() as transaction:
            row = await IntegratorStore(transaction).key(asking.key)
        if row is None:
            raise ApplianceError(ErrorCode.API_KEY_INVALID)
        return await self._open(row, wanted, fault)

    async def _open(
        self,
        row: KeyRow,
        wanted: RequestId | RequestBatchId | None = None,
        fault: SessionFault | None = None,
    ) -> NewSession:
        """Record a session of a good key.

        Args:
            row: the key.
            wanted: the request or the batch that it is for.
            fault: what is to go wrong in it.

        Raises:
            ApplianceError: `API_KEY_INVALID`: the key was revoked meanwhile;
                `INTEGRATOR_DISABLED`.
        """
        token = secrets.token_urlsafe(_TOKEN_BYTES)
        batch = wanted if isinstance(wanted, str) else None
        request = None if isinstance(wanted, str) else wanted
        async with self._store.write() as transaction:
            now = self._clock.now()
            again = await IntegratorStore(transaction).key(row.key.id, lock=True)
            # A revocation ends the sessions it sees: none is opened after it.
            if again is None or not again.key.usable(now):
                raise ApplianceError(ErrorCode.API_KEY_INVALID)
            # Read after the key was locked: who is being disabled holds the lock.
            whose = await IntegratorStore(transaction).get(row.integrator.code)
            if whose is None or whose.disabled is not None:
                raise ApplianceError(ErrorCode.INTEGRATOR_DISABLED)
            until = now + timedelta(seconds=SESSION_S)
            new = NewSessionRow(
                id=new_id(),
                public_id=secrets.token_hex(_PUBLIC_BYTES),
                token_index=self._indexes("session-token", token)[0],
                integrator=row.integrator.id,
                api_key=row.key.id,
                issued=now,
                # Of a token that is to be over, the caller is told as of any other.
                until=now if fault is SessionFault.EXPIRED else until,
                wanted=request,
                batch=batch,
                fault=fault,
            )
            await SessionStore(transaction).add(new)
            transaction.audit.add(
                AuditEvent(
                    EventKind.SESSION_OPENED,
                    f"integrator:{row.integrator.id}",
                    integrator=row.integrator.id,
                    request=request,
                    detail={
                        "session": new.public_id,
                        "key": row.key.id,
                        **({} if batch is None else {"batch": batch}),
                        **({} if fault is None else {"fault": fault.value}),
                    },
                )
            )
        return NewSession(token, until, new.public_id)

    async def page(self, token: str | None, public_id: str | None) -> FramePage:
        """What the frame's page is served with.

        Args:
            token: of the address, or None.
            public_id: that stands there after the token was stripped, or None.
        """
        async with self._store.read() as transaction:
            session = None
            if token is not None and _TOKEN.fullmatch(token):
                indexes = self._indexes("session-token", token)
                session = await SessionStore(transaction).by_token(indexes)
            elif public_id is not None and _PUBLIC.fullmatch(public_id):
                session = await SessionStore(transaction).by_public_id(public_id)
            if session is None:
                return FramePage(
                    PageKind.UNKNOWN,
                    "",
                    "",
                    "",
                    (),
                    self._environment,
                    self._event_prefix,
                )
            domains = await IntegratorStore(transaction).domains(session.integrator.id)
            logo = await LogoStore(transaction).of(session.integrator.id)
        return FramePage(
            kind=PageKind.EXPIRED if is_over(session, self._clock) else PageKind.LIVE,
            session_public_id=session.public_id,
            integrator_code=session.integrator.code,
            integrator_name=session.integrator.name,
            logo=logo,
            origins=tuple(domain.origin for domain in domains),
            environment=self._environment,
            event_prefix=session.integrator.event_prefix or self._event_prefix,
        )

    async def origins(self, integrator: IntegratorId) -> frozenset[str]:
        """Origins whose pages belong to an integrator.

        Args:
            integrator: whose.
        """
        async with self._store.read() as transaction:
            listed = await IntegratorStore(transaction).domains(integrator)
        return frozenset(domain.origin for domain in listed)

    async def note_blocked(self, integrator_code: str, origin: str) -> None:
        """Count that a page of an origin that is not listed tried.

        Args:
            integrator_code: of the session that it showed.
            origin: as the browser told; what is no origin is not kept.
        """
        origin = origin.strip().lower()
        if len(origin) > LONGEST or not _ORIGIN.fullmatch(origin):
            return
        async with self._store.write() as transaction:
            integrator = await IntegratorStore(transaction).get(integrator_code)
            if integrator is None:
                return
            listed = await IntegratorStore(transaction).domains(integrator.id)
            if origin in {domain.origin for domain in listed}:
                return
            is_new = await IntegratorStore(transaction).note_blocked(
                integrator.id, origin, self._clock.now(), _BLOCKED_KEPT
            )
            if is_new:
                transaction.audit.add(
                    AuditEvent(
                        EventKind.ORIGIN_BLOCKED,
                        "anonymous",
                        integrator=integrator.id,
                        detail={"origin": origin},
                    )
                )

    async def note_seen(self, integrator_code: str, origin: str) -> None:
        """Say that a page of a listed origin started a session.

        Args:
            integrator_code: of its session.
            origin: as the browser told.
        """
        try:
            origin = parse_origin(origin, self._environment)
        except DomainInvalidError:
            return
        async with self._store.write() as transaction:
            integrator = await IntegratorStore(transaction).get(integrator_code)
            if integrator is not None:
                await IntegratorStore(transaction).seen_domain(
                    integrator.id, origin, self._clock.now()
                )

    async def exchange(self, token: str) -> Bearer:
        """Give a bearer for a token; an earlier bearer is over with that.

        Args:
            token: as it came in the initial message.

        Raises:
            ApplianceError: `SESSION_TOKEN_INVALID`, `SESSION_TOKEN_EXPIRED`.
        """
        async with self._store.write() as transaction:
            return await self.exchange_in(transaction, token)

    async def exchange_in(self, transaction: Transaction, token: str) -> Bearer:
        """Exchange a token as one step of a larger change.

        What refuses that change leaves the earlier bearer as it was.

        Args:
            transaction: the caller's.
            token: as it came in the initial message.

        Raises:
            ApplianceError: as `exchange`.
        """
        indexes = self._indexes("session-token", token[:_LONGEST])
        session = await SessionStore(transaction).by_token(indexes)
        if session is None:
            raise ApplianceError(ErrorCode.SESSION_TOKEN_INVALID)
        bearer = f"{session.public_id}.{secrets.token_urlsafe(_TOKEN_BYTES)}"
        now = self._clock.now()
        if not await SessionStore(transaction).exchange(
            session.id, self._indexes("session-bearer", bearer)[0], now
        ):
            raise ApplianceError(ErrorCode.SESSION_TOKEN_EXPIRED)
        audit(transaction, EventKind.SESSION_EXCHANGED, session)
        return Bearer(bearer, session)

    async def by_bearer(self, bearer: str, *, late: bool = False) -> EmbedSession:
        """The session of a bearer.

        Args:
            bearer: as it came.
            late: take it though its time is over (its row is kept a day): for
                the outcome of what was begun, and for a renewal.

        Raises:
            ApplianceError: `SESSION_TOKEN_EXPIRED`, also, late or not, for a
                person who was disabled and where the key was revoked before
                anything was submitted; `SESSION_TOKEN_INVALID`, `SESSION_SUPERSEDED`
                for one that a later exchange replaced, or `STEP_UP` where its code
                is too old.
        """
        bearer = bearer[:_LONGEST]
        async with self._store.read() as transaction:
            session = await SessionStore(transaction).by_bearer(
                self._indexes("session-bearer", bearer)
            )
            if session is None:
                public_id = bearer.partition(".")[0]
                known = await SessionStore(transaction).by_public_id(public_id)
                raise ApplianceError(
                    ErrorCode.SESSION_TOKEN_INVALID
                    if known is None
                    else ErrorCode.SESSION_SUPERSEDED
                )
            person = (
                None
                if session.person is None
                else await PersonStore(transaction).get(session.person)
            )
            stopped = await _is_stopped(transaction, session)
        if person is not None and not person.may_go_on(session.otp_at):
            # Late or not: who was disabled gets nothing more of it.
            raise ApplianceError(ErrorCode.SESSION_TOKEN_EXPIRED)
        if session.otp_at is not None and self._clock.now() - session.otp_at >= (
            self._factor_age
        ):
            raise ApplianceError(ErrorCode.STEP_UP)
        if stopped or (is_over(session, self._clock) and not late):
            raise ApplianceError(ErrorCode.SESSION_TOKEN_EXPIRED)
        return session

    def _indexes(self, purpose: str, value: str) -> tuple[str, ...]:
        """Indexes that mean nothing in the other environment; the first is stored."""
        return self._lookup.indexes(f"{purpose}/{self._environment.value}", value)


async def _is_stopped(transaction: Transaction, session: EmbedSession) -> bool:
    """Whether a session was ended from outside, with nothing begun to be told of."""
    if session.state is not SessionState.ENDED or session.successor is not None:
        return False
    if session.batch is not None and session.person is not None:
        standing = await RequestBatchStore(transaction).standing(
            session.batch, session.person
        )
        return _BEGUN.isdisjoint(standing.states)
    if session.request is None:
        return True
    request = await RequestStore(transaction).get(session.request)
    return request is None or request.state not in _BEGUN
