"""Notifications of work and news over a real Redis that comes and goes."""

import asyncio
import json
import math
import time
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any, cast

import pytest
from redis import Redis

from appliance.bootstrap import WorkChannel, open_core
from appliance.domain.clock import SystemClock
from appliance.domain.ids import ActivationId, new_id
from appliance.domain.ports import Subscription
from appliance.messaging.redis_link import (
    RedisCompletionNotifier,
    RedisWorkNotifier,
    answers,
    deserialize,
    listen,
    serialize,
)
from appliance.messaging.redis_link import redis_settings as settings_of
from appliance.metrics import metrics
from appliance.settings import RedisSettings, Settings
from tests.support.hsm.hsm_installation import until
from tests.support.installation.settings import settings_in
from tests.support.services.redis import RedisServer
from worker.work_notifications import hear_notifications

PATIENCE_S = 60.0
ID = ActivationId("7b7c1a0e-0000-4000-8000-000000000001")


@pytest.fixture
def settings(short_dir: Path, redis_server: RedisServer) -> Settings:
    """Settings of an installation with that Redis."""
    made = settings_in(short_dir)
    return made.model_copy(update={"redis": RedisSettings(socket=redis_server.socket)})


@asynccontextmanager
async def worker(settings: Settings) -> AsyncIterator[asyncio.Event]:
    """A worker that hears notifications; the event is set by each."""
    wake = asyncio.Event()
    async with open_core(settings, SystemClock(), "test") as core:
        channel: WorkChannel = core.work_channel
        hearing = asyncio.create_task(hear_notifications(channel, wake, lambda: True))
        try:
            yield wake
        finally:
            hearing.cancel()
            await asyncio.gather(hearing, return_exceptions=True)


@asynccontextmanager
async def work_notifier(settings: Settings) -> AsyncIterator[RedisWorkNotifier]:
    """A front's notifier."""
    notifier = RedisWorkNotifier(settings_of(settings))
    try:
        yield notifier
    finally:
        await notifier.close()


@asynccontextmanager
async def news(settings: Settings) -> AsyncIterator[RedisCompletionNotifier]:
    """A process's news, listening."""
    completion_notifier = RedisCompletionNotifier(settings_of(settings))
    listening = asyncio.create_task(completion_notifier.run())
    try:
        yield completion_notifier
    finally:
        listening.cancel()
        await asyncio.gather(listening, return_exceptions=True)
        await completion_notifier.close()


async def notify_until_heard(
    notifier: RedisWorkNotifier, *wakes: asyncio.Event
) -> None:
    """Notify again until a worker hears."""
    hearing = [asyncio.create_task(wake.wait()) for wake in wakes]
    async with asyncio.timeout(PATIENCE_S):
        while not any(wake.is_set() for wake in wakes):
            await notifier.notify(ActivationId(new_id()))
            await asyncio.wait(
                hearing, timeout=0.5, return_when=asyncio.FIRST_COMPLETED
            )
    for each in hearing:
        each.cancel()


def connected() -> float | None:
    """The figure of whether the worker hears Redis; NaN before and after it works."""
    return metrics.REGISTRY.get_sample_value("rubrica_redis_connected")


async def test_only_a_redis_that_is_away_is_told_as_away(
    settings: Settings, redis_server: RedisServer
) -> None:
    """A worker that starts or ends says nothing of Redis."""
    metrics.BELL_CONNECTED.set(math.nan)
    async with worker(settings):
        await until(lambda: connected() == 1)
        redis_server.kill()
        await until(lambda: connected() == 0)
        redis_server.start()
        await until(lambda: connected() == 1)
    assert math.isnan(connected() or math.nan)


