"""Redis goes, comes, forgets, hangs and is full of garbage: nothing is lost.

Source: design §1 "Redis" and §3, 3 and 6.
"""

import time
from collections.abc import Callable

import pytest

from tests.support.appliance.appliance import Appliance, TestPerson
from tests.support.documents import pdfs
from tests.support.faults.fault_injection import assert_sound, newest, until
from tests.support.faults.retrying_callers import Crowd
from tests.support.services.redis import RedisServer

Harm = Callable[[RedisServer], None]


def flush(doorbell: RedisServer) -> None:
    """Forget everything, again and again."""
    for _ in range(10):
        doorbell.flush()
        time.sleep(0.1)


def stop_and_start(doorbell: RedisServer) -> None:
    """Be away for two seconds."""
    doorbell.kill()
    time.sleep(2)
    doorbell.start()


def hang(doorbell: RedisServer) -> None:
    """Answer nothing for three seconds."""
    doorbell.command("CLIENT", "PAUSE", 3000, "ALL")
    time.sleep(3)


def run_full(doorbell: RedisServer) -> None:
    """Refuse every write for want of memory."""
    doorbell.command("CONFIG", "SET", "maxmemory", "1mb")
    time.sleep(2)
    doorbell.command("CONFIG", "SET", "maxmemory", "0")


def be_read_only(doorbell: RedisServer) -> None:
    """Be a replica, which takes no write."""
    doorbell.command("REPLICAOF", "127.0.0.1", "1")
    time.sleep(2)
    doorbell.command("REPLICAOF", "NO", "ONE")


def be_spoilt(doorbell: RedisServer) -> None:
    """Hold what no arq wrote, under arq's own names."""
    doorbell.command("PUBLISH", "rubrica:bell", b"\xff\x00")
    doorbell.command("PUBLISH", "rubrica:news", b"\xff\x00")
    doorbell.command("SET", "arq:job:spoilt", b"\x80\x04not JSON")
    for job in ("spoilt", "absent", b"\xff\xfe"):
        doorbell.command("ZADD", "rubrica:ring", 1, job)
    time.sleep(1)
    doorbell.command("DEL", "rubrica:ring")
    doorbell.command("SET", "rubrica:ring", "of another type")
    time.sleep(1)


@pytest.mark.parametrize(
    "harm", [flush, stop_and_start, hang, run_full, be_read_only, be_spoilt]
)
def test_doorbell_fault_loses_nothing(
    on_sqlite: Appliance, people: list[TestPerson], doorbell: RedisServer, harm: Harm
) -> None:
    """Every call ends with its document, and no call sees an error."""
    before = newest(on_sqlite)
    crowd = Crowd(on_sqlite, people, pdfs.one_page(), concurrency=8, at_least=16)
    with crowd.calling():
        time.sleep(0.2)
        harm(doorbell)

    assert_sound(crowd, before=before)


def listeners(doorbell: RedisServer) -> object:
    """How many hear each of the two channels."""
    return doorbell.command("PUBSUB", "NUMSUB", "rubrica:bell", "rubrica:news")


def test_doorbell_is_heard_again_after_a_fault(
    on_sqlite: Appliance, people: list[TestPerson], doorbell: RedisServer
) -> None:
    """Workers and fronts listen again, and take from the ring what is put there."""
    heard = listeners(doorbell)
    be_spoilt(doorbell)
    doorbell.kill()
    doorbell.start()
    until(lambda: listeners(doorbell) == heard)
    before = newest(on_sqlite)
    crowd = Crowd(on_sqlite, people, pdfs.one_page(), concurrency=1, at_least=8)
    with crowd.calling():
        pass

    assert_sound(crowd, before=before)
    until(lambda: doorbell.command("ZCARD", "rubrica:ring") == 0)
