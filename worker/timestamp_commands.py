"""`rubrica timestamps try`: do the authorities outside answer well from here?"""

import argparse

from appliance.bootstrap import open_core
from appliance.commands.terminal import run_async, say
from appliance.domain.clock import SystemClock
from appliance.settings import Settings
from worker.tsa_client import open_tsa_client


def try_timestamps(args: argparse.Namespace) -> int:
    """Run the command; its exit status."""

    async def work(settings: Settings) -> int:
        if not settings.timestamps.outside:
            say("none is set: the internal authority stamps")
            return 0
        async with (
            open_core(settings, SystemClock(), "operator") as core,
            open_tsa_client(core) as client,
        ):
            told = await client.try_each()
        for name, reason in told.items():
            say(f"{name}: {reason or 'good'}")
        return 1 if any(told.values()) else 0

    return run_async(work, args)
