"""Days and times at the ends of the calendar."""

from datetime import UTC, datetime, timedelta, timezone

import pytest

from admin_ui import times
from appliance.domain.errors import ApplianceError
from appliance.domain.text.civil_time import day_and_time, with_zone

FIRST = datetime.min.replace(tzinfo=UTC)
LAST = datetime.max.replace(tzinfo=UTC)


@pytest.mark.parametrize("at", [FIRST, LAST, FIRST + timedelta(hours=3)])
def test_any_time_can_be_shown(at: datetime) -> None:
    """A foreign certificate may be good from year 1, which is year 0 in the west."""
    for lang in ("es", "en"):
        assert day_and_time(at, lang, seconds=True)
        assert with_zone(at, lang)
        assert times.relative(at, datetime(2026, 11, 22, tzinfo=UTC), lang)
    assert datetime.fromisoformat(times.machine(at)).utcoffset() == timedelta(hours=-3)


def test_ordinary_times_are_those_of_argentina() -> None:
    """Whatever zone they come in."""
    at = datetime(2026, 11, 23, 1, 30, tzinfo=timezone(timedelta(hours=9)))

    assert day_and_time(at, "es") == "22/11/2026 13:30"


@pytest.mark.parametrize(
    ("day", "since", "until"),
    [
        ("2026-11-22", "2026-11-22T03:00:00+00:00", "2026-11-23T03:00:00+00:00"),
        ("0001-01-01", "0001-01-01T03:00:00+00:00", "0001-01-02T03:00:00+00:00"),
        ("9999-12-30", "9999-12-30T03:00:00+00:00", "9999-12-31T03:00:00+00:00"),
        ("9999-12-31", "9999-12-31T03:00:00+00:00", None),
        ("", None, None),
    ],
)
def test_days_have_both_ends(day: str, since: str | None, until: str | None) -> None:
    """In UTC; the last day that there is has no end."""
    found = (times.read_since(day, "since"), times.read_until(day, "until"))

    assert [None if at is None else at.isoformat() for at in found] == [since, until]


@pytest.mark.parametrize("day", ["0000-01-01", "10000-01-01", "2026-02-30", "ayer"])
def test_days_that_no_calendar_has_are_refused(day: str) -> None:
    """By the name of the field."""
    with pytest.raises(ApplianceError) as refused:
        times.read_until(day, "until")

    assert refused.value.params["field"] == "until"
