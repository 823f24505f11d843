"""The `api` role: the REST API on a listener of its own."""

import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from quart import Quart

from appliance.asgi import create_api
from appliance.bootstrap import open_front
from appliance.domain.clock import SystemClock
from appliance.settings import Settings
from appliance.web.server import run_face


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
    return run_face("api", _open, settings, listener)


@asynccontextmanager
async def _open(settings: Settings) -> AsyncIterator[Quart]:
    async with open_front(settings, SystemClock(), "api") as front:
        yield create_api(front)
