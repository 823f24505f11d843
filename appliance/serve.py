"""The `api` role: Hypercorn over one listener, with a graceful stop."""

import asyncio
import logging
import socket

import structlog
from hypercorn.asyncio import serve
from hypercorn.config import Config

from appliance.asgi import create_api
from appliance.bootstrap import open_front
from appliance.domain.clock import SystemClock
from appliance.processes import stop_event
from appliance.settings import Settings

_log = structlog.get_logger(__name__)


def run_api(settings: Settings, number: int, listener: socket.socket | None) -> int:
    """Serve the REST API until told to stop; the process's exit status.

    Args:
        settings: of the installation.
        number: among its kind, for the log.
        listener: where to listen, bound already.

    Raises:
        ValueError: without a listener.
    """
    del number
    if listener is None:
        msg = "the api role needs a listener"
        raise ValueError(msg)
    asyncio.run(_serve(settings, listener))
    return 0


async def _serve(settings: Settings, listener: socket.socket) -> None:
    stop = stop_event()
    async with open_front(settings, SystemClock(), "api") as front:
        app = create_api(front)
        _log.info("api.listening", address=settings.web.listen_api)
        await serve(
            app,
            hypercorn_config(settings, listener),
            shutdown_trigger=stop.wait,
        )


def hypercorn_config(settings: Settings, listener: socket.socket) -> Config:
    """Hypercorn on an inherited listener, with our limits."""
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