@pytest.fixture
def impatient(patience: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """A Redis that does not answer is given up at once."""
    del patience
    monkeypatch.setattr("appliance.messaging.redis_link._QUIET_S", 0.05)
    monkeypatch.setattr("appliance.messaging.redis_link._ANSWER_S", 0.3)
    monkeypatch.setattr("worker.work_notifications._ANSWER_S", 0.3)


@pytest.mark.usefixtures("impatient")
async def test_worker_says_that_a_hung_redis_is_away(
    settings: Settings, redis_server: RedisServer
) -> None:
    """Its connection stays open, and the figure that alerts read says 0."""
    async with worker(settings) as wake, work_notifier(settings) as notifier:
        await until(lambda: connected() == 1)
        with redis_server.hung():
            await until(lambda: connected() == 0)
        await until(lambda: connected() == 1)

        wake.clear()
        await notify_until_heard(notifier, wake)


@pytest.mark.usefixtures("impatient")
async def test_listener_notices_a_hung_redis(
    settings: Settings, redis_server: RedisServer
) -> None:
    """A caller that waits for news polls meanwhile, and hears news again after."""
    async with news(settings) as front, news(settings) as worker_side:
        await until(lambda: front.hears)
        with redis_server.hung():
            await until(lambda: not front.hears)
        await until(lambda: front.hears)

        assert await heard(front, worker_side, ActivationId(new_id()))


async def test_redis_is_pinged_with_a_limit(
    settings: Settings, redis_server: RedisServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One that hangs, or is away, does not answer."""
    given = settings_of(settings)
    assert await answers(given) is True
    monkeypatch.setattr("appliance.messaging.redis_link._ANSWER_S", 0.3)
    with redis_server.hung():
        async with asyncio.timeout(PATIENCE_S):
            assert await answers(given) is False
    redis_server.stop()
    assert await answers(given) is False


async def test_redis_that_this_process_may_not_ask_is_not_said_to_be_away(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another user's socket: nothing is known."""

    async def refuse(*_: object, **__: object) -> None:
        raise PermissionError

    monkeypatch.setattr("asyncio.open_unix_connection", refuse)

    assert await answers(settings_of(settings)) is None


async def all_heard(server: RedisServer) -> None:
    """Wait until every notification was heard: Redis holds nothing of any of them."""
    with Redis(unix_socket_path=str(server.socket)) as client:
        await until(
            lambda: all(b"health" in key for key in client.scan_iter()),
        )


async def heard(
    completion_notifier: RedisCompletionNotifier,
    teller: RedisCompletionNotifier,
    activation: ActivationId,
) -> bool:
    """Whether news of an activation arrive, which another process tells again."""
    async with (
        completion_notifier.subscribe(activation) as subscription,
        asyncio.timeout(PATIENCE_S),
    ):
        told = False
        while not told:
            await teller.publish(activation)
            told = await subscription.wait(0.2)
    return told


# -- notifications of work ---------------------------------------------------------


async def test_ring_reaches_a_worker_quickly(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Once both are there, each ring is heard, and no poll is waited for."""
    monkeypatch.setattr("worker.work_notifications._LISTEN_S", 2 * PATIENCE_S)
    async with worker(settings) as wake, work_notifier(settings) as notifier:
        await notify_until_heard(notifier, wake)
        for _ in range(5):
            wake.clear()
            await notifier.notify(ActivationId(new_id()))
            async with asyncio.timeout(PATIENCE_S):
                await wake.wait()


async def test_ring_heard_by_one_of_two_workers(
    settings: Settings, redis_server: RedisServer
) -> None:
    """A ring wakes one worker: it is a job, not a shout."""
    async with (
        worker(settings) as one,
        worker(settings) as two,
        work_notifier(settings) as notifier,
    ):
        await notify_until_heard(notifier, one, two)
        await all_heard(redis_server)
        heard_by = []
        for _ in range(5):
            one.clear()
            two.clear()
            await notifier.notify(ActivationId(new_id()))
            await all_heard(redis_server)
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


@pytest.fixture(autouse=True)
def patience(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """A Redis that is there is not too slow for anybody, however busy the machine."""
    if "long_rest" not in request.fixturenames:
        monkeypatch.setattr("appliance.messaging.redis_link._NOTIFY_S", PATIENCE_S)
        monkeypatch.setattr("appliance.messaging.redis_link._CONNECT_S", PATIENCE_S)
        monkeypatch.setattr("appliance.messaging.redis_link._ANSWER_S", PATIENCE_S)
        monkeypatch.setattr("worker.work_notifications._ANSWER_S", PATIENCE_S)


@pytest.fixture
def long_rest(monkeypatch: pytest.MonkeyPatch) -> None:
    """Redis, once away, is left alone for the rest of a test."""
    monkeypatch.setattr("appliance.messaging.redis_link._REST_S", 600.0)


@pytest.mark.usefixtures("long_rest")
async def test_ring_without_redis_returns_quickly_and_raises_nothing(
    settings: Settings, redis_server: RedisServer
) -> None:
    """The first one finds out; the next ones do not try."""
    async with work_notifier(settings) as notifier, asyncio.timeout(PATIENCE_S):
        await notifier.notify(ID)
        redis_server.stop()
        await notifier.notify(ID)
        async with silence(settings) as came:
            for _ in range(20):
                await notifier.notify(ID)

    assert came == []


@pytest.mark.usefixtures("long_rest")
async def test_ring_returns_when_redis_hangs(
    settings: Settings, redis_server: RedisServer
) -> None:
    """Something listens and never answers: one finds out, however many ring."""
    redis_server.stop()
    async with (
        silence(settings) as came,
        work_notifier(settings) as notifier,
        asyncio.timeout(PATIENCE_S),
    ):
        await asyncio.gather(*(notifier.notify(ID) for _ in range(20)))
        await notifier.notify(ID)

    assert len(came) == 1


async def test_ring_works_again_when_redis_is_back(
    settings: Settings, redis_server: RedisServer
) -> None:
    """Front and worker find it again by themselves, within seconds."""
    async with worker(settings) as wake, work_notifier(settings) as notifier:
        await notify_until_heard(notifier, wake)
        redis_server.kill()
        await notifier.notify(ID)
        redis_server.start()
        wake.clear()

        await notify_until_heard(notifier, wake)

        assert wake.is_set()


async def test_ring_works_after_a_flush(
    settings: Settings, redis_server: RedisServer
) -> None:
    """FLUSHALL loses notifications that were not heard, and nothing else."""
    async with worker(settings) as wake, work_notifier(settings) as notifier:
        await notify_until_heard(notifier, wake)
        redis_server.flush()
        wake.clear()

        await notify_until_heard(notifier, wake)

        assert wake.is_set()


async def test_many_rings_at_once_share_one_connection(
    settings: Settings, redis_server: RedisServer
) -> None:
    """The first fifty calls of a front make one pool, not fifty."""
    async with work_notifier(settings) as notifier:
        await asyncio.gather(
            *(notifier.notify(ActivationId(new_id())) for _ in range(50))
        )
        first = notifier._link._client
        await notifier.notify(ID)

        assert first is notifier._link._client
    with Redis(unix_socket_path=str(redis_server.socket)) as client:
        queued: int = client.zcard("rubrica:ring")
        assert queued == 51


async def test_redis_holds_ids_alone(
    settings: Settings, redis_server: RedisServer
) -> None:
    """A ring keeps the activation's id, as JSON, and for minutes only."""
    async with work_notifier(settings) as notifier:
        await notifier.notify(ID)

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
    async with worker(settings) as wake, work_notifier(settings) as notifier:
        await notify_until_heard(notifier, wake)
        await all_heard(redis_server)
        wake.clear()
        await notifier.notify(ID)
        async with asyncio.timeout(PATIENCE_S):
            await wake.wait()
        await all_heard(redis_server)
        wake.clear()
        await notifier.notify(ID)
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
            front.subscribe(ID) as mine,
            front.subscribe(ID) as mine_too,
            front.subscribe(ActivationId(new_id())) as other,
        ):
            await worker_side.publish(ID)

            assert all(
                await asyncio.gather(
                    *(each.wait(PATIENCE_S) for each in (mine, mine_too))
                )
            )
            assert not await other.wait(0)


@pytest.mark.usefixtures("long_rest")
async def test_news_within_a_process_need_no_redis(
    settings: Settings, redis_server: RedisServer
) -> None:
    """Who announces wakes its own first, and tells a Redis that is away but once."""
    redis_server.stop()
    completion_notifier = RedisCompletionNotifier(settings_of(settings))
    async with (
        completion_notifier.subscribe(ID) as subscription,
        asyncio.timeout(PATIENCE_S),
    ):
        await completion_notifier.publish(ID)
        assert await subscription.wait(0)

        async with silence(settings) as came:
            await completion_notifier.publish(ID)
            assert await subscription.wait(0)

    assert came == []


async def test_news_come_again_when_redis_is_back(
    settings: Settings, redis_server: RedisServer
) -> None:
    """Both sides find it again; who waits is woken to look in between."""
    async with news(settings) as front, news(settings) as worker_side:
        assert await heard(front, worker_side, ActivationId(new_id()))
        async with front.subscribe(ID) as subscription:
            redis_server.kill()
            redis_server.start()
            # No news, but perhaps some were missed: look at the record.
            looked = await subscription.wait(PATIENCE_S)

        assert looked
        assert await heard(front, worker_side, ActivationId(new_id()))


async def test_news_that_are_lost_end_with_the_time(settings: Settings) -> None:
    """Nobody announces: the wait ends, and the caller looks for itself."""
    async with (
        news(settings) as completion_notifier,
        completion_notifier.subscribe(ID) as subscription,
    ):
        waiting: Subscription = subscription
        begun = time.monotonic()
        # The first connection counts as news: something may have been missed.
        async with asyncio.timeout(PATIENCE_S):
            while await waiting.wait(0.1):
                begun = time.monotonic()

        assert time.monotonic() - begun >= 0.1


async def test_nothing_is_kept_of_who_has_left(settings: Settings) -> None:
    """A subscription that ended leaves no trace in the process."""
    async with news(settings) as completion_notifier:
        async with completion_notifier.subscribe(ID):
            pass

        assert completion_notifier._waiters == {}


async def test_odd_answers_do_not_end_listening(short_dir: Path) -> None:
    """What no Redis says is as one that is away: the channel is tried again."""
    odd = [b"*0\r\n", b":1\r\n", b"*3\r\n+message\r\n+bell\r\n:1\r\n"]
    subscribed = b"*3\r\n+subscribe\r\n+bell\r\n:1\r\n"
    serving: list[asyncio.Task[Any] | None] = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        serving.append(asyncio.current_task())
        with suppress(ConnectionError):
            while said := await reader.read(4096):
                if b"SUBSCRIBE" in said:
                    writer.write(subscribed + (odd.pop() if odd else b""))
                else:
                    writer.write(b"+OK\r\n" * said.count(b"CLIENT"))
        writer.close()

    path = short_dir / "odd.sock"
    given = settings_of(
        settings_in(short_dir).model_copy(update={"redis": RedisSettings(socket=path)})
    )
    async with await asyncio.start_unix_server(serve, path):
        messages = cast("AsyncGenerator[str | None]", listen(given, "bell"))
        async with asyncio.timeout(PATIENCE_S):
            heard = [await anext(messages) for _ in range(4)]
        await messages.aclose()
        await asyncio.gather(*filter(None, serving))
    assert heard == [None] * 4
