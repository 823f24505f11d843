"""Times as administrators read them: always with the zone.

Argentina's civil time is fixed at UTC-3, for zone data may be absent and there
has been no summer time since 2009.
"""

from datetime import datetime, timedelta, timezone
from typing import Final

from babel.dates import format_datetime, format_timedelta

from appliance.domain.errors import ApplianceError, ErrorCode

ZONE: Final = timezone(timedelta(hours=-3))
_SHOWN: Final = "UTC-3"
_LOCALES: Final = {"es": "es_AR", "en": "en_GB"}
_FORMS: Final = {"es": "dd/MM/yyyy HH:mm:ss", "en": "yyyy-MM-dd HH:mm:ss"}


def absolute(at: datetime, lang: str) -> str:
    """A time to the second, with its zone.

    Args:
        at: aware.
        lang: `es` or `en`.
    """
    local = at.astimezone(ZONE).replace(tzinfo=None)
    text = format_datetime(local, _FORMS[lang], locale=_LOCALES[lang])
    return f"{text} {_SHOWN}"


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
