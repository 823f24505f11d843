"""Commands that work on an open front, as `api` does."""

import argparse
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

from appliance.cli.terminal import run_async
from appliance.domain.clock import SystemClock
from appliance.settings import Settings

if TYPE_CHECKING:
    from appliance.bootstrap import ServiceRegistry

Handler = Callable[["ServiceRegistry", argparse.Namespace], Awaitable[int]]


def handle(parser: argparse.ArgumentParser, handler: Handler) -> None:
    """Run a handler on an open front.

    Args:
        parser: of the command.
        handler: gives the process's exit status.
    """

    def run(args: argparse.Namespace) -> int:
        async def work(settings: Settings) -> int:
            async with operators_front(settings) as front:
                return await handler(front, args)

        return run_async(work, args)

    parser.set_defaults(run=run)


@asynccontextmanager
async def operators_front(settings: Settings) -> AsyncIterator["ServiceRegistry"]:
    """An open front, for a command.

    Args:
        settings: of the installation.
    """
    from appliance.bootstrap import open_front  # noqa: PLC0415 (heavy)

    async with open_front(settings, SystemClock(), "operator") as front:
        yield front
