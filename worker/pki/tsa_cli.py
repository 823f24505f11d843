"""`rubrica timestamps`: authorities outside, and the internal one's certificates."""

import argparse
from typing import Final

from appliance.bootstrap import open_core
from appliance.cli.terminal import run_async, say, table
from appliance.domain.clock import SystemClock
from appliance.domain.vocab import RevocationReason
from appliance.keys.hsm_tasks import HsmTasks
from appliance.pki.tsa.tsa_certificates import TsaCertificates
from appliance.settings import Settings
from worker.network.tsa_client import open_tsa_client

_ACTOR: Final = "operator"
_WAIT_S: Final = 60.0


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


def list_tsa(args: argparse.Namespace) -> int:
    """Run `list`; its exit status."""

    async def work(settings: Settings) -> int:
        async with open_core(settings, SystemClock(), _ACTOR) as core:
            found = await TsaCertificates(core.store, core.clock).all()
        rows = [
            (
                each.serial,
                each.state.value,
                each.not_before.date().isoformat(),
                each.not_after.date().isoformat(),
                each.reason.value if each.reason else "",
            )
            for each in found
        ]
        say(table(("serial", "state", "from", "until", "reason"), rows))
        return 0

    return run_async(work, args)


def revoke_tsa(args: argparse.Namespace) -> int:
    """Run `revoke`; its exit status."""

    async def work(settings: Settings) -> int:
        async with open_core(settings, SystemClock(), _ACTOR) as core:
            certificates = TsaCertificates(core.store, core.clock)
            reason = RevocationReason(args.reason)
            task = await certificates.revoke(args.serial, reason, _ACTOR)
            say("it stamps no more; waiting for CRL and OCSP…")
            tasks = HsmTasks(core.store, core.clock, _ACTOR, core.process)
            output = await tasks.wait(task, _WAIT_S)
        say(f"revoked: CRL number {output['crlNumber']}")
        return 0

    return run_async(work, args)


def list_stamped(args: argparse.Namespace) -> int:
    """Run `documents`; its exit status."""

    async def work(settings: Settings) -> int:
        async with open_core(settings, SystemClock(), _ACTOR) as core:
            certificates = TsaCertificates(core.store, core.clock)
            say("request\tversion\tlevel\tsha256")
            async for each in certificates.stamped(args.serial):
                say(f"{each.request}\t{each.version}\t{each.level}\t{each.sha256}")
        return 0

    return run_async(work, args)
