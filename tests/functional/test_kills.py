"""Workers and other processes die in the midst: nothing is lost or doubled.

Source: design §3; the auditor of `tests.ledger` looks at everything after.
"""

import os
import secrets
import signal
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from pathlib import Path

import psutil
import pytest

from appliance.domain.vocab import IntentState, RequestState
from tests import pdfs
from tests.ledger import read_intents, read_ledger
from tests.parts.appliance import Appliance, TestPerson
from tests.parts.callers import BROKEN, Crowd
from tests.parts.places import short_folder
from worker.crash_points import AFTER_SIGN, FREEZE, POINTS, VARIABLE

_LONGEST_S = 25.0
"""That anybody may wait for a signed document while workers are killed."""
_RECOVERED_S = 15.0
"""Within which what a dead worker left is finished."""
NO_REDIS = '[redis]\nurl = "redis://127.0.0.1:1/0"'
"""An address where nobody listens."""


@contextmanager
def made(**options: str) -> Iterator[Appliance]:
    """An appliance of one test, with a folder of crash points."""
    with short_folder() as folder:
        crash = folder / "crash"
        crash.mkdir()
        environment = {VARIABLE: str(crash)}
        with Appliance.made(folder, environment=environment, **options) as appliance:
            yield appliance


def order_crash(appliance: Appliance, point: str, wish: str = "") -> Path:
    """Have the next worker that passes a point die there, or freeze."""
    file = appliance.folder / "crash" / point
    made = file.with_suffix(".new")
    made.write_text(wish)
    # A worker must not find it before it is written.
    return made.rename(file)


def kill(process: psutil.Process) -> None:
    """End a process as nothing can prevent."""
    try:
        process.kill()
    except psutil.NoSuchProcess:
        return


def until(true: Callable[[], bool], timeout_s: float = _RECOVERED_S) -> None:
    """Wait for something to become true."""
    deadline = time.monotonic() + timeout_s
    while not true():
        assert time.monotonic() < deadline
        time.sleep(0.05)
