"""Figures of the processes whose folders this console may read, and of other hosts."""

import asyncio
import socket
import time
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Final, cast

from quart import current_app

from admin_ui.core import core
from appliance.operations.metrics.facts import Facts, facts
from appliance.operations.metrics.reading import FOLDER, read_all
from appliance.settings import Settings

if TYPE_CHECKING:
    from appliance.operations.metrics.other_hosts import HostAnswer, OtherHosts

KEY: Final = "rubrica.figures"
"""Where the application keeps them."""
KEPT_S: Final = 2.0
"""How long what was read is shown again, in seconds: many may look at once."""
_RESTS: Final = 10
"""The longer a reading took, the longer it is shown: so many times."""


class FiguresInReach:
    """What was handed over, read and understood once for all who look in one moment.

    Args:
        folder: of all roles of this host.
        others: the other hosts, or None: there are none.
    """

    def __init__(self, folder: Path, others: "OtherHosts | None" = None) -> None:
        self._folder = folder
        self._others = others
        self._reading = asyncio.Lock()
        # Of its own: the threads that all others share may wait for documents' folder.
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="figures")
        self._facts = Facts()
        self._until = 0.0

    async def facts(self, now: datetime, tsas: Iterable[str]) -> Facts:
        """What the processes tell that ever handed figures over there.

        Args:
            now: the present time.
            tsas: as of `facts`.
        """
        async with self._reading:
            if time.monotonic() >= self._until:
                answers = await self._others.read() if self._others else []
                began = time.monotonic()
                self._facts = await asyncio.get_running_loop().run_in_executor(
                    self._thread, self._understood, answers, now, tuple(tsas)
                )
                read = time.monotonic()
                # A role that hands over all it may costs a tenth of a core at most.
                self._until = read + max(KEPT_S, _RESTS * (read - began))
            return self._facts

    def _understood(
        self, answers: "Sequence[HostAnswer]", now: datetime, tsas: Iterable[str]
    ) -> Facts:
        here = socket.gethostname()
        processes = read_all(self._folder)
        told: list[HostAnswer] = []
        if self._others:
            own = {here, *(each.host for each in processes)}
            told = self._others.each_host_once(answers, own)
        processes += (
            each for one in told for each in one.processes if each.number != FOLDER
        )
        away = {one.address: (one.fault, one.cause) for one in told if one.fault}
        return facts(processes, here, now, tsas, away)


def figures_in_reach(settings: Settings) -> FiguresInReach:
    """Those that the settings name.

    Args:
        settings: of the installation.
    """
    if not settings.metrics.hosts:
        return FiguresInReach(settings.metrics_dir)
    from appliance.operations.metrics.other_hosts import (  # noqa: PLC0415 (heavy)
        OtherHosts,
    )

    return FiguresInReach(settings.metrics_dir, OtherHosts(settings.metrics.hosts))


async def figures_now() -> Facts:
    """What the figures in reach tell now."""
    source = cast("FiguresInReach", current_app.extensions[KEY])
    return await source.facts(core().clock.now(), core().settings.tsa_names)
