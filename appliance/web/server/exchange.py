"""One exchange: a request's body as it is read, and the answer, which may be early.

The body is taken from the connection only as fast as somebody reads it. Quart would
gather all of it while nobody reads. Here the next piece is asked for when the last one
was read, so a body that no view wants, or that comes faster than it is wanted, stays
with its sender: the connection's window closes.

An answer may come before its request's body has wholly arrived. The server closes
such a connection. A client that is still sending would then be reset, and might lose
the answer; or it would send its next call on a connection that is about to close. So
the answer says `Connection: close`, and what still comes is read and dropped for a
while before the end, no faster than leaves the process time for its other callers. A
call whose body has two lengths is the last of its connection too.

Source: RFC 9110, 3.8; RFC 9112, 6.3, 9.3 and 9.6.
"""

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final, cast

import structlog
from hypercorn.asyncio.task_group import TaskGroup
from hypercorn.typing import (
    ASGIReceiveCallable,
    ASGIReceiveEvent,
    ASGISendCallable,
    ASGISendEvent,
    HTTPScope,
)
from quart import Quart, Request
from quart.asgi import ASGIHTTPConnection
from quart.typing import ResponseTypes
from quart.wrappers.request import Body

from appliance.web.request_log import trace
from appliance.web.server.rate_limited_log import Rarely

LINGER_S: Final = 5.0
"""Longest that what still comes is read after the answer, in seconds."""
DROPPED_S: Final = 16 << 20
"""Bytes a second that a process reads of bodies which nobody wants."""
CONTINUE: Final = "rubrica.continue"
"""Extension of a call's scope: tells a client that waits for it to send its body."""
_LEAST: Final = 16_384
"""What a smaller piece counts as: it costs as much to read."""
_PIECES: Final = 2
"""Pieces of a body between the connection and its call."""
_PACE: Final = "rubrica.dropping"
_HTTP_1: Final = "1"
_BODY: Final = frozenset({b"content-length", b"transfer-encoding"})
_EXPECT: Final = b"expect"
_log = structlog.get_logger(__name__)
_broken: Final = Rarely("call.connection_broken")


class CallGroup(TaskGroup):
    """The call of one connection, which takes its body as it wants it."""

    go_on: Callable[[], Awaitable[None]]
    """Tells the client to send its body, if it waits to be told."""

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
        scope["extensions"][CONTINUE] = self.go_on
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


class ArrivingBody(Body):
    """The body of one request, one piece at a time.

    Args:
        expected_content_length: unused: limits are the readers' (`chunks`).
        max_content_length: unused.
    """

    def __init__(
        self,
        expected_content_length: int | None = None,
        max_content_length: int | None = None,
    ) -> None:
        del expected_content_length, max_content_length
        super().__init__(None, None)
        self.room = asyncio.Event()
        """Set while what came was read, or nobody will read any more."""
        self.room.set()
        self.wanted: Callable[[], Awaitable[None]] | None = None
        """Called once, when somebody begins to read."""

    def append(self, data: bytes) -> None:
        """Take what came.

        Args:
            data: the next piece; empty where the connection sent none.
        """
        if data:
            self.room.clear()
        super().append(data)

    async def __anext__(self) -> bytes:
        """The next piece."""
        if self.wanted is not None:
            wanted, self.wanted = self.wanted, None
            await wanted()
        data = await super().__anext__()
        self.room.set()
        return data


class Pace:
    """So many bytes a second, for all who ask in turn.

    Args:
        rate: bytes a second.
    """

    def __init__(self, rate: float) -> None:
        self._rate = rate
        self._free = 0.0

    async def spend(self, size: int) -> None:
        """Wait until so many bytes may be had.

        Args:
            size: bytes.
        """
        now = asyncio.get_running_loop().time()
        self._free = max(self._free, now) + max(size, _LEAST) / self._rate
        await asyncio.sleep(self._free - now)


class Exchange(ASGIHTTPConnection):
    """One call, answered so that the client reads the answer.

    Args:
        app: the face.
        scope: the call.
    """

    def __init__(self, app: Quart, scope: HTTPScope) -> None:
        super().__init__(app, scope)
        names = {name.lower() for name, _ in scope["headers"]}
        self._awaits_continue = _EXPECT in names
        self._arrived = asyncio.Event()
        self._answered = False
        self._body: ArrivingBody | None = None
        if not names & _BODY:
            self._arrived.set()
        # What follows on that connection may be part of this call's body.
        self._ambiguous = names >= _BODY

    async def handle_messages(
        self, request: Request, receive: ASGIReceiveCallable
    ) -> None:
        """Take the body in as it is read; once it is answered, drop it."""
        body = cast("ArrivingBody", request.body)
        self._body = body
        if self._awaits_continue:
            extensions: Mapping[str, Any] = self.scope.get("extensions") or {}
            body.wanted = extensions.get(CONTINUE)

        async def watched() -> ASGIReceiveEvent:
            await body.room.wait()
            message = await receive()
            if message["type"] == "http.request":
                if not message.get("more_body", False):
                    self._arrived.set()
                if self._answered:
                    size = len(message.get("body", b""))
                    message["body"] = b""
                    await self._pace().spend(size)
            return message

        await super().handle_messages(request, watched)

    def _pace(self) -> Pace:
        """At which this process drops what nobody wants."""
        if _PACE not in self.app.extensions:
            self.app.extensions[_PACE] = Pace(DROPPED_S)
        pace: Pace = self.app.extensions[_PACE]
        return pace

    async def _send_response(
        self, send: ASGISendCallable, response: ResponseTypes
    ) -> None:
        """Send all of the answer, then end it when the body has arrived."""
        self._answered = True
        if self._body is not None:
            # Forget what was not read: the answer is on its way.
            self._body.clear()
            self._body.room.set()
        last = self._ambiguous or not self._arrived.is_set()
        if last and self.scope["http_version"].startswith(_HTTP_1):
            response.headers["Connection"] = "close"

        async def patient(event: ASGISendEvent) -> None:
            if event["type"] == "http.response.body" and not event["more_body"]:
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(LINGER_S):
                        await self._arrived.wait()
            await send(event)

        await super()._send_response(patient, response)
