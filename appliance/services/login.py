"""Sign-in: a password, then a code that works once; tries are counted first.

An unknown user costs what a known one does and is told the same. Every try is
recorded in the database before it is known how it ends, so that no number of
parallel guesses gets past the count.
"""

import hmac
import math
import re
import secrets
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

import pyotp

from appliance.domain.audit import AuditEvent
from appliance.domain.clock import Clock
from appliance.domain.errors import ApplianceError, ErrorCode, FieldInvalidError
from appliance.domain.ids import PersonId, new_id
from appliance.domain.person import Person, parse_cuil
from appliance.domain.ports import LookupIndex, Sealer
from appliance.domain.records import Store
from appliance.domain.records.login import (
    AttemptKind,
    AttemptOutcome,
    LoginSecret,
    NewAttempt,
    PendingLogin,
    Tries,
)
from appliance.domain.vocab import EventKind, PersonState
from appliance.services.passwords import Passwords
from appliance.services.tokens import IssuedToken, Tokens
from appliance.settings import AuthSettings

EMAIL: Final = "email"
"""Purpose of the look-up index of e-mail addresses (`person.email_index`)."""
_ACCOUNT: Final = "login-account"
_TOKEN: Final = "login-token"  # noqa: S105 (a purpose, no secret)
STEP_S: Final = 30
FACTORS: Final = ("pwd", "otp")
_CODE = re.compile(r"[0-9]{6}", re.ASCII)
_MINUTE = timedelta(minutes=1)
_WRONG_FROM_ADDRESS = timedelta(minutes=10)
_WRONG_ON_ACCOUNT = timedelta(hours=24)
_LONGEST_WAIT_S = 900


