"""What `ps` and `top` call a process: `rubrica: signing-1`.

The kernel shows the bytes where the arguments stood when the program began; the
title is written over them. Source: proc(5), `cmdline` and `stat`; prctl(2).
"""

import contextlib
import ctypes
from pathlib import Path
from typing import Final

_PR_SET_NAME: Final = 15
_NAME_BYTES: Final = 15
_PREFIX: Final = "rubrica:"
_ARG_START, _ARG_END = 48, 49
"""Fields of /proc/self/stat, counted from 1."""


def set_title(name: str) -> None:
    """Have this process shown under the name of its role.

    Args:
        name: of the role, and its number: `signing-1`. Of what does not fit, the
            beginning of the role's name stays and the number.
    """
    libc = ctypes.CDLL(None, use_errno=True)
    libc.prctl(_PR_SET_NAME, short_name(name).encode(), 0, 0, 0)
    show_arguments(f"{_PREFIX} {name}".encode())


def show_arguments(shown: bytes) -> None:
    """Have this process shown with other arguments than it began with.

    Args:
        shown: separated by NUL; what does not fit is cut off.
    """
    # Where /proc is not to be had a process keeps its arguments.
    with contextlib.suppress(OSError, ValueError, IndexError):
        stat = Path("/proc/self/stat").read_text("utf-8", errors="replace")
        # The first two fields are cut off: a name may hold spaces.
        fields = stat.rpartition(")")[2].split()
        start, end = (int(fields[number - 3]) for number in (_ARG_START, _ARG_END))
        room = end - start
        if start and room > 1:
            # The last byte stays 0: without it the environment would be shown too.
            ctypes.memmove(start, shown[: room - 1].ljust(room, b"\0"), room)


def short_name(name: str) -> str:
    """What fits into the 15 bytes of a process's short name.

    Args:
        name: ASCII.
    """
    role, dash, number = name.partition("-")
    left = _NAME_BYTES - len(_PREFIX) - len(dash + number)
    return f"{_PREFIX}{role[:left]}{dash}{number}"
