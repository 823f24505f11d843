"""Times as people read them, the same in console, frame, stamp and pages.

Argentina's civil time is fixed at UTC-3, for zone data may be absent and there
has been no summer time since 2009.
"""

from datetime import datetime, timedelta, timezone
from typing import Final

ZONE: Final = timezone(timedelta(hours=-3))
ZONE_NAME: Final = "UTC-3"
_DAYS: Final = {"es": "%d/%m/%Y", "en": "%Y-%m-%d"}
"""In English year first: 04/05 is another day for half of its readers. All digits are
equally wide in a stamp's fonts, names of months are not."""


def day_and_time(at: datetime, lang: str, *, seconds: bool = False) -> str:
    """A time of 24 hours: `22/11/2026 14:38`, in English `2026-11-22 14:38`.

    Args:
        at: aware.
        lang: `es` or `en`.
        seconds: to the second; else to the minute, the rest dropped.
    """
    clock = "%H:%M:%S" if seconds else "%H:%M"
    day = _DAYS["es" if lang == "es" else "en"]
    return at.astimezone(ZONE).strftime(f"{day} {clock}")


def with_zone(at: datetime, lang: str) -> str:
    """The same where nothing else says the zone: `22/11/2026 14:38 (UTC-3)`.

    Args:
        at: aware.
        lang: `es` or `en`.
    """
    return f"{day_and_time(at, lang)} ({ZONE_NAME})"
