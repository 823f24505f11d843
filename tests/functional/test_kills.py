"""Processes die in the midst of signing: nothing is lost, nothing is doubled.

After each test the auditor of `tests.ledger` looks at the whole record, at
every file and at each document that the test had signed.

Source: design §3.
"""

import secrets
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil
import pytest

from appliance.domain.vocab import IntentState, RequestState
from tests import pdfs
from tests.ledger import read_intents, read_ledger
from tests.parts.appliance import Appliance, TestPerson
from tests.parts.callers import BROKEN, Crowd
from tests.parts.places import short_folder
from tests.parts.postgres import PostgresServer
from worker.crash_points import AFTER_SIGN, BEFORE_SIGN, FREEZE, POINTS, VARIABLE

LONGEST_S = 25.0
"""That anybody waits for a signed document while workers are killed."""
RECOVERED_S = 15.0
"""Within which what a dead worker left is finished."""
NO_REDIS = '[redis]\nurl = "redis://127.0.0.1:1/0"'
"""An address where nobody listens."""
DONE, INTERRUPTED = IntentState.COMPLETED, IntentState.INTERRUPTED


@contextmanager
def made(**options: str) -> Iterator[Appliance]:
    """An appliance with a folder of crash points."""
    with short_folder() as folder:
        crash = folder / "crash"
        crash.mkdir()
        environment = {VARIABLE: str(crash)}
        with Appliance.made(folder, environment=environment, **options) as appliance:
            yield appliance


@pytest.fixture(scope="module")
def sqlite() -> Iterator[Appliance]:
    """An appliance on SQLite; a key phase of a poisonous request ends early."""
    with made(signing="key_s = 20") as appliance:
        yield appliance


@contextmanager
def restarted(appliance: Appliance, **sections: str) -> Iterator[None]:
    """Have it run with other settings for a while."""
    try:
        appliance.stop()
        appliance.configure(**sections)
        appliance.start()
        yield
    finally:
        appliance.stop()
        appliance.configure(**dict.fromkeys(sections, ""))
        appliance.start()


@pytest.fixture(scope="module")
def postgres(postgres_server: PostgresServer) -> Iterator[Appliance]:
    """An appliance on PostgreSQL."""
    name = postgres_server.create_database()
    with made(database=postgres_server.url(name)) as appliance:
        yield appliance
    postgres_server.drop_database(name)


@pytest.fixture(scope="module", params=["sqlite", "postgres"])
def either(request: pytest.FixtureRequest) -> Appliance:
    """An appliance, on each of the two databases."""
    appliance: Appliance = request.getfixturevalue(request.param)
    return appliance


@pytest.fixture(scope="module")
def people(sqlite: Appliance) -> list[TestPerson]:
    """A few people who can sign there."""
    return [sqlite.new_person(f"Persona {number}") for number in range(4)]


def order_crash(appliance: Appliance, point: str, wish: str = "") -> Path:
    """Have the next worker that passes a point die there, or freeze."""
    crash = appliance.folder / "crash"
    (crash / ".new").write_text(wish, "ascii")
    # No worker finds it before it is written.
    return (crash / ".new").rename(crash / point)


def kill_one(appliance: Appliance, role: str = "signing") -> None:
    """End a random process of a role, as nothing can prevent."""
    if living := appliance.children(role):
        try:
            secrets.choice(living).kill()
        except psutil.NoSuchProcess:
            return


def until(true: Callable[[], bool], timeout_s: float = RECOVERED_S) -> None:
    """Wait for something to become true."""
    deadline = time.monotonic() + timeout_s
    while not true():
        assert time.monotonic() < deadline, "it does not come true"
        time.sleep(0.05)


def assert_sound(
    crowd: Crowd, *, before: int, allowed: frozenset[str] = frozenset()
) -> None:
    """All calls ended with a document, in time, and the ledger is clean."""
    assert all(call.signed for call in crowd.calls), crowd.answers
    assert crowd.answers.keys() <= {"200", "202", BROKEN} | allowed
    assert crowd.longest_wait_s <= LONGEST_S
    ledger = read_ledger(crowd.appliance, after=before)
    signed = {row.id for row in ledger.with_state(RequestState.SIGNED)}
    assert {call.request for call in crowd.calls} <= signed
    assert ledger.faults() == []


