"""Attempts at the signing password: count, lock and slots, on both databases.

Source: decisions "attempts", "wrong signing password".
"""

import asyncio
import time
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Any

import pytest
from sqlalchemy import Connection, event, func, select

from appliance.database.tables.people import attempt_slot
from appliance.domain.errors import ApplianceError, ErrorCode
from appliance.domain.ids import CredentialId, RequestId
from appliance.domain.keys.versioned_secrets import KeyRing
from appliance.domain.people.identity import LockedKey, SigningSecret
from appliance.domain.requests.request import Signer
from appliance.domain.vocab import SlotOutcome
from appliance.keys.password_attempt_store import PasswordAttemptStore
from appliance.keys.password_attempts import PasswordAttempts
from appliance.keys.password_hashing import HashSlots
from appliance.keys.signing_password import (
    PasswordCheck,
    SigningPasswords,
)
from appliance.people.person_store import PersonStore
from appliance.settings import SigningSettings
from tests.support.factories.signing_host import password_attempts
from tests.support.installation.record import (
    PASSWORD,
    CoreFixture,
    password_secret,
)

C = ErrorCode

# Waits for a slot, in seconds: longer than any machine takes for what a test has
# checked, and one that a test sits out.
_LONG_S = 60
_SHORT_S = 0.3


@dataclass
class PasswordChecks:
    """Somebody who signs a request, and the checks of their password."""

    core: CoreFixture
    attempts: PasswordAttempts
    signer: Signer
    request: RequestId

    async def attempt(
        self, password: bytes, request: RequestId | None = None
    ) -> ApplianceError | None:
        """Check a password as signing does; the refusal, if any."""
        try:
            right = await self.attempts.check(
                self.signer, request or self.request, password
            )
        except ApplianceError as exc:
            return exc
        async with self.core.store.write() as transaction:
            await self.attempts.passed(transaction, self.signer, right)
        return None

    async def left(self, password: bytes) -> object:
        """What `attemptsLeft` says after a wrong password."""
        refusal = await self.attempt(password)
        assert refusal is not None
        assert refusal.code is C.SIGN_PASSWORD_WRONG
        return refusal.extras["attemptsLeft"]

    async def secret(self) -> SigningSecret:
        """What is kept of the password."""
        async with self.core.store.read() as transaction:
            secret = await PersonStore(transaction).signing_secret(self.signer.person)
        assert secret is not None
        return secret

    async def take_slots(self, count: int) -> None:
        """Checks that are running, and do not end."""
        async with self.core.store.write() as transaction:
            for _ in range(count):
                await PasswordAttemptStore(transaction).take(
                    self.signer.person, self.request, self.core.now
                )

    async def running(self) -> int:
        """Checks that are running."""
        since = self.core.now - timedelta(seconds=60)
        async with self.core.store.read() as transaction:
            return await PasswordAttemptStore(transaction).running(
                self.signer.person, since
            )


class HeldPasswords(SigningPasswords):
    """Checks the first password when it is told to go on."""

    def __init__(self, peppers: KeyRing, slots: HashSlots) -> None:
        super().__init__(peppers, slots)
        self.asked = asyncio.Event()
        self.go_on = asyncio.Event()

    async def check(
        self,
        password: bytes,
        secret: SigningSecret,
        credentials: Collection[CredentialId] = (),
        *,
        keys: Collection[LockedKey] = (),
        owner: str = "",
    ) -> PasswordCheck:
        """As ever, but not at once."""
        self.asked.set()
        await self.go_on.wait()
        return await super().check(
            password, secret, credentials, keys=keys, owner=owner
        )


def attempts_of(
    core: CoreFixture, passwords: SigningPasswords, slot_wait_s: float
) -> PasswordAttempts:
    """Checks of passwords whose slots are waited for that long."""
    settings = SigningSettings(slot_wait_s=slot_wait_s)
    return password_attempts(core.store, passwords, core.clock, settings)


