"""Attempts at the signing password: slots, count and lock.

A wrong password counts when Argon2 has said no. Before it runs, a check takes a
running slot, so that no number of parallel guesses gets past the limit. Of the calls
of a person who wait with the same password one is checked for all: if it is right it
is right for each of them.

The record counts for all fronts. What each of them has seen itself, it remembers, since
whoever writes to the database can reset the record (`PasswordFloor`).

Source: decisions "attempts", "wrong signing password".
"""

import asyncio
import hmac
import secrets
from collections.abc import Collection
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Final
from weakref import WeakValueDictionary

import structlog

from appliance.domain.audit.record import AuditEvent
from appliance.domain.clock import Clock
from appliance.domain.errors import (
    ActivationInvalidError,
    ApplianceError,
    ErrorCode,
)
from appliance.domain.ids import CredentialId, PersonId, RequestId
from appliance.domain.people.identity import Credential, LockedKey, SigningSecret
from appliance.domain.requests.request import Signer
from appliance.domain.vocab import EventKind, SlotOutcome
from appliance.keys.count_clearings import CountClearings
from appliance.keys.key_encryption import open_outer
from appliance.keys.password_attempt_store import PasswordAttemptStore
from appliance.keys.password_floor import Admission, Check, PasswordFloor
from appliance.keys.rewrap_user_keys import try_relock
from appliance.keys.signing_password import (
    PasswordCheck,
    SigningPasswords,
    UnlockKeys,
)
from appliance.people.person_store import PersonStore
from appliance.record.unit_of_work import Database, Transaction
from appliance.settings import SigningSettings

_log = structlog.get_logger(__name__)
_SLOT_LIFE: Final = timedelta(seconds=60)
_SAME_PASSWORD: Final = timedelta(seconds=60)
_LOOK_AGAIN_S: Final = 0.1
_LATER: Final[dict[str, object]] = {"retryAfter": 5}


@dataclass(frozen=True, slots=True)
class RightPassword:
    """A check that was passed, and has still to be closed."""

    slot: str
    secret: SigningSecret
    """What the password was compared with."""
    found: PasswordCheck


@dataclass(frozen=True, slots=True)
class _Wish:
    """A check that somebody asks for."""

    signer: Signer
    request: RequestId | None
    password: bytes = field(repr=False)
    coming: tuple[CredentialId, ...]
    mark: bytes = field(repr=False)
    """Equal where person, password and `coming` are; tells nobody the password."""
    deadline: float
    """By the clock of the event loop: when they have waited long enough."""
    found: asyncio.Future[RightPassword | None] = field(default_factory=asyncio.Future)
    """For who waits for this check; None unless it was right."""


@dataclass(frozen=True, slots=True)
class _Slot:
    """Leave to check once."""

    id: str
    secret: SigningSecret
    keys: tuple[LockedKey, ...]
    """The person's keys that may sign."""
    seen: Check
    """The same check, to this process."""


