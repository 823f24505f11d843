"""The connections of one process: how many, of whom, what they speak and how long.

Hypercorn takes whatever connects: when the process is out of descriptors the loop
writes a traceback for each try, and nobody gets in while others hold half a request.
Here connections are counted below the descriptors, by the client's address too, and
where there is no place the one goes that keeps us waiting the longest: for its call,
for its call's body or for room for the answer.

They speak HTTP/1.1 alone: in clear text nobody needs HTTP/2, and its frames would
pass by our limits.
"""

import asyncio
import contextlib
import re
import resource
from collections import defaultdict
from http import HTTPStatus
from typing import Any, Final

import h11
from hypercorn.asyncio.tcp_server import TCPServer
from hypercorn.events import Closed, RawData, Updated
from hypercorn.protocol.h11 import H11Protocol
from hypercorn.typing import ConnectionState
from hypercorn.utils import parse_socket_addr

from appliance.domain.errors import (
    HEAD_TOO_LARGE,
    HEADER_CODING,
    HEADER_NOT_HERE,
    HEADER_REPEATED,
    ApplianceError,
    BadHeaderError,
    ErrorCode,
)
from appliance.metrics import metrics
from appliance.web import problems
from appliance.web.responses import SLOWEST
from appliance.web.server.bare_errors import bare, bare_answer
from appliance.web.server.client_address import Proxies, counted
from appliance.web.server.exchange import CallGroup
from appliance.web.server.rate_limited_log import Rarely

