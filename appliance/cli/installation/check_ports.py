"""`rubrica check-ports`: can the ports of the settings be had, and who has them."""

import argparse
import json
from pathlib import Path
from typing import Final

from appliance.cli.demo.host_files import CONFIG_FILE
from appliance.cli.terminal import say
from appliance.settings import Settings, SettingsError, load_settings

_KEYS: Final = {
    "api": "web.listen_api and web.base_url",
    "embed": "web.listen_embed and web.iframe_url",
    "admin": "web.listen_admin and web.admin_url",
    "metrics": "metrics.listen",
}


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
    for address, where in _wanted(settings, args.settings):
        try:
            bind(address, 1).close()
        except SettingsError as exc:
            taken += 1
            say(f"{exc}\n  stop what listens there, or choose another port: {where}")
    return 1 if taken else 0


def _wanted(settings: Settings, file: Path) -> list[tuple[str, str]]:
    """Addresses that a start would listen on, and where each of them is chosen."""
    wanted = [
        (settings.listen(role), f"{keys} in {file}")
        for role, keys in _KEYS.items()
        if settings.listen(role)
    ]
    site = settings.data_dir / CONFIG_FILE
    try:
        told = str(json.loads(site.read_text(encoding="utf-8"))["listen"])
    except (OSError, ValueError, KeyError, TypeError):
        # The demo site chooses a free port when it is set up.
        return wanted
    return [*wanted, (told, f"listen in {site}")]
