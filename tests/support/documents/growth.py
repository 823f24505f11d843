"""How the time of a reader of outside bytes grows with what it is given."""

import gc
import math
import time
from collections.abc import Callable
from typing import Final

MOST: Final = 3.0
"""Time for 2n over time for n: 2 is linear, 4 quadratic; between them lies noise."""
_ROUNDS: Final = 3
_TURNS: Final = 5
_SHORTEST_S: Final = 20e-6
"""Less than this is the calling, not the reading."""


def growth(read: Callable[[int], object], n: int) -> float:
    """How many times longer `read(2 * n)` takes than `read(n)`.

    Where it seems more than linear it is looked at again: a machine that was busy for a
    moment is not so twice, and what is quadratic stays so.

    Args:
        read: reads something of the size that it is given; made beforehand, or its
            making is timed too.
        n: a size at which the reading, not the calling, takes the time.
    """
    found = math.inf
    for _ in range(_ROUNDS):
        once, twice = times(read, n)
        found = min(found, twice / once)
        if found < MOST:
            break
    return found


def times(read: Callable[[int], object], n: int) -> tuple[float, float]:
    """Seconds of `read(n)` and of `read(2 * n)`.

    Each is timed by the processor time of this thread, several times in turn, and the
    shortest counts: what else the machine does makes no difference.

    Args:
        read: as in `growth`.
        n: as there.
    """
    once, twice = [], []
    for _ in range(_TURNS):
        once.append(_seconds(read, n))
        twice.append(_seconds(read, 2 * n))
    return max(min(once), _SHORTEST_S), max(min(twice), _SHORTEST_S)


def _seconds(read: Callable[[int], object], n: int) -> float:
    # A collection looks through all that the process holds, of other tests too.
    gc.disable()
    try:
        began = time.thread_time()
        read(n)
        return time.thread_time() - began
    finally:
        gc.enable()
