"""How much somebody may call for within a time: counted in Redis, for all processes.

A window slides: what counts is what this one has, and of the one before the part that
the time since has not passed yet. What is refused does not count, so whoever goes on
calling gets through as soon as there is room. While Redis is away each process counts
alone.

Source: decisions "Limits".
"""

import math
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final, cast

from redis.asyncio import Redis

from appliance.domain.clock import Clock
from appliance.domain.errors import (
    DAY_USED_UP,
    MINUTE_USED_UP,
    ApplianceError,
    ErrorCode,
)
from appliance.messaging.redis_link import RedisLink

_USED_UP: Final = {60: MINUTE_USED_UP, 86_400: DAY_USED_UP}
"""What is said of a limit, by the seconds of its window."""
_ALONE_MOST: Final = 10_000
"""Counts that a process keeps by itself."""
# Two keys: this window and the one before it. In one go, so that of calls at the same
# time none passes the limit.
_COUNT: Final = """
local current = tonumber(redis.call('GET', KEYS[1]) or '0')
local before = tonumber(redis.call('GET', KEYS[2]) or '0')
local most = tonumber(ARGV[2])
-- What is given back may have been taken in the window before.
local cost = math.max(tonumber(ARGV[1]), -current)
local fits = before * tonumber(ARGV[3]) + current + cost <= most
if ARGV[5] == 'look' or (ARGV[5] == 'take' and not fits) then
  return {fits and 1 or 0, current, before}
end
if cost ~= 0 then
  redis.call('INCRBY', KEYS[1], cost)
  redis.call('EXPIRE', KEYS[1], ARGV[4])
end
return {fits and 1 or 0, current + cost, before}
"""


class _Counting(StrEnum):
    """What becomes of a cost."""

    LOOK = "look"
    """It is not counted."""
    TAKE = "take"
    """It is, if it fits."""
    SPEND = "spend"
    """It is, whether it fits or not."""


@dataclass(frozen=True, slots=True)
class RatePolicy:
    """So much within a time."""

    name: str
    """An ASCII word, as callers are told it."""
    most: int
    """Within the window."""
    window_s: int
    """60 or 86,400: a minute or a day."""


@dataclass(frozen=True, slots=True)
class RateState:
    """How much of it is left."""

    policy: RatePolicy
    remaining: int
    """That may be taken now."""
    reset_s: int
    """Seconds until all that was taken in this window counts no more in full."""


class RateLimitedError(ApplianceError):
    """`RATE_LIMITED`, with `retryAfter`.

    Args:
        state: what is left.
        wait_s: after which there is room, in seconds.
    """

    def __init__(self, state: RateState, wait_s: int) -> None:
        super().__init__(
            ErrorCode.RATE_LIMITED,
            params={"limit": state.policy.name, "most": state.policy.most},
            extras={"retryAfter": wait_s},
            sentence=_USED_UP[state.policy.window_s],
        )
        self.state = state


@dataclass(slots=True)
class _Window:
    """What one process counted by itself."""

    number: int
    current: int = 0
    before: int = 0