def newest(appliance: Appliance) -> int:
    """The last request made so far."""
    return read_ledger(appliance).newest


def interrupted(appliance: Appliance) -> int:
    """Intents that a dead worker left."""
    return read_intents(appliance)[INTERRUPTED]


@pytest.mark.parametrize("point", POINTS)
def test_each_crash_point_leaves_one_document(either: Appliance, point: str) -> None:
    """A worker that dies anywhere: signed within 15 s, once, and both tries told."""
    person = either.new_person()
    request = either.new_request(person, pdfs.one_page())
    before = request - 1
    order = order_crash(either, point)
    with either.client(person) as client:
        begun = time.monotonic()
        answer = client.post(
            "/solicitudes/firmar",
            json={"solicitudId": request, "password": person.signing_password},
        )
        took_s = time.monotonic() - begun

    assert not order.exists()
    assert answer.status_code == 200, answer.text
    assert took_s < RECOVERED_S
    ledger = read_ledger(either, after=before)
    lost = point in {BEFORE_SIGN, AFTER_SIGN}
    assert ledger.attempts(request) == ([INTERRUPTED, DONE] if lost else [DONE])
    assert ledger.faults() == []


def test_kills_lose_nothing_short(sqlite: Appliance, people: list[TestPerson]) -> None:
    """40 calls by several people, workers killed, keys used and not stored."""
    lose_nothing_short(sqlite, people)


def test_kills_lose_nothing_short_without_redis(
    sqlite: Appliance, people: list[TestPerson]
) -> None:
    """The same with Redis stopped throughout: slower, not less."""
    with restarted(sqlite, more=NO_REDIS):
        lose_nothing_short(sqlite, people)


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
@pytest.mark.timeout(600)
@pytest.mark.parametrize("redis", ["", NO_REDIS], ids=["redis", "no_redis"])
@pytest.mark.parametrize("count", [20, 1], ids=["20_people", "one_person"])
def test_kills_lose_nothing_long(
    count: int, redis: str, record_property: Callable[[str, object], None]
) -> None:
    """200 calls or more at concurrency 20, a worker killed every 2 s."""
    with made(more=redis) as appliance:
        people = [appliance.new_person(f"Persona {n}") for n in range(count)]
        crowd = Crowd(appliance, people, pdfs.one_page(), at_least=200)
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
        assert_sound(crowd, before=0)
        record_property("calls", len(crowd.calls))
        record_property("kills", kills)
        record_property("used_and_lost", used_and_lost)
        record_property("interrupted", interrupted(appliance))
        record_property("longest_wait_s", round(crowd.longest_wait_s, 1))
        record_property("answers", dict(crowd.answers))


@pytest.mark.parametrize(
    "point", [AFTER_SIGN, pytest.param("file_written", marks=pytest.mark.long)]
)
def test_thawed_worker_changes_nothing(postgres: Appliance, point: str) -> None:
    """A worker frozen past its lease writes late, and nothing of it counts.

    On PostgreSQL: one frozen in the midst of a write would keep SQLite's only
    lock, and everybody waiting.
    """
    person = postgres.new_person()
    request = postgres.new_request(person, pdfs.one_page())
    order_crash(postgres, point, FREEZE)
    with postgres.client(person) as client:
        answer = client.post(
            "/solicitudes/firmar",
            json={"solicitudId": request, "password": person.signing_password},
        )

        assert answer.status_code == 200, answer.text
        (frozen,) = [
            worker
            for worker in postgres.children("signing")
            if worker.status() == psutil.STATUS_STOPPED
        ]
        fenced_off = postgres.log.read_text().count("worker.fenced_off")
        frozen.send_signal(signal.SIGCONT)
        until(lambda: postgres.log.read_text().count("worker.fenced_off") > fenced_off)
        again = client.post(
            "/solicitudes/firmar",
            json={"solicitudId": request, "password": person.signing_password},
        )

    assert again.json()["sha256"] == answer.json()["sha256"]
    assert frozen.is_running()
    ledger = read_ledger(postgres, after=request - 1)
    lost = point == AFTER_SIGN
    assert ledger.attempts(request) == ([INTERRUPTED, DONE] if lost else [DONE])
    assert ledger.faults() == []


