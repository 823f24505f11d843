"""The demo people's telephones and notebooks, behind the demo site.

The site's web server has threads; the trial's use cases run in an event loop of their
own thread.
"""

import asyncio
import sys
import threading
from collections.abc import Coroutine
from concurrent.futures import CancelledError
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final, Protocol, Self, TypeVar

from appliance.domain.errors import ApplianceError
from appliance.settings import Settings

if TYPE_CHECKING:
    from appliance.bootstrap import ServiceRegistry

Result = TypeVar("Result")
_WAIT_S: Final = 10
"""Longest that a page waits for codes or for an address."""
_RETRY_S: Final = 5.0
"""Pause after the trial could not be opened, in seconds."""


class Desk(Protocol):
    """What the site shows a visitor of a trial."""

    def visit(self) -> dict[str, object] | None:
        """Return passwords, present codes and addresses; None if not to be had now."""

    def signature_page(self, request: int) -> str | None:
        """Return the public page of a signature; None if there is none."""


class TrialDesk:
    """The desk of a running trial, from entry to exit.

    Args:
        settings: of the trial.
        retry_s: pause after the trial could not be opened, in seconds.
    """

    def __init__(self, settings: Settings, retry_s: float = _RETRY_S) -> None:
        self._settings = settings
        self._retry_s = retry_s
        self._closing = asyncio.Event()
        self._loop: asyncio.AbstractEventLoop
        self._thread: threading.Thread
        self._front: asyncio.Future[ServiceRegistry]
        self._holding: asyncio.Task[None] | None = None

    def __enter__(self) -> Self:
        self._loop = asyncio.new_event_loop()
        self._front = self._loop.create_future()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._thread.start()
        # Opened in the background: the site listens before that is done.
        self._loop.call_soon_threadsafe(self._begin)
        return self

    def _begin(self) -> None:
        self._holding = self._loop.create_task(self._hold())
        self._holding.add_done_callback(lambda _: self._front.cancel())

    async def _hold(self) -> None:
        """Keep the trial open; open it again after a pause where that failed."""
        last = ""
        while not self._closing.is_set():
            try:
                await self._open()
            except Exception as exc:  # noqa: BLE001 (whatever it is may pass)
                # Until the next try, visitors are told at once that it is not now.
                self._front.cancel()
                reason = type(exc).__name__
                if reason != last:
                    # The kind alone: a message may hold an address with its password.
                    print(f"demo site: no codes yet: {reason}", file=sys.stderr)  # noqa: T201 (a command)
                last = reason
                with suppress(TimeoutError):
                    await asyncio.wait_for(self._closing.wait(), self._retry_s)
                self._front = self._loop.create_future()

    async def _open(self) -> None:
        """Open the trial, and close it when the site stops."""
        from appliance.cli.fronts import operators_front  # noqa: PLC0415 (heavy)

        async with operators_front(self._settings) as front:
            self._front.set_result(front)
            await self._closing.wait()

    def __exit__(self, *_: object) -> None:
        asyncio.run_coroutine_threadsafe(self._end(), self._loop).result()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    async def _end(self) -> None:
        self._closing.set()
        if self._holding is not None:
            if not self._front.done():
                self._holding.cancel()
            await asyncio.wait([self._holding])

    def visit(self) -> dict[str, object] | None:
        """Return passwords, present codes and addresses; None if not to be had now."""
        return self._ask(self._visit())

    async def _visit(self) -> dict[str, object] | None:
        from appliance.cli.demo.visit import read_visit  # noqa: PLC0415 (heavy)

        shown = await read_visit(await asyncio.shield(self._front))
        return shown.as_json() if shown.people else None

    def signature_page(self, request: int) -> str | None:
        """Return the public page of a signature; None if there is none.

        Args:
            request: whose document was signed.
        """
        return self._ask(self._signature_page(request))

    async def _signature_page(self, request: int) -> str | None:
        from appliance.cli.demo.visit import signature_page  # noqa: PLC0415 (heavy)

        return await signature_page(await asyncio.shield(self._front), request)

    def _ask(self, question: Coroutine[Any, Any, Result]) -> Result | None:
        """Return the answer; None if there is none in time."""
        asked = asyncio.run_coroutine_threadsafe(question, self._loop)
        try:
            return asked.result(_WAIT_S)
        except (ApplianceError, TimeoutError, CancelledError):
            # Cancelled: the trial could not be opened just now, or the site stops.
            asked.cancel()
            return None
