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


def flush(appliance_redis: RedisServer) -> None:
    """Forget everything, again and again."""
    for _ in range(10):
        appliance_redis.flush()
        time.sleep(0.1)


def stop_and_start(appliance_redis: RedisServer) -> None:
    """Be away for two seconds."""
    appliance_redis.kill()
    time.sleep(2)
    appliance_redis.start()


def hang(appliance_redis: RedisServer) -> None:
    """Answer nothing for three seconds."""
    appliance_redis.command("CLIENT", "PAUSE", 3000, "ALL")
    time.sleep(3)


def be_stopped(appliance_redis: RedisServer) -> None:
    """Accept connections and answer nothing, for longer than anybody waits."""
    with appliance_redis.hung():
        time.sleep(6)


def run_full(appliance_redis: RedisServer) -> None:
    """Refuse every write for want of memory."""
    appliance_redis.command("CONFIG", "SET", "maxmemory", "1mb")
    time.sleep(2)
    appliance_redis.command("CONFIG", "SET", "maxmemory", "0")


def be_read_only(appliance_redis: RedisServer) -> None:
    """Be a replica, which takes no write."""
    appliance_redis.command("REPLICAOF", "127.0.0.1", "1")
    time.sleep(2)
    appliance_redis.command("REPLICAOF", "NO", "ONE")


def be_spoilt(appliance_redis: RedisServer) -> None:
    """Hold what no arq wrote, under arq's own names."""
    appliance_redis.command("PUBLISH", "rubrica:bell", b"\xff\x00")
    appliance_redis.command("PUBLISH", "rubrica:news", b"\xff\x00")
    appliance_redis.command("SET", "arq:job:spoilt", b"\x80\x04not JSON")
    for job in ("spoilt", "absent", b"\xff\xfe"):
        appliance_redis.command("ZADD", "rubrica:ring", 1, job)
    time.sleep(1)
    appliance_redis.command("DEL", "rubrica:ring")
    appliance_redis.command("SET", "rubrica:ring", "of another type")
    time.sleep(1)


@pytest.mark.parametrize(
    "harm",
    [flush, stop_and_start, hang, be_stopped, run_full, be_read_only, be_spoilt],
)
def test_doorbell_fault_loses_nothing(
    sqlite_appliance: Appliance,
    people: list[TestPerson],
    appliance_redis: RedisServer,
    harm: Harm,
) -> None:
    """Every call ends with its document, and no call sees an error."""
    before = newest(sqlite_appliance)
    crowd = Crowd(sqlite_appliance, people, pdfs.one_page(), concurrency=8, at_least=16)
    with crowd.calling():
        time.sleep(0.2)
        harm(appliance_redis)

    assert_sound(crowd, before=before)


def listeners(appliance_redis: RedisServer) -> object:
    """How many hear each of the two channels."""
    return appliance_redis.command("PUBSUB", "NUMSUB", "rubrica:bell", "rubrica:news")


def test_doorbell_is_heard_again_after_a_fault(
    sqlite_appliance: Appliance, people: list[TestPerson], appliance_redis: RedisServer
) -> None:
    """Workers and fronts listen again, and take from the ring what is put there."""
    heard = listeners(appliance_redis)
    be_spoilt(appliance_redis)
    appliance_redis.kill()
    appliance_redis.start()
    until(lambda: listeners(appliance_redis) == heard)
    before = newest(sqlite_appliance)
    crowd = Crowd(sqlite_appliance, people, pdfs.one_page(), concurrency=1, at_least=8)
    with crowd.calling():
        pass

    assert_sound(crowd, before=before)
    until(lambda: appliance_redis.command("ZCARD", "rubrica:ring") == 0)
