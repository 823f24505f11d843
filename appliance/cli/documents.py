"""`rubrica documents`: check, encrypt, recover, verify again, shred.

rubrica documents check
rubrica documents encrypt
rubrica documents recover
rubrica documents recheck
rubrica documents shred ACME --yes
"""

import argparse
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from typing import TYPE_CHECKING

from appliance.cli import document_recheck
from appliance.cli.progress_bar import ProgressBar
from appliance.cli.terminal import run_async, run_with, say
from appliance.domain.clock import SystemClock
from appliance.settings import Settings, load_settings

if TYPE_CHECKING:
    from appliance.documents.retention import Retention
    from appliance.signing.document_recovery import DocumentRecovery


def register(
    commands: "argparse._SubParsersAction[argparse.ArgumentParser]",
) -> None:
    """Add `documents`.

    Args:
        commands: of the `rubrica` parser.
    """
    group = commands.add_parser("documents", help="the files of all documents")
    parts = group.add_subparsers(dest="part", required=True)
    check = parts.add_parser(
        "check",
        help="whether their folder or bucket is there, and this installation's; in a "
        "bucket an object is written, read and removed",
        epilog="Exit status: 0, it is; 1, a bucket does not do what it has to; 75, it "
        "is not.",
    )
    check.set_defaults(run=lambda args: run_async(_check, args))
    encrypt = parts.add_parser(
        "encrypt", help="encrypt those that were stored before documents were"
    )
    encrypt.set_defaults(run=lambda args: run_async(_encrypt, args))
    recover = parts.add_parser(
        "recover",
        help="after a restore: find what was signed since the backup in the store that "
        "survived, so that nobody signs it twice",
        epilog="Exit status: 0, every file that no row names was told of; 1, some "
        "could not be read.",
    )
    recover.set_defaults(run=_recover)
    document_recheck.register(parts)
    shred = parts.add_parser(
        "shred", help="destroy the key of an integrator's documents, for good"
    )
    shred.add_argument("integrator", help="its code")
    shred.add_argument(
        "--yes", action="store_true", required=True, help="none of them opens again"
    )
    shred.set_defaults(run=_shred)


async def _check(settings: Settings) -> int:
    import asyncio  # noqa: PLC0415 (heavy)

    from appliance.bootstrap.core import open_core  # noqa: PLC0415 (heavy)
    from appliance.documents.s3.bucket import Bucket  # noqa: PLC0415 (heavy)

    where = settings.documents.url or settings.documents_dir
    if settings.documents.url is not None:
        amiss = await asyncio.to_thread(Bucket(settings.documents).probe)
        if amiss:
            say(f"{where}: {amiss}")
            return 1
    async with open_core(settings, SystemClock(), "operator") as core:
        await core.documents.check()
    say(f"{where}: good")
    return 0


async def _encrypt(settings: Settings) -> int:
    async with _documents(settings) as keeping:
        bar = ProgressBar("encrypting documents", await keeping.count())
        done, failed = await keeping.encrypt(bar.advance)
        bar.finish()
    say(f"{done} documents were encrypted")
    for name in failed:
        say(f"{name}: not there, or not what it is named by; left as it is")
    return 1 if failed else 0


def _recover(args: argparse.Namespace) -> int:
    from appliance.cli.own_sandbox import (  # noqa: PLC0415 (heavy)
        sandbox_at_hand,
    )

    async def work(settings: Settings) -> int:
        async with _recovery(settings) as recovery:
            found = await recovery.run()
        for each in found:
            name = f"{each.integrator}/{each.sha256}.pdf"
            if each.request is not None:
                say(f"{name}: is the signed document of request {each.request}")
            else:
                say(f"{name}: {each.why or 'belongs to no request'}; left as it is")
        given = sum(each.request is not None for each in found)
        say(f"{given} of {len(found)} files that no row named were given back")
        return 1 if any(each.why for each in found) else 0

    with sandbox_at_hand(load_settings(args.settings)) as settings:
        return run_with(work, settings)


@asynccontextmanager
async def _recovery(settings: Settings) -> AsyncIterator["DocumentRecovery"]:
    from appliance.bootstrap.core import (  # noqa: PLC0415 (heavy)
        document_sealer,
        open_core,
    )
    from appliance.cli.verify import report_on  # noqa: PLC0415 (heavy)
    from appliance.requests.inspection import Inspections  # noqa: PLC0415 (heavy)
    from appliance.signing.document_recovery import (  # noqa: PLC0415 (heavy)
        DocumentRecovery,
    )
    from appliance.signing.signing_order import SigningOrder  # noqa: PLC0415 (heavy)

    clock = SystemClock()
    async with open_core(
        settings, clock, "operator", document_sealer(settings)
    ) as core:
        inspections = Inspections(core.store, core.documents, core.inspector, clock)
        yield DocumentRecovery(
            core.store,
            core.documents,
            partial(report_on, core),
            SigningOrder(core.store, inspections, clock),
            settings.signature_profile,
            clock,
        )


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
async def _documents(settings: Settings) -> AsyncIterator["Retention"]:
    from appliance.bootstrap import open_documents  # noqa: PLC0415 (heavy)

    async with open_documents(settings, SystemClock()) as keeping:
        yield keeping
