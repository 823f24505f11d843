"""Who the signer in a frame is: matched first, then proven by a code.

What a host's page says proves nothing; it only finds the person whose code is
asked for. Whoever is unknown, and whoever does not fit, is told the same, by the
same work.

Source: decisions "a known person", "dni, cuil", "attempts".
"""

from typing import Final

from appliance.admission.login_throttle import Attempt, Throttle
from appliance.domain.audit.record import AuditEvent
from appliance.domain.clock import Clock
from appliance.domain.embedding import Claim
from appliance.domain.errors import ApplianceError, CodeUsedError, ErrorCode
from appliance.domain.ids import PersonId
from appliance.domain.integrators.integrators import EmbedSession
from appliance.domain.people.identity import Person
from appliance.domain.people.login import AttemptKind
from appliance.domain.ports import LookupIndex, Sealer
from appliance.domain.vocab import EventKind, PersonState
from appliance.embedding.session_steps import SessionSteps
from appliance.identity import totp
from appliance.identity.login import email_indexes, signed_in_elsewhere
from appliance.people.login_store import LoginSecretStore
from appliance.people.person_store import PersonStore
from appliance.people.signer_for_tests_store import seen_by
from appliance.record.unit_of_work import Database, Transaction
from appliance.requests.request_batch_store import RequestBatchStore
from appliance.requests.request_store import RequestStore

_CLAIM: Final = "frame-claim"
_CODE: Final = "frame-code"


