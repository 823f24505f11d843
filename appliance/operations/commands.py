"""Operators' commands around a whole installation."""

import argparse

from appliance.operations import doctor, sample
from appliance.operations.setup import command


def register(
    commands: "argparse._SubParsersAction[argparse.ArgumentParser]",
) -> None:
    """Add `setup`, `doctor` and `sample`.

    Args:
        commands: of the `rubrica` parser.
    """
    command.register(commands)
    doctor.register(commands)
    sample.register(commands)
