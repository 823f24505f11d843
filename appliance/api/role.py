"""The `api` role: the REST API on a listener of its own."""

import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial

from quart import Quart

from appliance.api.app import create_api
from appliance.bootstrap import heartbeat, known_addresses, open_front
from appliance.domain.clock import SystemClock
from appliance.settings import Settings
from appliance.web.server.server import run_face


def run_api(settings: Settings, number: int, listener: socket.socket | None) -> int:
    """Serve the REST API until told to stop; the process's exit status.

    Args:
        settings: of the installation.
        number: among its kind, for its sign of life.
        listener: where to listen, bound already.

    Raises:
        ValueError: without a listener.
    """
    return run_face("api", number, partial(_open, number=number), settings, listener)


@asynccontextmanager
async def _open(settings: Settings, number: int) -> AsyncIterator[Quart]:
    async with (
        open_front(settings, SystemClock(), "api") as front,
        heartbeat(front.core, "api", number),
        known_addresses(front.core, front.lookup) as known,
    ):
        yield create_api(front, known)
