"""Addresses that an installation listens on when it starts, and where each is set."""

import json
from pathlib import Path
from typing import Final, NamedTuple

from appliance.cli.demo.host_files import CONFIG_FILE, SITE
from appliance.cli.demo.setup import caught_at
from appliance.settings import Settings, SettingsError

MAIL: Final = "mail"
"""What catches a trial's mails."""
_KEYS: Final = {
    "api": "web.listen_api and web.base_url",
    "embed": "web.listen_embed and web.iframe_url",
    "admin": "web.listen_admin and web.admin_url",
    "metrics": "metrics.listen",
}


class WantedPort(NamedTuple):
    """An address, and what will listen there."""

    name: str
    address: str
    where: str
    """Keys and file that choose it."""


def wanted_ports(settings: Settings, file: Path) -> list[WantedPort]:
    """List the addresses that a start listens on.

    The demo site's is chosen when the site is set up; until then it is not listed.

    Args:
        settings: of the installation.
        file: they were read from.
    """
    wanted = [
        WantedPort(role, settings.listen(role), f"{keys} in {file}")
        for role, keys in _KEYS.items()
        if settings.listen(role)
    ]
    if settings.trial and (mail := caught_at(settings)):
        wanted.append(WantedPort(MAIL, mail, f"mail.port in {file}"))
    site = settings.data_dir / CONFIG_FILE
    try:
        told = str(json.loads(site.read_text(encoding="utf-8"))["listen"])
    except (OSError, ValueError, KeyError, TypeError):
        return wanted
    return [*wanted, WantedPort(SITE, told, f"listen in {site}")]


def refusal(port: WantedPort, exc: SettingsError) -> str:
    """Say who has a port, and what to do.

    Args:
        port: that is taken.
        exc: what listening on it raised.
    """
    return f"{exc}\n  stop what listens there, or choose another port: {port.where}"
