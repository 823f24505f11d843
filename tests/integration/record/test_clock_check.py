"""The clock against the database's and the kernel's word."""

from datetime import datetime, timedelta
from pathlib import Path

import pytest

from appliance.database.engines import open_engines
from appliance.database.migrate import migrate
from appliance.domain.clock import SystemClock
from appliance.keys.health import Health
from appliance.record.database_clock import database_time
from appliance.record.unit_of_work import Database
from appliance.system.clock_check import ClockCheck, ClockState
from appliance.system.kernel_clock import kernel_error
from tests.support.factories.fake_sandbox import PlayedSandbox
from tests.support.factories.fakes import MovingClock
from tests.support.installation.settings import settings_in


class Ahead:
    """This machine's clock, off by some seconds."""

    def __init__(self, by_s: float) -> None:
        self.by = timedelta(seconds=by_s)

    def now(self) -> datetime:
        """The time, wrong."""
        return SystemClock().now() + self.by


async def tables() -> str:
    """The tables are as they should be."""
    return "ok"


async def there() -> None:
    """Documents are where they should be."""


@pytest.mark.parametrize(
    ("by_s", "state"),
    [(0, "ok"), (-3, "ok"), (3600, "CLOCK_DRIFT"), (-3600, "CLOCK_DRIFT")],
)
async def test_clock_is_compared_with_postgres(
    tmp_path: Path, postgres_url: str, by_s: float, state: str
) -> None:
    """Off in either direction it is not ready, and says by how much."""
    settings = settings_in(tmp_path, postgres_url)
    await migrate(settings)
    engines = open_engines(settings)
    clock = Ahead(by_s)
    store = Database(engines, clock, "test")
    check = ClockCheck(clock, lambda: database_time(engines), lambda: None)

    checks = await Health(store, PlayedSandbox(), clock, tables, check, there).ready()
    found = await check.look()

    assert checks["clock"] == state
    assert found.from_database is not None
    assert found.from_database <= abs(timedelta(seconds=by_s))
    assert found.is_right == (state == "ok")
    await store.close()


async def test_sqlite_has_the_kernels_word_alone(tmp_path: Path) -> None:
    """The file's clock is this machine's; what the kernel says counts."""
    engines = open_engines(settings_in(tmp_path))
    for word, right in ((None, True), (5.0, True), (5.1, False)):
        error = None if word is None else timedelta(seconds=word)
        kernel = iter([error]).__next__
        check = ClockCheck(SystemClock(), lambda: database_time(engines), kernel)
        assert await check.look() == ClockState(None, error)
        assert (await check.look()).is_right is right
    await engines.dispose()


async def test_look_is_kept_until_the_clock_is_set() -> None:
    """A clock that jumps is looked at at once."""
    clock, asked = MovingClock(), 0

    async def database() -> datetime:
        nonlocal asked
        asked += 1
        return MovingClock().now()

    check = ClockCheck(clock, database, lambda: None)
    assert (await check.look()).is_right
    assert (await check.look()).is_right
    assert asked == 1
    clock.forward(6)
    assert (await check.look()).off == timedelta(seconds=6)
    assert asked == 2


async def test_call_that_takes_long_makes_no_drift() -> None:
    """The database's answer may be of any moment of the call."""
    clock = MovingClock()

    async def database() -> datetime:
        read = clock.now()
        clock.forward(20)
        return read

    assert (await ClockCheck(clock, database, lambda: None).look()).is_right


def test_kernel_is_asked() -> None:
    """It gives an error that is no negative time, or says nothing."""
    error = kernel_error()

    assert error is None or error >= timedelta(0)
