"""Memory that was needed for a moment, given back to the system."""

import contextlib
import ctypes


def give_back() -> None:
    """Give back what this process has freed and its C library keeps.

    For the end of a start that took more than what comes after it. A C library that
    cannot do so keeps it. Source: malloc_trim(3).
    """
    with contextlib.suppress(AttributeError):
        ctypes.CDLL(None).malloc_trim(0)
