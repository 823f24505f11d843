"""A backend of an integrator's that is told by webhooks, on a port of this machine."""

import asyncio
import json
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from aiohttp import web

Answering = Callable[[web.Request], Awaitable[web.StreamResponse]]


@dataclass(slots=True)
class Received:
    """One message as it came."""

    headers: dict[str, str]
    body: bytes

    @property
    def id(self) -> str:
        """`webhook-id`."""
        return self.headers["webhook-id"]

    @property
    def told(self) -> dict[str, Any]:
        """What it says."""
        told: dict[str, Any] = json.loads(self.body)
        return told


@dataclass(slots=True)
class WebhookReceiver:
    """What came, and what is answered."""

    url: str = ""
    status: int = 204
    headers: dict[str, str] = field(default_factory=dict)
    text: str = ""
    got: list[Received] = field(default_factory=list)
    hangs: bool = False
    """It takes the message and never answers."""
    is_endless: bool = False
    """The body of its answer never ends."""
    release: asyncio.Event = field(default_factory=asyncio.Event)
    _came: asyncio.Condition = field(default_factory=asyncio.Condition)

    async def answer(self, request: web.Request) -> web.StreamResponse:
        """Take a message."""
        headers = {name.lower(): value for name, value in request.headers.items()}
        self.got.append(Received(headers, await request.read()))
        async with self._came:
            self._came.notify_all()
        if self.hangs:
            await self.release.wait()
        if self.is_endless:
            answer = web.StreamResponse(status=self.status)
            await answer.prepare(request)
            while True:
                await answer.write(b"x" * 1000)
        return web.Response(status=self.status, headers=self.headers, text=self.text)

    async def wait_for(self, count: int) -> None:
        """Wait until so many messages have come, for a minute at most."""
        async with asyncio.timeout(60), self._came:
            await self._came.wait_for(lambda: len(self.got) >= count)


@asynccontextmanager
async def receiving(
    tls: ssl.SSLContext | None = None,
) -> AsyncIterator[WebhookReceiver]:
    """A receiver, until this is left.

    Args:
        tls: of a server; None: it speaks http.
    """
    receiver = WebhookReceiver()
    app = web.Application()
    app.router.add_route("*", "/{rest:.*}", receiver.answer)
    runner = web.AppRunner(app, shutdown_timeout=0.1)
    await runner.setup()
    try:
        site = web.TCPSite(runner, "127.0.0.1", 0, ssl_context=tls)
        await site.start()
        port = runner.addresses[0][1]
        scheme = "http" if tls is None else "https"
        receiver.url = f"{scheme}://127.0.0.1:{port}/rubrica"
        yield receiver
    finally:
        receiver.release.set()
        await runner.cleanup()
