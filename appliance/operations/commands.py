"""Operators' commands around a whole installation."""

import argparse

from appliance.operations import sample, status
from appliance.operations.backup import command as backup
from appliance.operations.doctor import command as doctor
from appliance.operations.setup import command as setup
from appliance.operations.upgrade import command as upgrade


def register(
    commands: "argparse._SubParsersAction[argparse.ArgumentParser]",
) -> None:
    """Add `setup`, `doctor`, `status`, `sample`, `upgrade`, `backup`, `restore`.

    Args:
        commands: of the `rubrica` parser.
    """
    setup.register(commands)
    doctor.register(commands)
    status.register(commands)
    sample.register(commands)
    upgrade.register(commands)
    backup.register(commands)
