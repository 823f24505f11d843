"""That there is work, and that it ended, over Redis; nothing here is a record.

A notification is an arq job (so that exactly one of many workers takes it) and a
message on a channel (so that it takes it at once). One that is lost costs
the poll interval of a worker; news that is lost costs a front its next look.
"""

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from functools import partial
from typing import Any, Generic, Protocol, TypeVar

import structlog
from arq.connections import ArqRedis, RedisSettings
from redis.asyncio import Redis
from redis.asyncio.client import PubSub
from redis.exceptions import RedisError

from appliance.database.password_files import read_password
from appliance.domain.ids import ActivationId, RequestBatchId, TaskId, UpkeepWorkId
from appliance.settings import Settings
from appliance.system.dead_connections import OPTIONS

QUEUE = "rubrica:ring"
"""arq's queue."""
BELL = "rubrica:bell"
"""Channel that wakes workers."""
NEWS = "rubrica:news"
"""Channel that tells of outcomes; the message is an activation's id."""
RING_JOB = "ring"
"""Name of the arq function."""

_log = structlog.get_logger(__name__)
_Client = TypeVar("_Client", bound=Redis)
_AWAY = (RedisError, OSError, asyncio.TimeoutError)
_ODD = (AttributeError, LookupError, TypeError, ValueError)
"""What redis-py stumbles over where an answer is of the protocol, and of no Redis."""
_CONNECT_S = 1
"""Longest that connecting may take, in seconds."""
_NOTIFY_S = 1.0
"""Longest that telling anybody may take; who waits for it looks by itself then."""
_REST_S = 1.0
"""Time that a Redis that was away is left alone, in seconds."""
_DEAF_S = 0.5
"""Time between looks of a caller that no news can reach."""
_QUIET_S = 1.0
"""Silence of a channel after which its listener pings Redis, in seconds."""
_ANSWER_S = 3.0
"""Longest wait for the answer to a ping, in seconds. A Redis that was stopped (SIGSTOP)
still accepts connections, so a connection alone proves nothing."""


def serialize(job: dict[str, Any]) -> bytes:
    """A job as JSON: a pickle would run code of whoever writes to Redis."""
    return json.dumps(job, default=str).encode()


def deserialize(raw: bytes) -> dict[str, Any]:
    """Undo `serialize`.

    Raises:
        ValueError: not a JSON object.
    """
    job = json.loads(raw)
    if not isinstance(job, dict):
        msg = "a job is a JSON object"
        raise ValueError(msg)  # noqa: TRY004 (arq expects one kind of error)
    return job


def redis_settings(settings: Settings) -> RedisSettings:
    """How to reach Redis.

    Raises:
        SettingsError: the file of its password cannot be read.
    """
    if settings.redis.url is not None:
        found = RedisSettings.from_dsn(settings.redis.url)
        # Off by default in arq: any certificate of that authority would do.
        found.ssl_check_hostname = found.ssl
        if (ca := settings.redis.root_certificate_file) is not None:
            found.ssl_ca_certs = str(ca)
        if (file := settings.redis.password_file) is not None:
            found.password = read_password(file)
    else:
        found = RedisSettings(unix_socket_path=str(settings.redis_socket))
    return found


