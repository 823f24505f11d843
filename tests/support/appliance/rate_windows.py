"""Calls that fall into one window of the appliance's rates.

    answers = in_one_minute(lambda: [client_of(new_person()).get(path) for _ in "ab"])

Rates are counted by minutes of the clock, of which the one before counts in part. Calls
on both sides of a minute's end are fewer than were made, by as much as they lasted.
"""

import time
from collections.abc import Callable
from typing import Final, TypeVar

Result = TypeVar("Result")
_WINDOW_S: Final = 60


def in_one_minute(calls: Callable[[], Result]) -> Result:
    """Make calls that begin and end in one window.

    Args:
        calls: makes them for somebody who has called for nothing yet; made again, for
            somebody else, where a minute ended meanwhile.

    Returns:
        What the calls of one minute gave.
    """
    while True:
        window = time.time() // _WINDOW_S
        result = calls()
        if time.time() // _WINDOW_S == window:
            return result
