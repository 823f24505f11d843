"""A tar archive, encrypted with age: written whole or not at all, read in one pass.

    with writing(path, "age1…") as archive:
        archive.add_bytes("about.json", b"{}")
    for name, size, content in reading(path, identity):
        …

Source: the age file format, age-encryption.org/v1: what is cut off or altered is
refused by age; POSIX.1-2017, pax interchange format.
"""

import contextlib
import hashlib
import io
import os
import re
import secrets
import subprocess
import tarfile
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Final

from appliance.settings import SettingsError
from appliance.system.durable_files import NEW, sync_folder

CONTENTS: Final = "contents.json"
"""The last member: how many files of how many bytes come before it, and their hash."""
_AGE: Final = "age"
_NAME: Final = re.compile(r"[A-Za-z0-9_.-]+(/[A-Za-z0-9_.-]+)*")
_PIECE: Final = 1 << 20


class Tally:
    """What an archive holds so far."""

    def __init__(self) -> None:
        self.files = 0
        self.size = 0
        self._names = hashlib.sha256()

    def count(self, name: str, size: int) -> None:
        """Take a member in."""
        self.files += 1
        self.size += size
        self._names.update(f"{name}\n{size}\n".encode())

    def told(self) -> dict[str, object]:
        """As `CONTENTS` tells it."""
        return {
            "files": self.files,
            "bytes": self.size,
            "names_sha256": self._names.hexdigest(),
        }


class Writer:
    """An archive that is being written.

    Args:
        tar: where to.
    """

    def __init__(self, tar: tarfile.TarFile) -> None:
        self._tar = tar
        self.tally = Tally()

    def add_bytes(self, name: str, content: bytes) -> None:
        """Add a member that is in memory."""
        self._add(name, io.BytesIO(content), len(content))

    def add_file(self, name: str, path: Path) -> bool:
        """Add a file as it is now.

        Args:
            name: of the member.
            path: never followed where it is a symbolic link.

        Returns:
            False for one that went away meanwhile; it is left out.

        Raises:
            OSError: it cannot be read.
        """
        try:
            handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW)
        except FileNotFoundError:
            return False
        with os.fdopen(handle, "rb") as file:
            size = os.fstat(handle).st_size
            if size <= _PIECE:
                # Another process may be writing it anew, as SoftHSM does.
                self.add_bytes(name, file.read())
            else:
                self._add(name, file, size)
        return True

    def _add(self, name: str, content: IO[bytes], size: int) -> None:
        member = tarfile.TarInfo(name)
        member.size, member.mode = size, 0o600
        self._tar.addfile(member, content)
        self.tally.count(name, size)


@contextmanager
def writing(path: Path, recipients: list[str]) -> Iterator[Writer]:
    """Write an archive that only the holders of some keys can read.

    Args:
        path: of the new file, in a folder that is there.
        recipients: options of age(1): `--recipient KEY`, `--recipients-file FILE`.

    Raises:
        SettingsError: age is missing or refuses; nothing of the file is left.
        OSError: it cannot be written; nothing of it is left.
    """
    temporary = path.with_name(f"{NEW}{secrets.token_hex(8)}")
    handle = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        with os.fdopen(handle, "wb") as file:
            with _age(["--encrypt", *recipients], stdout=file) as age:
                assert age.stdin is not None  # noqa: S101 (it is a pipe)
                tar = tarfile.open(fileobj=age.stdin, mode="w|")  # noqa: SIM115 (closing it writes, which nobody may read any more)
                try:
                    yield Writer(tar)
                except BaseException:
                    _give_up(age, tar)
                    raise
                tar.close()
            os.fsync(file.fileno())
        temporary.replace(path)
    except BaseException:
        with contextlib.suppress(OSError):
            temporary.unlink()
        raise
    sync_folder(path.parent)


@contextmanager
def sending(
    take: Callable[[IO[bytes]], None], recipients: list[str]
) -> Iterator[Writer]:
    """Write an archive, as `writing` does, to who takes it as it is made.

    Args:
        take: runs in a thread, gets what reads the archive, and reads to its end; that
            it came to an end says nothing before the block has ended.
        recipients: options of age(1).

    Raises:
        SettingsError: age is missing or refuses.
        Exception: what `take` raises.
    """
    faults: list[BaseException] = []
    with _age(["--encrypt", *recipients]) as age:
        assert age.stdin is not None  # noqa: S101 (it is a pipe)

        def work() -> None:
            try:
                assert age.stdout is not None  # noqa: S101 (it is a pipe)
                take(age.stdout)
            except BaseException as exc:  # noqa: BLE001 (the other thread raises it)
                faults.append(exc)
                age.kill()

        # Who gives up does not wait for a link that is silent.
        thread = threading.Thread(target=work, daemon=True)
        thread.start()
        tar = tarfile.open(fileobj=age.stdin, mode="w|")  # noqa: SIM115 (closing it writes, which nobody may read any more)
        try:
            yield Writer(tar)
            tar.close()
            age.stdin.close()
            thread.join()
        except BaseException:
            _give_up(age, tar)
            if faults:
                raise faults[0] from None
            raise
        if faults:
            raise faults[0]


