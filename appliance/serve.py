"""The `api` role: Hypercorn over one listener, with a graceful stop."""

import asyncio
import socket

import structlog

from appliance.asgi import create_api
from appliance.bootstrap import open_front
from appliance.domain.clock import SystemClock
from appliance.processes import stop_event
from appliance.settings import Settings
from appliance.web.server import serve_face

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
        await serve_face(app, settings, listener, stop)