class CallRates:
    """Counts what is taken.

    Args:
        connect: makes a client of Redis.
        clock: the time.
    """

    def __init__(self, connect: Callable[[], Redis], clock: Clock) -> None:
        async def made() -> Redis:
            return connect()

        self._link = RedisLink(made)
        self._clock = clock
        self._alone: dict[str, _Window] = {}

    async def take(self, policy: RatePolicy, whose: str, cost: int = 1) -> RateState:
        """Take something of what somebody has.

        Args:
            policy: how much there is.
            whose: an id; what others take does not count.
            cost: how much is taken.

        Returns:
            What is left.

        Raises:
            RateLimitedError: it is too much.
        """
        state, wait = await self._counted(policy, whose, cost, _Counting.TAKE)
        if wait is not None:
            raise RateLimitedError(state, wait)
        return state

    async def demand(self, policy: RatePolicy, whose: str, cost: int) -> RateState:
        """Make sure that there is room for something, which is not taken yet.

        Raises:
            RateLimitedError: there is none.
        """
        state, wait = await self._counted(policy, whose, cost, _Counting.LOOK)
        if wait is not None:
            raise RateLimitedError(state, wait)
        return state

    async def spend(self, policy: RatePolicy, whose: str, cost: int) -> RateState:
        """Count what was taken, though others took the room since it was demanded."""
        state, _ = await self._counted(policy, whose, cost, _Counting.SPEND)
        return state

    async def give_back(self, policy: RatePolicy, whose: str) -> RateState:
        """Count one thing no more that came to nothing, if this window has any."""
        state, _ = await self._counted(policy, whose, -1, _Counting.SPEND)
        return state

    async def look(self, policy: RatePolicy, whose: str) -> RateState:
        """What is left; nothing is taken."""
        state, _ = await self._counted(policy, whose, 0, _Counting.LOOK)
        return state

    async def _counted(
        self, policy: RatePolicy, whose: str, cost: int, counting: _Counting
    ) -> tuple[RateState, int | None]:
        """What is left, and seconds until there is room; None: it is taken."""
        number, passed = divmod(self._clock.now().timestamp(), policy.window_s)
        share = 1 - passed / policy.window_s
        name = f"rubrica:rate:{policy.name}:{whose}"
        window = (name, int(number), share)
        counted = await self._in_redis(policy, window, cost, counting)
        if counted is None:
            counted = self._by_itself(policy, window, cost, counting)
        is_taken, current, before = counted
        left = max(0, policy.most - math.ceil(before * share + current))
        state = RateState(policy, left, math.ceil(policy.window_s - passed))
        if is_taken:
            return state, None
        return state, math.ceil(_wait(policy, current, before, share, cost))

    async def close(self) -> None:
        """Drop the connection."""
        await self._link.close()

    async def _in_redis(
        self,
        policy: RatePolicy,
        window: tuple[str, int, float],
        cost: int,
        counting: _Counting,
    ) -> tuple[bool, int, int] | None:
        """Count in Redis; None while it is away."""
        name, number, share = window
        told: list[tuple[bool, int, int]] = []

        async def ask(client: Redis) -> None:
            keys = (f"{name}:{number}", f"{name}:{number - 1}")
            given = (cost, policy.most, share, 2 * policy.window_s, counting.value)
            # redis-py's types have no word for an answer of its asyncio client.
            answer = await cast(
                "Awaitable[Any]",
                client.eval(_COUNT, len(keys), *keys, *map(str, given)),
            )
            is_taken, current, before = (int(each) for each in answer)
            told.append((bool(is_taken), current, before))

        await self._link.send(ask)
        return told[0] if told else None

    def _by_itself(
        self,
        policy: RatePolicy,
        asked: tuple[str, int, float],
        cost: int,
        counting: _Counting,
    ) -> tuple[bool, int, int]:
        """Count here alone."""
        name, number, share = asked
        window = self._alone.pop(name, None)
        # One that lies ahead is of a clock that was set back since.
        if window is None or not number - 1 <= window.number <= number:
            window = _Window(number)
        elif window.number < number:
            window = _Window(number, before=window.current)
        if len(self._alone) >= _ALONE_MOST:
            # The one that was used the longest ago.
            del self._alone[next(iter(self._alone))]
        self._alone[name] = window
        fits = window.before * share + window.current + cost <= policy.most
        if counting is _Counting.SPEND or (counting is _Counting.TAKE and fits):
            window.current = max(0, window.current + cost)
        return fits, window.current, window.before


def _wait(
    policy: RatePolicy, current: int, before: int, share: float, cost: int
) -> float:
    """Seconds until there is room, at least one.

    Args:
        policy: that has none now.
        current: taken in this window.
        before: taken in the one before it.
        share: of this window that is left.
        cost: room for how much.
    """
    room = policy.most - cost
    if before and current <= room:
        # Within this window: as what was taken before it fades.
        wait = share - (room - current) / before
    elif current:
        wait = share + max(0.0, 1 - room / current)
    else:
        wait = share
    return max(1.0, wait * policy.window_s)
