"""A host's activation keys: made in time, published, opened with, and let go.

Any signing worker of the host does it; the first one that finds an epoch
without a key makes it, and each makes sure that it stands published.

The private halves are files that no backup holds: one an epoch, shared by the signing
workers of the host, in a folder of their user alone and in memory only. It survives a
killed process, not a reboot.

Source: design §4 "Activation keys".
"""

import asyncio
import contextlib
import errno
import fcntl
import hashlib
import os
import re
import stat
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from datetime import datetime, timedelta
from pathlib import Path
from typing import Final

import structlog
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey

from appliance.domain.activation import (
    ActivationFormat,
    ActivationKey,
    Seal,
    epoch_start,
    format_of,
    key_statement,
)
from appliance.domain.clock import Clock
from appliance.domain.errors import ApplianceError, ErrorCode
from appliance.domain.vocab import Environment
from appliance.keys.activation_format import PinnedFormat
from appliance.keys.activation_keys import PublishedKeys
from appliance.keys.key_encryption import open_seal
from appliance.settings import SettingsError
from worker.hsm.session import HsmSession

_log = structlog.get_logger(__name__)
_AHEAD: Final = timedelta(seconds=60)
"""How long before an epoch its key is published, so that none begins without."""
_IN_MEMORY: Final = frozenset({"tmpfs", "ramfs"})
_MOUNTS: Final = Path("/proc/self/mountinfo")
_OCTAL: Final = re.compile(r"\\([0-7]{3})")
_OTHERS: Final = 0o077
_LOCK: Final = "lock"
JOURNAL: Final = "journal"
"""Name of the file of `worker.signing.consent_journal` in this folder."""
_SUFFIX: Final = ".key"
_OTHER_FILES: Final = frozenset({_LOCK, JOURNAL})


class ActivationKeys:
    """The keys that fronts seal to on this host.

    Args:
        folder: of the private halves.
        published: of the public ones.
        session: signs that they are this host's.
        clock: the time.
        host: whose they are.
        installation: the setting of that name.
        pinned: the oldest format that counts here.
    """

    def __init__(
        self,
        folder: "ActivationFolder",
        published: PublishedKeys,
        session: HsmSession,
        clock: Clock,
        host: str,
        installation: str,
        pinned: PinnedFormat,
    ) -> None:
        self._folder = folder
        self._published = published
        self._session = session
        self._clock = clock
        self._host = host
        self._installation = installation
        self._pinned = pinned
        self._offered: set[int] = set()
        self._swept: list[int] = []

    async def keep(self) -> None:
        """Have the keys that are due, and none that are over.

        Raises:
            HsmUnavailableError: the HSM cannot sign for a new key now.
            ApplianceError: `STORE_UNAVAILABLE`: the record, or the folder.
        """
        now = self._clock.now()
        oldest = self._pinned.oldest
        wanted = set()
        for kind in ActivationFormat:
            present = kind.epoch_at(now)
            if kind < oldest:
                continue
            wanted.add(present)
            if epoch_start(present + 1) - now <= _AHEAD:
                wanted.add(present + 1)
        for epoch in sorted(wanted):
            if epoch not in self._offered or not self._folder.has(epoch):
                await self._offer(epoch)
        self._offered &= wanted
        kept = [kind.oldest_kept(now) for kind in ActivationFormat]
        if self._swept != kept:
            await asyncio.to_thread(self._folder.sweep, now, oldest)
            await self._published.forget_old(now)
            self._swept = kept

    async def _offer(self, epoch: int) -> None:
        """Make sure that the key of an epoch is there and published."""
        public = await asyncio.to_thread(self._folder.make, epoch)
        if not await self._published.has(self._host, epoch, public):
            statement = key_statement(self._installation, self._host, epoch, public)
            identity, signature = await self._session.identity_statement(statement)
            key = ActivationKey(
                host=self._host,
                epoch=epoch,
                public=public,
                identity=hashlib.sha256(identity).hexdigest(),
                signature=signature,
                made=self._clock.now(),
            )
            await self._published.publish(key)
            _log.info("activation.key_published", host=self._host, epoch=epoch)
        self._offered.add(epoch)

    def unlock(
        self,
        seal: Seal | None,
        info: bytes,
        begin: Callable[[], object] = lambda: None,
    ) -> bytes:
        """Open a seal: the unlock key, 32 bytes.

        Args:
            seal: what was sealed to this host, if anything was.
            info: what it is bound to, by what stands recorded.
            begin: called before it is opened, where its private half is there; what
                it raises keeps the seal shut.

        Raises:
            ActivationInvalidError: it does not open: something was altered.
            ApplianceError: `ACTIVATION_EXPIRED`: its private half is gone, with
                its epoch or with a reboot, or its format counts no more.
        """
        if seal is None or seal.format < self._pinned.oldest:
            raise ApplianceError(ErrorCode.ACTIVATION_EXPIRED)
        private = self._folder.private(seal.epoch)
        if private is None:
            raise ApplianceError(ErrorCode.ACTIVATION_EXPIRED)
        begin()
        return open_seal(private, seal.sealed, info)


