"""Processes die in the midst of signing: nothing is lost, nothing is doubled.

After each test the auditor of `tests.support.appliance.ledger` looks at the whole
record, at every file and at each document that the test had signed.

Source: design §3.
"""

import signal
import time
from collections.abc import Callable

import psutil
import pytest

from appliance.domain.vocab import IntentState, RequestState
from tests.support.appliance.appliance import Appliance, TestPerson
from tests.support.appliance.http_calls import sign, sign_at_last
from tests.support.appliance.ledger import read_ledger
from tests.support.documents import pdfs
from tests.support.faults.fault_injection import (
    LONGEST_S,
    NO_REDIS,
    assert_sound,
    harmed,
    interrupted,
    is_alive,
    kill_one,
    newest,
    order_crash,
    restarted,
    until,
)
from tests.support.faults.retrying_callers import LET_IN, Crowd
from tests.support.patience import TEST_S
from worker.failpoints import AFTER_SIGN, BEFORE_SIGN, FILE_WRITTEN, FREEZE, POINTS

DONE, INTERRUPTED = IntentState.COMPLETED, IntentState.INTERRUPTED
RECOVERED_S = 15.0


@pytest.fixture(scope="module", params=["sqlite_appliance", "postgres_appliance"])
def either(request: pytest.FixtureRequest) -> Appliance:
    """An appliance, on each of the two databases."""
    appliance: Appliance = request.getfixturevalue(request.param)
    return appliance


@pytest.fixture(scope="module")
def somebody(either: Appliance) -> TestPerson:
    """Who signs on it."""
    return either.new_person()


@pytest.mark.parametrize("point", POINTS)
def test_each_crash_point_leaves_one_document(
    either: Appliance, somebody: TestPerson, point: str
) -> None:
    """A worker that dies anywhere: signed, once, and both tries told."""
    sign_over_a_crash(either, somebody, point)


@pytest.mark.long
@pytest.mark.parametrize("point", POINTS)
def test_each_crash_point_is_recovered_from_in_time(
    either: Appliance, somebody: TestPerson, point: str
) -> None:
    """Within 15 s what a dead worker left is finished."""
    assert sign_over_a_crash(either, somebody, point) < RECOVERED_S


def sign_over_a_crash(either: Appliance, person: TestPerson, point: str) -> float:
    """Have a worker die at a point of a signature; how long that took, in seconds."""
    request = either.new_request(person, pdfs.one_page())
    before = request - 1
    order = order_crash(either, point)
    with either.client(person) as client:
        begun = time.monotonic()
        answer = sign_at_last(client, person, request)
        took_s = time.monotonic() - begun

    assert not order.exists()
    assert answer.status_code == 200, answer.text
    ledger = read_ledger(either, after=before)
    lost = point in {BEFORE_SIGN, AFTER_SIGN}
    assert ledger.attempts(request) == ([INTERRUPTED, DONE] if lost else [DONE])
    assert ledger.faults() == []
    return took_s


def test_kills_lose_nothing_short(
    sqlite_appliance: Appliance, people: list[TestPerson]
) -> None:
    """40 calls by several people, workers killed, keys used and not stored."""
    lose_nothing_short(sqlite_appliance, people)


@pytest.mark.long
def test_kills_lose_nothing_short_without_redis(
    sqlite_appliance: Appliance, people: list[TestPerson]
) -> None:
    """The same with Redis stopped throughout: slower, not less."""
    with restarted(sqlite_appliance, more=NO_REDIS):
        lose_nothing_short(sqlite_appliance, people)


def lose_nothing_short(appliance: Appliance, people: list[TestPerson]) -> None:
    """Three interruptions or more, the key used and not stored in two."""
    before, lost = newest(appliance), interrupted(appliance)
    crowd = Crowd(appliance, people, pdfs.one_page(), at_least=40)
    with crowd.calling():
        for point in (AFTER_SIGN, BEFORE_SIGN, AFTER_SIGN):
            order = order_crash(appliance, point)
            until(lambda order=order: not order.exists())  # type: ignore[misc]  # bound now
            kill_one(appliance)

    assert len(crowd.calls) >= 40
    assert interrupted(appliance) - lost >= 3
    assert_sound(crowd, before=before)


