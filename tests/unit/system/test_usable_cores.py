"""How many processors a process takes itself to have.

Source: cpuset(7).
"""

import os
import subprocess
import sys
from typing import Final

_ASK: Final = (
    "from appliance.system.cpu_count import usable_cores; print(usable_cores())"
)


def test_part_of_the_processors_is_all_there_is() -> None:
    """A process that may run on one of them counts one."""
    one = min(os.sched_getaffinity(0))

    told = subprocess.run(
        ["taskset", "-c", str(one), sys.executable, "-c", _ASK],
        check=True,
        capture_output=True,
        text=True,
    ).stdout

    assert told.strip() == "1"
