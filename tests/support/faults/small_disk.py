"""A disk of a few megabytes, to be filled: a tmpfs over a folder; needs root."""

import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from appliance.documents.local.folder_mark import FILE


@contextmanager
def small_disk(folder: Path, size_bytes: int) -> Iterator[bool]:
    """Have a folder lie on a small disk; what it has at the end comes along.

    Args:
        folder: that is there; what is in it is out of sight meanwhile.
        size_bytes: of the disk.

    Returns:
        False where this machine or user cannot mount one.
    """
    if not _mounted(folder, size_bytes):
        yield False
        return
    try:
        yield True
    finally:
        kept = [
            (path.relative_to(folder), path.read_bytes())
            for path in folder.rglob("*.pdf")
        ]
        subprocess.run(["umount", "-l", str(folder)], check=True)
        for path, content in kept:
            (folder / path).parent.mkdir(parents=True, exist_ok=True)
            (folder / path).write_bytes(content)


def _mounted(folder: Path, size_bytes: int) -> bool:
    """Mount it, the folder's mark on it from the first moment; whether it could be."""
    with tempfile.TemporaryDirectory() as apart:
        options = ("-t", "tmpfs", "-o", f"size={size_bytes}", "rubrica", apart)
        try:
            made = subprocess.run(
                ["mount", *options], capture_output=True, check=False
            ).returncode
        except FileNotFoundError:
            return False
        if made != 0:
            return False
        if (folder / FILE).exists():
            shutil.copy(folder / FILE, apart)
        subprocess.run(["mount", "--bind", apart, str(folder)], check=True)
        subprocess.run(["umount", apart], check=True)
    return True


def fill(folder: Path, leave_bytes: int = 0) -> Path:
    """Take all the room of a disk, but for some; give it back by removing the file."""
    filler = folder / "filler"
    with filler.open("wb", buffering=0) as file:
        try:
            while True:
                file.write(b"\0" * 65_536)
        except OSError:
            size = file.tell()
        file.truncate(max(size - leave_bytes, 0))
    return filler
