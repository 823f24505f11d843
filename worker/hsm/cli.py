"""`rubrica hsm join`, `rotate-master`, `move`, `take-over`: a change of the HSM.

    rubrica hsm join
    rubrica hsm rotate-master
    rubrica hsm rotate-master --retire 1
    rubrica hsm move --to new.toml
    rubrica hsm take-over

For an operator with access to the HSM; `docs/rotation.md` tells the rest.
"""

import argparse
import asyncio
import sys
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager

from appliance.bootstrap import Core, open_core
from appliance.cli.progress_bar import ProgressBar
from appliance.cli.terminal import run_async, say
from appliance.domain.clock import SystemClock
from appliance.domain.errors import ApplianceError, HsmUnavailableError
from appliance.domain.ids import CredentialId
from appliance.domain.keys.hsm_keys import WrapMethod
from appliance.keys.master_key_rotation import MasterKeyRotation
from appliance.keys.take_over import record_take_over
from appliance.runtime.logging import configure_logging
from appliance.secrets.host_key import fingerprint, key_text
from appliance.secrets.own_host import prepare_own_host
from appliance.settings import LogSettings, Settings, load_settings
from hsm_config.profile import load_profile
from hsm_config.provisioning.join_replica import join_members, late_members
from hsm_config.provisioning.master_key_rotation import destroy_master, next_master
from hsm_config.provisioning.migrate_hsm import share_master
from hsm_config.provisioning.take_over import raise_generation, refuse_left
from worker.hsm.connection import HsmStatus
from worker.hsm.master_key_rotation import Moved, misnamed, move_keys
from worker.hsm.session import HsmSession

_HALF = (
    "the HSM has number {number} by now, and this record could not be written: until "
    "rubrica hsm take-over is run again, with the database there, NOBODY SIGNS\n"
)


def rotate_master(args: argparse.Namespace) -> int:
    """Run the command; its exit status."""

    async def work(settings: Settings) -> int:
        async with serving_core(settings) as core:
            rotation = MasterKeyRotation(core.store, core.clock)
            if args.retire is not None:
                return await _retire(settings, rotation, args.retire)
            return await _rotate(settings, rotation)

    return run_async(work, args)


def join(args: argparse.Namespace) -> int:
    """Run `rubrica hsm join`; its exit status."""

    async def work(settings: Settings) -> int:
        async with serving_core(settings) as core:
            return await _join(settings, MasterKeyRotation(core.store, core.clock))

    return run_async(work, args)


def move(args: argparse.Namespace) -> int:
    """Run `rubrica hsm move`; its exit status."""
    successor = load_settings(args.to)

    async def work(settings: Settings) -> int:
        async with serving_core(settings) as core:
            return await _move(
                settings, successor, MasterKeyRotation(core.store, core.clock)
            )

    return run_async(work, args)


def take_over(args: argparse.Namespace) -> int:
    """Run `rubrica hsm take-over`; its exit status."""

    async def work(settings: Settings) -> int:
        from appliance.record.installation_store import InstallationStore  # noqa: PLC0415 (heavy)

        configure_logging(quiet(settings), "operator")
        # First: where it fails, nothing was changed. No backup has the host's key.
        own = prepare_own_host(settings)
        async with open_core(settings, SystemClock(), "operator") as core:
            async with core.store.read() as transaction:
                least = (await InstallationStore(transaction).generation()).number
            taken = await asyncio.to_thread(raise_generation, settings, least)
            # The HSM first: killed between, nobody signs until it is run again.
            try:
                taken = await record_take_over(core.store, taken)
            except ApplianceError:
                sys.stderr.write(_HALF.format(number=taken.number))
                raise
        number = taken.number
        say(f"the HSM serves this record from now on, and no other: number {number}")
        if own.is_key_new:
            say(f"this host has a new key: fingerprint {fingerprint(own.public)}")
            say("on each other machine with a front, compare it and run:")
            say(f"  rubrica hsm admit {own.name} {key_text(own.public)}")
        return 0

    return run_async(work, args)


