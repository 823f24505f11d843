"""Tries at a sign-in, counted before it is known how they end.

A try is recorded in the database first, so that no number of parallel guesses
gets past a count. Wrong tries alone make anybody wait, of three kinds:

- those from one address (of IPv6 its /56 and /48 too), whomever they are about;
- those on one account from one address, so that a stranger's guesses keep nobody
  from their own account;
- beyond a ceiling, those on one account from anywhere: then only addresses from
  which it was proven in the last 30 days are let through, so that a stranger with
  many addresses neither guesses on nor locks the owner out.

Source: decisions "Limits", "attempts"; research "Login, OTP".
"""

import asyncio
import math
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Final

from appliance.admission.fair_queue import FairLimits, FairQueue
from appliance.admission.known_addresses import known_indexes, somebodys_indexes
from appliance.admission.login_attempt_store import LoginAttemptStore
from appliance.admission.work_owner import WORK_OWNER
from appliance.domain.audit.record import AuditEvent
from appliance.domain.clock import Clock
from appliance.domain.errors import ApplianceError, ErrorCode
from appliance.domain.ids import PersonId, new_id
from appliance.domain.people.login import (
    AttemptKind,
    AttemptOutcome,
    Counted,
    NewAttempt,
)
from appliance.domain.ports import LookupIndex
from appliance.domain.text.ip_networks import wider
from appliance.domain.vocab import EventKind
from appliance.record.unit_of_work import Database, Transaction
from appliance.settings import AuthSettings

_MINUTE: Final = timedelta(minutes=1)
_HOUR: Final = timedelta(hours=1)
_DAY: Final = timedelta(days=1)
_WRONG_FROM_ADDRESS: Final = timedelta(minutes=10)
_LONGEST_WAIT_S: Final = 900
_RUNS: Final = timedelta(minutes=1)
"""A try that runs longer has lost its process."""
_WIDER: Final = (2, 4)
"""How many times the limit of an address a /56 and a /48 have."""
_BY_ADDRESS: Final = frozenset({AttemptKind.CLAIM, AttemptKind.REVOCATION})
"""Kinds without a ceiling: they prove nothing, or what is tried cannot be guessed."""
_ANYWHERE: Final = "anywhere"
"""In place of an address; none is written so."""
_FOR_EVER: Final = datetime(9000, 1, 1, tzinfo=UTC)
_LOOK_AGAIN_S: Final = 0.05
_WAIT_S: Final = 5.0
"""Longest wait for tries that are running."""
_BEGINNINGS: Final = FairLimits(
    places=2,
    per_share=2,
    per_party=2,
    waiting=128,
    waiting_per_share=64,
    waiting_per_party=64,
    retry_after_s=1,
    # A refused try costs its statements too, and a flood of them comes at full speed.
    group_part=0.1,
)
"""Tries that a process records at one time; strangers have a small part of the time."""
_WAITING_MOST: Final = 64


@dataclass(frozen=True, slots=True)
class Attempt:
    """A try that was let through."""

    id: str
    known_as: tuple[str, ...]
    """Indexes by which its address is known for the account once the try was right;
    the first is stored."""
    seen_as: str
    """Index by which its address is known for anybody then."""


@dataclass(frozen=True, slots=True)
class _Wait:
    """How long a try must wait."""

    s: float = 0.0
    """None at all when it is not above 0."""
    running: bool = True
    """For tries alone that are still running."""
    ceiling: datetime | None = None
    """Its account's ceiling is reached, by wrong tries since then."""


@dataclass(frozen=True, slots=True)
class _Rule:
    """So many wrong tries within a time are let through."""

    counted: Counted
    limit: int
    window: timedelta
    grows: timedelta | None = None
    """Further wrong ones within this time make the wait longer."""
    forgiving: bool = False
    """A right one makes an end of that."""