async def password_checks_of(core: CoreFixture, slot_wait_s: float) -> PasswordChecks:
    """With slots that are waited for that long."""
    passwords = SigningPasswords(KeyRing.of(b"p" * 32), HashSlots(2))
    signer = await core.add_signer(await password_secret(passwords))
    request = await core.add_request(signer.person)
    attempts = attempts_of(core, passwords, slot_wait_s)
    return PasswordChecks(core, attempts, signer, request)


@pytest.fixture
async def password_checks(core: CoreFixture) -> PasswordChecks:
    """On each database, where everybody gets a slot who waits for one."""
    return await password_checks_of(core, _LONG_S)


@pytest.fixture
async def sqlite_password_checks(sqlite_core: CoreFixture) -> PasswordChecks:
    """On SQLite, where who waits in vain is soon told so."""
    return await password_checks_of(sqlite_core, _SHORT_S)


def wrong(number: int) -> bytes:
    """A wrong password."""
    return b"equivocada %d" % number


async def test_ten_wrong_passwords_lock(password_checks: PasswordChecks) -> None:
    """Nine are told how many are left, the tenth locks, the right one is too late."""
    left = [await password_checks.left(wrong(n)) for n in range(9)]
    tenth = await password_checks.attempt(wrong(9))
    right = await password_checks.attempt(PASSWORD)

    assert left == [9, 8, 7, 6, 5, 4, 3, 2, 1]
    assert tenth is not None
    assert right is not None
    assert (tenth.code, right.code) == (C.SIGN_LOCKED, C.SIGN_LOCKED)
    secret = await password_checks.secret()
    assert (secret.counted, secret.locked_at) == (10, password_checks.core.now)
    events = await password_checks.core.audited()
    assert events.count("sign.password_wrong") == 10
    assert events.count("sign.locked") == 1


async def test_right_password_sets_the_count_to_nothing(
    password_checks: PasswordChecks,
) -> None:
    """After a right one all ten are left again."""
    for number in range(9):
        await password_checks.attempt(wrong(number))

    right = await password_checks.attempt(PASSWORD)

    assert right is None
    assert (await password_checks.secret()).counted == 0
    assert await password_checks.left(wrong(20)) == 9


async def test_same_wrong_password_counts_once_a_minute(
    password_checks: PasswordChecks,
) -> None:
    """A client that repeats a call is not punished for it."""
    left = [await password_checks.left(wrong(1)) for _ in range(5)]
    password_checks.core.clock.forward(59)
    left.append(await password_checks.left(wrong(1)))
    password_checks.core.clock.forward(1)
    left.append(await password_checks.left(wrong(1)))

    assert left == [9] * 6 + [8]


async def test_same_wrong_password_counts_on_each_request(
    password_checks: PasswordChecks,
) -> None:
    """The same guess at another request is another guess."""
    other = await password_checks.core.add_request(password_checks.signer.person)

    await password_checks.attempt(wrong(1))
    await password_checks.attempt(wrong(1), other)

    assert (await password_checks.secret()).counted == 2


async def test_same_wrong_password_at_once_counts_once(
    password_checks: PasswordChecks,
) -> None:
    """Also when the repeats run side by side."""
    await asyncio.gather(*(password_checks.attempt(wrong(1)) for _ in range(8)))

    assert (await password_checks.secret()).counted == 1


async def test_alternating_passwords_count_once_each(
    password_checks: PasswordChecks,
) -> None:
    """A, B, A, B: two were counted."""
    left = [await password_checks.left(wrong(n % 2)) for n in range(4)]

    assert left == [9, 8, 8, 8]


