"""`rubrica audit`: the audit read again, and compared with the record."""

import argparse
import json
from collections.abc import Awaitable, Callable
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from appliance.cli.terminal import run_async, say
from appliance.cli.verify import shown
from appliance.domain.audit.reconciliation import Finding
from appliance.domain.audit.verification import AuditCheck
from appliance.domain.clock import SystemClock
from appliance.domain.console.lists import ChainView
from appliance.settings import Settings

if TYPE_CHECKING:
    from appliance.bootstrap import Core


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
        help="read every row again: is it there, in order and unaltered? Then compare "
        "the audit with the record, as `reconcile` does. Exit status 1 if something "
        "is wrong",
    )
    verify.add_argument(
        "--chains-only",
        action="store_true",
        help="read the rows, and leave the comparison out",
    )
    verify.set_defaults(run=_running(_verify))
    reconcile = parts.add_parser(
        "reconcile",
        help="compare the audit with the record: keys that were used without consent, "
        "twice or after a revocation, certificates that nobody asked for, people whom "
        "nobody invited, documents whose key was never used. Exit status 1 if one is "
        "found",
    )
    reconcile.add_argument(
        "--since",
        type=_instant,
        metavar="TIME",
        help="leave out what happened before, such as 2026-11-01 or "
        "2026-11-01T10:00:00Z",
    )
    reconcile.add_argument(
        "--json",
        action="store_true",
        help="a JSON object in each line: the findings, and at last the counts",
    )
    reconcile.set_defaults(run=_running(_reconcile))


def _instant(text: str) -> datetime:
    """A day or a time, in UTC unless it names a zone.

    Raises:
        ValueError: it is none.
    """
    at = datetime.fromisoformat(text)
    return at.replace(tzinfo=UTC) if at.tzinfo is None else at


_Work = Callable[[argparse.Namespace, "Core"], Awaitable[int]]


def _running(work: _Work) -> Callable[[argparse.Namespace], int]:
    """Return what runs a command on an open record."""

    async def opened(args: argparse.Namespace, settings: Settings) -> int:
        from appliance.bootstrap import open_core  # noqa: PLC0415 (heavy)

        # No secret is opened: the timer's unit is handed none.
        async with open_core(settings, SystemClock(), "operator") as core:
            return await work(args, core)

    return lambda args: run_async(lambda settings: opened(args, settings), args)


@dataclass(slots=True)
class _Compared:
    """Counts of a comparison."""

    requests: int = 0
    people: int = 0
    findings: int = 0

    def __str__(self) -> str:
        told = f"{self.findings} unexplained" if self.findings else "all explained"
        return f"requests {self.requests}, people {self.people}: {told}"


async def _verify(args: argparse.Namespace, core: "Core") -> int:
    from appliance.record.audit_check import AuditChains  # noqa: PLC0415 (heavy)
    from appliance.record.installation_store import note_audit_check  # noqa: PLC0415 (heavy)

    chains = rows = broken = 0
    async for chain in AuditChains(core.store).every():
        chains += 1
        rows += chain.checked
        if not chain.whole:
            broken += 1
            say(_fault(chain))
    whole = f"{broken} broken" if broken else "all whole"
    told = f"chains {chains}, rows {rows}: {whole}"
    if args.chains_only:
        say(told)
        return 1 if broken else 0
    compared = await _compare(core, None, lambda finding: say(_told(finding)))
    say(f"{told}; {compared}")
    outcome = AuditCheck(core.clock.now(), chains, broken, rows, compared.findings)
    await note_audit_check(core.settings, outcome)
    return 0 if outcome.is_whole else 1


async def _reconcile(args: argparse.Namespace, core: "Core") -> int:
    def told(finding: Finding) -> None:
        say(_json(finding) if args.json else _told(finding))

    compared = await _compare(core, args.since, told)
    say(json.dumps(asdict(compared)) if args.json else str(compared))
    return 1 if compared.findings else 0


async def _compare(
    core: "Core", since: datetime | None, told: Callable[[Finding], None]
) -> _Compared:
    """Compare audit and record, and tell of each finding."""
    from appliance.reconciliation.reconcile import (  # noqa: PLC0415 (heavy)
        Reconciliation,
    )

    work, compared = Reconciliation(core.store, since), _Compared()
    async for finding in work.findings():
        compared.findings += 1
        told(finding)
    compared.requests, compared.people = work.requests, work.people
    return compared


def _json(finding: Finding) -> str:
    told = {key: one for key, one in asdict(finding).items() if one is not None}
    if finding.at is not None:
        told["at"] = finding.at.isoformat()
    return json.dumps(told, ensure_ascii=False)


def _told(finding: Finding) -> str:
    """A finding in words, with what to look up."""
    about = {
        "request": finding.request,
        "person": finding.person,
        "credential": finding.credential,
        "activation": finding.activation,
        "certificate": finding.serial,
    }
    named = ", ".join(f"{word} {one}" for word, one in about.items() if one is not None)
    when = "" if finding.at is None else f", {finding.at:%Y-%m-%d %H:%M:%S} UTC"
    row = "" if finding.writer is None else f", row {finding.n} of {finding.writer}"
    line = f"unexplained ({finding.check.value}): {finding.reason}: {named}{when}{row}"
    return shown(line)


def _fault(chain: ChainView) -> str:
    writer = chain.writer
    return (
        f"broken: process {writer.id} ({writer.role}, started "
        f"{writer.started:%Y-%m-%d %H:%M:%S} UTC): row {chain.broken_at} of {writer.n} "
        f"is missing, altered or added; rows before it that are whole: {chain.checked}"
    )
