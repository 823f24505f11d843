"""The connections of one process: how many, of whom, and how long they may idle.

Hypercorn takes whatever connects: when the process is out of descriptors the loop
writes a traceback for each try, and nobody gets in while others hold half a request.
Here connections are counted below the descriptors, by the client's address too, and
where there is no place the one that has waited longest without a call goes.
"""

import asyncio
import contextlib
import resource
import time
from collections import defaultdict
from typing import Any, Final

import h11
import structlog
from hypercorn.asyncio.task_group import TaskGroup
from hypercorn.asyncio.tcp_server import TCPServer
from hypercorn.events import Closed, RawData, Updated
from hypercorn.protocol.h11 import H11Protocol
from hypercorn.typing import ConnectionState
from hypercorn.utils import parse_socket_addr

from appliance.web.client_address import Proxies, counted
from appliance.web.log import trace
from appliance.web.response import SLOWEST

HEAD_S: Final = 10.0
"""Longest from a connection's, or a further head's, first sign to the head's end."""
IDLE_S: Final = 30.0
"""Longest that a connection may wait for its next call."""
_ANSWER_S: Final = 60.0
"""Longest that nothing of an answer is taken, besides what its size needs."""
_PIECES: Final = 2
"""Pieces of a body between the connection and its call."""
_READ_BYTES: Final = 65_536
_USABLE: Final = 0.75
"""Part of the descriptors that connections may have."""
_TOLD_EVERY_S: Final = 10.0
_BODY: Final = b'{"status":503,"code":"OVERLOADED","title":"Service unavailable"}\n'
_FULL: Final = (
    b"HTTP/1.1 503 Service Unavailable\r\nConnection: close\r\nRetry-After: 5\r\n"
    b"Content-Type: application/problem+json\r\nContent-Length: %d\r\n\r\n%b"
    % (len(_BODY), _BODY)
)
_log = structlog.get_logger(__name__)


class Rarely:
    """A warning that is written now and then, with how often it was due.

    Args:
        event: of the log.
    """

    def __init__(self, event: str) -> None:
        self._event = event
        self._due = 0
        self._next = 0.0

    def tell(self, **fields: object) -> None:
        """Count, and write if the last one was written long enough ago.

        Args:
            fields: of the event.
        """
        self._due += 1
        now = time.monotonic()
        if now >= self._next:
            _log.warning(self._event, times=self._due, **fields)
            self._due, self._next = 0, now + _TOLD_EVERY_S


_broken: Final = Rarely("call.connection_broken")


def places(wanted: int) -> int:
    """How many connections this process may have; it may open all it may at most.

    Args:
        wanted: by the settings.
    """
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != hard:
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    if hard == resource.RLIM_INFINITY:
        return wanted
    return max(1, min(wanted, int(hard * _USABLE)))


class Connections:
    """Who is connected.

    Args:
        most: connections of the process.
        share: of one client's address.
        proxies: that have no share: their clients are many.
    """

    def __init__(self, most: int, share: int, proxies: Proxies) -> None:
        self._most = most
        self._share = share
        self._proxies = proxies
        self._all: set[Connection] = set()
        self._by_peer: defaultdict[str, set[Connection]] = defaultdict(set)
        self._full = Rarely("connections.full")

    def enter(self, connection: "Connection") -> bool:
        """Let a connection in, where need be in the place of one without a call.

        Args:
            connection: that was made.

        Returns:
            Whether there is a place.
        """
        peers = self._by_peer[connection.party]
        is_proxy = self._proxies.trusts(connection.peer)
        room = is_proxy or len(peers) < self._share or self._drop_one(peers)
        if room and len(self._all) >= self._most:
            room = self._drop_one(self._all)
        if not room:
            self._full.tell(open=len(self._all), address=connection.party)
            self._forget_if_empty(connection.party)
            return False
        peers.add(connection)
        self._all.add(connection)
        return True

    def leave(self, connection: "Connection") -> None:
        """Count a connection no longer.

        Args:
            connection: that ended; it may have left before.
        """
        self._all.discard(connection)
        self._by_peer[connection.party].discard(connection)
        self._forget_if_empty(connection.party)

    def end_waiting(self) -> None:
        """End every connection without a call."""
        for connection in [one for one in self._all if one.waits_since is not None]:
            connection.drop()

    def _forget_if_empty(self, party: str) -> None:
        if not self._by_peer[party]:
            del self._by_peer[party]

    def _drop_one(self, among: "set[Connection]") -> bool:
        waiting = [one for one in among if one.waits_since is not None]
        if not waiting:
            return False
        longest = min(waiting, key=lambda one: one.waits_since or 0.0)
        longest.drop()
        self.leave(longest)
        return True


