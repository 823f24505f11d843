"""What systemd knows of this machine's units, and which roles are of this host.

A host may have a part of the roles: those whose units are masked are another one's.

Source: systemctl(1), "mask".
"""

import subprocess
from collections.abc import Sequence
from typing import Final

from appliance.settings import METRICS

ROLES: Final = ("api", "embed", "admin", "signing", "chores")
"""Roles that the settings name files of."""
_ALL: Final = (*ROLES, METRICS, "migrate", "sandbox")
_WORKERS: Final = "rubrica-signing@*.service"
_TARGETS: Final = ("rubrica-signing@1.service", "rubrica-signing@2.service")
"""Those that rubrica.target starts."""


def left_out() -> list[str]:
    """Roles that are not of this host, in order: their units are masked.

    Signing is, where every worker is masked that rubrica.target starts, that is enabled
    or that is loaded.
    """
    out = [
        role
        for role in _ALL
        if role != "signing" and is_masked(f"rubrica-{role}.service")
    ]
    if all(map(is_masked, _workers())):
        out.append("signing")
    return sorted(out)


def signing_workers() -> Sequence[str]:
    """Units of the signing workers of this host, running or not, without masked ones.

    These are the units that rubrica.target starts, those that are enabled, and those
    that systemd has loaded.
    """
    return [unit for unit in _workers() if not is_masked(unit)]


def _workers() -> list[str]:
    """Units of signing workers that this host has, masked ones included."""
    found = {*_TARGETS, *_listed("list-unit-files"), *_listed("list-units", "--all")}
    # The template itself is no worker.
    return sorted(unit for unit in found if "@." not in unit)


def _listed(*command: str) -> list[str]:
    """Names in a list of systemctl, without its other columns.

    A pattern given to `systemctl show` leaves out units that are stopped.
    """
    line = ["systemctl", *command, "--plain", "--no-legend", "--full", _WORKERS]
    done = subprocess.run(line, capture_output=True, text=True, check=False)  # noqa: S603 (our own words)
    return [row.split()[0] for row in done.stdout.splitlines() if row.strip()]


def is_masked(unit: str) -> bool:
    """Whether nobody may start a unit."""
    return shown(unit, "LoadState") == "masked"


def shown(unit: str, name: str) -> str:
    """A property of a unit; of several, each in a line.

    Args:
        unit: its name, or a pattern of loaded ones.
        name: of the property; empty is told where there is none.
    """
    command = ["systemctl", "show", "--value", f"--property={name}", unit]
    done = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603 (our own words)
    return done.stdout.strip()
