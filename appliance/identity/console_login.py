"""Sign-in to the console: name, password and a one-time code, in one go.

A session is a 256-bit token in a cookie, kept as a keyed hash, for eight hours
and no longer than half an hour without use; the token that its forms carry
follows from it and is not kept. Whatever was
wrong of the three is told in the same words and takes the same time.
"""

import hmac
import re
import secrets
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Final

from appliance.admission.login_attempt_store import LoginAttemptStore
from appliance.admission.login_throttle import Attempt, Throttle
from appliance.domain.audit.record import AuditEvent
from appliance.domain.clock import Clock
from appliance.domain.console.lists import ConsoleSecret
from appliance.domain.errors import ApplianceError, ErrorCode, FieldInvalidError
from appliance.domain.ids import new_id
from appliance.domain.integrators.integrators import (
    ConsoleSession,
    ConsoleUser,
    NewConsoleSession,
    NewConsoleUser,
)
from appliance.domain.people.login import AttemptKind
from appliance.domain.people.new_password import check_new
from appliance.domain.ports import LookupIndex, Sealer
from appliance.domain.text.unicode_nfc import nfc
from appliance.domain.vocab import Environment, EventKind
from appliance.identity import totp
from appliance.identity.console_login_attempts import (
    ConsoleLoginAttempts,
    account_indexes,
)
from appliance.keys.password_hashing import Passwords
from appliance.keys.signing_password import MAX_BYTES, normalize
from appliance.people.console_user_store import ConsoleUserStore
from appliance.record.unit_of_work import Database
from appliance.settings import Settings

SESSION_S: Final = 8 * 3600
"""Longest life of a session, in seconds."""
IDLE_S: Final = 1800
"""Longest time between two uses of a session, in seconds."""
_HOST: Final = "::1"
"""Address of tries made by a command on the host."""
_STRIDE: Final = timedelta(seconds=60)
"""A use is written down when it prolongs the session by that much."""
_NAME: Final = re.compile(r"[a-z0-9][a-z0-9._-]{1,39}", re.ASCII)
_TOKEN_BYTES: Final = 32
_LONGEST: Final = 128
_LEAST_CHARS: Final = 12
"""Of a password: it opens the whole console."""
NAME_ALLOWED: Final = "a-z, 0-9, . - and _, 2 to 40"
PASSWORD_ALLOWED: Final = f"{_LEAST_CHARS} characters or more, up to {MAX_BYTES} bytes"


@dataclass(frozen=True, slots=True)
class SignIn:
    """What somebody typed to sign in."""

    name: str
    password: str = field(repr=False)
    code: str = field(repr=False)
    """Six digits."""


def console_password(password: str, name: str) -> bytes:
    """A new password of an administrator, as it is hashed.

    Args:
        password: 12 characters or more in NFC, up to 1024 bytes of UTF-8.
        name: of the administrator.

    Raises:
        FieldInvalidError: `password`: too short or long, or weak
            (`appliance.domain.people.new_password`).
    """
    if len(nfc(password, MAX_BYTES) or "") < _LEAST_CHARS:
        raise FieldInvalidError("password", PASSWORD_ALLOWED)
    try:
        encoded = normalize(password)
    except FieldInvalidError as exc:
        # It tells the limit of another password.
        raise FieldInvalidError("password", PASSWORD_ALLOWED) from exc
    check_new(password, "password", (name,))
    return encoded


def check_name(name: str) -> None:
    """Refuse what no administrator can be called.

    Raises:
        FieldInvalidError: `name`.
    """
    if not _NAME.fullmatch(name):
        raise FieldInvalidError("name", NAME_ALLOWED)


def session_indexes(
    lookup: LookupIndex, environment: Environment, token: str
) -> tuple[str, ...]:
    """HMACs under which the session of a cookie may stand.

    Args:
        lookup: makes them.
        environment: of the installation.
        token: the cookie's value, as it came.
    """
    return lookup.indexes(f"console-session/{environment.value}", token[:_LONGEST])