class EmbedSessionIdentity:
    """Finds a session's signer and has them prove it.

    Args:
        store: people and what proves them.
        lookup: indexes of accounts and e-mail addresses.
        sealer: opens TOTP seeds.
        clock: the time.
        throttle: counts tries.
        progress: how the session goes on.
        codes: how many one session may try.
    """

    def __init__(
        self,
        store: Database,
        lookup: LookupIndex,
        sealer: Sealer,
        clock: Clock,
        throttle: Throttle,
        progress: SessionSteps,
        codes: int,
    ) -> None:
        self._store = store
        self._lookup = lookup
        self._sealer = sealer
        self._clock = clock
        self._throttle = throttle
        self._progress = progress
        self._codes = codes

    async def match(self, session: EmbedSession, claim: Claim, address: str) -> bool:
        """Match a claim with an enrolled person.

        Args:
            session: without a proven signer.
            claim: of the host or the signer.
            address: where the call came from, as tries are counted by.

        Returns:
            False when the CUIL has to be asked for: the number of the national ID
            alone did not find anybody for certain.

        Raises:
            ApplianceError: `IDENTITY_MISMATCH`, `SIGNER_PENDING_APPROVAL`,
                `RATE_LIMITED`, `SESSION_IN_USE`, `SESSION_TOKEN_EXPIRED`.
        """
        index = self._lookup.index(_CLAIM, f"{claim.cuil or claim.dni}")
        attempt = await self._throttle.begin(AttemptKind.CLAIM, index, None, address)
        async with self._store.read() as transaction:
            person = await seen_by(
                transaction,
                await self._find(transaction, claim),
                session.integrator.id,
            )
            if not await _may_sign(transaction, session, person):
                person = None
        right = person is not None and person.state is not PersonState.DISABLED
        async with self._store.write() as transaction:
            if right:
                await self._throttle.right(transaction, attempt, proven=False)
            else:
                await self._throttle.wrong(transaction, attempt)
        if person is None or not right:
            if claim.cuil is None:
                return False
            raise ApplianceError(ErrorCode.IDENTITY_MISMATCH)
        if person.state is PersonState.INVITED:
            raise ApplianceError(ErrorCode.SIGNER_PENDING_APPROVAL)
        await self._progress.set_person(session, person.id)
        return True

    async def _find(self, transaction: Transaction, claim: Claim) -> Person | None:
        """The one person whom every part of a claim fits; always the same work."""
        by_cuil = await PersonStore(transaction).by_cuil(claim.cuil or "")
        by_dni = await PersonStore(transaction).by_dni(claim.dni or "")
        indexes = email_indexes(self._lookup, claim.email)
        by_email = await PersonStore(transaction).by_email_index(indexes)
        found = by_cuil
        if claim.cuil is None:
            found = by_dni[0] if len(by_dni) == 1 else None
        if found is None or by_email is None or found.id != by_email.id:
            return None
        return found

    async def prove(
        self, session: EmbedSession, code: str, address: str
    ) -> EmbedSession:
        """Have the matched person prove it with a code that works once.

        Args:
            session: with a matched person.
            code: of the authenticator app.
            address: where the call came from.

        Returns:
            The session with the signer proven, and all that came meanwhile.

        Raises:
            CodeUsedError: the code is right and was used before; it does not count
                as a wrong one.
            ApplianceError: `OTP_INVALID`, `RATE_LIMITED`; `SESSION_CODES` when the
                session has tried as many as it may; `IDENTITY_MISMATCH` when
                nobody was matched; `SESSION_IN_USE`, `SESSION_TOKEN_EXPIRED`.
        """
        person = session.person
        if person is None:
            raise ApplianceError(ErrorCode.IDENTITY_MISMATCH)
        attempt = await self._throttle.begin(
            AttemptKind.FRAME_CODE,
            self._lookup.index(_CODE, person),
            person,
            address,
            session.integrator.id,
        )
        try:
            await self._progress.count_code(session, self._codes)
            proven = await self._use(session, person, code, attempt)
        except CodeUsedError:
            await self._wrong(session, person, attempt, used=True)
            raise
        except ApplianceError:
            async with self._store.write() as transaction:
                await self._throttle.drop(transaction, attempt)
            raise
        if proven is None:
            await self._wrong(session, person, attempt)
            raise ApplianceError(ErrorCode.OTP_INVALID)
        return proven

    async def _use(
        self, session: EmbedSession, person: PersonId, code: str, attempt: Attempt
    ) -> EmbedSession | None:
        """Use a code up, and have its session proven by it; None: it is not right.

        In one transaction: the same call a moment later finds both.

        Raises:
            CodeUsedError: it was used before.
            ApplianceError: as of `SessionSteps.set_otp_in`; the code is not used.
        """
        async with self._store.read() as transaction:
            known = await PersonStore(transaction).get(person)
            secret = await LoginSecretStore(transaction).secret(person)
        if known is None or known.state is not PersonState.ACTIVE or secret is None:
            return None
        seed = self._sealer.open(
            secret.totp_sealed, table="login_secret", row=person, column="totp_sealed"
        )
        step = totp.step_of(seed.decode("ascii"), code, self._clock)
        if step is None:
            return None
        async with self._store.write() as transaction:
            if not await LoginSecretStore(transaction).advance_step(person, step):
                last = max(secret.last_step, step)
                raise CodeUsedError(totp.next_code_in(step, last, self._clock))
            if await self._throttle.is_elsewhere(transaction, attempt, person):
                transaction.audit.add(signed_in_elsewhere(person))
            await self._throttle.right(transaction, attempt)
            return await self._progress.set_otp_in(transaction, session, person)

    async def _wrong(
        self,
        session: EmbedSession,
        person: PersonId,
        attempt: Attempt,
        *,
        used: bool = False,
    ) -> None:
        """Record a code that is not right; one that was used counts as no wrong try."""
        end = self._throttle.drop if used else self._throttle.wrong
        more = {"codeUsed": True} if used else {}
        async with self._store.write() as transaction:
            await end(transaction, attempt)
            transaction.audit.add(
                AuditEvent(
                    EventKind.SESSION_OTP_WRONG,
                    "anonymous",
                    integrator=session.integrator.id,
                    detail={"session": session.public_id, "person": person, **more},
                )
            )


async def _may_sign(
    transaction: Transaction, session: EmbedSession, person: Person | None
) -> bool:
    """Whether a session is for anybody, or for that person."""
    if person is None:
        return True
    if session.batch is not None:
        batches = RequestBatchStore(transaction)
        return (await batches.standing(session.batch, person.id)).total > 0
    if session.wanted is None:
        return True
    wanted = await RequestStore(transaction).get(session.wanted)
    return wanted is not None and wanted.person == person.id
