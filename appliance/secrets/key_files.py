"""Key files: the versions of one secret key, readable by its owner alone.

    # version, key in hex; "next" is known and not in use yet
    1 5f1c…
    2 a90b…
    3 77e2… next

The highest version without `next` is the one in use. A file with 64 hex digits
and nothing else is version 1. `docs/rotation.md` tells how versions change.
"""

import os
import secrets
import stat
from pathlib import Path
from typing import Final

from appliance.domain.keys.versioned_secrets import FIRST, LAST, KeyRing
from appliance.secrets.credential_files import bits_too_open, given_file
from appliance.settings import SettingsError

KEY_BYTES: Final = 32
_HEAD: Final = '# version, key in hex; "next" is known and not in use yet\n'
_NEXT: Final = "next"
_WORDS: Final = 2


def read_key_ring(path: Path) -> KeyRing:
    """Read a key file that only its owner can read.

    Args:
        path: the file; a credential of its name is read in its place.

    Raises:
        SettingsError: not readable, readable by others, or not of the format.
    """
    path = given_file(path)
    try:
        mode = stat.S_IMODE(path.stat().st_mode)
        text = path.read_text(encoding="ascii")
        ring = _parse(text)
    except OSError as exc:
        msg = f"{path}: cannot be read ({exc.strerror})"
        raise SettingsError(msg) from exc
    except ValueError:
        # The cause would show what the file holds.
        ring = None
    if mode & bits_too_open(path):
        msg = f"{path}: others may read it; set its mode to 0600 or 0400"
        raise SettingsError(msg)
    if ring is None:
        msg = (
            f"{path}: must hold {KEY_BYTES} bytes as {2 * KEY_BYTES} hex digits, or "
            "lines of a version and such digits (docs/rotation.md)"
        )
        raise SettingsError(msg)
    return ring


def write_key_ring(path: Path, ring: KeyRing) -> None:
    """Put another ring in a key file's place, whole or not at all.

    Mode and owner stay as they are.

    Args:
        path: a key file.
        ring: what it is to hold.

    Raises:
        SettingsError: it cannot be written.
    """
    lines = [
        f"{version} {key.hex()}{f' {_NEXT}' if version == ring.next else ''}\n"
        for version, key in sorted(ring.keys.items())
    ]
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(4)}")
    try:
        before = path.stat()
        handle = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(handle, "w", encoding="ascii") as file:
            os.fchown(handle, before.st_uid, before.st_gid)
            os.fchmod(handle, stat.S_IMODE(before.st_mode))
            file.write(_HEAD + "".join(lines))
            file.flush()
            os.fsync(handle)
        temporary.replace(path)
        folder = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)
    except OSError as exc:
        temporary.unlink(missing_ok=True)
        msg = f"{path}: cannot be written ({exc.strerror})"
        raise SettingsError(msg) from exc


def _tell(unusable: SettingsError) -> None:
    # Commands read keys too, and have no log.
    import structlog  # noqa: PLC0415 (heavy)

    log = structlog.get_logger(__name__)
    log.error("secrets.file_unusable", error=str(unusable))


class KeyFile:
    """A key file that is read again when it was changed.

    A look at each use costs microseconds and saves a restart. A file that has
    gone or has become unreadable leaves the versions that were known.

    Args:
        path: the file.

    Raises:
        SettingsError: it cannot be used.
    """

    def __init__(self, path: Path) -> None:
        self._path = given_file(path)
        self._ring = read_key_ring(self._path)
        self._stamp = self._look()

    def ring(self) -> KeyRing:
        """The versions as the file has them now."""
        stamp = self._look()
        if stamp is not None and stamp != self._stamp:
            self._stamp = stamp
            try:
                self._ring = read_key_ring(self._path)
            except SettingsError as exc:
                _tell(exc)
        return self._ring

    def _look(self) -> tuple[int, int, int] | None:
        try:
            found = self._path.stat()
        except OSError:
            return None
        return found.st_ino, found.st_mtime_ns, found.st_size


def _parse(text: str) -> KeyRing:
    """Read a key file's text.

    Raises:
        ValueError: it is none.
    """
    lines = [line.split() for line in text.splitlines()]
    lines = [words for words in lines if words and not words[0].startswith("#")]
    if len(lines) == 1 and len(lines[0]) == 1:
        return KeyRing.of(_key(lines[0][0]))
    keys: dict[int, bytes] = {}
    coming: set[int] = set()
    for number, digits, *mark in lines:
        version = int(number)
        if not FIRST <= version <= LAST or version in keys or mark not in ([], [_NEXT]):
            raise ValueError
        keys[version] = _key(digits)
        if mark:
            coming.add(version)
    present = max(keys.keys() - coming)
    # At most one is to come, and it is the newest.
    if (coming and coming != {max(keys)}) or len(coming) > 1:
        raise ValueError
    return KeyRing(present, keys)


def _key(digits: str) -> bytes:
    key = bytes.fromhex(digits)
    if len(key) != KEY_BYTES:
        raise ValueError
    return key