def test_request_that_kills_workers_stalls_nobody(
    sqlite: Appliance, people: list[TestPerson]
) -> None:
    """A crash loop on one activation ends by its time; all else is signed."""
    victim, others = people[0], people[1:]
    before = newest(sqlite)
    poisonous = sqlite.new_request(victim, pdfs.one_page())
    poison = order_crash(sqlite, f"{BEFORE_SIGN}-{poisonous}")
    body = {"solicitudId": poisonous, "password": victim.signing_password}
    crowd = Crowd(sqlite, others, pdfs.one_page(), at_least=40)
    with sqlite.client(victim) as client, crowd.calling():
        first = client.post("/solicitudes/firmar", json=body)
        assert first.status_code == 202, first.text
        address = f"/solicitudes/{poisonous}"
        until(lambda: client.get(address).json()["estado"] == "pendiente")
    poison.unlink()
    with sqlite.client(victim) as client:
        answer = client.post("/solicitudes/firmar", json=body)

    assert answer.status_code == 200, answer.text
    assert_sound(crowd, before=before)


@pytest.mark.parametrize("role", ["api", "redis", "chores"])
def test_kill_of_another_role_loses_nothing(
    sqlite: Appliance, people: list[TestPerson], role: str
) -> None:
    """The front, the doorbell, the chores: each is back, each call is answered."""
    before = newest(sqlite)
    crowd = Crowd(sqlite, people, pdfs.one_page(), at_least=20)
    with crowd.calling():
        for _ in range(2):
            time.sleep(0.3)
            kill_one(sqlite, role)

    assert_sound(crowd, before=before)


def test_kill_of_the_sandbox_is_mended(
    sqlite: Appliance, people: list[TestPerson]
) -> None:
    """Documents come in again at once."""
    before = newest(sqlite)
    kill_one(sqlite, "sandbox")
    until(lambda: bool(sqlite.children("sandbox")))
    sqlite.wait_ready()

    crowd = Crowd(sqlite, people, pdfs.one_page(), at_least=4)
    with crowd.calling():
        pass

    assert_sound(crowd, before=before)


def test_kill_of_the_supervisor_loses_nothing(
    sqlite: Appliance, people: list[TestPerson]
) -> None:
    """Its children end with it, and a new start at once takes over."""
    before = newest(sqlite)
    children = psutil.Process(sqlite.pid).children()
    crowd = Crowd(sqlite, people, pdfs.one_page(), at_least=20)
    with crowd.calling():
        time.sleep(0.3)
        sqlite.kill()
        sqlite.start()
        assert not [child for child in children if is_alive(child)]

    assert_sound(crowd, before=before)


def is_alive(process: psutil.Process) -> bool:
    """Whether it runs; a zombie that nobody has reaped does not."""
    try:
        return process.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def test_restart_in_the_midst_keeps_all(
    sqlite: Appliance, people: list[TestPerson]
) -> None:
    """Stopped and started under calls: what was signed is there, the rest ends."""
    before = newest(sqlite)
    kept = {row.id for row in read_ledger(sqlite).with_state(RequestState.SIGNED)}
    crowd = Crowd(sqlite, people, pdfs.one_page(), at_least=30)
    with crowd.calling():
        time.sleep(0.3)
        assert sqlite.stop() == 0
        sqlite.start()

    assert_sound(crowd, before=before)
    after = {row.id for row in read_ledger(sqlite).with_state(RequestState.SIGNED)}
    assert kept < after
