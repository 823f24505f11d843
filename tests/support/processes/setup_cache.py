"""What many tests set up alike: made once in a run, and copied.

Keys of an HSM take seconds to generate. All processes of a run share one folder;
whoever needs a part first makes it there, and the others wait for it. The next run of
the same product within a day begins with what this one has made.
"""

import fcntl
import hashlib
import os
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Final

from tests.support.hsm.softhsm import MODULES
from tests.support.processes.scratch import SCRATCH

_VARIABLE: Final = "RUBRICA_TEST_PREPARED"
"""Environment variable with the run's folder; the processes of a run inherit it."""


_RESERVE: Final = shutil.ignore_patterns(".reserve")
"""Room that an installation keeps for itself and makes anew, 128 MB of it."""


_ROOT: Final = Path(__file__).parents[3]
_KEPT: Final = _ROOT / ".check" / "prepared"
_MADE_BY: Final = ("appliance", "worker", "hsm_config")
_ALSO_BY: Final = (
    "requirements.lock",
    "tests/support/appliance/appliance.py",
    "tests/support/hsm/hsm_installation.py",
    "tests/support/hsm/pkcs11_shim.c",
    "tests/support/processes/setup_cache.py",
)
_KEPT_S: Final = 24 * 3600
"""Certificates and lists of revoked ones in it have an end."""


def begin_run() -> Callable[[], None]:
    """Make the run's folder, unless this is one of its processes.

    Returns:
        What ends the run.
    """
    if _VARIABLE in os.environ:
        return lambda: None
    folder = Path(tempfile.mkdtemp(prefix="rbk-prepared-", dir=SCRATCH))
    os.environ[_VARIABLE] = str(folder)
    kept = _KEPT / _state_of_what_makes_it()
    with suppress(FileNotFoundError):
        _forget_others(kept)
        _copy_parts(kept, folder)

    def end() -> None:
        del os.environ[_VARIABLE]
        with suppress(OSError):
            kept.mkdir(parents=True, exist_ok=True)
            _copy_parts(folder, kept)
        shutil.rmtree(folder, ignore_errors=True)

    return end


def _state_of_what_makes_it() -> str:
    """A name for all that a prepared part depends on."""
    state = hashlib.sha256(sys.version.encode())
    for path in _sources():
        state.update(str(path).encode() + b"\0")
        state.update(hashlib.sha256(path.read_bytes()).digest())
    return state.hexdigest()[:16]


def _sources() -> Iterator[Path]:
    for package in _MADE_BY:
        for kind in ("*.py", "*.toml"):
            yield from sorted((_ROOT / package).rglob(kind))
    yield from (_ROOT / name for name in _ALSO_BY)
    yield from (path for path in map(Path, MODULES) if path.exists())


def _forget_others(kept: Path) -> None:
    """Remove what another product has made, and all of it if a part is old."""
    made = [done.stat().st_mtime for done in kept.glob("*.done")]
    is_old = bool(made) and time.time() - min(made) > _KEPT_S
    for each in _KEPT.iterdir():
        if each != kept or is_old:
            shutil.rmtree(each, ignore_errors=True)


def _copy_parts(source: Path, folder: Path) -> None:
    """Copy every part that is whole and not there; the source may be missing."""
    for done in source.glob("*.done"):
        if (folder / done.name).exists():
            continue
        part = source / done.stem
        made = Path(tempfile.mkdtemp(dir=folder))
        names = [each.name for each in part.iterdir()]
        copy_installation(part, made, names, folder / done.stem)
        # Of two runs that end at the same time the second leaves it alone.
        made.rename(folder / done.stem)
        (folder / done.name).touch()


def prepared(name: str, make: Callable[[Path], object]) -> Path | None:
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


def told_once(name: str, find: Callable[[], str]) -> str:
    """A text that is found once in a run, whichever of its processes asks first.

    Two that ask at the same time find it both.

    Args:
        name: of the text, a file name.
        find: gives it.
    """
    if (run := os.environ.get(_VARIABLE)) is None:
        return find()
    place = Path(run, name)
    with suppress(FileNotFoundError):
        return place.read_text("utf-8")
    text = find()
    written = Path(run, f"{name}.{os.getpid()}")
    written.write_text(text, "utf-8")
    written.rename(place)
    return text


def copy_installation(
    source: Path, folder: Path, names: Iterable[str], place: Path | None = None
) -> None:
    """Copy what was installed in one folder to another, which may have files.

    Args:
        source: its `hsm/softhsm2.conf`, where there is one, names its folder.
        folder: existing.
        names: of the files and folders in it that are copied.
        place: where the folder is to go; by default it stays.
    """
    for name in names:
        if (source / name).is_dir():
            shutil.copytree(
                source / name, folder / name, ignore=_RESERVE, dirs_exist_ok=True
            )
        else:
            shutil.copy2(source / name, folder / name)
    conf = folder / "hsm" / "softhsm2.conf"
    if not conf.exists():
        return
    text = conf.read_text("utf-8").replace(str(source), str(place or folder))
    conf.write_text(text, "utf-8")