@asynccontextmanager
async def serving_core(settings: Settings) -> AsyncIterator[Core]:
    """The record, while an operator changes the keys of the HSM that serves it.

    Raises:
        HsmRefusedError: it serves another one.
        HsmUnavailableError: the HSM cannot be used.
    """
    from appliance.record.installation_store import InstallationStore  # noqa: PLC0415 (heavy)

    configure_logging(quiet(settings), "operator")
    async with open_core(settings, SystemClock(), "operator") as core:
        async with core.store.read() as transaction:
            own = await InstallationStore(transaction).generation()
        await asyncio.to_thread(refuse_left, settings, own)
        yield core


async def _join(settings: Settings, rotation: MasterKeyRotation) -> int:
    late = late_members(settings)
    if late:
        await rotation.joining(late)
        say(f"joining: {', '.join(late)}")
    joined = join_members(settings)
    for line in joined.report.made:
        say(f"made  {line}")
    if joined.forgotten:
        say(f"{joined.forgotten} worker identities of other tokens are pinned no more")
    status = await _bring(settings, rotation, joined.version, made=joined.made)
    for need in await rotation.resident():
        say(f"on one token alone: credential {need.credential}, resident")
    return status


async def _move(
    settings: Settings, successor: Settings, rotation: MasterKeyRotation
) -> int:
    passage = share_master(settings, successor)
    status = await _bring(
        settings,
        rotation,
        passage.version,
        made=passage.made,
        method=passage.method_w,
    )
    left = await rotation.left_behind(passage.methods, passage.algorithms)
    for need in left:
        way = "resident" if need.method_k is None else str(need.method_k)
        say(f"stays behind: credential {need.credential}, {need.algorithm}, {way}")
    say(f"{len(left)} keys in force cannot follow and have to be issued anew")
    return status or (1 if left else 0)


async def _rotate(settings: Settings, rotation: MasterKeyRotation) -> int:
    counts = await rotation.counts()
    version, made = next_master(settings, min(counts, default=None))
    return await _bring(settings, rotation, version, made=made)


async def _bring(
    settings: Settings,
    rotation: MasterKeyRotation,
    version: int,
    *,
    made: bool,
    method: WrapMethod | None = None,
) -> int:
    """Bring all keys under a version that the HSM has; the exit status."""
    counts = await rotation.counts()
    if made:
        await rotation.created(version)
        say(f"master key {version} was made")
    else:
        say(f"going on with master key {version}")
    total = sum(count for under, count in counts.items() if under != version)
    bar = ProgressBar("moving keys", total)
    async with _opened(settings) as session:
        moved = await move_keys(session, rotation, version, bar.advance, method)
    bar.finish()
    await rotation.applied(version, moved.keys)
    return _told(version, moved)


@asynccontextmanager
async def _opened(settings: Settings) -> AsyncIterator[HsmSession]:
    """The HSM of users' keys, which works.

    Raises:
        HsmUnavailableError: it cannot be used now.
    """
    session = HsmSession(
        settings.hsm,
        load_profile(settings.hsm.profile),
        environment=settings.environment,
    )
    async with session:
        if session.status is not HsmStatus.READY:
            raise HsmUnavailableError(session.reason)
        yield session


def quiet(settings: Settings) -> LogSettings:
    """Settings of the log where a person reads along: what is out of the ordinary."""
    return settings.log.model_copy(update={"level": "warning"})


def _told(version: int, moved: Moved) -> int:
    """Say what was done; the exit status."""
    say(f"{moved.keys} keys were moved under master key {version}")
    _say_stuck(moved.stuck)
    return 1 if moved.stuck else 0


def _say_stuck(stuck: Mapping[CredentialId, str]) -> None:
    for credential, reason in sorted(stuck.items()):
        sys.stderr.write(f"credential {credential} stays where it was: {reason}\n")


async def _retire(settings: Settings, rotation: MasterKeyRotation, version: int) -> int:
    keys, making = await rotation.needed(version)
    if keys or making:
        say(f"master key {version} stays: {keys} keys are under it, {making} are made")
        return 1
    async with _opened(settings) as session:
        wrong = await misnamed(session, rotation)
    if wrong:
        _say_stuck(wrong)
        told = "do not open under the version that their rows name"
        say(f"master key {version} stays: {len(wrong)} keys {told}")
        return 1
    count = destroy_master(settings, version)
    if not count:
        say(f"there is no master key {version}")
        return 1
    await rotation.retired(version)
    say(f"master key {version} was destroyed on {count} token(s)")
    return 0
