"""What many tests set up alike: made once in a run, and copied.

Keys of an HSM take seconds to generate. All processes of a run share one folder;
whoever needs a part first makes it there, and the others wait for it.
"""

import fcntl
import os
import shutil
import tempfile
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Final

from tests.parts.places import SCRATCH

_VARIABLE: Final = "RUBRICA_TEST_PREPARED"
"""Environment variable with the run's folder; the processes of a run inherit it."""


_RESERVE: Final = shutil.ignore_patterns(".reserve")
"""Room that an installation keeps for itself and makes anew, 128 MB of it."""


def begin_run() -> Callable[[], None]:
    """Make the run's folder, unless this is one of its processes.

    Returns:
        What ends the run.
    """
    if _VARIABLE in os.environ:
        return lambda: None
    folder = tempfile.mkdtemp(prefix="rbk-prepared-", dir=SCRATCH)
    os.environ[_VARIABLE] = folder

    def end() -> None:
        del os.environ[_VARIABLE]
        shutil.rmtree(folder, ignore_errors=True)

    return end


def prepared(name: str, make: Callable[[Path], None]) -> Path | None:
    """A folder to copy from, which nobody changes; None outside of a run of pytest.

    Args:
        name: of what is in it, a file name.
        make: fills the empty folder; called once in a run, unless it fails.
    """
    if (run := os.environ.get(_VARIABLE)) is None:
        return None
    folder, done = Path(run, name), Path(run, f"{name}.done")
    with Path(run, f"{name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not done.exists():
            shutil.rmtree(folder, ignore_errors=True)
            folder.mkdir(mode=0o700)
            make(folder)
            done.touch()
    return folder


def copy_installation(source: Path, folder: Path, names: Iterable[str]) -> None:
    """Copy what was installed in one folder to another, which may have files.

    Args:
        source: with `hsm/softhsm2.conf`, which names its folder.
        folder: existing.
        names: of the files and folders in it that are copied; `hsm` among them.
    """
    for name in names:
        if (source / name).is_dir():
            shutil.copytree(
                source / name, folder / name, ignore=_RESERVE, dirs_exist_ok=True
            )
        else:
            shutil.copy2(source / name, folder / name)
    conf = folder / "hsm" / "softhsm2.conf"
    conf.write_text(conf.read_text("utf-8").replace(str(source), str(folder)), "utf-8")
