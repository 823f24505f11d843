"""Attempts at the signing password: count, lock and slots, on both databases.

Source: decisions "attempts", "wrong signing password".
"""

import asyncio
import time
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import timedelta

import pytest
from sqlalchemy import Connection, event, func, select

from appliance.core.database.tables.people import attempt_slot
from appliance.core.secrets.password_hashing import HashSlots
from appliance.domain.errors import ApplianceError, ErrorCode
from appliance.domain.identity import SigningSecret
from appliance.domain.ids import CredentialId, RequestId
from appliance.domain.requests.request import Signer
from appliance.domain.secrets import KeyRing
from appliance.domain.vocab import SlotOutcome
from appliance.keys.password_attempt_store import PasswordAttemptStore
from appliance.keys.password_attempts import PasswordAttempts
from appliance.keys.signing_password import PasswordCheck, SigningPasswords
from appliance.people.person_store import PersonStore
from appliance.settings import SigningSettings
from tests.support.factories.core import PASSWORD, CoreParts, cheap_password_secret
from tests.support.factories.signing_host import INSTALLATION

C = ErrorCode

# Waits for a slot, in seconds: longer than any machine takes for what a test has
# checked, and one that a test sits out.
_LONG_S = 60
_SHORT_S = 0.3


@dataclass
class Desk:
    """Somebody who signs a request, and the checks of their password."""

    core: CoreParts
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
    ) -> PasswordCheck:
        """As ever, but not at once."""
        self.asked.set()
        await self.go_on.wait()
        return await super().check(password, secret, credentials)


def attempts_of(
    core: CoreParts, passwords: SigningPasswords, slot_wait_s: float
) -> PasswordAttempts:
    """Checks of passwords whose slots are waited for that long."""
    settings = SigningSettings(slot_wait_s=slot_wait_s)
    return PasswordAttempts(core.store, passwords, core.clock, settings, INSTALLATION)


async def desk_of(core: CoreParts, slot_wait_s: float) -> Desk:
    """With slots that are waited for that long."""
    passwords = SigningPasswords(KeyRing.of(b"p" * 32), HashSlots(2))
    signer = await core.add_signer(await cheap_password_secret(passwords))
    request = await core.add_request(signer.person)
    attempts = attempts_of(core, passwords, slot_wait_s)
    return Desk(core, attempts, signer, request)


@pytest.fixture
async def desk(core: CoreParts) -> Desk:
    """On each database, where everybody gets a slot who waits for one."""
    return await desk_of(core, _LONG_S)


@pytest.fixture
async def sqlite_desk(sqlite_core: CoreParts) -> Desk:
    """On SQLite, where who waits in vain is soon told so."""
    return await desk_of(sqlite_core, _SHORT_S)


def wrong(number: int) -> bytes:
    """A wrong password."""
    return b"equivocada %d" % number


async def test_ten_wrong_passwords_lock(desk: Desk) -> None:
    """Nine are told how many are left, the tenth locks, the right one is too late."""
    left = [await desk.left(wrong(n)) for n in range(9)]
    tenth = await desk.attempt(wrong(9))
    right = await desk.attempt(PASSWORD)

    assert left == [9, 8, 7, 6, 5, 4, 3, 2, 1]
    assert tenth is not None
    assert right is not None
    assert (tenth.code, right.code) == (C.SIGN_LOCKED, C.SIGN_LOCKED)
    secret = await desk.secret()
    assert (secret.counted, secret.locked_at) == (10, desk.core.now)
    events = await desk.core.audited()
    assert events.count("sign.password_wrong") == 10
    assert events.count("sign.locked") == 1


async def test_right_password_sets_the_count_to_nothing(desk: Desk) -> None:
    """After a right one all ten are left again."""
    for number in range(9):
        await desk.attempt(wrong(number))

    right = await desk.attempt(PASSWORD)

    assert right is None
    assert (await desk.secret()).counted == 0
    assert await desk.left(wrong(20)) == 9


