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

    Signing is, where every worker is masked that rubrica.target starts or that is
    loaded.
    """
    out = [
        role
        for role in _ALL
        if role != "signing" and is_masked(f"rubrica-{role}.service")
    ]
    workers = {*_TARGETS, *shown(_WORKERS, "Id").split()}
    if all(map(is_masked, workers)):
        out.append("signing")
    return sorted(out)


def signing_workers() -> Sequence[str]:
    """Units of the signing workers that systemd has loaded, but for masked ones."""
    loaded = shown(_WORKERS, "Id").split()
    return [unit for unit in loaded if not is_masked(unit)]


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