async def test_fifty_parallel_guesses_stay_within_the_limit(
    password_checks: PasswordChecks,
) -> None:
    """Of fifty guesses at once ten are checked, and not one more."""
    refusals = await asyncio.gather(
        *(password_checks.attempt(wrong(n)) for n in range(50))
    )

    codes = [refusal and refusal.code for refusal in refusals]
    checked = (await password_checks.core.audited()).count("sign.password_wrong")
    assert checked == 10
    assert codes.count(C.SIGN_PASSWORD_WRONG) == 9
    assert codes.count(C.SIGN_LOCKED) == 41
    assert (await password_checks.secret()).counted == 10


async def test_parallel_guesses_of_two_processes_stay_within_the_limit(
    password_checks: PasswordChecks,
) -> None:
    """The limit holds between processes: it stands in the database."""
    passwords = SigningPasswords(KeyRing.of(b"p" * 32), HashSlots(2))
    other = replace(
        password_checks,
        attempts=password_attempts(
            password_checks.core.other_store(),
            passwords,
            password_checks.core.clock,
            SigningSettings(slot_wait_s=_LONG_S),
        ),
    )

    await asyncio.gather(
        *((password_checks, other)[n % 2].attempt(wrong(n)) for n in range(30))
    )

    assert (await password_checks.core.audited()).count("sign.password_wrong") == 10
    assert (await password_checks.secret()).counted == 10


async def test_right_passwords_at_once_all_pass(
    password_checks: PasswordChecks,
) -> None:
    """A person who signs many at once waits for slots and is never refused."""
    refusals = await asyncio.gather(
        *(password_checks.attempt(PASSWORD) for _ in range(15))
    )

    assert refusals == [None] * 15
    assert await password_checks.running() == 0


async def test_no_slot_free_is_rate_limited(
    sqlite_password_checks: PasswordChecks,
) -> None:
    """Ten checks that hang: the next one waits `slot_wait_s`, then 429, not 423."""
    await sqlite_password_checks.take_slots(10)
    begun = time.monotonic()

    refusal = await sqlite_password_checks.attempt(PASSWORD)

    assert refusal is not None
    assert refusal.code is C.RATE_LIMITED
    assert refusal.extras == {"retryAfter": 5}
    assert time.monotonic() - begun >= _SHORT_S
    assert (await sqlite_password_checks.secret()).counted == 0


@contextmanager
def counted_looks(password_checks: PasswordChecks) -> Iterator[list[None]]:
    """One for each transaction that writes."""
    looks: list[None] = []
    engine = password_checks.core.store._engines.writer.sync_engine

    def note(_connection: Connection) -> None:
        looks.append(None)

    event.listen(engine, "begin", note)
    yield looks
    event.remove(engine, "begin", note)


@pytest.mark.parametrize("typed", ["equal", "different"])
async def test_of_those_who_wait_one_looks(
    sqlite_password_checks: PasswordChecks, typed: str
) -> None:
    """Of thirty callers of a process the first looks for all, ten times a second."""
    await sqlite_password_checks.take_slots(10)
    words = [PASSWORD if typed == "equal" else wrong(n) for n in range(30)]

    with counted_looks(sqlite_password_checks) as looks:
        refusals = await asyncio.gather(
            *(sqlite_password_checks.attempt(w) for w in words)
        )

    assert {refusal and refusal.code for refusal in refusals} == {C.RATE_LIMITED}
    assert 1 <= len(looks) < 15


async def slots_taken(password_checks: PasswordChecks) -> int:
    """Checks of the person that were ever begun."""
    async with password_checks.core.store._engines.reader.connect() as connection:
        found = await connection.execute(select(func.count()).select_from(attempt_slot))
        return found.scalar_one()


async def test_equal_right_passwords_are_checked_together(
    password_checks: PasswordChecks,
) -> None:
    """Fifty calls that come at once, for several requests: two checks at the most."""
    requests = [
        await password_checks.core.add_request(password_checks.signer.person)
        for _ in range(5)
    ]

    refusals = await asyncio.gather(
        *(password_checks.attempt(PASSWORD, requests[n % 5]) for n in range(50))
    )

    assert refusals == [None] * 50
    assert 1 <= await slots_taken(password_checks) <= 2
    assert await password_checks.running() == 0