async def test_same_wrong_password_counts_once_a_minute(desk: Desk) -> None:
    """A client that repeats a call is not punished for it."""
    left = [await desk.left(wrong(1)) for _ in range(5)]
    desk.core.clock.forward(59)
    left.append(await desk.left(wrong(1)))
    desk.core.clock.forward(1)
    left.append(await desk.left(wrong(1)))

    assert left == [9] * 6 + [8]


async def test_same_wrong_password_counts_on_each_request(desk: Desk) -> None:
    """The same guess at another request is another guess."""
    other = await desk.core.add_request(desk.signer.person)

    await desk.attempt(wrong(1))
    await desk.attempt(wrong(1), other)

    assert (await desk.secret()).counted == 2


async def test_same_wrong_password_at_once_counts_once(desk: Desk) -> None:
    """Also when the repeats run side by side."""
    await asyncio.gather(*(desk.attempt(wrong(1)) for _ in range(8)))

    assert (await desk.secret()).counted == 1


async def test_alternating_passwords_count_once_each(desk: Desk) -> None:
    """A, B, A, B: two were counted."""
    left = [await desk.left(wrong(n % 2)) for n in range(4)]

    assert left == [9, 8, 8, 8]


async def test_fifty_parallel_guesses_stay_within_the_limit(desk: Desk) -> None:
    """Of fifty guesses at once ten are checked, and not one more."""
    refusals = await asyncio.gather(*(desk.attempt(wrong(n)) for n in range(50)))

    codes = [refusal and refusal.code for refusal in refusals]
    checked = (await desk.core.audited()).count("sign.password_wrong")
    assert checked == 10
    assert codes.count(C.SIGN_PASSWORD_WRONG) == 9
    assert codes.count(C.SIGN_LOCKED) == 41
    assert (await desk.secret()).counted == 10


async def test_parallel_guesses_of_two_processes_stay_within_the_limit(
    desk: Desk,
) -> None:
    """The limit holds between processes: it stands in the database."""
    passwords = SigningPasswords(KeyRing.of(b"p" * 32), HashSlots(2))
    other = replace(
        desk,
        attempts=PasswordAttempts(
            desk.core.other_store(),
            passwords,
            desk.core.clock,
            SigningSettings(slot_wait_s=_LONG_S),
            INSTALLATION,
        ),
    )

    await asyncio.gather(*((desk, other)[n % 2].attempt(wrong(n)) for n in range(30)))

    assert (await desk.core.audited()).count("sign.password_wrong") == 10
    assert (await desk.secret()).counted == 10


async def test_right_passwords_at_once_all_pass(desk: Desk) -> None:
    """A person who signs many at once waits for slots and is never refused."""
    refusals = await asyncio.gather(*(desk.attempt(PASSWORD) for _ in range(15)))

    assert refusals == [None] * 15
    assert await desk.running() == 0


async def test_no_slot_free_is_rate_limited(sqlite_desk: Desk) -> None:
    """Ten checks that hang: the next one waits `slot_wait_s`, then 429, not 423."""
    await sqlite_desk.take_slots(10)
    begun = time.monotonic()

    refusal = await sqlite_desk.attempt(PASSWORD)

    assert refusal is not None
    assert refusal.code is C.RATE_LIMITED
    assert refusal.extras == {"retryAfter": 5}
    assert _SHORT_S <= time.monotonic() - begun < 30
    assert (await sqlite_desk.secret()).counted == 0


@contextmanager
def counted_looks(desk: Desk) -> Iterator[list[None]]:
    """One for each transaction that writes."""
    looks: list[None] = []
    engine = desk.core.store._engines.writer.sync_engine

    def note(_connection: Connection) -> None:
        looks.append(None)

    event.listen(engine, "begin", note)
    yield looks
    event.remove(engine, "begin", note)


@pytest.mark.parametrize("typed", ["equal", "different"])
async def test_of_those_who_wait_one_looks(sqlite_desk: Desk, typed: str) -> None:
    """Of thirty callers of a process the first looks for all, ten times a second."""
    await sqlite_desk.take_slots(10)
    words = [PASSWORD if typed == "equal" else wrong(n) for n in range(30)]

    with counted_looks(sqlite_desk) as looks:
        refusals = await asyncio.gather(*(sqlite_desk.attempt(w) for w in words))

    assert {refusal and refusal.code for refusal in refusals} == {C.RATE_LIMITED}
    assert 1 <= len(looks) < 15


