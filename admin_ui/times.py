"""Times as administrators read them; every page says the zone once, at its end."""

from datetime import datetime, timedelta
from typing import Final

from babel.dates import format_timedelta

from appliance.domain.errors import ApplianceError, ErrorCode
from appliance.domain.text.civil_time import civil, day_begins, day_ends

_AN_INSTANT: Final = timedelta(seconds=1)
_NOW: Final = {"es": "ahora", "en": "now"}
_LOCALES: Final = {"es": "es_AR", "en": "en_GB"}


def relative(at: datetime, now: datetime, lang: str) -> str:
    """How long ago, or in how long.

    Args:
        at: aware.
        now: the present time.
        lang: `es` or `en`.
    """
    if abs(at - now) < _AN_INSTANT:
        return _NOW[lang]
    return format_timedelta(at - now, add_direction=True, locale=_LOCALES[lang])


def load() -> None:
    """Read what Babel knows of each language now, and nothing later."""
    for locale in _LOCALES.values():
        format_timedelta(timedelta(hours=1), add_direction=True, locale=locale)


def machine(at: datetime) -> str:
    """A time for `<time datetime>`.

    Args:
        at: aware.
    """
    return civil(at).isoformat(timespec="seconds")


def read_since(text: str, field: str) -> datetime | None:
    """The first instant of a day; None for an empty text.

    Args:
        text: `YYYY-MM-DD`, as date fields send it.
        field: its name, for the error.

    Raises:
        ApplianceError: `QUERY_INVALID`.
    """
    day = _read_day(text, field)
    return None if day is None else day_begins(day)


def read_until(text: str, field: str) -> datetime | None:
    """The first instant after a day; None for an empty text and for the last day.

    Args:
        text: `YYYY-MM-DD`, as date fields send it.
        field: its name, for the error.

    Raises:
        ApplianceError: `QUERY_INVALID`.
    """
    day = _read_day(text, field)
    return None if day is None else day_ends(day)


def _read_day(text: str, field: str) -> datetime | None:
    """A day without zone; None for an empty text.

    Raises:
        ApplianceError: `QUERY_INVALID`.
    """
    if not text:
        return None
    try:
        return datetime.strptime(text, "%Y-%m-%d")  # noqa: DTZ007 (a day: its zone comes with its bounds)
    except ValueError as exc:
        raise ApplianceError(ErrorCode.QUERY_INVALID, params={"field": field}) from exc
