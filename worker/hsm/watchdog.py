"""A call into the HSM that hangs ends its process, from outside.

The thread that makes the call cannot be cancelled. The event loop beside it can
still see how long the call has taken, and while that is too long it no longer
says to the service manager that the process is alive. `rubrica up` looks for
itself. Where nobody stands outside, as in a container, the process ends itself:
that helps wherever the module lets Python run meanwhile, as all that we know do.
"""

import asyncio
import os
import signal
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Final

import structlog

from appliance.runtime.hang_watchdog import CallWatch
from appliance.runtime.systemd_notify import ServiceManager

_log: Final = structlog.get_logger(__name__)
_LOOK_S: Final = 1.0
_OUTSIDE_S: Final = 15.0
"""Time for those outside to end the process, in seconds."""


@asynccontextmanager
async def calls_guarded(
    watch: CallWatch, limit_s: float, manager: ServiceManager
) -> AsyncIterator[None]:
    """Say during a block that the process is alive, unless a call hangs.

    Enter it before the HSM is opened: that is a call too. A process whose HSM is
    away is ready all the same, and does what needs none.

    Args:
        watch: the process's own.
        limit_s: longest that a call may take, in seconds.
        manager: who is told.
    """
    guard = asyncio.create_task(_guard(watch, limit_s, manager), name="call-guard")
    try:
        yield
    finally:
        manager.stopping()
        guard.cancel()
        await asyncio.wait({guard})


async def _guard(watch: CallWatch, limit_s: float, manager: ServiceManager) -> None:
    manager.ready()
    # Three chances within the time, as a late one is no death.
    every_s = min(_LOOK_S, manager.watchdog_s / 3 or _LOOK_S)
    told = False
    while True:
        took_s = watch.running_s()
        if took_s <= limit_s:
            manager.alive()
        elif not told:
            told = True
            watch.note_hang()
            _log.error("hsm.hangs", limit_s=limit_s)
        elif took_s > limit_s + _OUTSIDE_S:
            os.kill(os.getpid(), signal.SIGKILL)
        await asyncio.sleep(every_s)
