"""Hearing that there is work: arq as a task inside the worker, woken by a channel.

A notification only wakes; what there is to do stands in the database. arq's Worker is
built anew whenever Redis goes, and the HSM session knows nothing of it.

Source: design §3, 3; facts "arq".
"""

import asyncio
import contextlib
import math
from collections.abc import Callable
from typing import Any, Final

import structlog
from arq import ArqRedis, Worker, func
from redis.exceptions import RedisError, ResponseError

from appliance.bootstrap import WorkChannel
from appliance.domain.ids import UPKEEP
from appliance.metrics import metrics

_log = structlog.get_logger(__name__)
_LISTEN_S: Final = 1.0
"""arq is polled that often without a message on the channel."""
_RETRY_S: Final = 1.0
_ANSWER_S: Final = 3.0
"""Longest that Redis may take for what one poll asks of it, in seconds."""
_END_S: Final = 1.0
"""Longest that jobs which run are waited for; they only set an event."""


class NotifiedWorker(Worker):
    """arq's worker, which polls when the channel says so.

    Args:
        notified: set by the channel's listener.
        free: whether this worker can take work; a busy one leaves it
            to another.
        options: arq's own.
    """

    def __init__(
        self, *, notified: asyncio.Event, free: Callable[[], bool], **options: Any
    ) -> None:
        super().__init__(**options)
        self._notified = notified
        self._free = free

    async def main(self) -> None:
        """Poll once after each message, and once a second.

        Raises:
            TimeoutError: Redis accepts connections and does not answer.
        """
        while True:
            self._notified.clear()
            if self._free():
                await self._poll()
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(_LISTEN_S):
                    await self._notified.wait()

    async def _poll(self) -> None:
        """Poll once.

        Raises:
            TimeoutError: Redis took longer than `_ANSWER_S`.
        """
        polling = asyncio.ensure_future(self._poll_iteration())
        try:
            await asyncio.wait({polling}, timeout=_ANSWER_S)
            if not polling.done():
                raise TimeoutError
            polling.result()
        finally:
            # Not awaited: a pipeline that is given up asks the same Redis once more.
            polling.cancel()
            polling.add_done_callback(_collect)


def _collect(polling: asyncio.Future[None]) -> None:
    """Take the error of a poll that nobody waits for."""
    if not polling.cancelled():
        polling.exception()


async def hear_notifications(
    channel: WorkChannel,
    wake: asyncio.Event,
    free: Callable[[], bool],
    upkeep: asyncio.Event | None = None,
) -> None:
    """Set `wake` at each notification, until cancelled; Redis may come and go.

    Args:
        channel: of notifications.
        wake: of the worker.
        free: whether this worker can take work; a busy one leaves it to another.
        upkeep: of what keeps published documents; set in its place.
    """
    notified = asyncio.Event()

    async def listen() -> None:
        async for _ in channel.listen():
            notified.set()

    async def job(_context: dict[str, Any], work: str) -> None:
        (upkeep if upkeep and work.startswith(UPKEEP) else wake).set()

    listener = asyncio.create_task(listen())
    try:
        while True:
            await _run_once(channel, job, notified, free)
            await asyncio.sleep(_RETRY_S)
    finally:
        listener.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await listener


async def _run_once(
    channel: WorkChannel, job: Any, notified: asyncio.Event, free: Callable[[], bool]
) -> None:
    """Run arq until Redis goes away."""
    pool: ArqRedis | None = None
    worker: NotifiedWorker | None = None
    is_heard = 0.0
    try:
        pool = await channel.connect()
        metrics.BELL_CONNECTED.set(1)
        worker = NotifiedWorker(
            notified=notified,
            free=free,
            functions=[func(job, name=channel.job, keep_result=0, max_tries=1)],
            queue_name=channel.queue,
            redis_pool=pool,
            handle_signals=False,
            job_serializer=channel.serialize,
            job_deserializer=channel.deserialize,
            job_timeout=10,
            # Also of one that came too late to be a job any more.
            keep_result=0,
            health_check_interval=60,
            log_results=False,
        )
        await worker.main()
    except ResponseError as exc:
        # Full, read-only, or something else stands under the queue's name.
        _log.debug("bell.refused", error=str(exc))
        await _clear(pool, channel.queue)
    except asyncio.CancelledError:
        # The worker ends: that says nothing of Redis.
        is_heard = math.nan
        raise
    except (RedisError, OSError, TimeoutError) as exc:
        _log.debug("bell.lost", error=str(exc))
    except Exception as exc:  # noqa: BLE001 (arq stumbles over what others wrote)
        # It may cost notifications, each a poll's time, but never the channel.
        _log.warning("bell.spoilt", error=repr(exc))
        await _clear(pool, channel.queue)
    finally:
        metrics.BELL_CONNECTED.set(is_heard)
        if worker is not None:
            await _end_jobs(worker)
        if pool is not None:
            with contextlib.suppress(RedisError, OSError, TimeoutError):
                await pool.aclose()


async def _end_jobs(worker: Worker) -> None:
    """Let arq's running jobs go before their pool, or they would hold on to it."""
    tasks = list(worker.tasks.values())
    if tasks:
        _, late = await asyncio.wait(tasks, timeout=_END_S)
        for task in late:
            task.cancel()
        # Also takes what they raised, which a Redis that is away makes them.
        await asyncio.gather(*tasks, return_exceptions=True)


async def _clear(pool: ArqRedis | None, queue: str) -> None:
    """Empty the queue: it is no record, and a job that cannot be read stays."""
    if pool is not None:
        with contextlib.suppress(RedisError, OSError, TimeoutError):
            await pool.delete(queue)
