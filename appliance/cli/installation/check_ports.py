"""`rubrica check-ports`: can the ports of the settings be had, and who has them."""

import argparse

from appliance.cli.installation.wanted_ports import refusal, wanted_ports
from appliance.cli.terminal import say
from appliance.settings import SettingsError, load_settings


def register(
    commands: "argparse._SubParsersAction[argparse.ArgumentParser]",
) -> None:
    """Add `check-ports`.

    Args:
        commands: of the `rubrica` parser.
    """
    check = commands.add_parser(
        "check-ports", help="can the ports of the settings be had? Says who has them"
    )
    check.set_defaults(run=_check)


def _check(args: argparse.Namespace) -> int:
    from appliance.runtime.processes import bind  # noqa: PLC0415 (heavy)

    settings = load_settings(args.settings)
    taken = 0
    for port in wanted_ports(settings, args.settings):
        try:
            bind(port.address, 1).close()
        except SettingsError as exc:
            taken += 1
            say(refusal(port, exc))
    return 1 if taken else 0
