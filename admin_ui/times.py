"""Times as administrators read them; every page says the zone once, at its end."""

from datetime import datetime
from typing import Final

from babel.dates import format_timedelta

from appliance.domain.civil_time import ZONE
from appliance.domain.errors import ApplianceError, ErrorCode

_LOCALES: Final = {"es": "es_AR", "en": "en_GB"}


def relative(at: datetime, now: datetime, lang: str) -> str:
    """How long ago, or in how long.

    Args:
        at: aware.
        now: the present time.
        lang: `es` or `en`.
    """
    return format_timedelta(at - now, add_direction=True, locale=_LOCALES[lang])


def machine(at: datetime) -> str:
    """A time for `<time datetime>`.

    Args:
        at: aware.
    """
    return at.astimezone(ZONE).isoformat(timespec="seconds")


def read_day(text: str, field: str) -> datetime | None:
    """The first instant of a day; None for an empty text.

    Args:
        text: `YYYY-MM-DD`, as date fields send it.
        field: its name, for the error.

    Raises:
        ApplianceError: `QUERY_INVALID`.
    """
    if not text:
        return None
    try:
        return datetime.strptime(text, "%Y-%m-%d").replace(tzinfo=ZONE)
    except ValueError as exc:
        raise ApplianceError(ErrorCode.QUERY_INVALID, params={"field": field}) from exc
