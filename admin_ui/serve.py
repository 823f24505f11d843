"""The `admin` role: the console on a listener of its own."""

import asyncio
import socket

import structlog

from admin_ui.app import create_console
from appliance.bootstrap import open_admin
from appliance.domain.clock import SystemClock
from appliance.processes import stop_event
from appliance.settings import Settings
from appliance.web.server import serve_face

_log = structlog.get_logger(__name__)


def run_admin(settings: Settings, number: int, listener: socket.socket | None) -> int:
    """Serve the console until told to stop; the process's exit status.

    Args:
        settings: of the installation.
        number: among its kind, for the log.
        listener: where to listen, bound already.

    Raises:
        ValueError: without a listener.
    """
    del number
    if listener is None:
        msg = "the admin role needs a listener"
        raise ValueError(msg)
    asyncio.run(_serve(settings, listener))
    return 0


async def _serve(settings: Settings, listener: socket.socket) -> None:
    stop = stop_event()
    async with open_admin(settings, SystemClock()) as front:
        app = create_console(front)
        _log.info("admin.listening", address=settings.web.listen_admin)
        await serve_face(app, settings, listener, stop)
