"""Files and folders that are there after a power cut, whole or not at all."""

import contextlib
import fcntl
import os
import secrets
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final

NEW: Final = ".new-"
"""What the name of a file begins with while it is being written."""
_FOLDER_MODE: Final = 0o770
_FILE_MODE: Final = 0o660


def make_folder(folder: Path) -> None:
    """Make a folder and those above it, each entry durable.

    Args:
        folder: open to owner and group as far as the umask lets it be.
    """
    missing = []
    while not folder.exists():
        missing.append(folder)
        folder = folder.parent
    for new in reversed(missing):
        with contextlib.suppress(FileExistsError):
            new.mkdir(mode=_FOLDER_MODE)
        sync_folder(new.parent)


def write_durably(
    path: Path,
    pieces: Iterable[bytes],
    owned: Callable[[int], None] | None = None,
) -> None:
    """Put a file in its place, in the place of one that is there.

    Args:
        path: its name, in a folder that is there.
        pieces: its bytes.
        owned: gives the open file its owner and mode, before it has its name.

    Raises:
        OSError: it could not be; nothing of it is left.
    """
    write_all_durably([(path, pieces)], owned)


def write_all_durably(
    files: Sequence[tuple[Path, Iterable[bytes]]],
    owned: Callable[[int], None] | None = None,
) -> None:
    """Put files in their places; a disk waits for all of them as long as for one.

    Args:
        files: name, in a folder that is there, and bytes of each.
        owned: as of `write_durably`.

    Raises:
        OSError: one could not be; of those that have no name yet nothing is left.
    """
    with contextlib.ExitStack() as stack:
        written = []
        for path, pieces in files:
            temporary = path.with_name(f"{NEW}{secrets.token_hex(8)}")
            # By os.open and not tempfile, so that the umask decides on the group's
            # bits.
            handle = os.open(
                temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, _FILE_MODE
            )
            stack.callback(temporary.unlink, missing_ok=True)
            file = stack.enter_context(os.fdopen(handle, "wb"))
            for piece in pieces:
                file.write(piece)
            file.flush()
            if owned is not None:
                owned(file.fileno())
            written.append((file, temporary, path))
        for file, _, _ in written:
            os.fsync(file.fileno())
        for _, temporary, path in written:
            temporary.replace(path)
        for folder in {path.parent for path, _ in files}:
            sync_folder(folder)


def sync_folder(folder: Path) -> None:
    """Make a folder's entries durable.

    Args:
        folder: that is there.
    """
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


@contextmanager
def held(folder: Path, *, alone: bool) -> Iterator[None]:
    """Hold a folder beside others who do, while no process holds it alone.

    Args:
        folder: that is there.
        alone: beside nobody, in any process.
    """
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX if alone else fcntl.LOCK_SH)
        yield
    finally:
        os.close(handle)
