"""Tries to prove who one is to the console: password and code, each one counted.

Whatever was wrong takes the same time: a name that nobody has is hashed for, too.
"""

from typing import Final

from appliance.admission.login_throttle import Attempt, Throttle
from appliance.domain.audit.record import AuditEvent
from appliance.domain.clock import Clock
from appliance.domain.console.lists import ConsoleSecret
from appliance.domain.errors import FieldInvalidError
from appliance.domain.people.login import AttemptKind
from appliance.domain.ports import LookupIndex, Sealer
from appliance.domain.vocab import EventKind
from appliance.identity import totp
from appliance.keys.password_hashing import Passwords
from appliance.keys.signing_password import normalize
from appliance.people.console_user_store import ConsoleUserStore
from appliance.record.unit_of_work import Database, Transaction
from appliance.settings import Settings

_ACCOUNT: Final = "console-account"
_LONGEST: Final = 128
"""Characters of a name that are looked at."""


def account_indexes(lookup: LookupIndex, name: str) -> tuple[str, ...]:
    """What tries on an administrator's account are counted by.

    Args:
        lookup: makes them.
        name: of the administrator, in lower case.
    """
    return lookup.indexes(_ACCOUNT, name)


class ConsoleLoginAttempts:
    """What `ConsoleLogin` checks people by.

    Args:
        store: users and tries.
        lookup: indexes of accounts.
        sealer: opens TOTP seeds (`console_user`, its id, `totp_sealed`).
        clock: the time.
        passwords: checks login passwords.
        settings: limits.
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
        self._throttle = Throttle(store, lookup, clock, settings.auth)

    async def password(
        self, typed_name: str, password: str, address: str
    ) -> tuple[ConsoleSecret | None, Attempt, bool]:
        """Whose name it is, the try, and whether the password is right.

        Raises:
            ApplianceError: `RATE_LIMITED`.
        """
        name = typed_name.strip().lower()[:_LONGEST]
        async with self._store.read() as transaction:
            secret = await ConsoleUserStore(transaction).by_name(name)
        user = None if secret is None else secret.user.id
        attempt = await self.begin(AttemptKind.CONSOLE_PASSWORD, name, address, user)
        phc = None if secret is None else secret.phc
        right = await self._passwords.verify(phc, _encoded(password))
        return secret, attempt, right

    async def begin(
        self, kind: AttemptKind, name: str, address: str, user: str | None
    ) -> Attempt:
        """Count a try before it is looked at; `user` is whose name it is.

        Raises:
            ApplianceError: `RATE_LIMITED`.
        """
        account = account_indexes(self._lookup, name)[0]
        return await self._throttle.begin(kind, account, None, address, user=user)

    def step(self, secret: ConsoleSecret, code: str) -> int | None:
        """The TOTP step whose code this is."""
        seed = self._sealer.open(
            secret.totp_sealed,
            table="console_user",
            row=secret.user.id,
            column="totp_sealed",
        )
        return totp.step_of(seed.decode("ascii"), code, self._clock)

    async def right(
        self,
        transaction: Transaction,
        attempt: Attempt,
        secret: ConsoleSecret,
        step: int | None,
    ) -> bool:
        """Use a code's step up and end the try as right; False if it is no more.

        Args:
            transaction: the caller's.
            attempt: the try.
            secret: whose code it is.
            step: of the code; None if it was none.
        """
        if step is None or not await ConsoleUserStore(transaction).advance_step(
            secret, step
        ):
            return False
        await self._throttle.right(transaction, attempt)
        return True

    async def wrong(self, attempt: Attempt, secret: ConsoleSecret | None) -> None:
        """End a try to sign in as wrong."""
        detail: dict[str, object] = {} if secret is None else {"user": secret.user.id}
        async with self._store.write() as transaction:
            await self._throttle.wrong(transaction, attempt)
            transaction.audit.add(
                AuditEvent(EventKind.CONSOLE_LOGIN_WRONG, "anonymous", detail=detail)
            )


def _encoded(password: str) -> bytes:
    """A password as it is checked; one that none can be is checked all the same."""
    try:
        return normalize(password)
    except FieldInvalidError:
        return b"\0"