class ConsoleLogin:
    """Users of the console and their sessions.

    Args:
        store: users, sessions, tries.
        lookup: indexes of sessions and accounts.
        sealer: opens TOTP seeds (`console_user`, its id, `totp_sealed`).
        clock: the time.
        passwords: checks login passwords.
        settings: limits, environment, name of the installation.
    """

    def __init__(
        self,
        store: Database,
        lookup: LookupIndex,
        sealer: Sealer,
        clock: Clock,
        passwords: Passwords,
        settings: Settings,
    ) -> None:
        self._store = store
        self._lookup = lookup
        self._sealer = sealer
        self._clock = clock
        self._passwords = passwords
        self._environment = settings.environment
        self._issuer = f"{settings.installation} (consola)"
        self._tries = ConsoleLoginAttempts(
            store, lookup, sealer, clock, passwords, settings
        )

    async def create_user(self, actor: str, name: str, password: str) -> NewConsoleUser:
        """Record a user.

        Args:
            actor: for the audit.
            name: a-z, 0-9, dot, hyphen and underscore, 2 to 40.
            password: 12 characters or more, up to 1024 bytes.

        Returns:
            The user, and the TOTP enrolment, shown once.

        Raises:
            FieldInvalidError: `name` or `password`.
            ApplianceError: `ALREADY_EXISTS`.
        """
        check_name(name)
        encoded = console_password(password, name)
        user = ConsoleUser(new_id(), name, self._clock.now())
        seed = totp.new_seed()
        secret = ConsoleSecret(
            user,
            await self._passwords.hash(encoded),
            self._sealer.seal(
                seed.encode(), table="console_user", row=user.id, column="totp_sealed"
            ),
        )
        async with self._store.write() as transaction:
            await ConsoleUserStore(transaction).add_user(secret)
            # What strangers tried at the name before is nobody's.
            await LoginAttemptStore(transaction).forget(
                account_indexes(self._lookup, name)
            )
            transaction.audit.add(
                AuditEvent(
                    EventKind.CONSOLE_USER_CREATED,
                    actor,
                    detail={"user": user.id, "before": None, "after": {"name": name}},
                )
            )
        return NewConsoleUser(user, totp.provisioning_uri(seed, name, self._issuer))

    async def users(self) -> list[ConsoleUser]:
        """Every user, by name."""
        async with self._store.read() as transaction:
            return await ConsoleUserStore(transaction).users()

    async def sign_in(self, typed: SignIn, address: str) -> NewConsoleSession:
        """Check all three and open a session.

        Args:
            typed: name, password and code.
            address: where the call came from, as tries are counted by.

        Raises:
            ApplianceError: `LOGIN_FAILED`, whichever was not right;
                `RATE_LIMITED`.
        """
        secret, attempt, right = await self._tries.password(
            typed.name, typed.password, address
        )
        made = None
        if right and secret is not None:
            made = await self._open(secret, typed.code, attempt)
        if made is None:
            await self._tries.wrong(attempt, secret)
            raise ApplianceError(ErrorCode.LOGIN_FAILED)
        return made

    async def _open(
        self, secret: ConsoleSecret, code: str, attempt: Attempt
    ) -> NewConsoleSession | None:
        """Use a code up and open a session; None if the code is not right."""
        user = secret.user
        step = self._tries.step(secret, code)
        if step is None:
            return None
        token = secrets.token_urlsafe(_TOKEN_BYTES)
        now = self._clock.now()
        until = now + timedelta(seconds=IDLE_S)
        async with self._store.write() as transaction:
            if not await self._tries.right(transaction, attempt, secret, step):
                return None
            await ConsoleUserStore(transaction).note_login(user.id, now)
            await ConsoleUserStore(transaction).open_session(
                self._indexes(token)[0], user.id, now, until
            )
            transaction.audit.add(
                AuditEvent(EventKind.CONSOLE_LOGIN_COMPLETED, user.actor)
            )
        session = ConsoleSession(user, until, self._csrf(token), now)
        return NewConsoleSession(token, session)

    async def by_token(self, token: str, *, active: bool = True) -> ConsoleSession:
        """The session of a cookie.

        Args:
            token: the cookie's value, as it came.
            active: somebody did something, rather than a page renewing itself.

        Raises:
            ApplianceError: `TOKEN_INVALID`, `TOKEN_EXPIRED`.
        """
        indexes = self._indexes(token)
        async with self._store.read() as transaction:
            row = await ConsoleUserStore(transaction).session(indexes)
        if row is None or row.user.disabled is not None:
            raise ApplianceError(ErrorCode.TOKEN_INVALID)
        now = self._clock.now()
        if now >= row.until:
            raise ApplianceError(ErrorCode.TOKEN_EXPIRED)
        until = min(
            row.created + timedelta(seconds=SESSION_S), now + timedelta(seconds=IDLE_S)
        )
        if active and until - row.until >= _STRIDE:
            async with self._store.write() as transaction:
                await ConsoleUserStore(transaction).prolong_session(indexes, now, until)
        csrf = self._csrf(token)
        return ConsoleSession(row.user, max(row.until, until), csrf, row.proven)

    async def former_user(self, token: str) -> str | None:
        """Return the id of a session's user, over or not; None for an unknown one.

        Args:
            token: the cookie's value, as it came.
        """
        async with self._store.read() as transaction:
            row = await ConsoleUserStore(transaction).session(self._indexes(token))
        return None if row is None else row.user.id

    async def confirm(self, session: ConsoleSession, code: str, address: str) -> None:
        """Have a signed-in user prove themselves again, by a fresh code.

        Args:
            session: of the user.
            code: six digits, not used before.
            address: where the call came from, as tries are counted by.

        Raises:
            ApplianceError: `OTP_INVALID`, `RATE_LIMITED`.
        """
        user = session.user
        attempt = await self._tries.begin(
            AttemptKind.CONSOLE_CODE, user.name, address, user.id
        )
        async with self._store.read() as transaction:
            secret = await ConsoleUserStore(transaction).by_name(user.name)
        step = None if secret is None else self._tries.step(secret, code)
        async with self._store.write() as transaction:
            if secret is not None and await self._tries.right(
                transaction, attempt, secret, step
            ):
                return
            await Throttle.wrong(transaction, attempt)
            transaction.audit.add(AuditEvent(EventKind.CONSOLE_CODE_WRONG, user.actor))
        raise ApplianceError(ErrorCode.OTP_INVALID)

    async def note_proof(self, token: str) -> datetime:
        """Record that the user of a session has just given a code.

        Args:
            token: the cookie's value; of a session that is over, nothing is recorded.

        Returns:
            The time of it.
        """
        now = self._clock.now()
        async with self._store.write() as transaction:
            await ConsoleUserStore(transaction).note_proof(self._indexes(token), now)
        return now

    async def witness(
        self, session: ConsoleSession, typed: SignIn, address: str
    ) -> str:
        """Have a second administrator agree to what the first one does.

        Args:
            session: of the first.
            typed: name, password and code of the second.
            address: where the call came from, as tries are counted by.

        Returns:
            How the audit names the second.

        Raises:
            ApplianceError: `LOGIN_FAILED`, whichever was not right, also for the
                first one once more; `RATE_LIMITED`.
        """
        return (await self._prove(typed, address, but=session.user.id)).actor

    async def agrees(self, typed: SignIn) -> str:
        """Have an administrator agree to what an operator does on the host.

        Args:
            typed: name, password and code of the administrator.

        Returns:
            The administrator's name in the audit.

        Raises:
            ApplianceError: `LOGIN_FAILED`, whichever was not right; `RATE_LIMITED`.
        """
        return (await self._prove(typed, _HOST)).actor

    async def prove(
        self, session: ConsoleSession, password: str, code: str, address: str
    ) -> None:
        """Have a signed-in user prove themselves again, by password and code.

        Args:
            session: of the user.
            password: the present one.
            code: six digits, not used before.
            address: where the call came from, as tries are counted by.

        Raises:
            ApplianceError: `LOGIN_FAILED`, whichever was not right;
                `RATE_LIMITED`.
        """
        await self._prove(SignIn(session.user.name, password, code), address)

    async def _prove(self, typed: SignIn, address: str, but: str = "") -> ConsoleUser:
        """Whose name, password and code these are, where it is not `but`.

        Raises:
            ApplianceError: `LOGIN_FAILED`, `RATE_LIMITED`.
        """
        secret, attempt, right = await self._tries.password(
            typed.name, typed.password, address
        )
        if right and secret is not None and secret.user.id != but:
            step = self._tries.step(secret, typed.code)
            async with self._store.write() as transaction:
                if await self._tries.right(transaction, attempt, secret, step):
                    return secret.user
        await self._tries.wrong(attempt, secret)
        raise ApplianceError(ErrorCode.LOGIN_FAILED)

    async def sign_out(self, token: str) -> None:
        """End a session; one that is over already is no error.

        Args:
            token: the cookie's value.
        """
        indexes = self._indexes(token)
        async with self._store.write() as transaction:
            row = await ConsoleUserStore(transaction).session(indexes)
            if row is not None and await ConsoleUserStore(transaction).close_session(
                indexes
            ):
                transaction.audit.add(
                    AuditEvent(EventKind.CONSOLE_LOGOUT, row.user.actor)
                )

    @staticmethod
    def is_own_form(session: ConsoleSession, csrf: str) -> bool:
        """Whether a form was made for this session.

        Args:
            session: of the cookie.
            csrf: what the form carried.
        """
        return hmac.compare_digest(session.csrf.encode(), csrf.encode())

    def _indexes(self, token: str) -> tuple[str, ...]:
        return session_indexes(self._lookup, self._environment, token)

    def _csrf(self, token: str) -> str:
        return self._lookup.index(f"console-csrf/{self._environment.value}", token)