def email_index(lookup: LookupIndex, email: str) -> str:
    """The index by which a person is found by e-mail.

    Args:
        lookup: makes it.
        email: as typed; case and spaces around do not count.
    """
    return lookup.index(EMAIL, email.strip().casefold())


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
        store: Store,
        lookup: LookupIndex,
        sealer: Sealer,
        clock: Clock,
        passwords: Passwords,
        tokens: Tokens,
        settings: AuthSettings,
    ) -> None:
        self._store = store
        self._lookup = lookup
        self._sealer = sealer
        self._clock = clock
        self._passwords = passwords
        self._tokens = tokens
        self._settings = settings

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
        attempt = await self._begin(
            AttemptKind.PASSWORD, account.index, account.person, address
        )
        right = await self._passwords.verify(account.phc, password)
        if not right or account.person is None:
            await self._wrong(attempt, account.person, EventKind.LOGIN_PASSWORD_WRONG)
            raise ApplianceError(ErrorCode.LOGIN_FAILED)
        token = secrets.token_urlsafe(32)
        ttl_s = self._settings.login_ttl_s
        async with self._store.write() as records:
            await records.logins.await_code(
                attempt,
                self._lookup.index(_TOKEN, token),
                self._clock.now() + timedelta(seconds=ttl_s),
            )
            records.audit.add(
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
            ApplianceError: `OTP_INVALID`; `LOGIN_FAILED` when the login token
                is unknown or over; `RATE_LIMITED`, `STORE_UNAVAILABLE`.

        Source: RFC 6238, 5.2; decisions "login"; research "Login, OTP".
        """
        token_index = self._lookup.index(_TOKEN, login_token)
        async with self._store.read() as records:
            pending = await records.logins.pending(token_index, self._clock.now())
        account_index = pending.account_index if pending else token_index
        person = pending.person if pending else None
        attempt = await self._begin(AttemptKind.CODE, account_index, person, address)
        if pending is None:
            await self._wrong(attempt, None, EventKind.LOGIN_OTP_WRONG)
            raise ApplianceError(ErrorCode.LOGIN_FAILED)
        if not await self._use_code(pending, code.strip(" "), attempt):
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
        async with self._store.read() as records:
            secret = await records.logins.secret(person)
        if secret is None:
            raise ApplianceError(ErrorCode.PERSON_NOT_FOUND)
        now_s = self._clock.now().timestamp()
        step = max(int(now_s) // STEP_S, secret.last_step + 1)
        # A code is accepted from one step before its own.
        wait_s = max(0.0, (step - 1) * STEP_S - now_s)
        return self._totp(person, secret).generate_otp(step), wait_s

    async def _account(self, user: str) -> _Account:
        """Find whom a sign-in is about."""
        async with self._store.read() as records:
            try:
                cuil = parse_cuil(user.strip())
            except FieldInvalidError:
                index = email_index(self._lookup, user)
                person = await records.people.by_email_index(index)
            else:
                person = await records.people.by_cuil(cuil)
            secret = await records.logins.secret(person.id) if person else None
        if person is None or secret is None:
            typed = user.strip().casefold()
            return _Account(self._lookup.index(_ACCOUNT, f"typed:{typed}"), None, None)
        index = self._lookup.index(_ACCOUNT, f"person:{person.id}")
        return _Account(index, *_usable(person, secret))

    async def _begin(
        self,
        kind: AttemptKind,
        account_index: str,
        person: PersonId | None,
        address: str,
    ) -> str:
        """Record a try unless there were too many.

        Raises:
            ApplianceError: `RATE_LIMITED`, with `retryAfter`.
        """
        now = self._clock.now()
        limits = self._settings
        async with self._store.write() as records:
            logins = records.logins
            await logins.lock(address, account_index)
            place = await logins.tries_from(
                address, kind, now - _MINUTE, now - _WRONG_FROM_ADDRESS
            )
            account = await logins.tries_on(
                account_index, kind, now - _MINUTE, now - _WRONG_ON_ACCOUNT
            )
            wait_s = max(
                _wait_s(place, limits.login_per_minute_address, now),
                _wait_s(account, limits.login_per_minute_account, now),
            )
            if wait_s > 0:
                raise ApplianceError(
                    ErrorCode.RATE_LIMITED, extras={"retryAfter": math.ceil(wait_s)}
                )
            attempt = new_id()
            await logins.begin(
                NewAttempt(attempt, now, address, account_index, kind, person)
            )
        return attempt

    async def _wrong(
        self, attempt: str, person: PersonId | None, event: EventKind
    ) -> None:
        """Record that a try was wrong."""
        detail: dict[str, object] = {} if person is None else {"person": person}
        async with self._store.write() as records:
            await records.logins.end(attempt, AttemptOutcome.WRONG)
            records.audit.add(AuditEvent(event, "anonymous", detail=detail))

    async def _use_code(self, pending: PendingLogin, code: str, attempt: str) -> bool:
        """Use a code up, and the login token with it; False if it is not right."""
        async with self._store.read() as records:
            person = await records.people.get(pending.person)
            secret = await records.logins.secret(pending.person)
        if person is None or secret is None or person.state is not PersonState.ACTIVE:
            return False
        step = self._step(self._totp(person.id, secret), code)
        if step is None:
            return False
        async with self._store.write() as records:
            # Two conditional updates: of any number of calls with one code,
            # or with one login token, one gets past both.
            if not await records.logins.advance_step(person.id, step):
                return False
            if not await records.logins.consume(pending.attempt):
                return False
            await records.logins.end(attempt, AttemptOutcome.DONE)
            records.audit.add(
                AuditEvent(
                    EventKind.LOGIN_COMPLETED,
                    f"person:{person.id}",
                    detail={"amr": list(FACTORS)},
                )
            )
        return True

    def _step(self, totp: pyotp.TOTP, code: str) -> int | None:
        """The step whose code this is, of the present one and its neighbours."""
        if not _CODE.fullmatch(code):
            return None
        now = int(self._clock.now().timestamp()) // STEP_S
        found = None
        for step in (now - 1, now, now + 1):
            if hmac.compare_digest(totp.generate_otp(step), code):
                found = step
        return found

    def _totp(self, person: PersonId, secret: LoginSecret) -> pyotp.TOTP:
        seed = self._sealer.open(
            secret.totp_sealed, table="login_secret", row=person, column="totp_sealed"
        )
        return pyotp.TOTP(seed.decode("ascii"), interval=STEP_S)


def _usable(person: Person, secret: LoginSecret) -> tuple[PersonId | None, str | None]:
    """Id and hash of a person who may sign in; nothing of one who may not."""
    if person.state is not PersonState.ACTIVE:
        return None, None
    return person.id, secret.phc


def _wait_s(tries: Tries, limit: int, now: datetime) -> float:
    """How long a further try must wait: the minute's limit, growing delays.

    Each `limit` wrong tries double the wait after the last of them, from a
    minute to a quarter of an hour.
    """
    wait = timedelta(0)
    if tries.count >= limit and tries.oldest is not None:
        wait = tries.oldest + _MINUTE - now
    rounds = tries.wrong // limit
    if rounds and tries.last_wrong is not None:
        delay_s = min(60 * 2 ** min(rounds - 1, 10), _LONGEST_WAIT_S)
        wait = max(wait, tries.last_wrong + timedelta(seconds=delay_s) - now)
    return wait.total_seconds()
