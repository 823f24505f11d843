"""The `metrics` role: `GET /metrics` on a listener of its own, not a public one."""

import asyncio
import socket
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final

from prometheus_client import CONTENT_TYPE_PLAIN_0_0_4
from quart import Blueprint, Quart, Response, current_app

from appliance.core.metrics_file import snapshot
from appliance.core.system.late_imports import FACES, load_late
from appliance.operations.metrics.exposition import exposition
from appliance.operations.metrics.reading import own, read_all
from appliance.settings import METRICS, Settings
from appliance.web.app import create_app
from appliance.web.auth import public
from appliance.web.server.server import serve_app

blueprint = Blueprint("metrics", __name__)
_KEY: Final = "rubrica.figures"
KEPT_S: Final = 1.0
"""How long what was read is told again, in seconds."""


class Figures:
    """The text of all roles, read once for all who ask in one moment.

    Args:
        folder: of all roles.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._reading = asyncio.Lock()
        self._text = b""
        self._until = 0.0

    async def text(self) -> bytes:
        """What is told now."""
        async with self._reading:
            if time.monotonic() >= self._until:
                self._text = await asyncio.to_thread(self._read)
                self._until = time.monotonic() + KEPT_S
            return self._text

    def _read(self) -> bytes:
        return exposition([*read_all(self._folder), own(snapshot(METRICS), METRICS)])


@blueprint.get("/metrics")
@public
async def metrics() -> Response:
    """`GET /metrics`: the figures of all roles of this host."""
    figures: Figures = current_app.extensions[_KEY]
    return Response(await figures.text(), content_type=CONTENT_TYPE_PLAIN_0_0_4)


@blueprint.get("/healthz")
@public
async def healthz() -> Response:
    """`GET /healthz`: this process answers."""
    return Response('{"status": "ok"}\n', content_type="application/json")


def create_metrics(settings: Settings) -> Quart:
    """Make the application.

    Args:
        settings: of the installation.
    """
    app = create_app("appliance.operations.metrics", settings=settings)
    app.extensions[_KEY] = Figures(settings.metrics_dir)
    app.register_blueprint(blueprint)
    return app


def run_metrics(settings: Settings, number: int, listener: socket.socket | None) -> int:
    """Serve figures until told to stop; the process's exit status.

    Args:
        settings: of the installation.
        number: unused: there is one on a host.
        listener: where to listen, bound already.

    Raises:
        ValueError: without a listener.
    """
    del number
    if listener is None:
        msg = "the metrics role needs a listener"
        raise ValueError(msg)
    load_late(FACES)
    asyncio.run(serve_app(METRICS, _open, settings, listener))
    return 0


@asynccontextmanager
async def _open(settings: Settings) -> AsyncIterator[Quart]:
    yield create_metrics(settings)
