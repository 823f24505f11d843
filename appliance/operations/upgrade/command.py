"""`rubrica upgrade`: end what the release before still needs, once nobody needs it.

    rubrica upgrade            tells what stands in the way, and which keys are refused
    rubrica upgrade --close    ends the earlier formats on this machine

While an installation is upgraded, activations of the release before count beside those
of this one. They bind less, and a host of theirs needs no key of its own. A file of
each machine ends that, never a row: whoever writes to the database could write the row
too.
"""

import argparse
import os
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING, Final

from appliance.cli.terminal import log_to_stderr, run_async, say
from appliance.domain.signing.activation import ActivationFormat
from appliance.operations import system
from appliance.settings import Settings, SettingsError, load_settings

if TYPE_CHECKING:
    from appliance.operations.upgrade.obstacles import Obstacle

_SYSTEMD: Final = Path("/run/systemd/system")
_FRONTS: Final = frozenset({"api", "embed"})
_NO_FRONTS: Final = "--no-fronts"
REMEDY: Final = " -> "
"""Between what is wrong and what to do about it, in a line."""


def register(
    commands: "argparse._SubParsersAction[argparse.ArgumentParser]",
) -> None:
    """Add `upgrade`.

    Args:
        commands: of the `rubrica` parser.
    """
    upgrade = commands.add_parser(
        "upgrade",
        help="tell whether an upgrade can be closed on this machine, and close it",
        epilog="Run it on every machine, once each runs this version and its fronts "
        "admit every signing host. Exit status: 0, nothing stands in the way, or it "
        "is closed; 1, something does, each in a line; 75, the database is away; 78, "
        "the settings or the file cannot be used.",
    )
    what = upgrade.add_mutually_exclusive_group()
    what.add_argument(
        "--close",
        action="store_true",
        help="let nothing of the release before count any more, for good",
    )
    what.add_argument(
        "--hosts",
        action="store_true",
        help="tell of signing hosts alone that the fronts here do not believe",
    )
    upgrade.add_argument(
        _NO_FRONTS,
        action="store_true",
        help="this machine has no front: it need not admit signing hosts",
    )
    upgrade.set_defaults(run=_upgrade)


def _upgrade(args: argparse.Namespace) -> int:
    log_to_stderr()
    settings = load_settings(args.settings)
    if args.hosts:
        return run_async(_look_at_hosts, args)
    if not args.close:
        return run_async(
            lambda given: _look(given, has_fronts=not args.no_fronts, with_keys=True),
            args,
        )
    if is_closed(settings):
        say("closed already: nothing of the release before counts on this machine")
        return 0
    if _as_root():
        # Root reads no role's password: the role that may ask the database does.
        has_fronts = not (args.no_fronts or _fronts_are_elsewhere())
        more = () if has_fronts else (_NO_FRONTS,)
        command = system.rubrica_command(
            "upgrade", *more, settings_file=args.settings.absolute()
        )
        status = subprocess.run(command, check=False).returncode  # noqa: S603 (our own words)
    else:
        status = run_async(
            lambda given: _look(given, has_fronts=not args.no_fronts), args
        )
    if status != 0:
        say("not closed: everything works as before; mend that, and run it again")
        return status
    try:
        from appliance.secrets.own_host import pin_format  # noqa: PLC0415 (heavy)

        pin_format(settings, max(ActivationFormat))
    except OSError as exc:
        msg = f"{settings.activation_format_file}: cannot be written ({exc.strerror})"
        raise SettingsError(msg) from exc
    say(f"closed: {settings.activation_format_file}")
    if settings.database.url != "sqlite":
        say("then, where the tables are migrated: rubrica migrate, once more")
    return 0


def _as_root() -> bool:
    return os.geteuid() == 0 and _SYSTEMD.is_dir()


def _fronts_are_elsewhere() -> bool:
    from appliance.operations.systemd_units import left_out  # noqa: PLC0415 (asks systemd)

    return set(left_out()) >= _FRONTS


def is_closed(settings: Settings) -> bool:
    """Return whether nothing of the release before counts on this machine.

    Args:
        settings: of the installation.
    """
    from appliance.keys.activation_format import PinnedFormat  # noqa: PLC0415 (heavy)

    oldest = PinnedFormat(settings.activation_format_file).oldest
    return oldest is max(ActivationFormat)


async def _say_refused_keys(settings: Settings) -> None:
    """Name the keys in use that this release refuses, each with what to do about it."""
    from appliance.bootstrap import (  # noqa: PLC0415 (heavy)
        open_core,
        open_credential_faults,
    )
    from appliance.domain.clock import SystemClock  # noqa: PLC0415 (heavy)
    from appliance.domain.errors import ApplianceError  # noqa: PLC0415 (heavy)
    from appliance.domain.people.identity import format_cuil  # noqa: PLC0415 (heavy)

    try:
        async with open_core(settings, SystemClock(), "operator") as core:
            async for one in open_credential_faults(core).all():
                cuil = format_cuil(one.cuil)
                what = f"credential {one.credential} of {cuil}: {one.fault.value}"
                say(f"{what}; it signs nothing{REMEDY}docs/keys.md, Whose key it is")
    except ApplianceError:
        # The role that runs this where `rubrica-migrate` is masked may not look.
        say("keys in use were not checked here; `rubrica certificate check` does")


async def _look_at_hosts(settings: Settings) -> int:
    """Say which hosts are not believed; the exit status."""
    from appliance.operations.upgrade.obstacles import obstacles  # noqa: PLC0415 (heavy)

    found = await obstacles(settings, has_fronts=True)
    of_hosts = [each for each in found if each.is_of_host]
    for each in of_hosts:
        say(f"{each.what}{REMEDY}{each.remedy}")
    return 1 if of_hosts else 0


async def _look(
    settings: Settings, *, has_fronts: bool, with_keys: bool = False
) -> int:
    """Say what stands in the way; the exit status.

    Args:
        settings: of the installation.
        has_fronts: this machine has a front.
        with_keys: name keys that signing workers of this release refuse, too. These
            are no obstacle: else whoever alters a row would keep an upgrade open.
    """
    from appliance.operations.upgrade.obstacles import obstacles  # noqa: PLC0415 (heavy)

    found: list[Obstacle] = await obstacles(settings, has_fronts=has_fronts)
    for each in found:
        say(f"{each.what}{REMEDY}{each.remedy}")
    if with_keys:
        await _say_refused_keys(settings)
    if found:
        return 1
    if is_closed(settings):
        say("closed: nothing of the release before counts on this machine")
    else:
        say("ready: `rubrica upgrade --close` ends what the release before needed")
    return 0
