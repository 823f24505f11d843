"""When a message that was not delivered is tried again.

Source: Standard Webhooks 1.0.0, "Deliverability and reliability".
"""

import secrets
from datetime import datetime, timedelta
from email.utils import parsedate_to_datetime
from typing import Final

AFTER: Final = tuple(
    timedelta(seconds=each)
    for each in (5, 300, 1800, 7200, 18_000, 36_000, 50_400, 72_000, 86_400)
)
"""Time from each try that failed to the next: 5 s, 5 and 30 minutes, 2, 5, 10, 14, 20
and 24 hours; after the last one a message is given up."""
TRIES: Final = len(AFTER) + 1
_JITTER: Final = 0.1
_WAIT_MOST: Final = timedelta(hours=24)
"""Longest that a receiver may ask to wait."""
_RANDOM: Final = secrets.SystemRandom()


def next_try(tries: int, at: datetime, retry_after: str = "") -> datetime | None:
    """When a message is tried again; None: it is given up.

    Messages that failed together do not come back together: each rests up to a tenth
    longer.

    Args:
        tries: that failed, the last one among them.
        at: end of the last one.
        retry_after: what its answer said in the header of that name.
    """
    if tries >= TRIES:
        return None
    rest = AFTER[max(tries, 1) - 1]
    rest *= 1 + _RANDOM.uniform(0, _JITTER)
    return at + max(rest, _asked(retry_after, at))


def _asked(retry_after: str, at: datetime) -> timedelta:
    """How long a receiver wants to be left alone, at most a day. RFC 9110, 10.2.3."""
    text = retry_after.strip()
    if text.isascii() and text.isdigit():
        # Of a long row of digits it is enough to know that it is one.
        return min(timedelta(seconds=int(text[:9])), _WAIT_MOST)
    try:
        until = parsedate_to_datetime(text)
    except (ValueError, TypeError, OverflowError):
        return timedelta(0)
    if until.tzinfo is None:
        return timedelta(0)
    return min(max(until - at, timedelta(0)), _WAIT_MOST)
