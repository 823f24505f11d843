"""Sign-in: a password, then a code that works once; tries are counted first.

An unknown user costs what a known one does and is told the same. Every try is
recorded in the database before it is known how it ends, so that no number of
parallel guesses gets past the count.
"""

import secrets
from dataclasses import dataclass
from datetime import timedelta
from typing import Final

from appliance.admission.login_attempt_store import LoginAttemptStore
from appliance.admission.login_throttle import Attempt, Throttle
from appliance.domain.audit.record import AuditEvent
from appliance.domain.clock import Clock
from appliance.domain.errors import (
    LOGIN_OVER,
    ApplianceError,
    CodeUsedError,
    ErrorCode,
    FieldInvalidError,
)
from appliance.domain.ids import PersonId
from appliance.domain.people.identity import Person, typed_cuil
from appliance.domain.people.login import AttemptKind, LoginSecret, PendingLogin
from appliance.domain.ports import LookupIndex, Sealer
from appliance.domain.vocab import EventKind, PersonState
from appliance.identity import totp
from appliance.identity.access_tokens import AccessTokens, IssuedToken
from appliance.keys.password_hashing import Passwords
from appliance.people.login_store import LoginSecretStore
from appliance.people.person_store import PersonStore
from appliance.record.unit_of_work import Database, Transaction
from appliance.settings import AuthSettings

EMAIL: Final = "email"
"""Purpose of the look-up index of e-mail addresses (`person.email_index`)."""
_ACCOUNT: Final = "login-account"
_NOBODY: Final = PersonId("")
_TOKEN: Final = "login-token"  # noqa: S105 (a purpose, no secret)
STEP_S: Final = totp.STEP_S
FACTORS: Final = ("pwd", "otp")


def email_index(lookup: LookupIndex, email: str) -> str:
    """The index by which a person is found by e-mail.

    Args:
        lookup: makes it.
        email: as typed; case and spaces around do not count.
    """
    return email_indexes(lookup, email)[0]


def email_indexes(lookup: LookupIndex, email: str) -> tuple[str, ...]:
    """All indexes that a person may have by their e-mail; see `email_index`."""
    return lookup.indexes(EMAIL, email.strip().casefold())


def account_indexes(lookup: LookupIndex, cuil: str, email: str) -> tuple[str, ...]:
    """What tries at a person's login password are counted by.

    Args:
        lookup: makes them.
        cuil: eleven digits.
        email: as it is kept, or as typed.
    """
    typed = (cuil, email.strip().casefold())
    return tuple(
        index for one in typed for index in lookup.indexes(_ACCOUNT, f"typed:{one}")
    )


async def refuse_known_email(
    transaction: Transaction, lookup: LookupIndex, email: str
) -> None:
    """Refuse an address that somebody has, by whatever version of the lookup key.

    The column's own uniqueness sees one version alone.

    Raises:
        ApplianceError: `ALREADY_EXISTS`.
    """
    if (
        await PersonStore(transaction).by_email_index(email_indexes(lookup, email))
        is not None
    ):
        raise ApplianceError(ErrorCode.ALREADY_EXISTS, params={"field": "cuil / email"})


@dataclass(frozen=True, slots=True)
class Challenge:
    """A right password; a code is asked for next."""

    login_token: str
    expires_in_s: int

    def __repr__(self) -> str:
        """Never show the token."""
        return "Challenge(…)"


@dataclass(frozen=True, slots=True)
class _Account:
    """Whom a sign-in is about; nobody in particular when `person` is None."""

    index: str
    person: PersonId | None
    phc: str | None


