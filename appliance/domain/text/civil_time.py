"""Times as people read them, the same in console, frame, stamp and pages.

Argentina's civil time is fixed at UTC-3, for zone data may be absent and there
has been no summer time since 2009.
"""

from datetime import UTC, datetime, timedelta, timezone
from typing import Final

ZONE: Final = timezone(timedelta(hours=-3))
ZONE_NAME: Final = "UTC-3"
_DAYS: Final = {"es": "%d/%m/%Y", "en": "%Y-%m-%d"}
"""In English year first: 04/05 is another day for half of its readers. All digits are
equally wide in a stamp's fonts, names of months are not."""


def civil(at: datetime) -> datetime:
    """A time in the civil zone.

    A foreign certificate may say any time. The first hours of year 1 in UTC belong
    to year 0 in a zone to the west, which no calendar here has; such a time stays
    the first that there is.

    Args:
        at: aware.
    """
    try:
        return at.astimezone(ZONE)
    except OverflowError:
        return datetime.min.replace(tzinfo=ZONE)


def day_begins(day: datetime) -> datetime:
    """The first instant of a civil day, in UTC.

    Args:
        day: without zone; any from 0001-01-01 to 9999-12-31.
    """
    return day.replace(
        hour=0, minute=0, second=0, microsecond=0, tzinfo=ZONE
    ).astimezone(UTC)


def day_ends(day: datetime) -> datetime | None:
    """The first instant after a civil day, in UTC; None for the last day that there is.

    Nothing recorded is later than the last day, so that a bound is not needed there.

    Args:
        day: without zone; any from 0001-01-01 to 9999-12-31.
    """
    try:
        return day_begins(day + timedelta(days=1))
    except OverflowError:
        return None


def day_and_time(at: datetime, lang: str, *, seconds: bool = False) -> str:
    """A time of 24 hours: `22/11/2026 14:38`, in English `2026-11-22 14:38`.

    Args:
        at: aware.
        lang: `es` or `en`.
        seconds: to the second; else to the minute, the rest dropped.
    """
    clock = "%H:%M:%S" if seconds else "%H:%M"
    day = _DAYS["es" if lang == "es" else "en"]
    return civil(at).strftime(f"{day} {clock}")


def day_alone(at: datetime, lang: str) -> str:
    """The day of a time: `22/11/2026`, in English `2026-11-22`.

    Args:
        at: aware.
        lang: `es` or `en`.
    """
    return civil(at).strftime(_DAYS["es" if lang == "es" else "en"])


def time_alone(at: datetime) -> str:
    """The time of day, to the minute: `14:38`.

    Args:
        at: aware.
    """
    return civil(at).strftime("%H:%M")


def with_zone(at: datetime, lang: str) -> str:
    """The same where nothing else says the zone: `22/11/2026 14:38 (UTC-3)`.

    Args:
        at: aware.
        lang: `es` or `en`.
    """
    return f"{day_and_time(at, lang)} ({ZONE_NAME})"
