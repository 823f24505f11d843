"""Options of commands that say how signatures are to be made."""

import argparse
from collections.abc import Sequence
from enum import StrEnum

from appliance.domain.errors import FieldInvalidError
from appliance.domain.keys.hsm_keys import DigestAlgorithm
from appliance.domain.requests.levels import ProfileWishes
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
    parser.add_argument(
        "--tsa",
        action="append",
        metavar="NAME",
        help="who makes timestamps: `internal`, or a name of timestamps.outside; more"
        f" than once: asked in this order (default: {otherwise})",
    )


def wishes_of(args: argparse.Namespace, known: Sequence[str]) -> ProfileWishes:
    """What was asked for.

    Args:
        args: parsed, of a command with those options.
        known: names of timestamping authorities.

    Raises:
        FieldInvalidError: an authority is none of them.
    """
    tsa = tuple(dict.fromkeys(args.tsa or ()))
    if not set(tsa) <= set(known):
        raise FieldInvalidError("tsa", ", ".join(known))
    return ProfileWishes(
        args.level and SignatureLevel(args.level),
        args.timestamp_policy and TimestampPolicy(args.timestamp_policy),
        args.digest and DigestAlgorithm(args.digest),
        tsa or None,
    )
