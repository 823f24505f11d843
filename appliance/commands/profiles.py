"""Options of commands that say how signatures are to be made."""

import argparse
from enum import StrEnum

from appliance.domain.hsm import DigestAlgorithm
from appliance.domain.levels import ProfileWishes
from appliance.domain.vocab import SignatureLevel, TimestampPolicy

_OPTIONS: tuple[tuple[str, type[StrEnum], str], ...] = (
    ("--level", SignatureLevel, "PAdES level"),
    ("--timestamp-policy", TimestampPolicy, "whether to wait for a timestamp"),
    ("--digest", DigestAlgorithm, "digest of RSA signatures"),
)


def add_profile(parser: argparse.ArgumentParser, otherwise: str) -> None:
    """Add the options of a profile.

    Args:
        parser: of the command.
        otherwise: what holds where one is left out, for its help.
    """
    for name, kind, what in _OPTIONS:
        parser.add_argument(
            name,
            choices=[word.value for word in kind],
            help=f"{what} (default: {otherwise})",
        )


def wishes_of(args: argparse.Namespace) -> ProfileWishes:
    """What was asked for.

    Args:
        args: parsed, of a command with those options.
    """
    return ProfileWishes(
        args.level and SignatureLevel(args.level),
        args.timestamp_policy and TimestampPolicy(args.timestamp_policy),
        args.digest and DigestAlgorithm(args.digest),
    )
