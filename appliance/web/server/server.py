"""Hypercorn's protocol over an inherited listener: our connections, a graceful stop."""

import asyncio
import errno
import logging
import socket
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from typing import Final, TypeAlias

import structlog
from hypercorn.app_wrappers import ASGIWrapper
from hypercorn.asyncio.worker_context import WorkerContext
from hypercorn.config import Config
from quart import Quart

from appliance.domain.people.new_password import load_common
from appliance.metrics.metrics_file import handing_over
from appliance.runtime.processes import stop_event
from appliance.settings import Settings
from appliance.system.freed_memory import give_back
from appliance.system.late_imports import FACES, load_late
from appliance.web.request_log import trace
from appliance.web.server.client_address import Proxies
from appliance.web.server.connections import Connection, Connections, places
from appliance.web.server.rate_limited_log import Rarely

_log = structlog.get_logger(__name__)
_READ_BYTES: Final = 65_536
_NO_ROOM: Final = frozenset({errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM})
_gone: Final = Rarely("connections.broken")
OpenApp: TypeAlias = Callable[[Settings], AbstractAsyncContextManager[Quart]]
"""Opens a face's app over its services, and closes them after."""


def run_face(
    name: str,
    number: int,
    open_app: OpenApp,
    settings: Settings,
    listener: socket.socket | None,
) -> int:
    """Serve a face until it is told to stop; the process's exit status.

    Args:
        name: of the role, one of `FACES`.
        number: among its kind, for its figures and its sign of life.
        open_app: opens what the face needs, and closes it after.
        settings: of the installation.
        listener: where to listen, bound already.

    Raises:
        ValueError: without a listener.
    """
    if listener is None:
        msg = f"the {name} role needs a listener"
        raise ValueError(msg)
    load_late(FACES)
    load_common()

    async def serve() -> None:
        async with handing_over(settings.metrics_dir, name, number):
            await serve_app(name, open_app, settings, listener)

    asyncio.run(serve())
    return 0


async def serve_app(
    name: str, open_app: OpenApp, settings: Settings, listener: socket.socket
) -> None:
    """Serve an app over a listener until told to stop.

    Args:
        name: of the role.
        open_app: opens what it needs, and closes it after.
        settings: of the installation.
        listener: where to listen.
    """
    # First: who is told to stop while it opens is stopping.
    stop = stop_event()
    async with open_app(settings) as app:
        asyncio.get_running_loop().set_exception_handler(_LoopFaults())
        await app.startup()
        give_back()
        _log.info(f"{name}.listening", address=settings.listen(name))
        await _Server(app, settings).run(listener, stop)
        await app.shutdown()


class _Server:
    """One listener's connections, until the stop.

    Args:
        app: the face.
        settings: of the installation.
    """

    def __init__(self, app: Quart, settings: Settings) -> None:
        web = settings.web
        self._app = ASGIWrapper(app)
        self._graceful_s = web.graceful_s
        self._backlog = web.backlog
        self._config = _hypercorn_config()
        self._context = WorkerContext(None)
        self._connections = Connections(
            places(web.connections),
            web.connections_address,
            Proxies(web.trusted_proxies or (), web.client_address_header),
        )
        self._tasks: set[asyncio.Task[None]] = set()

    async def run(self, listener: socket.socket, stop: asyncio.Event) -> None:
        """Serve until the stop, and then what is under way."""
        server = await asyncio.start_server(
            self._serve, sock=listener, backlog=self._backlog, limit=_READ_BYTES
        )
        await stop.wait()
        server.close()
        # Answers from now on say that their connection ends.
        await self._context.terminated.set()
        self._connections.end_waiting()
        if self._tasks:
            _, late = await asyncio.wait(self._tasks, timeout=self._graceful_s)
            for task in late:
                task.cancel()
            await asyncio.gather(*late, return_exceptions=True)

    async def _serve(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        task = asyncio.create_task(self._connection(reader, writer))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _connection(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        loop = asyncio.get_running_loop()
        try:
            await Connection(
                self._connections,
                self._app,
                loop,
                self._config,
                self._context,
                {},
                reader,
                writer,
            ).run()
        except* OSError:
            # The client went away; there is nobody to tell.
            _gone.tell()
        except* Exception as group:  # noqa: BLE001 (one connection's end, no other's)
            _log.error("connection.failed", trace=trace(group))


class _LoopFaults:
    """What the event loop cannot tell anybody: one line now and then for each kind.

    A process without a free descriptor would write a traceback for each try.
    """

    def __init__(self) -> None:
        self._accepting = Rarely("connections.not_accepted")

    def __call__(
        self, loop: asyncio.AbstractEventLoop, context: dict[str, object]
    ) -> None:
        """Take a fault.

        Args:
            loop: where it was.
            context: what asyncio says of it.
        """
        fault = context.get("exception")
        if isinstance(fault, ConnectionError):
            _gone.tell()
        elif isinstance(fault, OSError) and fault.errno in _NO_ROOM:
            self._accepting.tell(cause=fault.strerror)
        else:
            loop.default_exception_handler(context)


def _hypercorn_config() -> Config:
    """What Hypercorn's protocol reads of its configuration."""
    config = Config()
    config.include_server_header = False
    config.h11_max_incomplete_size = 32 * 1024
    config.accesslog = None
    # Ours, which writes as all other loggers do; Hypercorn's own adds a handler.
    config.errorlog = logging.getLogger("hypercorn.error")
    return config