class ActivationFolder:
    """A folder of private keys, one an epoch.

    Whoever may rename what stands beside it could put another folder in its place:
    it is opened anew for each use, looked at, and its files found from there.

    Args:
        path: of the folder; see `open_folder`.
    """

    def __init__(self, path: Path) -> None:
        self._path = path

    def has(self, epoch: int) -> bool:
        """Whether the key of an epoch is there."""
        return self.private(epoch) is not None

    def make(self, epoch: int) -> bytes:
        """The public half of an epoch's key, made now unless it is there.

        Raises:
            ApplianceError: `STORE_UNAVAILABLE`: the folder cannot be written.
        """
        with self._locked() as folder:
            private = _read(folder, epoch)
            if private is None:
                private = X25519PrivateKey.generate().private_bytes_raw()
                _write(folder, epoch, private)
        key = X25519PrivateKey.from_private_bytes(private)
        return key.public_key().public_bytes_raw()

    def private(self, epoch: int) -> bytes | None:
        """The private half of an epoch's key, 32 bytes; None once it is gone.

        Raises:
            ApplianceError: `STORE_UNAVAILABLE`: another folder stands in its place.
        """
        try:
            with _opened(self._path) as folder:
                return _read(folder, epoch)
        except FileNotFoundError:
            return None
        except OSError as exc:
            raise self._failed(exc) from exc

    def sweep(self, now: datetime, oldest: ActivationFormat) -> None:
        """Delete keys whose epochs are over, and what a killed write left.

        Args:
            now: the time.
            oldest: format that counts; no key of an earlier one is kept.

        Raises:
            ApplianceError: `STORE_UNAVAILABLE`: the folder cannot be read.
        """
        with self._locked() as folder:
            for name in os.listdir(folder):  # noqa: PTH208 (of a descriptor)
                if name not in _OTHER_FILES and not _is_kept(name, now, oldest):
                    os.unlink(name, dir_fd=folder)

    def locked(self) -> AbstractContextManager[int]:
        """Keep the host's other workers out of it, as `_locked`."""
        return self._locked()

    @contextmanager
    def _locked(self) -> Iterator[int]:
        """Keep the host's other workers out; the lock ends with its holder.

        Returns:
            The folder's descriptor.

        Raises:
            ApplianceError: `STORE_UNAVAILABLE`: the folder is full, gone, or
                another one stands in its place.
        """
        flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW
        try:
            with _opened(self._path) as folder:
                lock = os.open(_LOCK, flags, 0o600, dir_fd=folder)
                try:
                    fcntl.flock(lock, fcntl.LOCK_EX)
                    yield folder
                finally:
                    os.close(lock)
        except OSError as exc:
            raise self._failed(exc) from exc

    def _failed(self, exc: OSError) -> ApplianceError:
        error = exc.strerror or ""
        _log.warning("activation.folder_failed", path=str(self._path), error=error)
        return ApplianceError(ErrorCode.STORE_UNAVAILABLE)