async def slots_taken(desk: Desk) -> int:
    """Checks of the person that were ever begun."""
    async with desk.core.store._engines.reader.connect() as connection:
        found = await connection.execute(select(func.count()).select_from(attempt_slot))
        return found.scalar_one()


async def test_equal_right_passwords_are_checked_together(desk: Desk) -> None:
    """Fifty calls that come at once, for several requests: two checks at the most."""
    requests = [await desk.core.add_request(desk.signer.person) for _ in range(5)]

    refusals = await asyncio.gather(
        *(desk.attempt(PASSWORD, requests[n % 5]) for n in range(50))
    )

    assert refusals == [None] * 50
    assert 1 <= await slots_taken(desk) <= 2
    assert await desk.running() == 0


async def test_what_comes_after_the_slot_is_checked_anew(sqlite_desk: Desk) -> None:
    """Nobody passes by a look at the keys and the lock from before they came."""
    passwords = HeldPasswords(KeyRing.of(b"p" * 32), HashSlots(2))
    desk = replace(
        sqlite_desk, attempts=attempts_of(sqlite_desk.core, passwords, _SHORT_S)
    )
    first = asyncio.create_task(desk.attempt(PASSWORD))
    await passwords.asked.wait()
    async with desk.core.store.write() as transaction:
        await PersonStore(transaction).set_counted(
            desk.signer.person, 10, desk.core.now
        )

    refusal = await desk.attempt(PASSWORD)
    passwords.go_on.set()

    assert await first is None
    assert refusal is not None
    assert refusal.code is C.SIGN_LOCKED


async def test_equal_wrong_passwords_at_once_count_on_each_request(desk: Desk) -> None:
    """Checked together they are not: each request is another guess."""
    requests = [await desk.core.add_request(desk.signer.person) for _ in range(4)]

    refusals = await asyncio.gather(
        *(desk.attempt(wrong(1), requests[n % 4]) for n in range(8))
    )

    assert {r and r.code for r in refusals} == {C.SIGN_PASSWORD_WRONG}
    assert (await desk.secret()).counted == 4


async def test_counted_and_running_share_the_limit(sqlite_desk: Desk) -> None:
    """Six counted and four running leave no room."""
    for number in range(6):
        await sqlite_desk.attempt(wrong(number))
    await sqlite_desk.take_slots(4)

    refusal = await sqlite_desk.attempt(PASSWORD)

    assert refusal is not None
    assert refusal.code is C.RATE_LIMITED


async def test_slot_that_gets_free_is_taken(desk: Desk) -> None:
    """A check that waits goes on as soon as another one ends."""
    await desk.take_slots(9)
    async with desk.core.store.write() as transaction:
        last = await PasswordAttemptStore(transaction).take(
            desk.signer.person, desk.request, desk.core.now
        )
    waiting = asyncio.create_task(desk.attempt(PASSWORD))
    await asyncio.sleep(0.05)

    async with desk.core.store.write() as transaction:
        await PasswordAttemptStore(transaction).close(last, SlotOutcome.RIGHT, None)

    assert await waiting is None


async def test_slot_older_than_a_minute_is_free(desk: Desk) -> None:
    """Checks of processes that died hold nobody up for longer, uncounted."""
    await desk.take_slots(10)

    desk.core.clock.forward(60)

    assert await desk.attempt(PASSWORD) is None
    assert (await desk.secret()).counted == 0


async def test_wrong_check_closes_its_slot(desk: Desk) -> None:
    """What ended is not running."""
    await desk.attempt(wrong(1))
    await desk.attempt(wrong(1))

    assert await desk.running() == 0


async def test_person_without_a_password_cannot_sign(sqlite_desk: Desk) -> None:
    """Nobody is told apart by a crash."""
    nobody = replace(sqlite_desk.signer, person="nobody")  # type: ignore[arg-type]  # an id

    refusal = await replace(sqlite_desk, signer=nobody).attempt(PASSWORD)

    assert refusal is not None
    assert refusal.code is C.CERTIFICATE_NOT_USABLE