HEAD_S: Final = 10.0
"""Longest from a connection's, or a further head's, first sign to the head's end."""
IDLE_S: Final = 30.0
"""Longest that a connection may wait for its next call."""
_ANSWER_S: Final = 60.0
"""Longest that nothing of an answer is taken, besides what its size needs."""
_TAKEN_S: Final = 1.0
"""Least time over which the pace is measured at which an answer is taken."""
_READ_BYTES: Final = 65_536
_USABLE: Final = 0.75
"""Part of the descriptors that connections may have."""
_ABSOLUTE: Final = re.compile(
    rb"https?://(?:[A-Za-z0-9._~%-]+|\[[0-9A-Fa-f.]*:[0-9A-Fa-f:.]*\])(?::[0-9]*)?"
    rb"(/[^?]*)?(\?.*)?",
    re.IGNORECASE,
)
_ENDS: Final = (b"\n\r\n", b"\n\n")
"""The empty line that ends a head (RFC 9112, 2.2)."""
_LENGTHS: Final = re.compile(rb"\ncontent-length:([^\n]*)", re.IGNORECASE)
_refused: Final = Rarely("call.refused_by_protocol")


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
        metrics.watch_pool("connections", self, Connections.state)

    def state(self) -> metrics.PoolState:
        """How many connections there may be, and how many are open."""
        return metrics.PoolState(self._most, len(self._all))

    def enter(self, connection: "Connection") -> bool:
        """Let a connection in, where need be in the place of one that we wait for.

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
            metrics.count_refused("connections", "full")
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
        now = asyncio.get_running_loop().time()
        stalled = [
            (since, one)
            for one in among
            if (since := one.stalled_since(now)) is not None
        ]
        if not stalled:
            return False
        _, longest = min(stalled, key=lambda each: each[0])
        longest.drop()
        self.leave(longest)
        return True


class _Taking:
    """How a client takes what the system could not take at once.

    Args:
        transport: that has the rest.
        now: by the loop's clock.
    """

    def __init__(self, transport: asyncio.WriteTransport, now: float) -> None:
        self._transport = transport
        self._since = now
        self._left = transport.get_write_buffer_size()

    def behind_since(self, now: float) -> float | None:
        """Since when it is slower than the slowest pace; None if it is not.

        Args:
            now: by the loop's clock.
        """
        seconds = now - self._since
        if seconds < _TAKEN_S:
            return None
        left = self._transport.get_write_buffer_size()
        if self._left - left < seconds * SLOWEST:
            return self._since
        # What was quick before says nothing of what comes.
        self._since, self._left = now, left
        return None


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
        self._reading = False
        self._call_began = 0.0
        self._body_due = 0.0
        """When what came of the body would have come at the slowest pace."""
        self._taking: _Taking | None = None
        """Of the piece of the answer that is being taken."""
        self._timer: asyncio.TimerHandle | None = None
        name = self.writer.get_extra_info("peername")
        self.peer = str(name[0]) if isinstance(name, tuple) else ""
        self.party = counted(self.peer)

    async def run(self) -> None:
        """Serve it until it ends."""
        if not self._connections.enter(self):
            self.writer.write(bare_answer(ErrorCode.OVERLOADED))
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
        calls = CallGroup(self.loop)
        async with calls:
            self._task_group = calls
            self._http = Http1(
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
            calls.go_on = self._http.go_on
            self.protocol = self._http  # type: ignore[assignment]  # without its wrapper
            self._wait(HEAD_S)
            await self._read_data()

    def drop(self) -> None:
        """End it now."""
        self.writer.transport.abort()

    def stalled_since(self, now: float) -> float | None:
        """Since when it keeps us waiting.

        Args:
            now: by the loop's clock.

        Returns:
            None while its call is being worked on, or what it sends or takes keeps
            the slowest pace.
        """
        if self.waits_since is not None:
            return self.waits_since
        if self._taking is not None:
            return self._taking.behind_since(now)
        if not self._http.is_receiving:
            return None
        if self._http.is_answering:
            # Nobody wants the rest.
            return self._call_began
        return self._body_due if self._reading and self._body_due <= now else None

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
            self._call_began = self._body_due = self.loop.time()
            if event.idle:
                self._began = False
                self._wait(IDLE_S)

    async def _write(self, data: bytes) -> None:
        async with self.send_lock:
            seconds = len(data) / SLOWEST
            try:
                async with asyncio.timeout(_ANSWER_S + seconds):
                    self.writer.write(data)
                    self._taking = _Taking(self.writer.transport, self.loop.time())
                    await self.writer.drain()
            except TimeoutError:
                self.drop()
                await self.protocol.handle(Closed())
            except (ConnectionError, RuntimeError):
                await self.protocol.handle(Closed())
            finally:
                self._taking = None

    async def _read_data(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                self._reading = True
                try:
                    data = await self.reader.read(_READ_BYTES)
                finally:
                    self._reading = False
                if not data:
                    break
                if self.waits_since is not None and not self._began:
                    # The next head began: it has as long as the first one.
                    self._cancel()
                    self._began = True
                    self._wait(HEAD_S)
                self._body_due += len(data) / SLOWEST
                came = self.loop.time()
                await self.protocol.handle(RawData(data))
                # While its call did not want more, it was not the client that waited.
                self._body_due += self.loop.time() - came
        await self.protocol.handle(Closed())

    def _wait(self, patience_s: float) -> None:
        """Wait for a head."""
        if self.waits_since is None:
            self.waits_since = self.loop.time()
        self._began = self._began or patience_s == HEAD_S
        self._timer = self.loop.call_later(patience_s, self._give_up)

    def _give_up(self) -> None:
        """End it when what was answered before is taken, or not at all."""
        self.writer.close()
        self._timer = self.loop.call_later(_ANSWER_S, self.drop)

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
            self._taking = _Taking(self.writer.transport, self.loop.time())
            try:
                async with asyncio.timeout(_ANSWER_S):
                    await self.writer.wait_closed()
            except TimeoutError:
                self.drop()


class _RefusedError(Exception):
    """A call that is not made: its head asks for what no face has.

    Args:
        error: what is told.
    """

    def __init__(self, error: ApplianceError) -> None:
        super().__init__(error)
        self.error = error


class _StrictH11(h11.Connection):
    """Which takes one length and a bounded head, and asks for bodies when wanted.

    h11 bounds what it waits for, not what came in one piece, and takes a length twice.

    Args:
        head_bytes: of a head, at most.

    Source: RFC 9110, 10.1.1; RFC 9112, 6.3.
    """

    # What Hypercorn would answer to at once, before who asks is known.
    they_are_waiting_for_100_continue = False

    def __init__(self, head_bytes: int) -> None:
        super().__init__(h11.SERVER, max_incomplete_event_size=head_bytes)
        self._head_bytes = head_bytes

    def next_event(self) -> Any:
        """What came next.

        Raises:
            h11.RemoteProtocolError: it is no HTTP, or too large.
            _RefusedError: a length came twice.
        """
        if self.their_state is h11.IDLE:
            # A whole head at the beginning; empty, while it has no end. By no regular
            # expression, which, asked after each piece, would take twenty times as long
            # for a head that comes byte by byte.
            received = self.trailing_data[0]
            found = [(received.find(end), len(end)) for end in _ENDS]
            ends = [at + length for at, length in found if at >= 0]
            head = received[: min(ends, default=0)]
            if len(head) > self._head_bytes:
                too_large = HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE
                raise h11.RemoteProtocolError("head", error_status_hint=too_large)
            lengths = b",".join(_LENGTHS.findall(head))
            if b"," in lengths:
                raise _RefusedError(BadHeaderError("Content-Length", HEADER_REPEATED))
        return super().next_event()


class Http1(H11Protocol):
    """HTTP/1.1 of one connection: no upgrade to HTTP/2 or its preface, no WebSocket.

    Args:
        arguments: those of Hypercorn's class.

    Source: RFC 9113, 3.1 and 3.4.
    """

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self._h11 = _StrictH11(self.config.h11_max_incomplete_size)
        self.connection = self._h11
        self._method = b""

    @property
    def is_receiving(self) -> bool:
        """Whether the present call's body has not wholly come, and may."""
        is_open = self._h11.their_state is h11.SEND_BODY
        return is_open and not self._h11.client_is_waiting_for_100_continue

    @property
    def is_answering(self) -> bool:
        """Whether the present call's answer has begun."""
        return self._h11.our_state is not h11.SEND_RESPONSE

    async def handle(self, event: Any) -> None:
        """Take what came.

        Args:
            event: bytes, or the connection's end.
        """
        try:
            await super().handle(event)
        except _RefusedError as exc:
            await self._refuse(exc.error, problems.ANSWERS[exc.error.code].status)
            await self.send(Closed())

    async def go_on(self) -> None:
        """Tell the client to send its body, if it waits to be told."""
        if self._h11.client_is_waiting_for_100_continue:
            await self._send_h11_event(
                h11.InformationalResponse(status_code=100, headers=[])
            )

    async def _check_protocol(self, event: h11.Request) -> None:
        """Let an upgrade to h2c be, which a server may do; refuse what is not ours.

        Raises:
            _RefusedError: it is no HTTP/1, asks for nothing that could be an
                address, or for a WebSocket.
        """
        self._method = event.method
        if event.http_version not in {b"1.0", b"1.1"}:
            raise _RefusedError(ApplianceError(ErrorCode.BAD_HEADER))
        if origin_form(event.method, event.target) is None:
            raise _RefusedError(ApplianceError(ErrorCode.BAD_HEADER))
        upgrades = [value for name, value in event.headers if name == b"upgrade"]
        if any(value.strip().lower() == b"websocket" for value in upgrades):
            raise _RefusedError(BadHeaderError("Upgrade", HEADER_NOT_HERE))

    async def _create_stream(self, request: h11.Request) -> None:
        """Begin a call, whose target is its path and query."""
        target = origin_form(request.method, request.target) or request.target
        if target != request.target:
            request = h11.Request(
                method=request.method,
                headers=request.headers.raw_items(),
                target=target,
                http_version=request.http_version,
            )
        await super()._create_stream(request)

    async def _maybe_recycle(self) -> None:
        self._method = b""
        await super()._maybe_recycle()

    async def _send_error_response(self, status_code: int) -> None:
        """Answer what never became a call, by the status that the parser gives."""
        error = ApplianceError(ErrorCode.BAD_HEADER)
        if status_code == HTTPStatus.NOT_IMPLEMENTED:
            error = BadHeaderError("Transfer-Encoding", HEADER_CODING)
        elif status_code == HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE:
            most: dict[str, object] = {"most": self.config.h11_max_incomplete_size}
            error = ApplianceError(error.code, params=most, sentence=HEAD_TOO_LARGE)
        await self._refuse(error, status_code)

    async def _refuse(self, error: ApplianceError, status_code: int) -> None:
        _refused.tell(status=status_code)
        headers, body = bare(error, status_code)
        await self._send_h11_event(
            h11.Response(status_code=status_code, headers=headers)
        )
        if self._method != b"HEAD":
            await self._send_h11_event(h11.Data(data=body))
        await self._send_h11_event(h11.EndOfMessage())


def origin_form(method: bytes, target: bytes) -> bytes | None:
    """A request's target as path and query, as the framework expects it.

    Args:
        method: of the request.
        target: as the client sent it: visible ASCII.

    Returns:
        The target, of an absolute one its path and query; `*` for OPTIONS; None for
        anything else.

    Source: RFC 9112, 3.2.
    """
    if target.startswith(b"/") or (method == b"OPTIONS" and target == b"*"):
        return target
    absolute = _ABSOLUTE.fullmatch(target)
    if absolute is None:
        return None
    path, query = absolute.groups()
    return (path or b"/") + (query or b"")
