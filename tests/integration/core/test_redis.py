"""The doorbell and the news over a real Redis that comes and goes."""

import asyncio
import contextlib
import json
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from redis import Redis

from appliance.bootstrap import Bell, open_core
from appliance.core.messaging import (
    RedisDoorbell,
    RedisOutcomes,
    deserialize,
    serialize,
)
from appliance.core.messaging import redis_settings as settings_of
from appliance.domain.clock import SystemClock
from appliance.domain.ids import ActivationId, new_id
from appliance.domain.ports import Expectation
from appliance.settings import RedisSettings, Settings
from tests.core_parts import core_settings
from tests.parts.hsm import until
from tests.parts.redis import RedisServer
from worker.work_notifications import hear_rings

PATIENCE_S = 30.0
ID = ActivationId("7b7c1a0e-0000-4000-8000-000000000001")


@pytest.fixture
def settings(short_dir: Path, redis_server: RedisServer) -> Settings:
    """Settings of an installation with that Redis."""
    made = core_settings(short_dir)
    return made.model_copy(update={"redis": RedisSettings(socket=redis_server.socket)})


@asynccontextmanager
async def worker(settings: Settings) -> AsyncIterator[asyncio.Event]:
    """A worker that hears rings; the event is set by each."""
    wake = asyncio.Event()
    async with open_core(settings, SystemClock(), "test") as core:
        bell: Bell = core.bell
        hearing = asyncio.create_task(hear_rings(bell, wake, lambda: True))
        try:
            yield wake
        finally:
            hearing.cancel()
            await asyncio.gather(hearing, return_exceptions=True)


@asynccontextmanager
async def doorbell(settings: Settings) -> AsyncIterator[RedisDoorbell]:
    """A front's bell."""
    bell = RedisDoorbell(settings_of(settings))
    try:
        yield bell
    finally:
        await bell.close()


@asynccontextmanager
async def news(settings: Settings) -> AsyncIterator[RedisOutcomes]:
    """A process's news, listening."""
    outcomes = RedisOutcomes(settings_of(settings))
    listening = asyncio.create_task(outcomes.run())
    try:
        yield outcomes
    finally:
        listening.cancel()
        await asyncio.gather(listening, return_exceptions=True)
        await outcomes.close()


async def rings_until_heard(bell: RedisDoorbell, wake: asyncio.Event) -> None:
    """Ring anew until a worker hears."""
    async with asyncio.timeout(PATIENCE_S):
        while not wake.is_set():
            await bell.ring(ActivationId(new_id()))
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(0.5):
                    await wake.wait()


async def rung_out(server: RedisServer) -> None:
    """Wait until every ring was heard: Redis holds nothing of any of them."""
    with Redis(unix_socket_path=str(server.socket)) as client:
        await until(
            lambda: all(b"health" in key for key in client.scan_iter()),
        )


async def heard(
    outcomes: RedisOutcomes, teller: RedisOutcomes, activation: ActivationId
) -> bool:
    """Whether news of an activation arrive from another process, in some tries."""
    async with outcomes.expect(activation) as expectation:
        for _ in range(20):
            await teller.announce(activation)
            if await expectation.wait(0.2):
                return True
    return False


# -- rings -------------------------------------------------------------------------


