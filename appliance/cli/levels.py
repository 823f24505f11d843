"""`rubrica levels`: what published documents still need to be at their level."""

import argparse
from typing import TYPE_CHECKING

from appliance.cli.fronts import handle
from appliance.cli.terminal import say, table

if TYPE_CHECKING:
    from appliance.bootstrap import ServiceRegistry


def register(
    commands: "argparse._SubParsersAction[argparse.ArgumentParser]",
) -> None:
    """Add `levels`.

    Args:
        commands: of the `rubrica` parser.
    """
    levels = commands.add_parser("levels", help="levels of published documents")
    parts = levels.add_subparsers(dest="part", required=True)
    status = parts.add_parser(
        "status", help="how many are to be raised or stamped anew, since when, and why"
    )
    handle(status, _status)


async def _status(front: "ServiceRegistry", _args: argparse.Namespace) -> int:
    """Tell of them; 1 where a try failed, or one has been due for an hour."""
    from appliance.signing.level_maintenance import OVERDUE, upkeep_counts  # noqa: PLC0415 (heavy)

    counts = await upkeep_counts(front.core.store, front.clock)
    rows = [
        (
            "raise" if each.is_below else "renew",
            each.wanted.value,
            str(each.documents),
            str(each.overdue),
            each.oldest.isoformat(timespec="minutes"),
            each.reason,
        )
        for each in counts
    ]
    say(table(("what", "level", "documents", "due", "oldest", "failed by"), rows))
    late = front.clock.now() - OVERDUE
    return 1 if any(each.reason or each.oldest <= late for each in counts) else 0
