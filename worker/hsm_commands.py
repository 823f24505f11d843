"""`rubrica hsm rotate-master`: a new master key, under which all keys move.

    rubrica hsm rotate-master
    rubrica hsm rotate-master --retire 1

For an operator with access to the HSM; `docs/rotation.md` tells the rest.
"""

import argparse
import logging
import sys

import structlog

from appliance.bootstrap import open_core
from appliance.commands.progress import ProgressBar
from appliance.commands.terminal import run_async, say
from appliance.domain.clock import SystemClock
from appliance.domain.errors import HsmUnavailableError
from appliance.services.master_rotation import MasterRotation
from appliance.settings import Settings
from hsm_config.master_rotation import destroy_master, next_master
from hsm_config.profile import load_profile
from worker.hsm_connection import HsmStatus
from worker.hsm_session import HsmSession
from worker.master_rotation import Moved, move_keys


def rotate_master(args: argparse.Namespace) -> int:
    """Run the command; its exit status."""
    # A person reads this: no more than what is out of the ordinary.
    structlog.configure(
        wrapper_class=structlog.make_filtering_bound_logger(logging.WARNING),
        logger_factory=structlog.PrintLoggerFactory(sys.stderr),
    )

    async def work(settings: Settings) -> int:
        async with open_core(settings, SystemClock(), "operator") as core:
            rotation = MasterRotation(core.store, core.clock)
            if args.retire is not None:
                return await _retire(settings, rotation, args.retire)
            return await _rotate(settings, rotation)

    return run_async(work, args)


async def _rotate(settings: Settings, rotation: MasterRotation) -> int:
    counts = await rotation.counts()
    version, made = next_master(settings, min(counts, default=None))
    if made:
        await rotation.created(version)
        say(f"master key {version} was made")
    else:
        say(f"going on with master key {version}")
    total = sum(count for under, count in counts.items() if under != version)
    bar = ProgressBar("moving keys", total)
    session = HsmSession(
        settings.hsm,
        load_profile(settings.hsm.profile),
        environment=settings.environment,
    )
    async with session:
        if session.status is not HsmStatus.READY:
            raise HsmUnavailableError(session.reason)
        moved = await move_keys(session, rotation, version, bar.advance)
    bar.finish()
    await rotation.applied(version, moved.keys)
    return _told(version, moved)


def _told(version: int, moved: Moved) -> int:
    """Say what was done; the exit status."""
    say(f"{moved.keys} keys were moved under master key {version}")
    for credential, reason in sorted(moved.stuck.items()):
        sys.stderr.write(f"credential {credential} stays where it was: {reason}\n")
    return 1 if moved.stuck else 0


async def _retire(settings: Settings, rotation: MasterRotation, version: int) -> int:
    keys, making = await rotation.needed(version)
    if keys or making:
        say(f"master key {version} stays: {keys} keys are under it, {making} are made")
        return 1
    count = destroy_master(settings, version)
    if not count:
        say(f"there is no master key {version}")
        return 1
    await rotation.retired(version)
    say(f"master key {version} was destroyed on {count} token(s)")
    return 0
