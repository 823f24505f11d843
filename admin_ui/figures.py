"""Figures of the processes whose folders this console may read."""

import asyncio
import socket
import time
from collections.abc import Iterable
from datetime import datetime
from pathlib import Path
from typing import Final, cast

from quart import current_app

from admin_ui.core import core
from appliance.operations.metrics.facts import Facts, facts
from appliance.operations.metrics.reading import read_all

KEY: Final = "rubrica.figures"
"""Where the application keeps them."""
KEPT_S: Final = 2.0
"""How long what was read is shown again, in seconds: many may look at once."""
_RESTS: Final = 10
"""The longer a reading took, the longer it is shown: so many times."""


class HostFigures:
    """What was handed over, read and understood once for all who look in one moment.

    Args:
        folder: of all roles.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._reading = asyncio.Lock()
        self._facts = Facts()
        self._until = 0.0

    async def facts(self, now: datetime, tsas: Iterable[str]) -> Facts:
        """What the processes tell that ever handed figures over there.

        Args:
            now: the present time.
            tsas: as of `facts`.
        """
        async with self._reading:
            if (began := time.monotonic()) >= self._until:
                self._facts = await asyncio.to_thread(self._read, now, tuple(tsas))
                read = time.monotonic()
                # A role that hands over all it may costs a tenth of a core at most.
                self._until = read + max(KEPT_S, _RESTS * (read - began))
            return self._facts

    def _read(self, now: datetime, tsas: Iterable[str]) -> Facts:
        return facts(read_all(self._folder), socket.gethostname(), now, tsas)


async def figures_now() -> Facts:
    """What the figures in reach tell now."""
    source = cast("HostFigures", current_app.extensions[KEY])
    return await source.facts(core().clock.now(), core().settings.tsa_names)
