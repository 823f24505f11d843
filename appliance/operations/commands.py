"""Operators' commands around a whole installation."""

import argparse

from appliance.operations import doctor, sample, status, upgrade
from appliance.operations.backup import command as backup
from appliance.operations.setup import command


def register(
    commands: "argparse._SubParsersAction[argparse.ArgumentParser]",
) -> None:
    """Add `setup`, `doctor`, `status`, `sample`, `upgrade`, `backup`, `restore`.

    Args:
        commands: of the `rubrica` parser.
    """
    command.register(commands)
    doctor.register(commands)
    status.register(commands)
    sample.register(commands)
    upgrade.register(commands)
    backup.register(commands)
