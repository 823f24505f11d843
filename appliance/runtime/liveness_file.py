"""A worker's pulse: a file that it touches while it gets on, for whoever looks.

What listens can be asked; a worker cannot. So whoever starts it anew, as an
orchestrator of containers does, looks at when it last touched its file.
"""

import contextlib
import os
import time
from pathlib import Path
from typing import Final

BEAT_S: Final = 2.0
"""At the latest it beats again after so many seconds."""
LATEST_S: Final = 15.0
"""Older than that it is a dead one's."""


def pulse_path(run_dir: Path, kind: str, number: int) -> Path:
    """Where worker `number` of a kind has its pulse: its slot's lock file."""
    return run_dir / f"{kind}-{number}.lock"


def beat(path: Path) -> None:
    """Say that the process gets on; a file that is gone is its own matter."""
    with contextlib.suppress(OSError):
        os.utime(path)


def last_beat_s(path: Path) -> float:
    """Seconds since the last beat.

    Raises:
        FileNotFoundError: no such worker has ever run.
    """
    return time.time() - path.stat().st_mtime