async def test_ring_reaches_a_worker_quickly(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Once both are there, each ring is heard, and no poll is waited for."""
    monkeypatch.setattr("worker.work_notifications._LISTEN_S", 2 * PATIENCE_S)
    async with worker(settings) as wake, doorbell(settings) as bell:
        await rings_until_heard(bell, wake)
        for _ in range(5):
            wake.clear()
            await bell.ring(ActivationId(new_id()))
            async with asyncio.timeout(PATIENCE_S):
                await wake.wait()


async def test_ring_heard_by_one_of_two_workers(
    settings: Settings, redis_server: RedisServer
) -> None:
    """A ring wakes one worker: it is a job, not a shout."""
    async with (
        worker(settings) as one,
        worker(settings) as two,
        doorbell(settings) as bell,
    ):
        for _ in range(50):
            await bell.ring(ActivationId(new_id()))
            await asyncio.sleep(0.2)
            if one.is_set() or two.is_set():
                break
        await rung_out(redis_server)
        heard_by = []
        for _ in range(5):
            one.clear()
            two.clear()
            await bell.ring(ActivationId(new_id()))
            await rung_out(redis_server)
            heard_by.append([one.is_set(), two.is_set()].count(True))

    assert heard_by == [1] * 5


@asynccontextmanager
async def silence(settings: Settings) -> AsyncIterator[list[asyncio.StreamWriter]]:
    """Something listens in Redis's place and never answers; who came there."""
    came: list[asyncio.StreamWriter] = []

    async def say_nothing(
        _: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        came.append(writer)

    server = await asyncio.start_unix_server(say_nothing, str(settings.redis_socket))
    try:
        yield came
    finally:
        server.close()
        for writer in came:
            writer.close()


@pytest.fixture
def long_rest(monkeypatch: pytest.MonkeyPatch) -> None:
    """Redis, once away, is left alone for the rest of a test."""
    monkeypatch.setattr("appliance.core.messaging._REST_S", 600.0)


@pytest.mark.usefixtures("long_rest")
async def test_ring_without_redis_returns_quickly_and_raises_nothing(
    settings: Settings, redis_server: RedisServer
) -> None:
    """The first one finds out; the next ones do not try."""
    async with doorbell(settings) as bell, asyncio.timeout(PATIENCE_S):
        await bell.ring(ID)
        redis_server.stop()
        await bell.ring(ID)
        async with silence(settings) as came:
            for _ in range(20):
                await bell.ring(ID)

    assert came == []


@pytest.mark.usefixtures("long_rest")
async def test_ring_returns_when_redis_hangs(
    settings: Settings, redis_server: RedisServer
) -> None:
    """Something listens and never answers: one finds out, however many ring."""
    redis_server.stop()
    async with (
        silence(settings) as came,
        doorbell(settings) as bell,
        asyncio.timeout(PATIENCE_S),
    ):
        await asyncio.gather(*(bell.ring(ID) for _ in range(20)))
        await bell.ring(ID)

    assert len(came) == 1


async def test_ring_works_again_when_redis_is_back(
    settings: Settings, redis_server: RedisServer
) -> None:
    """Front and worker find it again by themselves, within seconds."""
    async with worker(settings) as wake, doorbell(settings) as bell:
        await rings_until_heard(bell, wake)
        redis_server.kill()
        await bell.ring(ID)
        redis_server.start()
        wake.clear()

        await rings_until_heard(bell, wake)

        assert wake.is_set()


async def test_ring_works_after_a_flush(
    settings: Settings, redis_server: RedisServer
) -> None:
    """FLUSHALL loses rings that were not heard, and nothing else."""
    async with worker(settings) as wake, doorbell(settings) as bell:
        await rings_until_heard(bell, wake)
        redis_server.flush()
        wake.clear()

        await rings_until_heard(bell, wake)

        assert wake.is_set()


async def test_many_rings_at_once_share_one_connection(
    settings: Settings, redis_server: RedisServer
) -> None:
    """The first fifty calls of a front make one pool, not fifty."""
    async with doorbell(settings) as bell:
        await asyncio.gather(*(bell.ring(ActivationId(new_id())) for _ in range(50)))
        first = bell._link._client
        await bell.ring(ID)

        assert first is bell._link._client
    with Redis(unix_socket_path=str(redis_server.socket)) as client:
        queued: int = client.zcard("rubrica:ring")
        assert queued == 51


async def test_redis_holds_ids_alone(
    settings: Settings, redis_server: RedisServer
) -> None:
    """A ring keeps the activation's id, as JSON, and for minutes only."""
    async with doorbell(settings) as bell:
        await bell.ring(ID)

    with Redis(unix_socket_path=str(redis_server.socket)) as client:
        keys = sorted(key.decode() for key in client.scan_iter())
        job = json.loads(client.get(f"arq:job:{ID}:1"))
        lives: int = client.ttl(f"arq:job:{ID}:1")

    assert keys == [f"arq:job:{ID}:1", "rubrica:ring"]
    assert {name: job[name] for name in job if name != "et"} == {
        "t": None,
        "f": "ring",
        "a": [ID],
        "k": {},
    }
    assert 0 < lives <= 120


async def test_nothing_is_left_of_a_ring_that_was_heard(
    settings: Settings, redis_server: RedisServer
) -> None:
    """No result is kept, so that the same id may ring again."""
    async with worker(settings) as wake, doorbell(settings) as bell:
        await rings_until_heard(bell, wake)
        await rung_out(redis_server)
        wake.clear()
        await bell.ring(ID)
        async with asyncio.timeout(PATIENCE_S):
            await wake.wait()
        await rung_out(redis_server)
        wake.clear()
        await bell.ring(ID)
        async with asyncio.timeout(PATIENCE_S):
            await wake.wait()


@pytest.mark.parametrize("raw", [b"[]", b"1", b"\x80\x04K\x01.", b""])
def test_job_that_is_no_json_object_is_refused(raw: bytes) -> None:
    """A pickle, above all, is never read."""
    with pytest.raises(ValueError):  # noqa: PT011 (arq looks at no more)
        deserialize(raw)


def test_job_reads_back() -> None:
    """What is serialised as JSON reads back."""
    assert deserialize(serialize({"f": "ring", "a": [ID]})) == {"f": "ring", "a": [ID]}


# -- news --------------------------------------------------------------------------


async def test_news_wake_who_expects_them_in_another_process(
    settings: Settings,
) -> None:
    """By the activation's id, and nobody else."""
    async with news(settings) as front, news(settings) as worker_side:
        assert await heard(front, worker_side, ActivationId(new_id()))
        async with (
            front.expect(ID) as mine,
            front.expect(ID) as mine_too,
            front.expect(ActivationId(new_id())) as other,
        ):
            await worker_side.announce(ID)

            assert all(await asyncio.gather(mine.wait(2), mine_too.wait(2)))
            assert not await other.wait(0.05)


@pytest.mark.usefixtures("long_rest")
async def test_news_within_a_process_need_no_redis(
    settings: Settings, redis_server: RedisServer
) -> None:
    """Who announces wakes its own first, and tells a Redis that is away but once."""
    redis_server.stop()
    outcomes = RedisOutcomes(settings_of(settings))
    async with outcomes.expect(ID) as expectation, asyncio.timeout(PATIENCE_S):
        await outcomes.announce(ID)
        assert await expectation.wait(0)

        async with silence(settings) as came:
            await outcomes.announce(ID)
            assert await expectation.wait(0)

    assert came == []


async def test_news_come_again_when_redis_is_back(
    settings: Settings, redis_server: RedisServer
) -> None:
    """Both sides find it again; who waits is woken to look in between."""
    async with news(settings) as front, news(settings) as worker_side:
        assert await heard(front, worker_side, ActivationId(new_id()))
        async with front.expect(ID) as expectation:
            redis_server.kill()
            redis_server.start()
            # No news, but perhaps some were missed: look at the record.
            looked = await expectation.wait(5)

        assert looked
        assert await heard(front, worker_side, ActivationId(new_id()))


async def test_news_that_are_lost_end_with_the_time(settings: Settings) -> None:
    """Nobody announces: the wait ends, and the caller looks for itself."""
    async with news(settings) as outcomes, outcomes.expect(ID) as expectation:
        waiting: Expectation = expectation
        begun = time.monotonic()
        # The first connection counts as news: something may have been missed.
        async with asyncio.timeout(PATIENCE_S):
            while await waiting.wait(0.1):
                begun = time.monotonic()

        assert time.monotonic() - begun >= 0.1


async def test_nothing_is_kept_of_who_has_left(settings: Settings) -> None:
    """An expectation that ended leaves no trace in the process."""
    async with news(settings) as outcomes:
        async with outcomes.expect(ID):
            pass

        assert outcomes._waiters == {}