class Login:
    """Signs people in.

    Args:
        store: people, secrets, tries.
        lookup: indexes of e-mail addresses, accounts and login tokens.
        sealer: opens TOTP seeds (`login_secret`, person's id, `totp_sealed`;
            the seed in base32, ASCII).
        clock: the time.
        passwords: checks login passwords.
        tokens: issues the access token.
        settings: `auth`.
    """

    def __init__(
        self,
        store: Database,
        lookup: LookupIndex,
        sealer: Sealer,
        clock: Clock,
        passwords: Passwords,
        tokens: AccessTokens,
        settings: AuthSettings,
    ) -> None:
        self._store = store
        self._lookup = lookup
        self._sealer = sealer
        self._clock = clock
        self._passwords = passwords
        self._tokens = tokens
        self._settings = settings
        self._throttle = Throttle(store, lookup, clock, settings)

    async def login(self, user: str, password: bytes, address: str) -> Challenge:
        """Check a user and password.

        Args:
            user: CUIL, with or without dashes, or e-mail address.
            password: UTF-8 of the NFC form.
            address: where the call came from, as tries are counted by.

        Returns:
            A login token, to be shown with a code.

        Raises:
            ApplianceError: `LOGIN_FAILED`, `RATE_LIMITED`, `STORE_UNAVAILABLE`.

        Source: decisions "login"; research "Login, OTP".
        """
        account = await self._account(user)
        attempt = await self._throttle.begin(
            AttemptKind.PASSWORD, account.index, account.person, address
        )
        right = await self._passwords.verify(account.phc, password)
        if not right or account.person is None:
            await self._wrong(attempt, account.person, EventKind.LOGIN_PASSWORD_WRONG)
            raise ApplianceError(ErrorCode.LOGIN_FAILED)
        token = secrets.token_urlsafe(32)
        ttl_s = self._settings.login_ttl_s
        async with self._store.write() as transaction:
            await LoginAttemptStore(transaction).await_code(
                attempt.id,
                self._lookup.index(_TOKEN, token),
                self._clock.now() + timedelta(seconds=ttl_s),
            )
            transaction.audit.add(
                AuditEvent(EventKind.LOGIN_PASSWORD_RIGHT, f"person:{account.person}")
            )
        return Challenge(token, ttl_s)

    async def otp(self, login_token: str, code: str, address: str) -> IssuedToken:
        """Check a code and sign in.

        Args:
            login_token: of `login`.
            code: six digits; spaces around do not count.
            address: where the call came from.

        Returns:
            The access token.

        Raises:
            CodeUsedError: the code is right and was used before; it does not count
                as a wrong one.
            ApplianceError: `OTP_INVALID`; `LOGIN_FAILED` when the login token
                is unknown or over; `RATE_LIMITED`, `STORE_UNAVAILABLE`.

        Source: RFC 6238, 5.2; decisions "login"; research "Login, OTP".
        """
        indexes = self._lookup.indexes(_TOKEN, login_token)
        async with self._store.read() as transaction:
            pending = await LoginAttemptStore(transaction).pending(
                indexes, self._clock.now()
            )
        person = pending.person if pending else None
        account_index = (
            self._lookup.index(_ACCOUNT, f"person:{person}") if person else indexes[0]
        )
        attempt = await self._throttle.begin(
            AttemptKind.CODE, account_index, person, address
        )
        if pending is None:
            await self._wrong(attempt, None, EventKind.LOGIN_OTP_WRONG)
            raise ApplianceError(ErrorCode.LOGIN_FAILED, sentence=LOGIN_OVER)
        try:
            is_right = await self._use_code(pending, code.strip(" "), attempt)
        except CodeUsedError:
            # Who typed it knew it, so it is no wrong try.
            async with self._store.write() as transaction:
                await self._throttle.drop(transaction, attempt)
                transaction.audit.add(
                    AuditEvent(
                        EventKind.LOGIN_OTP_WRONG,
                        "anonymous",
                        detail={"person": pending.person, "codeUsed": True},
                    )
                )
            raise
        if not is_right:
            await self._wrong(attempt, pending.person, EventKind.LOGIN_OTP_WRONG)
            raise ApplianceError(ErrorCode.OTP_INVALID)
        return await self._tokens.issue(pending.person, FACTORS, self._clock.now())

    async def next_code(self, person: PersonId) -> tuple[str, float]:
        """The next code of a person that was not used yet; for demo people.

        Args:
            person: who has a seed.

        Returns:
            The code, and the seconds until it is accepted (0: now).

        Raises:
            ApplianceError: `PERSON_NOT_FOUND`, `STORE_UNAVAILABLE`.
        """
        async with self._store.read() as transaction:
            secret = await LoginSecretStore(transaction).secret(person)
        if secret is None:
            raise ApplianceError(ErrorCode.PERSON_NOT_FOUND)
        return totp.next_unused(
            self._seed(person, secret), secret.last_step, self._clock
        )

    async def _account(self, user: str) -> _Account:
        """Find whom a sign-in is about.

        Tries are counted by what was typed, in its one normal form, whether or not
        somebody is known by it: were a person's CUIL and address counted as one,
        whoever tries both would learn that they belong together.
        """
        async with self._store.read() as transaction:
            try:
                typed = typed_cuil(user)
            except FieldInvalidError:
                typed = user.strip().casefold()
                indexes = email_indexes(self._lookup, user)
                person = await PersonStore(transaction).by_email_index(indexes)
            else:
                person = await PersonStore(transaction).by_cuil(typed)
            # Looked for in vain too: an unknown user takes the same time.
            secret = await LoginSecretStore(transaction).secret(
                person.id if person else _NOBODY
            )
        index = self._lookup.index(_ACCOUNT, f"typed:{typed}")
        if person is None or secret is None:
            return _Account(index, None, None)
        return _Account(index, *_usable(person, secret))

    async def _wrong(
        self, attempt: Attempt, person: PersonId | None, event: EventKind
    ) -> None:
        """Record that a try was wrong."""
        detail: dict[str, object] = {} if person is None else {"person": person}
        async with self._store.write() as transaction:
            await self._throttle.wrong(transaction, attempt)
            transaction.audit.add(AuditEvent(event, "anonymous", detail=detail))

    async def _use_code(
        self, pending: PendingLogin, code: str, attempt: Attempt
    ) -> bool:
        """Use a code up, and the login token with it; False if it is not right.

        Raises:
            CodeUsedError: it was used before.
        """
        async with self._store.read() as transaction:
            person = await PersonStore(transaction).get(pending.person)
            secret = await LoginSecretStore(transaction).secret(pending.person)
        if person is None or secret is None or person.state is not PersonState.ACTIVE:
            return False
        step = totp.step_of(self._seed(person.id, secret), code, self._clock)
        if step is None:
            return False
        async with self._store.write() as transaction:
            # Two conditional updates: of any number of calls with one code,
            # or with one login token, one gets past both.
            if not await LoginSecretStore(transaction).advance_step(person.id, step):
                last = max(secret.last_step, step)
                raise CodeUsedError(totp.next_code_in(step, last, self._clock))
            if not await LoginAttemptStore(transaction).consume(pending.attempt):
                return False
            transaction.audit.add(
                AuditEvent(
                    EventKind.LOGIN_COMPLETED,
                    f"person:{person.id}",
                    detail={"amr": list(FACTORS)},
                )
            )
            if await self._throttle.is_elsewhere(transaction, attempt, person.id):
                transaction.audit.add(signed_in_elsewhere(person.id))
            await self._throttle.right(transaction, attempt)
        return True

    def _seed(self, person: PersonId, secret: LoginSecret) -> str:
        seed = self._sealer.open(
            secret.totp_sealed, table="login_secret", row=person, column="totp_sealed"
        )
        return seed.decode("ascii")


def signed_in_elsewhere(person: PersonId) -> AuditEvent:
    """What is recorded of a sign-in from an address that was not known: not which.

    Args:
        person: whose.
    """
    return AuditEvent(EventKind.LOGIN_ELSEWHERE, f"person:{person}")


def _usable(person: Person, secret: LoginSecret) -> tuple[PersonId | None, str | None]:
    """Id and hash of a person who may sign in; nothing of one who may not."""
    if person.state is not PersonState.ACTIVE:
        return None, None
    return person.id, secret.phc
