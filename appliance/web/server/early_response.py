"""Answers that come before their request's body has wholly arrived.

The server closes such a connection. A client that is still sending would then
be reset, and might lose the answer; or it would send its next call on a
connection that is about to close. So the answer says `Connection: close`, and
what still comes is read and dropped for a while before the end, no faster than
leaves the process time for its other callers. A call whose body has two lengths is
the last of its connection too.
"""

import asyncio
from collections.abc import Mapping
from typing import Any, Final, cast

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

from appliance.web.body.flow_control import ArrivingBody

LINGER_S: Final = 5.0
"""Longest that what still comes is read after the answer, in seconds."""
DROPPED_S: Final = 16 << 20
"""Bytes a second that a process reads of bodies which nobody wants."""
_LEAST: Final = 16_384
"""What a smaller piece counts as: it costs as much to read."""
CONTINUE: Final = "rubrica.continue"
"""Extension of a call's scope: tells a client that waits for it to send its body."""
_PACE: Final = "rubrica.dropping"
_HTTP_1: Final = "1"
_BODY: Final = frozenset({b"content-length", b"transfer-encoding"})


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


class LingeringConnection(ASGIHTTPConnection):
    """One call, answered so that the client reads the answer.

    Args:
        app: the face.
        scope: the call.

    Source: RFC 9112, 6.3, 9.3 and 9.6.
    """

    def __init__(self, app: Quart, scope: HTTPScope) -> None:
        super().__init__(app, scope)
        names = {name.lower() for name, _ in scope["headers"]}
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
        pace: Pace = self.app.extensions.setdefault(_PACE, Pace(DROPPED_S))
        self._body = body
        extensions: Mapping[str, Any] = self.scope.get("extensions") or {}
        body.wanted = extensions.get(CONTINUE)

        async def watched() -> ASGIReceiveEvent:
            await body.room()
            message = await receive()
            if message["type"] == "http.request":
                if not message.get("more_body", False):
                    self._arrived.set()
                if self._answered:
                    size = len(message.get("body", b""))
                    message["body"] = b""
                    await pace.spend(size)
            return message

        await super().handle_messages(request, watched)

    async def _send_response(
        self, send: ASGISendCallable, response: ResponseTypes
    ) -> None:
        """Send all of the answer, then end it when the body has arrived."""
        self._answered = True
        if self._body is not None:
            self._body.abandon()
        last = self._ambiguous or not self._arrived.is_set()
        if last and self.scope["http_version"].startswith(_HTTP_1):
            response.headers["Connection"] = "close"

        async def patient(event: ASGISendEvent) -> None:
            if event["type"] == "http.response.body" and not event["more_body"]:
                await self._linger()
            await send(event)

        await super()._send_response(patient, response)

    async def _linger(self) -> None:
        try:
            async with asyncio.timeout(LINGER_S):
                await self._arrived.wait()
        except TimeoutError:
            return
