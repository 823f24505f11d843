"""Hypercorn over an inherited listener, with our limits and a graceful stop."""

import asyncio
import logging
import socket
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from typing import TypeAlias

import structlog
from hypercorn.asyncio import serve
from hypercorn.config import Config
from quart import Quart

from appliance.processes import stop_event
from appliance.settings import Settings

_log = structlog.get_logger(__name__)
OpenApp: TypeAlias = Callable[[Settings], AbstractAsyncContextManager[Quart]]
"""Opens a face's app over its services, and closes them after."""


def run_face(
    name: str, open_app: OpenApp, settings: Settings, listener: socket.socket | None
) -> int:
    """Serve a face until it is told to stop; the process's exit status.

    Args:
        name: of the role, one of `FACES`.
        open_app: opens what the face needs, and closes it after.
        settings: of the installation.
        listener: where to listen, bound already.

    Raises:
        ValueError: without a listener.
    """
    if listener is None:
        msg = f"the {name} role needs a listener"
        raise ValueError(msg)
    asyncio.run(_serve(name, open_app, settings, listener))
    return 0


async def _serve(
    name: str, open_app: OpenApp, settings: Settings, listener: socket.socket
) -> None:
    # First: who is told to stop while it opens is stopping.
    stop = stop_event()
    async with open_app(settings) as app:
        _log.info(f"{name}.listening", address=settings.web.listen(name))
        config = _hypercorn_config(settings, listener)
        await serve(app, config, shutdown_trigger=stop.wait)


def _hypercorn_config(settings: Settings, listener: socket.socket) -> Config:
    """Hypercorn on an inherited listener, with our limits.

    Args:
        settings: of the installation.
        listener: where to listen, bound already.
    """
    config = Config()
    config.bind = [f"fd://{listener.fileno()}"]
    config.graceful_timeout = settings.web.graceful_s
    config.shutdown_timeout = settings.web.graceful_s
    config.keep_alive_timeout = 30
    config.read_timeout = None
    config.include_server_header = False
    config.backlog = settings.web.backlog
    config.h11_max_incomplete_size = 32 * 1024
    config.accesslog = None
    # Ours, which writes as all other loggers do; Hypercorn's own adds a handler.
    config.errorlog = logging.getLogger("hypercorn.error")
    return config