class RedisLink(Generic[_Client]):
    """A client of Redis, asked for `_NOTIFY_S` at most and never in vain for long.

    What is later than that is cancelled and comes to its end by itself: over a dead
    link the client takes seconds more for letting go. A Redis that was away is left
    alone for `_REST_S`.

    Args:
        connect: makes the client at its first use, and after a rest.
    """

    def __init__(self, connect: Callable[[], Awaitable[_Client]]) -> None:
        self._connect = connect
        self._client: _Client | None = None
        self._connecting = asyncio.Lock()
        self._retry_at = 0.0
        self._running: set[asyncio.Future[None]] = set()

    async def send(self, words: Callable[[_Client], Awaitable[None]]) -> None:
        """Have Redis take words, if it is there; does not raise if it is not.

        A caller that leaves tears no connection that is in the middle of an answer.

        Args:
            words: say them to a client.
        """
        if self._client is None and _now() < self._retry_at:
            return
        sending = self._begin(self._send(words))
        await asyncio.wait({sending}, timeout=_NOTIFY_S)
        if not sending.done():
            sending.cancel()
        elif not sending.cancelled():
            error = sending.exception()
            if error is None:
                return
            if not isinstance(error, _AWAY):
                raise error
        self._rest()

    async def _send(self, words: Callable[[_Client], Awaitable[None]]) -> None:
        async with self._connecting:
            if self._client is None:
                if _now() < self._retry_at:
                    return
                try:
                    self._client = await self._connect()
                except _AWAY:
                    # Those that wait for this lock need not find it out again.
                    self._rest()
                    raise
            client = self._client
        await words(client)

    def _begin(self, words: Coroutine[object, object, None]) -> asyncio.Future[None]:
        """Begin something, whether or not anybody waits for it."""
        sending = asyncio.ensure_future(words)
        self._running.add(sending)
        sending.add_done_callback(self._ended)
        return sending

    def _ended(self, sending: asyncio.Future[None]) -> None:
        self._running.discard(sending)
        if not sending.cancelled():
            sending.exception()

    def _rest(self) -> None:
        self._retry_at = _now() + _REST_S
        self._drop()

    def _drop(self) -> None:
        client, self._client = self._client, None
        if client is not None:
            self._begin(_closed(client))

    async def close(self) -> None:
        """Drop the connection, and give what is under way a moment more."""
        self._drop()
        if self._running:
            _, late = await asyncio.wait([*self._running], timeout=_NOTIFY_S)
            for sending in late:
                sending.cancel()


class RedisWorkNotifier:
    """A `WorkNotifier` over arq; never raises."""

    def __init__(self, settings: RedisSettings) -> None:
        self._link = RedisLink(partial(connect_queue, settings))

    async def notify(
        self, work: ActivationId | TaskId | RequestBatchId | UpkeepWorkId
    ) -> None:
        """Tell any worker that there is work; never raises."""

        async def tell(pool: ArqRedis) -> None:
            await pool.enqueue_job(
                RING_JOB, work, _job_id=f"{work}:1", _expires=timedelta(minutes=2)
            )
            await pool.publish(BELL, "")

        await self._link.send(tell)

    async def close(self) -> None:
        """Drop the connection."""
        await self._link.close()


async def _closed(client: Redis) -> None:
    with contextlib.suppress(*_AWAY):
        await client.aclose()


def _now() -> float:
    return asyncio.get_running_loop().time()


@dataclass(slots=True, eq=False)
class _Subscription:
    """One caller waiting for news."""

    completion_notifier: "RedisCompletionNotifier"
    event: asyncio.Event = field(default_factory=asyncio.Event)

    async def wait(self, timeout_s: float) -> bool:
        """Wait for news or the time-out; True for news."""
        if not self.completion_notifier.hears:
            timeout_s = min(timeout_s, _DEAF_S)
        try:
            async with asyncio.timeout(timeout_s):
                await self.event.wait()
        except TimeoutError:
            return False
        self.event.clear()
        return True


class RedisCompletionNotifier:
    """`CompletionNotifier` over one subscription a process; `run` keeps it alive."""

    def __init__(self, settings: RedisSettings) -> None:
        self._settings = settings
        self._waiters: dict[str, set[_Subscription]] = {}
        self._link = RedisLink(self._connect)
        self.hears = False
        """Whether news can come; without, a wait is a short one."""

    @asynccontextmanager
    async def subscribe(
        self, *activations: ActivationId
    ) -> AsyncIterator[_Subscription]:
        """Listen from now on, to any of them; enter it before the work is committed."""
        waiter = _Subscription(self)
        awaited = set(activations)
        for activation in awaited:
            self._waiters.setdefault(activation, set()).add(waiter)
        try:
            yield waiter
        finally:
            for activation in awaited:
                waiters = self._waiters[activation]
                waiters.discard(waiter)
                if not waiters:
                    del self._waiters[activation]

    async def publish(self, activation: ActivationId) -> None:
        """Wake whoever subscribed to it; never raises."""

        async def tell(client: Redis) -> None:
            await client.publish(NEWS, activation)

        self._wake(activation)
        await self._link.send(tell)

    async def _connect(self) -> Redis:
        return connect(self._settings)

    def _wake(self, activation: str) -> None:
        for waiter in self._waiters.get(activation, ()):
            waiter.event.set()

    async def run(self) -> None:
        """Listen until cancelled; a Redis that is away is tried each second."""

        def tell(*, hears: bool) -> None:
            self.hears = hears

        async for message in listen(self._settings, NEWS, tell):
            if message is None:
                # News may have been missed while away: let all look again.
                for activation in list(self._waiters):
                    self._wake(activation)
            else:
                self._wake(message)

    async def close(self) -> None:
        """Drop the connection."""
        await self._link.close()


