"""Hypercorn over an inherited listener, with our limits and a graceful stop."""

import asyncio
import logging
import socket

from hypercorn.asyncio import serve
from hypercorn.config import Config
from quart import Quart

from appliance.settings import Settings


async def serve_face(
    app: Quart, settings: Settings, listener: socket.socket, stop: asyncio.Event
) -> None:
    """Serve a face until it is told to stop.

    Args:
        app: the face.
        settings: of the installation.
        listener: where to listen, bound already.
        stop: set when it is to stop.
    """
    config = hypercorn_config(settings, listener)
    await serve(app, config, shutdown_trigger=stop.wait)


def hypercorn_config(settings: Settings, listener: socket.socket) -> Config:
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
