"""Folders that backups, fetches and drills work in, and what killed ones left there.

remove_dead(WORK, "rubrica-fetch-*", now)
with work_folder("rubrica-fetch-") as folder:
    …
"""

import fcntl
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta
from pathlib import Path
from stat import S_ISDIR
from typing import Final

from appliance.system.durable_files import held

WORK: Final = Path("/var/tmp")  # noqa: S108 (a folder of its own is made in it)
DEAD: Final = timedelta(days=1)
"""After which what was begun and has no name yet is a killed backup's."""


@contextmanager
def work_folder(prefix: str) -> Iterator[Path]:
    """A folder of one's own, which `remove_dead` leaves while the block lasts.

    Args:
        prefix: of its name, by which it is found where its process was killed.
    """
    with (
        tempfile.TemporaryDirectory(dir=WORK, prefix=prefix) as made,
        held(Path(made), alone=False),
    ):
        yield Path(made)


def remove_dead(folder: Path, pattern: str, now: datetime) -> None:
    """Remove what backups that were killed left, as root's alone.

    Args:
        folder: that is there.
        pattern: of their names.
        now: the time.
    """
    for path in folder.glob(pattern):
        try:
            seen = path.lstat()
        except FileNotFoundError:
            continue  # somebody else's, which just ended
        age = now - datetime.fromtimestamp(seen.st_mtime, now.tzinfo)
        if age < DEAD or seen.st_uid != os.geteuid():
            continue
        if not S_ISDIR(seen.st_mode):
            path.unlink(missing_ok=True)
        elif not _is_held(path):
            shutil.rmtree(path)


def _is_held(folder: Path) -> bool:
    """Whether its process is at work: what it took a day for is no killed one's."""
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(handle)
    return False