def connect(settings: RedisSettings) -> Redis:
    """A client of Redis."""
    return Redis(**_connection(settings))


async def connect_queue(settings: RedisSettings) -> ArqRedis:
    """A client of arq's queue, connected.

    Raises:
        RedisError, OSError, TimeoutError: Redis is away, or does not answer.
    """
    # arq's own `create_pool` has no option for a link that dies.
    pool = ArqRedis(
        **_connection(settings),
        encoding="utf8",
        job_serializer=serialize,
        job_deserializer=deserialize,
        default_queue_name=QUEUE,
    )
    try:
        async with asyncio.timeout(_ANSWER_S):
            await pool.ping()
    except BaseException:
        with contextlib.suppress(*_AWAY):
            await pool.aclose()
        raise
    return pool


async def answers(settings: RedisSettings) -> bool | None:
    """Ping Redis once, over a connection of its own; takes `_ANSWER_S` at most.

    Returns:
        True if it answered; None if this process may not connect to its socket.
    """
    client = connect(settings)
    try:
        async with asyncio.timeout(_ANSWER_S):
            await client.ping()
    except (*_AWAY, *_ODD) as exc:
        # redis-py raises its own error while it handles the system's.
        return None if isinstance(exc.__context__, PermissionError) else False
    finally:
        await _closed(client)
    return True


def _connection(settings: RedisSettings) -> dict[str, Any]:
    """Where Redis is, and how soon it counts as away."""
    found: dict[str, Any] = {
        "db": settings.database,
        "username": settings.username,
        "password": settings.password,
        "socket_connect_timeout": _CONNECT_S,
    }
    if settings.unix_socket_path is not None:
        return {**found, "unix_socket_path": settings.unix_socket_path}
    return {
        **found,
        "host": settings.host if isinstance(settings.host, str) else "localhost",
        "port": settings.port,
        "ssl": settings.ssl,
        "ssl_ca_certs": settings.ssl_ca_certs,
        "ssl_check_hostname": settings.ssl_check_hostname,
        "socket_keepalive": True,
        "socket_keepalive_options": OPTIONS,
    }


class _Tell(Protocol):
    """Is told whether a channel can be heard."""

    def __call__(self, *, hears: bool) -> None: ...


async def listen(
    settings: RedisSettings, channel: str, tell: _Tell | None = None
) -> AsyncIterator[str | None]:
    """Messages of a channel for ever; None after each (re)connection.

    Args:
        settings: of the server.
        channel: its name.
        tell: called at each connection and loss.
    """
    away = False
    while True:
        client = connect(settings)
        try:
            async with client.pubsub() as subscription:
                async with asyncio.timeout(_ANSWER_S):
                    await subscription.subscribe(channel)
                if away:
                    _log.info("redis.back", channel=channel)
                away = False
                if tell is not None:
                    tell(hears=True)
                yield None
                async for message in _messages(subscription):
                    if message["type"] == "message":
                        yield message["data"].decode(errors="replace")
        except (*_AWAY, *_ODD) as exc:
            if not away:
                _log.warning("redis.away", channel=channel, error=str(exc))
            away = True
            if tell is not None:
                tell(hears=False)
            await asyncio.sleep(1)
        finally:
            with contextlib.suppress(*_AWAY):
                await client.aclose()


async def _messages(subscription: PubSub) -> AsyncIterator[dict[str, Any]]:
    """Messages of a subscription for ever; a Redis that says nothing is pinged.

    Raises:
        TimeoutError: it did not answer the ping within `_ANSWER_S`.
    """
    is_pinged = False
    while True:
        response = await _response(subscription, _ANSWER_S if is_pinged else _QUIET_S)
        if response is None and is_pinged:
            # A process that was held up reads the answer only now.
            response = await _response(subscription, 0)
            if response is None:
                raise TimeoutError
        if response is None:
            await subscription.ping()
        else:
            yield await subscription.handle_message(response)  # type: ignore[no-untyped-call]  # redis-py types it so
        is_pinged = response is None


async def _response(subscription: PubSub, within_s: float) -> Any:
    """The next response as it came; None if there is none in time."""
    return await subscription.parse_response(block=False, timeout=within_s)
