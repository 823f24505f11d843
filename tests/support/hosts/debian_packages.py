"""Debian packages of this checkout, of a release and of one to come, and machines.

    package = built(folder)
    with debian_with(folder, package, PACKAGES) as machine:
        machine.run(f"apt-get install --yes /tmp/{package.name}")

Needs what `Booted` needs, and `git` for a release.
"""

import hashlib
import os
import re
import shutil
import subprocess
import tomllib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from tests.support.hosts.booted_machine import Booted

ROOT: Final = Path(__file__).resolve().parents[3]
_VENDOR: Final = Path("appliance/web/vendor")


def built(folder: Path, source: Path = ROOT) -> Path:
    """Build the package as the manual does, or take one that was kept.

    Args:
        folder: where it is put.
        source: a checkout.
    """
    kept = _kept(source)
    for package in kept.glob("*.deb") if kept else ():
        return Path(shutil.copy(package, folder))
    command = [str(source / "packaging" / "build-deb"), str(folder)]
    done = subprocess.run(command, check=False, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    package = Path(done.stdout.strip())
    if kept:
        kept.mkdir(parents=True)
        # Whole, or not there: another run may look for it.
        shutil.copy(package, kept / "coming")
        (kept / "coming").rename(kept / package.name)
    return package


def _kept(source: Path) -> Path | None:
    """Where a package of the same files is kept; None: nowhere.

    A build takes minutes. Somebody who runs one long test after the other names a
    folder in `RUBRICA_TEST_PACKAGES`, and removes it afterwards.
    """
    if not (folder := os.environ.get("RUBRICA_TEST_PACKAGES")):
        return None
    command = ["git", "-C", str(source), "ls-files", "-zco", "--exclude-standard"]
    done = subprocess.run(command, check=False, capture_output=True)
    if done.returncode != 0 or not (source / ".git").exists():
        return None
    digest = hashlib.sha256()
    for name in sorted(done.stdout.decode().split("\0")):
        path = source / name
        if path.is_file() and not name.startswith("tests/"):
            digest.update(f"{name} {path.stat().st_mode:o} ".encode())
            digest.update(hashlib.sha256(path.read_bytes()).digest())
    return Path(folder) / digest.hexdigest()


def in_checkout(script: str) -> str:
    """Run lines of the manual in this checkout; what they said."""
    command = ["bash", "-euo", "pipefail", "-c", script]
    done = subprocess.run(
        command, cwd=ROOT, check=False, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def release(folder: Path, version: str) -> Path:
    """The files of a release, from this repository's history.

    Args:
        folder: an empty one.
        version: of `packaging/releases.toml`.

    Raises:
        AssertionError: this clone does not have the release's commit.
    """
    return committed(folder, _commit_of(version))


def has_release(version: str) -> bool:
    """Whether this clone has the release's commit: a shallow one does not."""
    commit = _commit_of(version)
    asked = ["git", "-C", str(ROOT), "cat-file", "-e", f"{commit}^{{commit}}"]
    return subprocess.run(asked, check=False, capture_output=True).returncode == 0


def _commit_of(version: str) -> str:
    known = tomllib.loads((ROOT / "packaging/releases.toml").read_text("utf-8"))
    (commit,) = (r["commit"] for r in known["release"] if r["version"] == version)
    return str(commit)


def committed(folder: Path, commit: str) -> Path:
    """The files of a commit, from this repository's history.

    Args:
        folder: an empty one.
        commit: its whole id.

    Raises:
        AssertionError: this clone does not have it.
    """
    archive = ["git", "-C", str(ROOT), "archive", commit]
    with subprocess.Popen(archive, stdout=subprocess.PIPE) as files:
        subprocess.run(["tar", "-xC", str(folder)], stdin=files.stdout, check=True)
    assert files.returncode == 0, f"no commit {commit} here: fetch all of the history"
    _lend_browser_libraries(folder)
    return folder


def checkout(folder: Path) -> Path:
    """The files of this checkout as they are, for a test to change.

    Args:
        folder: an empty one.
    """
    listed = subprocess.run(
        ["git", "-C", str(ROOT), "ls-files", "-co", "--exclude-standard"],
        check=True,
        capture_output=True,
        text=True,
    )
    for name in listed.stdout.splitlines():
        if (ROOT / name).is_file():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / name, folder / name)
    _lend_browser_libraries(folder)
    return folder


def _lend_browser_libraries(folder: Path) -> None:
    """Those that were fetched here, where the other checkout wants the same."""
    manifest = _VENDOR / "manifest.sha256"
    fetched = ROOT / _VENDOR / "files"
    same = (folder / manifest).read_bytes() == (ROOT / manifest).read_bytes()
    if same and fetched.is_dir():
        shutil.copytree(fetched, folder / _VENDOR / "files", copy_function=_lend)


def _lend(source: str, target: str) -> None:
    try:
        os.link(source, target)
    except OSError:  # on another file system
        shutil.copy2(source, target)


@contextmanager
def debian_with(
    folder: Path, package: Path, packages: Sequence[str]
) -> Iterator[Booted]:
    """A machine that may install a package, which lies in its /tmp.

    Args:
        folder: an empty one.
        package: of `built`.
        packages: of Debian, beside those that it depends on.
    """
    depends = subprocess.run(
        ["dpkg-deb", "--field", str(package), "Depends"],
        check=True,
        capture_output=True,
        text=True,
    ).stdout
    # apt takes a package whose dependencies are there without any network.
    wanted = [re.split(r"[ (|]", each.strip())[0] for each in depends.split(",")]
    with Booted.made(folder, [*wanted, *packages]) as machine:
        bring(machine, package)
        yield machine


def bring(machine: Booted, package: Path) -> None:
    """Have a package lie in a machine's /tmp."""
    # Its /tmp is a file system of its own, which begins empty.
    shutil.copy(package, machine.root / "root")
    machine.run(f"cp /root/{package.name} /tmp")
