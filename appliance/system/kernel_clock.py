"""What the kernel says of its own clock.

Source: adjtimex(2); linux/timex.h.
"""

import ctypes
from datetime import timedelta
from typing import Final

_UNSYNCHRONISED: Final = 0x0040
_FAILED: Final = -1


class _Timex(ctypes.Structure):
    """`struct timex`, of which the first fields are read."""

    _fields_ = (
        ("modes", ctypes.c_uint),
        ("offset", ctypes.c_long),
        ("freq", ctypes.c_long),
        ("maxerror", ctypes.c_long),
        ("esterror", ctypes.c_long),
        ("status", ctypes.c_int),
        # The rest of the structure, which the kernel writes too, and more.
        ("rest", ctypes.c_long * 32),
    )


def kernel_error() -> timedelta | None:
    """How far the clock is off, as whoever keeps it in time has told the kernel.

    Returns:
        The estimated error; None where nobody is known to keep it, or the kernel
        does not say: a service without the right to set the clock (systemd's
        `ProtectClock=yes`) may not read this either, which is no fault.
    """
    try:
        adjtimex = ctypes.CDLL(None, use_errno=True).adjtimex
    except (OSError, AttributeError):
        return None
    timex = _Timex(modes=0)
    if adjtimex(ctypes.byref(timex)) == _FAILED or timex.status & _UNSYNCHRONISED:
        return None
    return timedelta(microseconds=int(timex.esterror))
