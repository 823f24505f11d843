"""Chores that are done now and then, none of which stops another.

What fails is tried again: the next time it may do, and a chore that never does is no
reason for the others to stay undone.
"""

import asyncio
from collections.abc import Awaitable, Callable

import structlog

from appliance.domain.errors import ApplianceError

_log = structlog.get_logger(__name__)
Chore = Callable[[], Awaitable[object]]


async def attempt(chore: Chore) -> None:
    """Do something; a failure of any kind is logged.

    Args:
        chore: what; its result is of no interest.
    """
    try:
        await chore()
    except ApplianceError as exc:
        _log.warning("worker.chore_failed", chore=_name(chore), code=exc.code.value)
    except Exception:  # noqa: BLE001 (one chore that is broken is not all of them)
        _log.exception("worker.chore_failed", chore=_name(chore))


async def repeat(every_s: float, chore: Chore) -> None:
    """Do something again and again, until cancelled.

    Args:
        every_s: time from the end of one to the next, in seconds.
        chore: as of `attempt`.
    """
    while True:
        await attempt(chore)
        await asyncio.sleep(every_s)


def _name(chore: Chore) -> str:
    named = getattr(chore, "func", chore)  # of a partial
    return getattr(named, "__qualname__", type(named).__name__)