class PasswordAttempts:
    """Checks signing passwords within the limits.

    Args:
        store: the record.
        passwords: derives from them.
        clock: the time.
        settings: the limits.
        installation: the setting of that name.
        clearings: proves and checks who cleared a count.
    """

    def __init__(
        self,
        store: Database,
        passwords: SigningPasswords,
        clock: Clock,
        settings: SigningSettings,
        installation: str,
        clearings: CountClearings,
    ) -> None:
        self._store = store
        self._passwords = passwords
        self._clock = clock
        self._settings = settings
        self._installation = installation
        self._clearings = clearings
        self._floor = PasswordFloor(clock, settings.wrong_passwords)
        self._queues: WeakValueDictionary[PersonId, asyncio.Lock] = (
            WeakValueDictionary()
        )
        self._mark_key = secrets.token_bytes(32)
        self._open: dict[bytes, _Wish] = {}
        """Checks that equal ones may wait for, by mark."""

    async def check(
        self,
        signer: Signer,
        request: RequestId | None,
        password: bytes,
        coming: Collection[CredentialId] = (),
    ) -> RightPassword:
        """Check a signing password.

        Call it shielded from the caller's leaving: a check that is begun is
        counted.

        Args:
            signer: whose password it is.
            request: what it is to sign, or None where it is something else.
            password: as `normalize` gives it.
            coming: credentials to be made whose unlock keys are wanted, beside
                those of the person's keys.

        Returns:
            What the transaction that goes on gives to `passed`.

        Raises:
            ApplianceError: `SIGN_PASSWORD_WRONG` with `attemptsLeft`,
                `SIGN_LOCKED`, `RATE_LIMITED` when no slot gets free, or
                `CERTIFICATE_NOT_USABLE` for a person without a password.
        """
        parts = (signer.person, *coming, password.hex())
        mark = hmac.digest(self._mark_key, "\n".join(parts).encode(), "sha256")
        deadline = asyncio.get_running_loop().time() + self._settings.slot_wait_s
        wish = _Wish(signer, request, password, tuple(coming), mark, deadline)
        first = self._open.setdefault(mark, wish)
        if first is not wish:
            right = await asyncio.shield(first.found)
            if right is not None:
                return right
            # A wrong one counts for each request: they are checked one by one.
        return await self._check_for_all(wish)

    async def _check_for_all(self, wish: _Wish) -> RightPassword:
        """Check, and tell who waits for it.

        Raises:
            ApplianceError: see `check`.
        """
        right = None
        try:
            slot = await self._take_slot(wish)
            found = await self._checked(wish, slot)
            if found.right:
                right = RightPassword(slot.id, slot.secret, found)
                return right
            left = await self._count_wrong(wish.signer, wish.request, slot.id, found)
            if left == 0:
                raise ApplianceError(ErrorCode.SIGN_LOCKED)
            raise ApplianceError(
                ErrorCode.SIGN_PASSWORD_WRONG, extras={"attemptsLeft": left}
            )
        finally:
            self._close(wish)
            wish.found.set_result(right)

    async def _checked(self, wish: _Wish, slot: _Slot) -> PasswordCheck:
        """Check, and remember here what came of it before the record is asked to.

        Raises:
            ApplianceError: as `SigningPasswords.check`.
        """
        try:
            found = await self._passwords.check(
                wish.password,
                slot.secret,
                wish.coming,
                keys=slot.keys,
                owner=wish.signer.person,
            )
        except BaseException:
            self._floor.left(slot.seen)
            raise
        if found.right:
            self._floor.right(slot.seen)
        else:
            self._floor.wrong(slot.seen, found.mark)
        return found

    def opens(self, unlock: bytes, credential: Credential) -> bool:
        """Tell whether an unlock key opens a credential as it stands recorded.

        So the credential's public key is the one that the password's lock is bound to.

        Args:
            unlock: as `passed` gives it.
            credential: read after that.
        """
        try:
            open_outer(unlock, credential.outer, credential.aad(self._installation))
        except ActivationInvalidError:
            return False
        return True

    async def clear(
        self, transaction: Transaction, person: PersonId, salt: bytes
    ) -> None:
        """Set a person's count to nothing and lift the lock, as one who may.

        Args:
            transaction: the caller's.
            person: whose.
            salt: of their signing password from now on.
        """
        proof = self._clearings.prove(person, salt, self._clock.now())
        await PersonStore(transaction).clear_counted(person, proof)

    async def passed(
        self, transaction: Transaction, signer: Signer, right: RightPassword
    ) -> UnlockKeys | None:
        """Close a slot as right and set the count to nothing.

        Where the password is kept under an earlier pepper it is kept under the
        present one from here on, its keys with it, unless one is in use.

        Returns:
            The unlock keys that hold within this transaction and after it; None
            when the password was changed since it was checked.
        """
        person = signer.person
        secret = await PersonStore(transaction).signing_secret(person, lock=True)
        await PasswordAttemptStore(transaction).close(
            right.slot, SlotOutcome.RIGHT, None
        )
        unlock, renewed = right.found.unlock, right.found.renewed
        if (
            secret is not None
            and renewed is not None
            and secret.verifier_sha256 == renewed.secret.verifier_sha256
        ):
            # Another one of those who waited for this check has kept it meanwhile.
            return renewed.unlock
        if secret is None or secret.verifier_sha256 != right.secret.verifier_sha256:
            return None
        if secret.counted and secret.locked_at is None:
            # The salt that was checked: the row may have been altered since.
            await self.clear(transaction, person, right.secret.salt)
        if renewed is None or not await try_relock(
            transaction, person, self._installation, unlock, renewed
        ):
            return unlock
        transaction.audit.add(
            AuditEvent(
                EventKind.SIGN_PEPPER_RENEWED,
                signer.actor,
                detail={
                    "before": {"pepper": secret.pepper_version},
                    "after": {"pepper": renewed.secret.pepper_version},
                },
            )
        )
        return renewed.unlock

    async def _take_slot(self, wish: _Wish) -> _Slot:
        """A slot, now or when one gets free.

        In one process one of a person's checks looks at a time: a look is a
        transaction that writes, and fifty who wait would make 500 a second. Who
        waits for this check came before the look that took its slot: what it saw
        of password, lock and keys is no older than they are.

        Raises:
            ApplianceError: `RATE_LIMITED` after `slot_wait_s`; those of `_try_slot`.
        """
        queue = self._queues.setdefault(wish.signer.person, asyncio.Lock())
        try:
            async with asyncio.timeout_at(wish.deadline):
                await queue.acquire()
        except TimeoutError as exc:
            raise ApplianceError(ErrorCode.RATE_LIMITED, extras=_LATER) from exc
        try:
            while True:
                self._close(wish)
                taken = await self._try_slot(wish.signer, wish.request)
                if taken is not None:
                    return taken
                if asyncio.get_running_loop().time() >= wish.deadline:
                    raise ApplianceError(ErrorCode.RATE_LIMITED, extras=_LATER)
                self._open.setdefault(wish.mark, wish)
                await asyncio.sleep(_LOOK_AGAIN_S)
        finally:
            queue.release()

    def _close(self, wish: _Wish) -> None:
        """Let nobody else wait for a check."""
        if self._open.get(wish.mark) is wish:
            del self._open[wish.mark]

    async def _try_slot(
        self, signer: Signer, request: RequestId | None
    ) -> _Slot | None:
        """A slot if counted and running ones leave room for it.

        Raises:
            ApplianceError: `SIGN_LOCKED` or `CERTIFICATE_NOT_USABLE`.
        """
        seen: Check | None = None
        try:
            async with self._store.write() as transaction:
                secret = await _unlocked_secret(transaction, signer.person)
                running = await PasswordAttemptStore(transaction).running(
                    signer.person, self._clock.now() - _SLOT_LIFE
                )
                if secret.counted + running >= self._settings.wrong_passwords:
                    return None
                clearing = self._clearings.proven(signer.person, secret.cleared)
                admission, check = self._floor.admit(signer.person, secret, clearing)
                if admission is Admission.FREE:
                    seen = check
                    return await self._slot(transaction, signer, request, secret, check)
                if admission is Admission.LOCKED:
                    await self._lock_again(transaction, signer, request, secret)
        except BaseException:
            if seen is not None:
                self._floor.left(seen)
            raise
        if admission is Admission.LOCKED:
            raise ApplianceError(ErrorCode.SIGN_LOCKED)
        return None

    async def _slot(
        self,
        transaction: Transaction,
        signer: Signer,
        request: RequestId | None,
        secret: SigningSecret,
        seen: Check,
    ) -> _Slot:
        """Take a slot, with what the check needs."""
        store = PasswordAttemptStore(transaction)
        slot = await store.take(signer.person, request, self._clock.now())
        keys = await store.keys(signer.person, self._installation)
        return _Slot(slot, secret, keys, seen)

    async def _lock_again(
        self,
        transaction: Transaction,
        signer: Signer,
        request: RequestId | None,
        secret: SigningSecret,
    ) -> None:
        """Lock a password that the record says is open, and this process knows is not.

        So an officer sees that it is locked, and can lift it.
        """
        counted = max(secret.counted, self._settings.wrong_passwords)
        await PersonStore(transaction).set_counted(
            signer.person, counted, self._clock.now()
        )
        transaction.audit.add(
            AuditEvent(EventKind.SIGN_LOCKED, signer.actor, request=request)
        )
        _log.warning("signing_password.locked_again", person=signer.person)

    async def _count_wrong(
        self,
        signer: Signer,
        request: RequestId | None,
        slot: str,
        found: PasswordCheck,
    ) -> int:
        """Count a wrong password; gives how many more may be wrong.

        Raises:
            ApplianceError: `CERTIFICATE_NOT_USABLE` for a person gone meanwhile.
        """
        now = self._clock.now()
        limit = self._settings.wrong_passwords
        async with self._store.write() as transaction:
            secret = await PersonStore(transaction).signing_secret(
                signer.person, lock=True
            )
            if secret is None:
                raise ApplianceError(ErrorCode.CERTIFICATE_NOT_USABLE)
            again = await PasswordAttemptStore(transaction).wrong_before(
                signer.person, request, found.mark, now - _SAME_PASSWORD
            )
            outcome = SlotOutcome.REPEATED if again else SlotOutcome.WRONG
            await PasswordAttemptStore(transaction).close(slot, outcome, found.mark)
            counted = secret.counted + (0 if again else 1)
            locked_at = secret.locked_at
            if counted >= limit and locked_at is None:
                locked_at = now
                transaction.audit.add(
                    AuditEvent(EventKind.SIGN_LOCKED, signer.actor, request=request)
                )
            await PersonStore(transaction).set_counted(
                signer.person, counted, locked_at
            )
            transaction.audit.add(
                AuditEvent(
                    EventKind.SIGN_PASSWORD_WRONG,
                    signer.actor,
                    request=request,
                    detail={"counted": not again, "left": max(limit - counted, 0)},
                )
            )
        return max(limit - counted, 0)


async def _unlocked_secret(transaction: Transaction, person: PersonId) -> SigningSecret:
    """A person's signing secret, kept from others, unless it is locked.

    Raises:
        ApplianceError: `SIGN_LOCKED` or `CERTIFICATE_NOT_USABLE`.
    """
    secret = await PersonStore(transaction).signing_secret(person, lock=True)
    if secret is None:
        raise ApplianceError(ErrorCode.CERTIFICATE_NOT_USABLE)
    if secret.locked_at is not None:
        raise ApplianceError(ErrorCode.SIGN_LOCKED)
    return secret
