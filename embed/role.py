"""The `embed` role: Hypercorn over one listener, with a graceful stop."""

import asyncio
import socket

import structlog
from hypercorn.asyncio import serve

from appliance.bootstrap import open_front
from appliance.domain.clock import SystemClock
from appliance.processes import stop_event
from appliance.settings import Settings
from appliance.web.server import hypercorn_config
from embed.app import create_embed

_log = structlog.get_logger(__name__)


def run_embed(settings: Settings, number: int, listener: socket.socket | None) -> int:
    """Serve the frame until told to stop; the process's exit status.

    Args:
        settings: of the installation.
        number: among its kind, for the log.
        listener: where to listen, bound already.

    Raises:
        ValueError: without a listener.
    """
    del number
    if listener is None:
        msg = "the embed role needs a listener"
        raise ValueError(msg)
    asyncio.run(_serve(settings, listener))
    return 0


async def _serve(settings: Settings, listener: socket.socket) -> None:
    stop = stop_event()
    async with open_front(settings, SystemClock(), "embed") as front:
        app = create_embed(front)
        _log.info("embed.listening", address=settings.web.listen_embed)
        await serve(
            app, hypercorn_config(settings, listener), shutdown_trigger=stop.wait
        )
