"""`rubrica documents`: encrypt what was stored before, or shred an integrator's.

rubrica documents encrypt
rubrica documents shred ACME --yes
"""

import argparse
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

from appliance.commands.progress import ProgressBar
from appliance.commands.terminal import run_async, say
from appliance.domain.clock import SystemClock
from appliance.settings import Settings

if TYPE_CHECKING:
    from appliance.services.document_keeping import DocumentKeeping


def register(
    commands: "argparse._SubParsersAction[argparse.ArgumentParser]",
) -> None:
    """Add `documents`.

    Args:
        commands: of the `rubrica` parser.
    """
    group = commands.add_parser("documents", help="the files of all documents")
    parts = group.add_subparsers(dest="part", required=True)
    encrypt = parts.add_parser(
        "encrypt", help="encrypt those that were stored before documents were"
    )
    encrypt.set_defaults(run=lambda args: run_async(_encrypt, args))
    shred = parts.add_parser(
        "shred", help="destroy the key of an integrator's documents, for good"
    )
    shred.add_argument("integrator", help="its code")
    shred.add_argument(
        "--yes", action="store_true", required=True, help="none of them opens again"
    )
    shred.set_defaults(run=_shred)


async def _encrypt(settings: Settings) -> int:
    async with _documents(settings) as keeping:
        bar = ProgressBar("encrypting documents", await keeping.count())
        done, failed = await keeping.encrypt(bar.advance)
        bar.finish()
    say(f"{done} documents were encrypted")
    for name in failed:
        say(f"{name}: not there, or not what it is named by; left as it is")
    return 1 if failed else 0


def _shred(args: argparse.Namespace) -> int:
    async def work(settings: Settings) -> int:
        async with _documents(settings) as keeping:
            there = await keeping.shred(args.integrator)
        say(
            f"{args.integrator}: none of its documents opens any more"
            if there
            else f"{args.integrator}: there is no key of documents"
        )
        return 0

    return run_async(work, args)


@asynccontextmanager
async def _documents(settings: Settings) -> AsyncIterator["DocumentKeeping"]:
    from appliance.bootstrap import open_documents  # noqa: PLC0415 (heavy)

    async with open_documents(settings, SystemClock()) as keeping:
        yield keeping