@contextmanager
def _opened(path: Path) -> Iterator[int]:
    """A folder's descriptor, if it is one of this user's and closed to others.

    Raises:
        OSError: it is not.
    """
    folder = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        found = os.fstat(folder)
        if found.st_uid != os.geteuid() or found.st_mode & _OTHERS:
            raise PermissionError(errno.EPERM, "is another's, or open to others")
        yield folder
    finally:
        os.close(folder)


def _name(epoch: int) -> str:
    return f"{epoch}{_SUFFIX}"


def _is_kept(name: str, now: datetime, oldest: ActivationFormat) -> bool:
    """Whether a file is a key that may still be needed."""
    number = name.removesuffix(_SUFFIX)
    if not number.isdigit():
        return False
    kind = format_of(int(number))
    return kind >= oldest and int(number) >= kind.oldest_kept(now)


def _read(folder: int, epoch: int) -> bytes | None:
    """A key, 32 bytes; None where there is none."""
    flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC
    try:
        handle = os.open(_name(epoch), flags, dir_fd=folder)
    except FileNotFoundError:
        return None
    with os.fdopen(handle, "rb") as file:
        return file.read()


def _write(folder: int, epoch: int, private: bytes) -> None:
    """Write a key whole or not at all; nothing here is to outlive the memory."""
    new = f".{epoch}.new"
    with contextlib.suppress(FileNotFoundError):
        os.unlink(new, dir_fd=folder)
    handle = os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600, dir_fd=folder)
    with os.fdopen(handle, "wb") as file:
        file.write(private)
    os.rename(new, _name(epoch), src_dir_fd=folder, dst_dir_fd=folder)


def open_folder(path: Path, environment: Environment) -> ActivationFolder:
    """Make the folder where it is missing, and make sure that it is ours and in memory.

    Args:
        path: by the settings.
        environment: in PROD a folder on a disk is refused, elsewhere warned about.

    Raises:
        SettingsError: it cannot be made, is another's, open to others, or on a disk.
    """
    try:
        path.mkdir(mode=0o700, parents=True, exist_ok=True)
        found = path.lstat()
    except OSError as exc:
        msg = f"{path}: cannot be made ({exc.strerror}); set hsm.activation_dir"
        raise SettingsError(msg) from exc
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.geteuid():
        # Whoever made it first in a folder of everybody's could read what is in it.
        msg = f"{path}: is not a folder of this user; set hsm.activation_dir"
        raise SettingsError(msg)
    if found.st_mode & _OTHERS:
        msg = f"{path}: others may enter it; set its mode to 0700"
        raise SettingsError(msg)
    kind = filesystem_of(path)
    if kind not in _IN_MEMORY:
        msg = f"{path}: is on {kind}, not on a tmpfs; set hsm.activation_dir"
        if environment is Environment.PROD:
            raise SettingsError(msg)
        _log.warning("activation.folder_on_disk", path=str(path), filesystem=kind)
    return ActivationFolder(path)


def filesystem_of(path: Path, mounts: Path = _MOUNTS) -> str:
    """Kind of the file system that a path is on, `unknown` where nothing says so.

    Args:
        path: of something that exists.
        mounts: a table in the form of `/proc/self/mountinfo` (proc(5)).
    """
    wanted = str(path.resolve())
    best, kind = "", "unknown"
    for line in mounts.read_text("utf-8", "surrogateescape").splitlines():
        left, _, right = line.partition(" - ")
        point = _OCTAL.sub(lambda code: chr(int(code[1], 8)), left.split()[4])
        inside = wanted == point or wanted.startswith(point.rstrip("/") + "/")
        # Of two mounts on one point the later one is seen.
        if inside and len(point) >= len(best):
            best, kind = point, right.split()[0]
    return kind
