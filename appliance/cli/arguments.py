"""What commands take: numbers within what the record and a calendar can hold."""

import argparse
from collections.abc import Callable
from typing import Final

from appliance.domain.ids import MAX_REQUEST_ID

Subparsers = argparse._SubParsersAction  # noqa: SLF001 (argparse names it no better)

DAYS_AT_MOST: Final = 3650
"""As the console: longer is no time limit any more."""
_ROWS_AT_MOST: Final = 10_000


def _whole(most: int) -> Callable[[str], int]:
    def read(text: str) -> int:
        # Only digits: int() would also take "1_0", " 1" and digits of other scripts.
        if text.isascii() and text.isdigit() and len(text) <= len(str(most)):
            number = int(text)
            if 1 <= number <= most:
                return number
        msg = f"{text[:40]!r} is no whole number from 1 to {most}"
        raise argparse.ArgumentTypeError(msg)

    return read


days = _whole(DAYS_AT_MOST)
rows = _whole(_ROWS_AT_MOST)


def add_limit(parser: argparse.ArgumentParser) -> None:
    """Add how many rows a list has at most.

    Args:
        parser: of the list.
    """
    parser.add_argument(
        "--limit",
        type=rows,
        default=50,
        help=f"how many at most, 1 to {_ROWS_AT_MOST} (default: %(default)s)",
    )


number = _whole(MAX_REQUEST_ID)


def hours(most: int) -> Callable[[str], float]:
    """A reader of hours from 0, parts of one allowed.

    Args:
        most: hours.
    """

    def read(text: str) -> float:
        try:
            number = float(text)
        except ValueError:
            number = -1.0
        # Not a number and infinity are neither within.
        if 0 <= number <= most:
            return number
        msg = f"{text[:40]!r} is no number of hours from 0 to {most}"
        raise argparse.ArgumentTypeError(msg)

    return read