class Throttle:
    """Lets tries through, a few at a time.

    Args:
        store: where tries are kept.
        lookup: indexes addresses by account.
        clock: the time.
        settings: the limits.
    """

    def __init__(
        self, store: Database, lookup: LookupIndex, clock: Clock, settings: AuthSettings
    ) -> None:
        self._store = store
        self._lookup = lookup
        self._clock = clock
        self._settings = settings
        self._waiting = 0
        self._beginnings = FairQueue(_BEGINNINGS, "tries")

    async def begin(
        self,
        kind: AttemptKind,
        account_index: str,
        person: PersonId | None,
        address: str,
        scope: str = "",
        user: str | None = None,
    ) -> Attempt:
        """Record a try unless there were too many wrong ones.

        Where it is tries still running that leave no room, wait for their end a
        while: of many at once that are right, none is refused.

        Args:
            kind: what is tried.
            account_index: HMAC of the account, or of what was typed.
            person: whose account it is, or None.
            address: where the call came from, as `client_address` gives it.
            scope: the integrator whose frame it is, whose delays are apart.
            user: id of the administrator whose account it is, for the audit.

        Returns:
            The try, for `right`, `wrong` or `drop`.

        Raises:
            ApplianceError: `RATE_LIMITED`, with `retryAfter`; `OVERLOADED`.
        """
        known = known_indexes(self._lookup, person or account_index, address)
        loop = asyncio.get_running_loop()
        deadline = loop.time() + _WAIT_S
        pause_s = _LOOK_AGAIN_S
        while True:
            now = self._clock.now()
            new = NewAttempt(new_id(), now, address, account_index, kind, person, scope)
            async with self._beginnings.place(WORK_OWNER.get()):
                wait = await self._try(new, known, user)
            if wait.s <= 0:
                return Attempt(
                    new.id, known, somebodys_indexes(self._lookup, address)[0]
                )
            full = self._waiting >= _WAITING_MOST or loop.time() >= deadline
            if not wait.running or full:
                raise ApplianceError(
                    ErrorCode.RATE_LIMITED, extras={"retryAfter": math.ceil(wait.s)}
                )
            self._waiting += 1
            try:
                await asyncio.sleep(pause_s)
            finally:
                self._waiting -= 1
            pause_s = min(pause_s * 2, 1.0)

    async def right(
        self, transaction: Transaction, attempt: Attempt, *, proven: bool = True
    ) -> None:
        """End a try as right.

        Args:
            transaction: the caller's.
            attempt: of `begin`.
            proven: it proves who somebody is: the address is known from now on.
        """
        await LoginAttemptStore(transaction).end(attempt.id, AttemptOutcome.DONE)
        if proven:
            now, attempts = self._clock.now(), LoginAttemptStore(transaction)
            await attempts.remember(attempt.known_as[0], now)
            await attempts.remember(attempt.seen_as, now)

    async def is_elsewhere(
        self, transaction: Transaction, attempt: Attempt, person: PersonId
    ) -> bool:
        """Whether a right try came from where its person is not known to sign in from.

        Who signs in for the first time ever does so from nowhere else.

        Args:
            transaction: the caller's, which ends the try as right after this.
            attempt: of `begin`.
            person: who signs in.
        """
        logins, now = LoginAttemptStore(transaction), self._clock.now()
        # By this it is known for ever that somebody has signed in, from anywhere.
        anywhere = known_indexes(self._lookup, person, _ANYWHERE)
        if not await logins.is_known(anywhere, now):
            await logins.remember(anywhere[0], _FOR_EVER)
            return False
        since = now - timedelta(days=self._settings.known_address_days)
        return not await logins.is_known(attempt.known_as, since)

    @staticmethod
    async def wrong(transaction: Transaction, attempt: Attempt) -> None:
        """End a try as wrong."""
        await LoginAttemptStore(transaction).end(attempt.id, AttemptOutcome.WRONG)

    @staticmethod
    async def drop(transaction: Transaction, attempt: Attempt) -> None:
        """Take a try back that was not looked at."""
        await LoginAttemptStore(transaction).drop(attempt.id)

    async def _try(
        self, new: NewAttempt, known: tuple[str, ...], user: str | None
    ) -> _Wait:
        """Record a try, unless it must wait."""
        # Whoever guesses on after the last refusal takes no lock that others wait for.
        async with self._store.read() as transaction:
            wait = await self._wait(transaction, new, known)
            if (
                wait.s > 0
                and not wait.running
                and await _is_noted(transaction, new, wait)
            ):
                return wait
        async with self._store.write() as transaction:
            await LoginAttemptStore(transaction).lock(
                new.address, *wider(new.address), f"{new.kind}|{new.account_index}"
            )
            wait = await self._wait(transaction, new, known)
            if not await _is_noted(transaction, new, wait):
                await _note_ceiling(transaction, new, user)
            if wait.s <= 0:
                await LoginAttemptStore(transaction).begin(new)
        return wait

    async def _wait(
        self, transaction: Transaction, new: NewAttempt, known: tuple[str, ...]
    ) -> _Wait:
        """How long a try must wait, by all that it is counted by."""
        wait = _Wait()
        for rule in self._rules(new):
            wait = _longer(
                wait, await self._wait_by(LoginAttemptStore(transaction), rule, new.at)
            )
        if wait.s <= 0 and new.kind not in _BY_ADDRESS:
            wait = await self._wait_by_ceiling(
                LoginAttemptStore(transaction), new, known
            )
        return wait

    def _rules(self, new: NewAttempt) -> list[_Rule]:
        """What a try is counted by, the ceiling of its account apart."""
        limits = self._settings
        networks = (new.address, *wider(new.address))
        rules = [
            _Rule(
                Counted(new.kind, network=network),
                limits.login_per_minute_address * times,
                _MINUTE,
                grows=_WRONG_FROM_ADDRESS,
            )
            for network, times in zip(networks, (1, *_WIDER), strict=False)
        ]
        if new.kind is not AttemptKind.REVOCATION:
            own = Counted(new.kind, new.address, new.account_index, new.scope)
            limit = limits.login_per_minute_account
            rules.append(_Rule(own, limit, _MINUTE, grows=_DAY, forgiving=True))
        return rules

    async def _wait_by(
        self, logins: LoginAttemptStore, rule: _Rule, now: datetime
    ) -> _Wait:
        """How long a further try must wait by a rule.

        Each `limit` wrong tries double the wait after the last of them, from a
        minute to a quarter of an hour.
        """
        wait = timedelta(0)
        if rule.grows is not None:
            wrong = await logins.wrong(
                rule.counted, now - rule.grows, forgiving=rule.forgiving
            )
            rounds = wrong.count // rule.limit
            if rounds and wrong.last is not None:
                delay_s = min(60 * 2 ** min(rounds - 1, 10), _LONGEST_WAIT_S)
                wait = wrong.last + timedelta(seconds=delay_s) - now
        running = wait <= timedelta(0)
        nth, since = rule.limit, now - rule.window
        last = await logins.nth_last(rule.counted, nth, since, now - _RUNS)
        if last is not None:
            # None before `now`: are there as many without those that run?
            ended = await logins.nth_last(rule.counted, nth, since, now)
            running = running and ended is None
            wait = max(wait, last + rule.window - now)
        return _Wait(wait.total_seconds(), running)

    async def _wait_by_ceiling(
        self, logins: LoginAttemptStore, new: NewAttempt, known: tuple[str, ...]
    ) -> _Wait:
        """How long a try from a strange address must wait for its account's ceiling."""
        limits = self._settings
        counted = Counted(new.kind, account_index=new.account_index)
        wait, reached = _Wait(), _HOUR
        for limit, window in (
            (limits.wrong_per_hour_account, _HOUR),
            (limits.wrong_per_day_account, _DAY),
        ):
            by_rule = await self._wait_by(logins, _Rule(counted, limit, window), new.at)
            if by_rule.s > 0:
                wait, reached = _longer(wait, by_rule), window
        if wait.s <= 0:
            return wait
        if not wait.running:
            wait = replace(wait, ceiling=new.at - reached)
        since = new.at - timedelta(days=limits.known_address_days)
        if await logins.is_known(known, since):
            return replace(wait, s=0.0, running=False)
        return wait


