"""SoftHSM's token files, kept twice: a login that is killed empties them.

At each login SoftHSM empties the token's `token.object` and writes it anew, in
place and without fsync. A process that dies between the two leaves it empty, and
with it all keys of the token are gone: what they are encrypted with stands in
that file. So a copy is kept beside it, and put back before the module starts.

SoftHSM holds a lock on the file while it writes. Under that same lock, a file
that is not whole was left so by the dead, and by nobody who is still writing.
"""

import fcntl
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

_FILE: Final = "token.object"
_COPY: Final = "token.backup"
"""SoftHSM reads no file of its folder that does not end in `.object`."""
_FOLDER_KEY: Final = "directories.tokendir"
_WORD: Final = 8
"""Bytes of a number in the file; the first one counts its writings."""
_TURN_S: Final = 5.0
"""Longest wait for a turn, in seconds; a start takes a tenth of one."""
_LOOK_AGAIN_S: Final = 0.01
_FLAG, _NUMBER, _BYTES = 1, 2, 3


def keep_token_files(conf: Path) -> list[Path]:
    """Copy each token's file while it is whole; put the copy over one that is not.

    Call it before the module is initialised: closing the file here would let go
    of a lock that the module of this process holds.

    Args:
        conf: SoftHSM's configuration file.

    Returns:
        The folders of the tokens that were mended.

    Raises:
        OSError: a file cannot be read or written.
    """
    return [token.parent for token in _token_files(conf) if _keep(token)]


@contextmanager
def login_turn(conf: Path) -> Iterator[None]:
    """Be the only one of these tokens' users that starts and logs in just now.

    While one writes a token's file, another that looks sees no such token, or a
    general error. A holder that hangs is waited for a while, not for ever.

    Args:
        conf: SoftHSM's configuration file; the lock stands beside it.

    Raises:
        OSError: the lock file cannot be made.
    """
    lock = os.open(conf.with_suffix(".lock"), os.O_RDWR | os.O_CREAT, 0o600)
    deadline = time.monotonic() + _TURN_S
    try:
        while time.monotonic() < deadline:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                time.sleep(_LOOK_AGAIN_S)
            else:
                break
        yield
    finally:
        os.close(lock)


def _token_files(conf: Path) -> Iterator[Path]:
    """The file of each token; none while the folder is away."""
    for line in conf.read_text("utf-8").splitlines():
        key, _, value = line.partition("=")
        if key.strip() == _FOLDER_KEY:
            yield from sorted(Path(value.strip()).glob(f"*/{_FILE}"))


def _keep(token: Path) -> bool:
    """Make the copy of one token's file, or make use of it; whether it was used."""
    copy = token.with_name(_COPY)
    with token.open("r+b", buffering=0) as file:
        fcntl.lockf(file, fcntl.LOCK_EX)
        content = file.read()
        kept = copy.read_bytes() if copy.exists() else b""
        if is_whole(content):
            if content[_WORD:] != kept[_WORD:]:
                _write_durably(copy, content)
            return False
        if not is_whole(kept):
            return False
        # In place, for SoftHSM's locks are on this very file. Killed here, we
        # leave what we found, and the copy is still there.
        file.seek(0)
        file.truncate()
        file.write(kept)
        os.fsync(file.fileno())
        return True


def is_whole(content: bytes) -> bool:
    """Tell whether a token's file was written to its end.

    Args:
        content: a number, then attributes: type, kind, and a value by its kind.

    Returns:
        False when it ends too soon. A kind that we do not know says nothing of
        its length, and is nothing to overwrite a file for.
    """
    at = _WORD
    while at < len(content):
        kind = int.from_bytes(content[at + _WORD : at + 2 * _WORD], "big")
        at += 2 * _WORD
        if kind == _FLAG:
            at += 1
        elif kind == _NUMBER:
            at += _WORD
        elif kind == _BYTES:
            at += _WORD + int.from_bytes(content[at : at + _WORD], "big")
        else:
            return at <= len(content)
    return at == len(content) > _WORD


def _write_durably(path: Path, content: bytes) -> None:
    """Write a file that is there whole or not at all."""
    # One name will do: whoever writes holds the lock.
    temporary = path.with_suffix(".new")
    handle = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(handle, "wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
    temporary.replace(path)
    folder = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)
