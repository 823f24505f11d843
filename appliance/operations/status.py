"""`rubrica status`: how an installation stands, by the same report as the console.

rubrica status
rubrica status --only delivery --only waiting
"""

import argparse
from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from appliance.cli.installation.stopped_trial import STOPPED, is_stopped_trial
from appliance.cli.terminal import run_async, say
from appliance.operations.metrics.verdicts import State
from appliance.settings import Settings

if TYPE_CHECKING:
    from appliance.operations.health.report import HealthItem, HealthReport

REMEDY: Final = " -> "
"""Between what is wrong and what to do."""
MARKS: Final = {State.BAD: "AMISS", State.ATTENTION: "warn"}
"""First word of a line, by state."""
UNSEEN: Final = "none"
"""First word of a line that says what is not known here."""


_PROCESSES: Final = "workers"
"""Section of processes that do not run."""
_THERE: Final = "run rubrica status there, or see Salud of the console"


def register(
    commands: "argparse._SubParsersAction[argparse.ArgumentParser]",
) -> None:
    """Add `status`.

    Args:
        commands: of the `rubrica` parser.
    """
    status = commands.add_parser(
        "status",
        help="list what does not work, as the console's home page does",
        epilog="Read are the record and the figures that this user may read; Redis is "
        "pinged. Exit status: 0, nothing is bad; 1, something is; 75, the database is "
        "away; 78, the settings are wrong.",
    )
    status.add_argument(
        "--only",
        action="append",
        metavar="SECTION",
        help="one section of the console's page of health; once more for others",
    )
    status.set_defaults(run=_status)


def _status(args: argparse.Namespace) -> int:
    def is_asked(item: "HealthItem") -> bool:
        return not args.only or any(map(item.belongs_to, args.only))

    return run_async(lambda settings: _tell(settings, is_asked), args)


async def _tell(settings: Settings, is_asked: "Callable[[HealthItem], bool]") -> int:
    from appliance.operations.health import words  # noqa: PLC0415 (heavy)
    from appliance.operations.health.processes import (  # noqa: PLC0415 (heavy)
        unseen_hosts,
    )

    report = await _report(settings)
    shown = [each for each in report.troubles if is_asked(each)]
    is_bad = any(each.verdict.state is State.BAD for each in shown)
    if is_stopped := is_stopped_trial(settings):
        say(STOPPED)
        # Its processes are down, and there is no journal of theirs to look at.
        shown = [each for each in shown if each.section != _PROCESSES]
    for item in shown:
        which = item.subject or item.name
        count = f" ({item.count})" if item.count else ""
        what = f"{item.section}: {words.title(item)}: {which}{count}"
        say(f"{MARKS[item.verdict.state]:6} {what}{REMEDY}{words.remedy(item)}")
    if hosts := unseen_hosts(report.rows):
        # The record says that processes live there, so their TSAs, pools and tokens
        # are not known to be well.
        say(f"{UNSEEN:6} figures of {', '.join(hosts)}: not looked at{REMEDY}{_THERE}")
    if not shown and not is_stopped:
        say("nothing that can be seen from here needs attention")
    return 1 if is_bad else 0


async def _report(settings: Settings) -> "HealthReport":
    """Assess by the record, the figures and a ping of Redis, without asking any role.

    Raises:
        ApplianceError: `STORE_UNAVAILABLE`: the database is away.
    """
    import asyncio  # noqa: PLC0415 (heavy)
    import socket  # noqa: PLC0415 (heavy)

    from appliance.bootstrap import open_core  # noqa: PLC0415 (heavy)
    from appliance.bootstrap.certificates import open_expiry  # noqa: PLC0415 (heavy)
    from appliance.console.installation_state import look  # noqa: PLC0415 (heavy)
    from appliance.domain.clock import SystemClock  # noqa: PLC0415 (heavy)
    from appliance.operations.health.report import assess  # noqa: PLC0415 (heavy)
    from appliance.operations.metrics.facts import (  # noqa: PLC0415 (heavy)
        facts,
        with_redis,
    )
    from appliance.operations.metrics.reading import read_all  # noqa: PLC0415 (heavy)

    clock = SystemClock()
    async with open_core(settings, clock, "operator") as core:
        state, redis_answers = await asyncio.gather(
            look(core.store, clock, settings, open_expiry(core)), core.redis_answers()
        )
    now, here = clock.now(), socket.gethostname()
    figures = facts(read_all(settings.metrics_dir), here, now, settings.tsa_names)
    figures = with_redis(figures, here, does_answer=redis_answers)
    return assess(state, figures, now, settings.environment, trial=settings.trial)