def reading(path: Path, identity: Path) -> Iterator[tuple[str, int, IO[bytes]]]:
    """Give each member's name, its bytes and what reads them, in order.

    What was given is to be believed when the iteration has ended, and not before:
    the end of the file says that nothing is missing.

    Args:
        path: of the archive.
        identity: file with the private key.

    Raises:
        SettingsError: age is missing, has no key for it, or it is damaged; a member
            is none that a backup has.
    """
    try:
        source = path.open("rb")
    except OSError as exc:
        msg = f"{path}: cannot be read ({exc.strerror})"
        raise SettingsError(msg) from exc
    with source, _age(["--decrypt", "--identity", str(identity)], stdin=source) as age:
        assert age.stdout is not None  # noqa: S101 (it is a pipe)
        try:
            with tarfile.open(fileobj=age.stdout, mode="r|") as tar:
                for member in tar:
                    content = tar.extractfile(member) if member.isreg() else None
                    if content is None or not _is_plain(member.name):
                        msg = f"{path}: {member.name!r} is nothing that a backup has"
                        raise SettingsError(msg)
                    yield member.name, member.size, content
            # Whoever closes a pipe ends age amid what it has left to write: tarfile
            # stops at the first empty block, which need not stand in the last record.
            while age.stdout.read(_PIECE):
                pass
        except tarfile.TarError as exc:
            # Why age gave no more is the better word, where it has one.
            _end(age)
            msg = f"{path}: is no backup ({exc})"
            raise SettingsError(msg) from exc


def _is_plain(name: str) -> bool:
    """Whether a name stays below where it is put."""
    parts = name.split("/")
    return _NAME.fullmatch(name) is not None and not {".", ".."} & set(parts)


@contextmanager
def _age(
    options: list[str],
    *,
    stdin: int | IO[bytes] = subprocess.PIPE,
    stdout: int | IO[bytes] = subprocess.PIPE,
) -> "Iterator[subprocess.Popen[bytes]]":
    """Run age(1) until its work is done.

    Raises:
        SettingsError: it is not installed, or it refuses.
        BrokenPipeError: it read no further, and ended well.
    """
    try:
        process = subprocess.Popen(  # noqa: S603 (no shell)
            [_AGE, *options], stdin=stdin, stdout=stdout, stderr=subprocess.PIPE
        )
    except FileNotFoundError as exc:
        msg = "age: is not installed; `apt-get install age`"
        raise SettingsError(msg) from exc
    with process:
        try:
            yield process
        except BrokenPipeError:
            # It gave up: it says why.
            _end(process)
            raise
        except BaseException:
            process.kill()
            _close(process)
            raise
        _end(process)


def _give_up(age: "subprocess.Popen[bytes]", tar: tarfile.TarFile) -> None:
    """End an archive in its midst, without waiting for age to read what is left."""
    if age.poll() is None:
        age.kill()
    with contextlib.suppress(OSError):
        assert tar.fileobj is not None  # noqa: S101 (it is open)
        tar.fileobj.close()


def _close(age: "subprocess.Popen[bytes]") -> None:
    for pipe in (age.stdin, age.stdout):
        if pipe is not None:
            with contextlib.suppress(BrokenPipeError):
                pipe.close()


def _end(age: "subprocess.Popen[bytes]") -> None:
    """Wait for its end.

    Raises:
        SettingsError: it refuses; in its words.
    """
    _close(age)
    told = age.stderr.read().decode(errors="replace") if age.stderr else ""
    if age.wait() != 0:
        lines = [line for line in told.splitlines() if "report unexpected" not in line]
        raise SettingsError("\n".join(lines) or "age: failed")


def copied(content: IO[bytes], into: IO[bytes]) -> int:
    """Copy a member's bytes; how many there were."""
    size = 0
    while piece := content.read(_PIECE):
        into.write(piece)
        size += len(piece)
    return size
