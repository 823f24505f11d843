"""How much may be called for within a time, over a real Redis that comes and goes."""

import asyncio
from collections.abc import AsyncIterator
from datetime import timedelta
from functools import partial
from pathlib import Path

import pytest

from appliance.admission.call_rates import CallRates, RateLimitedError, RatePolicy
from appliance.messaging.redis_link import connect
from appliance.messaging.redis_link import redis_settings as settings_of
from appliance.settings import RedisSettings, Settings
from tests.support.factories.fakes import MovingClock
from tests.support.installation.settings import settings_in
from tests.support.services.redis import RedisServer

TEN = RatePolicy("ten", 10, 60)


@pytest.fixture
def settings(short_dir: Path, redis_server: RedisServer) -> Settings:
    """Settings of an installation with that Redis."""
    made = settings_in(short_dir)
    return made.model_copy(update={"redis": RedisSettings(socket=redis_server.socket)})


@pytest.fixture
def clock() -> MovingClock:
    """At the start of a window."""
    made = MovingClock()
    made.at = made.at.replace(second=0, microsecond=0)
    return made


@pytest.fixture
async def rates(settings: Settings, clock: MovingClock) -> AsyncIterator[CallRates]:
    """Those of one process."""
    made = process(settings, clock)
    yield made
    await made.close()


def process(settings: Settings, clock: MovingClock) -> CallRates:
    """Rates as another process has them."""
    return CallRates(partial(connect, settings_of(settings)), clock)


async def taken(rates: CallRates, whose: str, tries: int) -> int:
    """How many of so many at once are let through."""

    async def one() -> bool:
        try:
            await rates.take(TEN, whose)
        except RateLimitedError:
            return False
        return True

    return sum(await asyncio.gather(*(one() for _ in range(tries))))


async def test_processes_count_together(
    rates: CallRates, settings: Settings, clock: MovingClock
) -> None:
    """Of thirty at once in two of them ten pass; somebody else's do not count."""
    other = process(settings, clock)

    passed = await asyncio.gather(taken(rates, "a", 15), taken(other, "a", 15))

    assert sum(passed) == 10
    assert await taken(other, "b", 3) == 3
    assert (await rates.look(TEN, "b")).remaining == 7
    assert (await rates.look(TEN, "a")).remaining == 0
    await other.close()


async def test_what_was_taken_fades(rates: CallRates, clock: MovingClock) -> None:
    """Half a window on, half of what the one before had counts; a window on, none."""
    assert await taken(rates, "a", 12) == 10

    clock.at += timedelta(seconds=90)
    assert await taken(rates, "a", 12) == 5
    clock.at += timedelta(seconds=120)
    assert await taken(rates, "a", 12) == 10


async def test_what_is_given_back_may_be_taken_again(
    rates: CallRates, clock: MovingClock
) -> None:
    """No more than was taken, even where the window before has it."""
    assert await taken(rates, "a", 10) == 10
    assert (await rates.give_back(TEN, "a")).remaining == 1
    assert await taken(rates, "a", 2) == 1
    clock.at += timedelta(seconds=120)
    assert (await rates.give_back(TEN, "a")).remaining == 10
    assert await taken(rates, "a", 12) == 10


@pytest.mark.parametrize(
    ("taken_before", "after_s", "cost"), [(10, 0, 1), (10, 59, 4), (10, 70, 9)]
)
async def test_who_waits_as_long_as_told_gets_through(
    rates: CallRates,
    clock: MovingClock,
    taken_before: int,
    after_s: int,
    cost: int,
) -> None:
    """And a second before that does not."""
    await rates.take(TEN, "a", taken_before)
    clock.at += timedelta(seconds=after_s)

    with pytest.raises(RateLimitedError) as refused:
        await rates.take(TEN, "a", cost)

    wait = refused.value.extras["retryAfter"]
    assert isinstance(wait, int)
    clock.at += timedelta(seconds=wait - 1.5)
    with pytest.raises(RateLimitedError):
        await rates.take(TEN, "a", cost)
    clock.at += timedelta(seconds=1.5)
    await rates.take(TEN, "a", cost)


async def test_without_redis_each_process_counts_alone(
    rates: CallRates,
    settings: Settings,
    clock: MovingClock,
    redis_server: RedisServer,
) -> None:
    """Ten in each, fading as there; what refuses nobody else's."""
    redis_server.kill()
    other = process(settings, clock)

    assert await taken(rates, "a", 12) == 10
    assert await taken(other, "a", 12) == 10
    assert (await rates.give_back(TEN, "c")).remaining == 10
    assert await taken(rates, "c", 12) == 10
    clock.at += timedelta(seconds=90)
    assert await taken(rates, "a", 12) == 5
    assert await taken(rates, "b", 12) == 10
    # A clock that is set back: what lies ahead of it counts no more.
    clock.at -= timedelta(hours=1)
    assert await taken(rates, "a", 12) == 10
    await other.close()
