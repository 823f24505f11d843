"""How many processors there are for this process."""

import os


def usable_cores() -> int:
    """Processors that it may run on, 1 or more; a container may have a part of all.

    Source: sched_setaffinity(2), cpuset(7).
    """
    return len(os.sched_getaffinity(0))