class Connection(TCPServer):
    """One connection: HTTP/1.1 alone, and no end of patience.

    Args:
        connections: of the process.
        arguments: those of Hypercorn's class.
    """

    def __init__(self, connections: Connections, *arguments: Any) -> None:
        super().__init__(*arguments)
        self._connections = connections
        # Less of a body lies between the socket and its reader.
        self.writer.transport.max_size = _READ_BYTES  # type: ignore[attr-defined]  # asyncio's own
        self.waits_since: float | None = None
        """Since when it has had no call; None while it has one."""
        self._began = False
        self._timer: asyncio.TimerHandle | None = None
        name = self.writer.get_extra_info("peername")
        self.peer = str(name[0]) if isinstance(name, tuple) else ""
        self.party = counted(self.peer)

    async def run(self) -> None:
        """Serve it until it ends."""
        if not self._connections.enter(self):
            self.writer.write(_FULL)
            await self._close()
            return
        try:
            await self._serve()
        finally:
            self._cancel()
            await self._close()
            self._connections.leave(self)

    async def _serve(self) -> None:
        socket = self.writer.get_extra_info("socket")
        server = parse_socket_addr(socket.family, socket.getsockname())
        client = (self.peer, 0) if self.peer else None
        async with CallGroup(self.loop) as calls:
            self._task_group = calls
            self.protocol = Http1(  # type: ignore[assignment]  # without its wrapper
                self.app,
                self.config,
                self.context,
                calls,
                ConnectionState(self.state),
                False,  # noqa: FBT003 (Hypercorn's `ssl`)
                client,
                server,
                self.protocol_send,
            )
            self._wait(HEAD_S)
            await self._read_data()

    def drop(self) -> None:
        """End it now."""
        self.writer.transport.abort()

    async def protocol_send(self, event: Any) -> None:
        """Do what the protocol asks for.

        Args:
            event: bytes to send, an end, or whether there is a call.
        """
        if isinstance(event, RawData):
            await self._write(event.data)
        elif isinstance(event, Closed):
            await self._close()
        elif isinstance(event, Updated):
            self._cancel()
            if event.idle:
                self._began = False
                self._wait(IDLE_S)

    async def _write(self, data: bytes) -> None:
        async with self.send_lock:
            try:
                async with asyncio.timeout(_ANSWER_S + len(data) / SLOWEST):
                    self.writer.write(data)
                    await self.writer.drain()
            except TimeoutError:
                self.drop()
                await self.protocol.handle(Closed())
            except (ConnectionError, RuntimeError):
                await self.protocol.handle(Closed())

    async def _read_data(self) -> None:
        with contextlib.suppress(OSError):
            while data := await self.reader.read(_READ_BYTES):
                if self.waits_since is not None and not self._began:
                    # The next head began: it has as long as the first one.
                    self._cancel()
                    self._began = True
                    self._wait(HEAD_S)
                await self.protocol.handle(RawData(data))
        await self.protocol.handle(Closed())

    def _wait(self, patience_s: float) -> None:
        """Wait for a head."""
        if self.waits_since is None:
            self.waits_since = self.loop.time()
        self._began = self._began or patience_s == HEAD_S
        self._timer = self.loop.call_later(patience_s, self.writer.close)

    def _cancel(self) -> None:
        self.waits_since = None
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    async def _close(self) -> None:
        with contextlib.suppress(OSError, RuntimeError, NotImplementedError):
            self.writer.write_eof()
        with contextlib.suppress(OSError, RuntimeError):
            self.writer.close()
            try:
                async with asyncio.timeout(_ANSWER_S):
                    await self.writer.wait_closed()
            except TimeoutError:
                self.drop()


class CallGroup(TaskGroup):
    """The call of one connection, which takes its body as it wants it.

    Args:
        loop: that runs.
    """

    async def spawn_app(self, app: Any, config: Any, scope: Any, send: Any) -> Any:
        """Begin a call.

        Args:
            app: the face, as Hypercorn wraps it.
            config: unused: Hypercorn's.
            scope: of the call.
            send: takes what the call answers, and None at its end.

        Returns:
            What gives the call a message.
        """
        del config
        inbox = _Inbox()
        self.spawn(_call, app, scope, inbox, send)
        return inbox.put


async def _call(app: Any, scope: Any, inbox: "_Inbox", send: Any) -> None:
    """Run a call to its end."""
    try:
        await app(scope, inbox.get, send, None, None)
    except OSError:
        _broken.tell()
    except Exception as exc:  # noqa: BLE001 (its connection ends, not the process)
        _log.error("call.failed", trace=trace(exc))
    finally:
        inbox.end()
        await send(None)


class _Inbox:
    """Messages for one call: pieces of its body wait for their turn.

    Hypercorn's own queue keeps ten, and whoever puts an eleventh waits for ever for
    a call that is over.
    """

    def __init__(self) -> None:
        self._queue: asyncio.Queue[Any] = asyncio.Queue()
        self._room = asyncio.Event()
        self._room.set()
        self._over = False

    async def put(self, message: Any) -> None:
        """Give the call a message, when there is room for it."""
        if message["type"] == "http.request":
            await self._room.wait()
        if self._over:
            return
        self._queue.put_nowait(message)
        if self._queue.qsize() >= _PIECES:
            self._room.clear()

    async def get(self) -> Any:
        """Take the next message."""
        message = await self._queue.get()
        self._room.set()
        return message

    def end(self) -> None:
        """Take no message any more: the call is over."""
        self._over = True
        self._queue = asyncio.Queue()
        self._room.set()


class _NotSpokenError(Exception):
    """A client begins with a protocol that is not ours."""


class Http1(H11Protocol):
    """HTTP/1.1: no upgrade to HTTP/2, and none of its prefaces.

    In clear text nobody needs it, and its frames would pass by our limits.

    Source: RFC 9113, 3.1 and 3.4.
    """

    async def handle(self, event: Any) -> None:
        """Take what came.

        Args:
            event: bytes, or the connection's end.
        """
        try:
            await super().handle(event)
        except _NotSpokenError:
            await self._send_error_response(400)
            await self.send(Closed())

    async def _check_protocol(self, event: h11.Request) -> None:
        """Let an upgrade to h2c be, which a server may do, and refuse the preface.

        Raises:
            _NotSpokenError: it is no HTTP/1.
        """
        if event.http_version not in {b"1.0", b"1.1"}:
            raise _NotSpokenError
