"""What children of a loaded process share with it, however full of gaps its heap is."""

import os
import subprocess
import sys

import pytest

PROGRAM = """
import os, sys
from pathlib import Path
from appliance.runtime.shared_heap import share_heap

size, stride = int(sys.argv[1]), int(sys.argv[2])

def own_kib():
    lines = Path("/proc/self/smaps_rollup").read_text().splitlines()
    (line,) = [each for each in lines if each.startswith("Private_Dirty:")]
    return int(line.split()[1])

blocks = [bytes(size) for _ in range(2_000 * stride)]
del blocks[::stride]
if sys.argv[3] == "filled":
    share_heap()
if os.fork():
    sys.exit(os.waitstatus_to_exitcode(os.wait()[1]))
made = [bytes(size) for _ in range(1_800)]
print(own_kib(), flush=True)
os._exit(0)
"""
FROZEN = """
import gc, weakref
from appliance.runtime.shared_heap import share_heap

class Cycle:
    pass

one = Cycle()
one.itself = one
seen = weakref.ref(one)
gc.freeze()
del one
share_heap()
print(seen() is None, gc.get_freeze_count() > 0)
"""


@pytest.mark.parametrize(("size", "stride"), [(20, 80), (400, 10), (1000, 4)])
def test_what_a_child_makes_copies_no_page_for_a_gap(size: int, stride: int) -> None:
    """A gap on each page: a child that used them would copy each page."""
    as_it_is = int(run(PROGRAM, str(size), str(stride), "as it is"))
    assert int(run(PROGRAM, str(size), str(stride), "filled")) < as_it_is - 3_000


def test_garbage_that_was_frozen_is_collected() -> None:
    """What is loaded is frozen at once, with what nobody refers to any more."""
    assert run(FROZEN) == "True True"


def test_other_memory_is_left_as_it_is() -> None:
    """Without CPython's pools there are none to fill, and nothing looks for ever."""
    assert run(FROZEN, PYTHONMALLOC="malloc") == "True True"


def run(program: str, *arguments: str, **variables: str) -> str:
    """What a program prints, in a process of its own."""
    done = subprocess.run(
        [sys.executable, "-c", program, *arguments],
        check=True,
        env={**os.environ, **variables},
        capture_output=True,
        text=True,
    )
    return done.stdout.strip()
