"""Administrators of the console: shut out, let in again, given new secrets.

What is changed ends the sessions that stood on it, in the same transaction: a
password that somebody else knew, or a telephone that was stolen, opens nothing
from then on. One enabled administrator always remains.
"""

from base64 import urlsafe_b64decode, urlsafe_b64encode
from datetime import datetime, timedelta
from typing import Final

from appliance.domain.audit.record import AuditEvent
from appliance.domain.clock import Clock
from appliance.domain.console.lists import ConsoleSecret
from appliance.domain.errors import ApplianceError, ErrorCode
from appliance.domain.integrators.integrators import (
    ConsoleSession,
    ConsoleUserView,
    FactorOffer,
    NewConsoleUser,
)
from appliance.domain.ports import LookupIndex, Sealer
from appliance.domain.vocab import EventKind
from appliance.identity import totp
from appliance.identity.console_login import console_password, session_indexes
from appliance.keys.password_hashing import Passwords
from appliance.people.console_user_store import ConsoleUserStore
from appliance.record.unit_of_work import Database, Transaction
from appliance.settings import Settings

_OFFER_LIFE: Final = timedelta(minutes=10)
"""How long a new seed may wait for its first code."""
_OFFER_CHARS: Final = 1000


class ConsoleUsers:
    """The use cases around administrators, by themselves and by each other.

    Args:
        store: users and sessions.
        lookup: indexes of sessions.
        sealer: seals TOTP seeds (`console_user`, its id, `totp_sealed`).
        clock: the time.
        passwords: hashes them.
        settings: environment, name of the installation.
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

    async def list(self) -> list[ConsoleUserView]:
        """Every administrator, by name."""
        async with self._store.read() as transaction:
            return await ConsoleUserStore(transaction).views(self._clock.now())

    async def get(self, name: str) -> ConsoleUserView:
        """An administrator by name.

        Raises:
            ApplianceError: `CONSOLE_USER_NOT_FOUND`.
        """
        for view in await self.list():
            if view.user.name == name:
                return view
        raise ApplianceError(ErrorCode.CONSOLE_USER_NOT_FOUND)

    async def disable(self, actor: str, name: str) -> None:
        """Shut an administrator out: sessions end, and none begins.

        Args:
            actor: for the audit.
            name: of the administrator.

        Raises:
            ApplianceError: `CONSOLE_USER_NOT_FOUND`; `CONSOLE_USER_STATE` for one
                who is shut out already; `CONSOLE_USER_LAST`.
        """
        now = self._clock.now()
        async with self._store.write() as transaction:
            enabled = await ConsoleUserStore(transaction).enabled()
            user = (await _found(transaction, name)).user
            if user.id not in enabled:
                raise ApplianceError(ErrorCode.CONSOLE_USER_STATE)
            if len(enabled) == 1:
                raise ApplianceError(ErrorCode.CONSOLE_USER_LAST)
            await ConsoleUserStore(transaction).set_disabled(user.id, now)
            ended = await ConsoleUserStore(transaction).close_sessions(user.id, now)
            _audit(
                transaction,
                EventKind.CONSOLE_USER_DISABLED,
                actor,
                user.id,
                before={"state": "active"},
                after={"state": "disabled"},
                sessionsEnded=ended,
            )

    async def enable(self, actor: str, name: str) -> None:
        """Undo `disable`; password and TOTP are those of before.

        Args:
            actor: for the audit.
            name: of the administrator.

        Raises:
            ApplianceError: `CONSOLE_USER_NOT_FOUND`; `CONSOLE_USER_STATE` for one
                who is not shut out.
        """
        async with self._store.write() as transaction:
            enabled = await ConsoleUserStore(transaction).enabled()
            user = (await _found(transaction, name)).user
            if user.id in enabled:
                raise ApplianceError(ErrorCode.CONSOLE_USER_STATE)
            await ConsoleUserStore(transaction).set_disabled(user.id, None)
            _audit(
                transaction,
                EventKind.CONSOLE_USER_ENABLED,
                actor,
                user.id,
                before={"state": "disabled"},
                after={"state": "active"},
            )

    async def end_sessions(self, actor: str, name: str, keep: str = "") -> int:
        """End an administrator's sessions; how many there were.

        Args:
            actor: for the audit.
            name: of the administrator.
            keep: token of a session that goes on; empty for none.

        Raises:
            ApplianceError: `CONSOLE_USER_NOT_FOUND`.
        """
        async with self._store.write() as transaction:
            user = (await _found(transaction, name)).user
            ended = await ConsoleUserStore(transaction).close_sessions(
                user.id, self._clock.now(), self._indexes(keep)
            )
            if ended:
                _audit(
                    transaction,
                    EventKind.CONSOLE_USER_SESSIONS_ENDED,
                    actor,
                    user.id,
                    sessionsEnded=ended,
                )
        return ended

    @staticmethod
    def check_password(password: str, name: str) -> None:
        """See whether a password will do.

        Args:
            password: 12 characters or more, up to 1024 bytes, none that is weak.
            name: of the administrator.

        Raises:
            FieldInvalidError: `password`.
        """
        console_password(password, name)

    async def set_password(
        self,
        actor: str,
        name: str,
        password: str,
        *,
        witness: str | None = None,
        keep: str = "",
    ) -> None:
        """Set an administrator's password; their sessions end.

        Args:
            actor: for the audit.
            name: of the administrator.
            password: 12 characters or more, up to 1024 bytes.
            witness: the second administrator, where two are needed.
            keep: token of a session that goes on; empty for none.

        Raises:
            FieldInvalidError: `password`.
            ApplianceError: `CONSOLE_USER_NOT_FOUND`.
        """
        phc = await self._passwords.hash(console_password(password, name))
        async with self._store.write() as transaction:
            user = (await _found(transaction, name)).user
            await ConsoleUserStore(transaction).set_password(user.id, phc)
            ended = await ConsoleUserStore(transaction).close_sessions(
                user.id, self._clock.now(), self._indexes(keep)
            )
            _audit(
                transaction,
                EventKind.CONSOLE_USER_PASSWORD_SET,
                actor,
                user.id,
                witness=witness,
                sessionsEnded=ended,
            )

    async def reset_totp(
        self, actor: str, name: str, *, witness: str | None = None
    ) -> NewConsoleUser:
        """Give an administrator a new TOTP seed at once; their sessions end.

        Args:
            actor: for the audit.
            name: of the administrator.
            witness: the second administrator, where two are needed.

        Returns:
            The user, and the TOTP enrolment, shown once.

        Raises:
            ApplianceError: `CONSOLE_USER_NOT_FOUND`.
        """
        seed = totp.new_seed()
        async with self._store.write() as transaction:
            user = (await _found(transaction, name)).user
            await self._set_totp(transaction, actor, user.id, seed, 0, witness=witness)
        return NewConsoleUser(user, self._uri(seed, user.name))

    def offer_totp(self, session: ConsoleSession) -> FactorOffer:
        """A new TOTP seed for who is signed in; it counts once a code of it came.

        Args:
            session: whose password and code were checked just before.
        """
        seed = totp.new_seed()
        until = self._clock.now() + _OFFER_LIFE
        # Nothing is kept of an offer: it is good for this session alone, and
        # for a few minutes.
        text = f"{seed} {until.isoformat()} {session.csrf}"
        sealed = self._sealer.seal(
            text.encode(),
            table="console_user",
            row=session.user.id,
            column="totp_offered",
        )
        return FactorOffer(
            self._uri(seed, session.user.name), urlsafe_b64encode(sealed).decode()
        )

    def offered_totp(self, session: ConsoleSession, sealed: str) -> FactorOffer:
        """An offer once more, after a code that was not right.

        Raises:
            ApplianceError: `CSRF_REFUSED` for what is no offer to this session.
        """
        return FactorOffer(
            self._uri(self._offered(session, sealed), session.user.name), sealed
        )

    async def take_totp(
        self, session: ConsoleSession, sealed: str, code: str, keep: str
    ) -> None:
        """Replace the TOTP seed of who is signed in by what was offered.

        Args:
            session: of the user.
            sealed: of the offer.
            code: of the new seed, six digits.
            keep: token of this session, which goes on; others end.

        Raises:
            ApplianceError: `OTP_INVALID`; `CSRF_REFUSED` for what is no offer to
                this session.
        """
        seed = self._offered(session, sealed)
        step = totp.step_of(seed, code, self._clock)
        if step is None:
            raise ApplianceError(ErrorCode.OTP_INVALID)
        user = session.user
        async with self._store.write() as transaction:
            await self._set_totp(
                transaction, user.actor, user.id, seed, step, keep=keep
            )

    async def _set_totp(
        self,
        transaction: Transaction,
        actor: str,
        user: str,
        seed: str,
        step: int,
        *,
        witness: str | None = None,
        keep: str = "",
    ) -> None:
        sealed = self._sealer.seal(
            seed.encode(), table="console_user", row=user, column="totp_sealed"
        )
        await ConsoleUserStore(transaction).set_totp(user, sealed, step)
        ended = await ConsoleUserStore(transaction).close_sessions(
            user, self._clock.now(), self._indexes(keep)
        )
        _audit(
            transaction,
            EventKind.CONSOLE_USER_TOTP_SET,
            actor,
            user,
            witness=witness,
            sessionsEnded=ended,
        )

    def _offered(self, session: ConsoleSession, sealed: str) -> str:
        """The seed of an offer to this session that is not over.

        Raises:
            ApplianceError: `CSRF_REFUSED` for anything else.
        """
        try:
            opened = self._sealer.open(
                urlsafe_b64decode(sealed[:_OFFER_CHARS]),
                table="console_user",
                row=session.user.id,
                column="totp_offered",
            )
            seed, until, csrf = opened.decode().split(" ")
            over = self._clock.now() >= datetime.fromisoformat(until)
        except (ValueError, ApplianceError) as exc:
            raise ApplianceError(ErrorCode.CSRF_REFUSED) from exc
        if over or csrf != session.csrf:
            raise ApplianceError(ErrorCode.CSRF_REFUSED)
        return seed

    def _uri(self, seed: str, name: str) -> str:
        return totp.provisioning_uri(seed, name, self._issuer)

    def _indexes(self, token: str) -> tuple[str, ...]:
        if not token:
            return ()
        return session_indexes(self._lookup, self._environment, token)


async def _found(transaction: Transaction, name: str) -> ConsoleSecret:
    secret = await ConsoleUserStore(transaction).by_name(name)
    if secret is None:
        raise ApplianceError(ErrorCode.CONSOLE_USER_NOT_FOUND)
    return secret


def _audit(
    transaction: Transaction, kind: EventKind, actor: str, user: str, **detail: object
) -> None:
    told = {key: value for key, value in detail.items() if value is not None}
    transaction.audit.add(AuditEvent(kind, actor, detail={"user": user, **told}))
