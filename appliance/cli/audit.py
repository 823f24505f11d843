"""`rubrica audit`: the audit read again."""

import argparse

from appliance.cli.terminal import run_async, say
from appliance.domain.clock import SystemClock
from appliance.domain.console import ChainView
from appliance.settings import Settings


def register(
    commands: "argparse._SubParsersAction[argparse.ArgumentParser]",
) -> None:
    """Add `audit`.

    Args:
        commands: of the `rubrica` parser.
    """
    audit = commands.add_parser("audit", help="everything that was done, and by whom")
    parts = audit.add_subparsers(dest="part", required=True)
    verify = parts.add_parser(
        "verify",
        help="read every row again: is it there, in order and unaltered? "
        "Exit status 1 if one is not",
    )
    verify.set_defaults(run=lambda args: run_async(_verify, args))


async def _verify(settings: Settings) -> int:
    from appliance.bootstrap import open_core  # noqa: PLC0415 (heavy)
    from appliance.core.audit_check import AuditChains  # noqa: PLC0415 (heavy)

    chains = rows = broken = 0
    # No secret is opened: the timer's unit is handed none.
    async with open_core(settings, SystemClock(), "operator") as core:
        async for chain in AuditChains(core.store).every():
            chains += 1
            rows += chain.checked
            if not chain.whole:
                broken += 1
                say(_fault(chain))
    whole = f"{broken} broken" if broken else "all whole"
    say(f"chains {chains}, rows {rows}: {whole}")
    return 1 if broken else 0


def _fault(chain: ChainView) -> str:
    writer = chain.writer
    return (
        f"broken: process {writer.id} ({writer.role}, started "
        f"{writer.started:%Y-%m-%d %H:%M:%S} UTC): row {chain.broken_at} of {writer.n} "
        f"is missing, altered or added; rows before it that are whole: {chain.checked}"
    )
