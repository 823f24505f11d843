"""The `metrics` role, on a listener of its own, not a public one.

`GET /metrics` is for Prometheus, `GET /metrics/processes` for consoles of other hosts.
"""

import asyncio
import socket
import time
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final

from prometheus_client import CONTENT_TYPE_PLAIN_0_0_4
from quart import Blueprint, Quart, Response, current_app

from appliance.metrics.metrics_file import snapshot
from appliance.operations.metrics.exposition import exposition
from appliance.operations.metrics.processes_json import PATH, processes_json
from appliance.operations.metrics.reading import Process, own, read_all
from appliance.settings import METRICS, Settings
from appliance.system.late_imports import FACES, load_late
from appliance.web.app import create_app
from appliance.web.auth import public
from appliance.web.server.server import serve_app

blueprint = Blueprint("metrics", __name__)
_KEY: Final = "rubrica.figures"
KEPT_S: Final = 1.0
"""How long what was read is told again, in seconds."""


class Figures:
    """What all roles tell, read once for all who ask in one moment.

    Args:
        folder: of all roles.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._reading = asyncio.Lock()
        self._told: dict[Callable[[Iterable[Process]], bytes], tuple[bytes, float]] = {}

    async def told(self, form: Callable[[Iterable[Process]], bytes]) -> bytes:
        """What is told now.

        Args:
            form: in which it is told.
        """
        async with self._reading:
            told, until = self._told.get(form, (b"", 0.0))
            if time.monotonic() >= until:
                told = await asyncio.to_thread(lambda: form(self._read()))
                self._told[form] = told, time.monotonic() + KEPT_S
            return told

    def _read(self) -> list[Process]:
        return [*read_all(self._folder), own(snapshot(METRICS), METRICS)]


@blueprint.get("/metrics")
@public
async def metrics() -> Response:
    """`GET /metrics`: the figures of all roles of this host."""
    figures: Figures = current_app.extensions[_KEY]
    text = await figures.told(exposition)
    return Response(text, content_type=CONTENT_TYPE_PLAIN_0_0_4)


@blueprint.get(PATH)
@public
async def processes() -> Response:
    """`GET /metrics/processes`: the same, for the console of another host."""
    figures: Figures = current_app.extensions[_KEY]
    body = await figures.told(_of_this_host)
    return Response(body, content_type="application/json")


def _of_this_host(processes: Iterable[Process]) -> bytes:
    return processes_json(processes, socket.gethostname())


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
