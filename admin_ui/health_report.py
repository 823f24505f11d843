"""The health report of the installation, assessed once for all who look."""

import asyncio
import socket
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Final, cast

import structlog
from quart import current_app

from admin_ui.core import core
from admin_ui.figures import figures_now
from appliance.console.installation_state import InstallationState, look
from appliance.domain.errors import ApplianceError
from appliance.operations.health.report import (
    HealthReport,
    assess,
    unassessed,
    unread,
)
from appliance.operations.metrics.facts import Facts, with_redis
from appliance.settings import SettingsError

if TYPE_CHECKING:
    from hsm_config.profile import HsmProfile

_log = structlog.get_logger(__name__)

KEY: Final = "rubrica.health"
"""Extension of the application that keeps the last report."""
FRESH_S: Final = 3.0
"""A report that is older is assessed again while it is shown."""
_OLDEST_S: Final = 30.0
"""A report that is older is not shown any more."""
_WAIT_S: Final = 1.0
"""Longest that a page waits for a report when there is none."""


@dataclass(frozen=True, slots=True)
class Assessment:
    """A report, and what it was made of."""

    report: HealthReport
    checks: dict[str, str]
    """Parts by `/readyz`."""
    state: InstallationState
    facts: Facts


class LatestReport:
    """The last report, for the mark on every page.

    A page never waits for a part that does not answer: it shows the last report, and
    the next page shows the new one.
    """

    def __init__(self) -> None:
        self._report: HealthReport | None = None
        self._at = 0.0
        self._looking: asyncio.Task[None] | None = None

    def keep(self, report: HealthReport) -> None:
        """Keep a report that a page has just made."""
        self._report, self._at = report, asyncio.get_running_loop().time()

    async def recent(self) -> HealthReport | None:
        """Return the last report; None if none could be made in time."""
        age_s = asyncio.get_running_loop().time() - self._at
        if self._report is None or age_s > FRESH_S:
            if self._looking is None or self._looking.done():
                self._looking = asyncio.create_task(self._look())
            if self._report is None or age_s > _OLDEST_S:
                self._report = None
                await asyncio.wait({self._looking}, timeout=_WAIT_S)
        return self._report

    async def _look(self) -> None:
        try:
            await assessed()
        except ApplianceError as exc:
            self.keep(unread(exc.code.value))
        except Exception:  # noqa: BLE001 (whatever it is, nobody awaits the task)
            _log.exception("health.assessment_failed")
            self.keep(unassessed())


def latest() -> LatestReport:
    """The last report of the application that serves the present request."""
    return cast("LatestReport", current_app.extensions[KEY])


async def assessed() -> Assessment:
    """Assess the installation now, and keep the report for other pages.

    Raises:
        ApplianceError: `STORE_UNAVAILABLE`, `OVERLOADED`: the record is away.
    """
    console = core()
    checks, redis_answers = await asyncio.gather(
        console.health.ready(), console.core.redis_answers()
    )
    settings = console.settings
    state = await look(console.core.store, console.clock, settings, console.expiry)
    figures, host = await figures_now(), socket.gethostname()
    facts = with_redis(figures, host, does_answer=redis_answers)
    profile = hsm_profile()
    report = assess(
        state,
        facts,
        console.clock.now(),
        settings.environment,
        trial=settings.trial,
        checks=checks,
        is_software=None if profile is None else profile.quirks.software,
    )
    latest().keep(report)
    return Assessment(report, checks, state, facts)


def hsm_profile() -> "HsmProfile | None":
    """The make of the HSM; None where the settings name none that is here."""
    return profile_named(core().settings.hsm.profile)


@cache
def profile_named(name: str) -> "HsmProfile | None":
    """The HSM profile of a name; None for one that is not here.

    Read as the console starts, and kept: an upgrade takes its file away.

    Args:
        name: as in `hsm.profile`.
    """
    # No other part of the console needs it.
    from hsm_config.profile import load_profile  # noqa: PLC0415

    try:
        return load_profile(name)
    except SettingsError:
        return None