async def test_what_comes_after_the_slot_is_checked_anew(
    sqlite_password_checks: PasswordChecks,
) -> None:
    """Nobody passes by a look at the keys and the lock from before they came."""
    passwords = HeldPasswords(KeyRing.of(b"p" * 32), HashSlots(2))
    services = replace(
        sqlite_password_checks,
        attempts=attempts_of(sqlite_password_checks.core, passwords, _SHORT_S),
    )
    first = asyncio.create_task(services.attempt(PASSWORD))
    await passwords.asked.wait()
    async with services.core.store.write() as transaction:
        await PersonStore(transaction).set_counted(
            services.signer.person, 10, services.core.now
        )

    refusal = await services.attempt(PASSWORD)
    passwords.go_on.set()

    assert await first is None
    assert refusal is not None
    assert refusal.code is C.SIGN_LOCKED


async def test_equal_wrong_passwords_at_once_count_on_each_request(
    password_checks: PasswordChecks,
) -> None:
    """Checked together they are not: each request is another guess."""
    requests = [
        await password_checks.core.add_request(password_checks.signer.person)
        for _ in range(4)
    ]

    refusals = await asyncio.gather(
        *(password_checks.attempt(wrong(1), requests[n % 4]) for n in range(8))
    )

    assert {r and r.code for r in refusals} == {C.SIGN_PASSWORD_WRONG}
    assert (await password_checks.secret()).counted == 4


async def test_counted_and_running_share_the_limit(
    sqlite_password_checks: PasswordChecks,
) -> None:
    """Six counted and four running leave no room."""
    for number in range(6):
        await sqlite_password_checks.attempt(wrong(number))
    await sqlite_password_checks.take_slots(4)

    refusal = await sqlite_password_checks.attempt(PASSWORD)

    assert refusal is not None
    assert refusal.code is C.RATE_LIMITED


async def test_slot_that_gets_free_is_taken(
    password_checks: PasswordChecks, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A check that waits goes on as soon as another one ends."""
    try_slot, in_vain = password_checks.attempts._try_slot, asyncio.Event()

    async def look(*given: Any) -> Any:
        taken = await try_slot(*given)
        if taken is None:
            in_vain.set()
        return taken

    monkeypatch.setattr(password_checks.attempts, "_try_slot", look)
    await password_checks.take_slots(9)
    async with password_checks.core.store.write() as transaction:
        last = await PasswordAttemptStore(transaction).take(
            password_checks.signer.person,
            password_checks.request,
            password_checks.core.now,
        )
    waiting = asyncio.create_task(password_checks.attempt(PASSWORD))
    await in_vain.wait()
    async with password_checks.core.store.write() as transaction:
        await PasswordAttemptStore(transaction).close(last, SlotOutcome.RIGHT, None)

    assert await waiting is None


async def test_slot_older_than_a_minute_is_free(
    password_checks: PasswordChecks,
) -> None:
    """Checks of processes that died hold nobody up for longer, uncounted."""
    await password_checks.take_slots(10)

    password_checks.core.clock.forward(60)

    assert await password_checks.attempt(PASSWORD) is None
    assert (await password_checks.secret()).counted == 0


async def test_wrong_check_closes_its_slot(password_checks: PasswordChecks) -> None:
    """What ended is not running."""
    await password_checks.attempt(wrong(1))
    await password_checks.attempt(wrong(1))

    assert await password_checks.running() == 0


async def test_person_without_a_password_cannot_sign(
    sqlite_password_checks: PasswordChecks,
) -> None:
    """Nobody is told apart by a crash."""
    nobody = replace(sqlite_password_checks.signer, person="nobody")  # type: ignore[arg-type]  # an id

    refusal = await replace(sqlite_password_checks, signer=nobody).attempt(PASSWORD)

    assert refusal is not None
    assert refusal.code is C.CERTIFICATE_NOT_USABLE
