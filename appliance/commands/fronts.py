"""Commands that work on an open front, as `api` does."""

import argparse
from collections.abc import Awaitable, Callable

from appliance.bootstrap import Front, open_front
from appliance.commands.terminal import run_async
from appliance.domain.clock import SystemClock
from appliance.settings import Settings

Handler = Callable[[Front, argparse.Namespace], Awaitable[int]]


def handle(parser: argparse.ArgumentParser, handler: Handler) -> None:
    """Run a handler on an open front.

    Args:
        parser: of the command.
        handler: gives the process's exit status.
    """

    def run(args: argparse.Namespace) -> int:
        async def work(settings: Settings) -> int:
            async with open_front(settings, SystemClock(), "operator") as front:
                return await handler(front, args)

        return run_async(work, args)

    parser.set_defaults(run=run)