@pytest.mark.long
@pytest.mark.timeout(TEST_S)
@pytest.mark.parametrize("redis", ["", NO_REDIS], ids=["redis", "no_redis"])
@pytest.mark.parametrize("count", [20, 1], ids=["20_people", "one_person"])
def test_kills_lose_nothing_long(
    count: int, redis: str, record_property: Callable[[str, object], None]
) -> None:
    """200 calls or more, 20 at a time of 20 people, a worker killed every 2 s."""
    with harmed(more=redis) as appliance:
        people = [appliance.new_person(f"Persona {n}") for n in range(count)]
        concurrency = max(count, LET_IN)
        crowd = Crowd(appliance, people, pdfs.one_page(), concurrency, at_least=200)
        begun = time.monotonic()
        used_and_lost = kills = 0
        order = order_crash(appliance, AFTER_SIGN)
        with crowd.calling():
            while interrupted(appliance) < 10 or used_and_lost < 3:
                time.sleep(2)
                kill_one(appliance)
                kills += 1
                if not order.exists():
                    used_and_lost += 1
                    order = order_crash(appliance, AFTER_SIGN)
                assert time.monotonic() - begun < 400
            order.unlink(missing_ok=True)

        assert len(crowd.calls) >= 200
        assert_sound(crowd, before=0, longest_s=LONGEST_S)
        record_property("calls", len(crowd.calls))
        record_property("kills", kills)
        record_property("used_and_lost", used_and_lost)
        record_property("interrupted", interrupted(appliance))
        record_property("longest_wait_s", round(crowd.longest_wait_s, 1))
        record_property("answers", dict(crowd.answers))


@pytest.mark.parametrize(
    "point", [AFTER_SIGN, pytest.param(FILE_WRITTEN, marks=pytest.mark.long)]
)
def test_thawed_worker_changes_nothing(
    postgres_appliance: Appliance, point: str
) -> None:
    """A worker frozen past its lease writes late, and nothing of it counts.

    On PostgreSQL: one frozen in the midst of a write would keep SQLite's only
    lock, and everybody waiting.
    """
    person = postgres_appliance.new_person()
    request = postgres_appliance.new_request(person, pdfs.one_page())
    order_crash(postgres_appliance, point, FREEZE)
    with postgres_appliance.client(person) as client:
        answer = sign_at_last(client, person, request)

        assert answer.status_code == 200, answer.text
        (frozen,) = [
            worker
            for worker in postgres_appliance.children("signing")
            if worker.status() == psutil.STATUS_STOPPED
        ]
        fenced_off = postgres_appliance.log.read_text().count("worker.fenced_off")
        frozen.send_signal(signal.SIGCONT)
        until(
            lambda: (
                postgres_appliance.log.read_text().count("worker.fenced_off")
                > fenced_off
            )
        )
        again = sign(client, person, request)

    assert again.json()["sha256"] == answer.json()["sha256"]
    assert frozen.is_running()
    ledger = read_ledger(postgres_appliance, after=request - 1)
    lost = point == AFTER_SIGN
    assert ledger.attempts(request) == ([INTERRUPTED, DONE] if lost else [DONE])
    assert ledger.faults() == []