def _longer(one: _Wait, other: _Wait) -> _Wait:
    """The longer of two waits; for running tries alone if both are."""
    if other.s <= 0:
        return one
    return _Wait(max(one.s, other.s), one.running and other.running)


async def _is_noted(transaction: Transaction, new: NewAttempt, wait: _Wait) -> bool:
    """Whether nothing is left to be said of a ceiling that was reached."""
    if wait.ceiling is None:
        return True
    counted = Counted(
        AttemptKind.CEILING, account_index=new.account_index, scope=new.kind.value
    )
    noted = await LoginAttemptStore(transaction).wrong(
        counted, wait.ceiling, forgiving=False
    )
    return noted.count > 0


async def _note_ceiling(
    transaction: Transaction, new: NewAttempt, user: str | None
) -> None:
    """Say that an account's ceiling was reached.

    The account is locked by the caller: of two tries at once one says it.
    """
    mark = NewAttempt(
        new_id(),
        new.at,
        "",
        new.account_index,
        AttemptKind.CEILING,
        new.person,
        new.kind.value,
    )
    await LoginAttemptStore(transaction).begin(mark)
    await LoginAttemptStore(transaction).end(mark.id, AttemptOutcome.WRONG)
    whose = {"person": new.person, "user": user}
    detail: dict[str, object] = {key: one for key, one in whose.items() if one}
    transaction.audit.add(
        AuditEvent(EventKind.LOGIN_CEILING_REACHED, "anonymous", detail=detail)
    )