def test_request_that_kills_workers_stalls_nobody(
    sqlite_appliance: Appliance, people: list[TestPerson]
) -> None:
    """Five workers die of one document: it is `fallida`, and all else is signed."""
    victim, others = people[0], people[1:]
    before = newest(sqlite_appliance)
    poisonous = sqlite_appliance.new_request(victim, pdfs.one_page())
    poison = order_crash(sqlite_appliance, f"{BEFORE_SIGN}-{poisonous}")
    crowd = Crowd(sqlite_appliance, others, pdfs.one_page(), at_least=20)
    with sqlite_appliance.client(victim) as client, crowd.calling():
        answer = sign_at_last(client, victim, poisonous)
    poison.unlink()

    assert answer.json()["code"] == "SIGNING_FAILED", answer.text
    ledger = read_ledger(sqlite_appliance, after=before)
    failed = ledger.with_state(RequestState.FAILED)
    assert [row.id for row in failed if row.id > before] == [poisonous]
    assert ledger.attempts(poisonous) == [INTERRUPTED] * 5
    assert_sound(crowd, before=before)


def until_another_ends(crowd: Crowd) -> None:
    """Wait amid its calls until one more of them has its document."""
    count = len(crowd.calls)
    until(lambda: len(crowd.calls) > count)


@pytest.mark.parametrize("role", ["api", "chores"])
def test_kill_of_another_role_loses_nothing(
    sqlite_appliance: Appliance, people: list[TestPerson], role: str
) -> None:
    """Front and chores are back at once, and each call is answered."""
    before = newest(sqlite_appliance)
    crowd = Crowd(sqlite_appliance, people, pdfs.one_page(), at_least=20)
    with crowd.calling():
        for _ in range(2):
            until_another_ends(crowd)
            kill_one(sqlite_appliance, role)

    assert_sound(crowd, before=before)


def test_kill_of_redis_loses_nothing(postgres_appliance: Appliance) -> None:
    """The doorbell is back at once, empty, and each call is answered."""
    before = newest(postgres_appliance)
    people = [postgres_appliance.new_person() for _ in range(2)]
    crowd = Crowd(postgres_appliance, people, pdfs.one_page(), at_least=20)
    with crowd.calling():
        for _ in range(2):
            until_another_ends(crowd)
            kill_one(postgres_appliance, "redis")

    assert_sound(crowd, before=before)


def test_kill_of_the_sandbox_is_mended(
    sqlite_appliance: Appliance, people: list[TestPerson]
) -> None:
    """Documents come in again at once."""
    before = newest(sqlite_appliance)
    kill_one(sqlite_appliance, "sandbox")
    until(lambda: bool(sqlite_appliance.children("sandbox")))
    sqlite_appliance.wait_ready()

    crowd = Crowd(sqlite_appliance, people, pdfs.one_page(), at_least=4)
    with crowd.calling():
        pass

    assert_sound(crowd, before=before)


def test_kill_of_the_supervisor_loses_nothing(
    sqlite_appliance: Appliance, people: list[TestPerson]
) -> None:
    """Its children end with it, and a new start at once takes over."""
    before = newest(sqlite_appliance)
    children = psutil.Process(sqlite_appliance.pid).children()
    crowd = Crowd(sqlite_appliance, people, pdfs.one_page(), at_least=20)
    with crowd.calling():
        until_another_ends(crowd)
        sqlite_appliance.kill()
        sqlite_appliance.start()
        assert not [child for child in children if is_alive(child)]

    assert_sound(crowd, before=before)


def test_restart_in_the_midst_keeps_all(
    sqlite_appliance: Appliance, people: list[TestPerson]
) -> None:
    """Stopped and started under calls: what was signed is there, the rest ends."""
    before = newest(sqlite_appliance)
    kept = {
        row.id for row in read_ledger(sqlite_appliance).with_state(RequestState.SIGNED)
    }
    crowd = Crowd(sqlite_appliance, people, pdfs.one_page(), at_least=20)
    with crowd.calling():
        until_another_ends(crowd)
        assert sqlite_appliance.stop() == 0
        sqlite_appliance.start()

    assert_sound(crowd, before=before, is_restarted=True)
    after = {
        row.id for row in read_ledger(sqlite_appliance).with_state(RequestState.SIGNED)
    }
    assert kept < after
