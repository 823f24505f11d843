"""A host's activation keys: made in time, published, opened with, and deleted.

Any signing worker of the host does it; the first one that finds an epoch
without a key makes it, and each makes sure that it stands published.

A key is published with two signatures: the worker identity's, made in the HSM, and the
host's own. The identity signs each epoch's key, once a minute and host. To sign the
host's key once a day instead would spare operations, and leave a signature in the
database that makes the PIN worthless against whoever copied the host's key.

A private half is deleted by time alone, whether HSM and database answer or not. What is
still sealed to it then is sealed again before (`seal_again`).

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
from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import Final

import structlog
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey

from appliance.domain.clock import Clock
from appliance.domain.errors import ApplianceError, ErrorCode, HsmUnavailableError
from appliance.domain.keys.host_statements import HostStatement
from appliance.domain.signing.activation import (
    ActivationFormat,
    ActivationKey,
    Seal,
    epoch_start,
    format_of,
    key_statement,
)
from appliance.domain.vocab import Environment
from appliance.keys.activation_format import PinnedFormat
from appliance.keys.activation_keys import PublishedKeys
from appliance.keys.key_encryption import open_seal, seal_to
from appliance.secrets.host_key import HostKey, read_host_key
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
NEW_KEY: Final = ".made"
"""How the names of the files of `worker.pki.new_keys` end, in this folder."""
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
        host_key: file of the host's own key, read for each new epoch.
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
        host_key: Path,
    ) -> None:
        self._folder = folder
        self._published = published
        self._session = session
        self._clock = clock
        self._host = host
        self._installation = installation
        self._pinned = pinned
        self._host_key = host_key
        self._offered: set[int] = set()
        self._forgotten: list[int] = []
        self._waits_for = ""
        """Why no key of the newest format is offered, as it was logged."""

    async def keep(self) -> None:
        """Publish the keys that are due.

        Raises:
            HsmUnavailableError: the HSM cannot sign for a new key now, or the host has
                no key of its own.
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
                await self._offer(epoch, oldest)
        self._offered &= wanted
        kept = _kept(now)
        if self._forgotten != kept:
            await self._published.forget_old(now)
            self._forgotten = kept

    async def _offer(self, epoch: int, oldest: ActivationFormat) -> None:
        """Make sure that the key of an epoch is there and published.

        Raises:
            HsmUnavailableError: as `keep`.
            ApplianceError: as `keep`.
        """
        host_key = None
        if format_of(epoch) > ActivationFormat.FIRST:
            host_key = await self._own_key(oldest)
            if host_key is None:
                return
        public = await asyncio.to_thread(self._folder.make, epoch)
        known = await self._published.find(self._host, epoch, public)
        if known is None or not self._bears(known, host_key):
            await self._published.publish(await self._signed(epoch, public, host_key))
            _log.info("activation.key_published", host=self._host, epoch=epoch)
        self._offered.add(epoch)

    async def _own_key(self, oldest: ActivationFormat) -> HostKey | None:
        """Return the host's key; None while keys of the first format do instead.

        Args:
            oldest: format that counts.

        Raises:
            HsmUnavailableError: there is none, and no earlier format counts.
        """
        waits_for, key = "", None
        try:
            key = await asyncio.to_thread(read_host_key, self._host_key)
        except SettingsError as exc:
            waits_for = str(exc)
        if key is None:
            waits_for = waits_for or f"{self._host_key}: is not there"
            if oldest > ActivationFormat.FIRST:
                msg = f"{waits_for}; rubrica hsm host-key"
                raise HsmUnavailableError(msg)
        elif oldest is ActivationFormat.FIRST and await self._published.earlier_peers(
            self._host, self._clock.now()
        ):
            # One of the release before on this host would claim what it cannot open.
            waits_for, key = "a worker of this host is of the release before", None
        if waits_for and waits_for != self._waits_for:
            _log.warning("activation.first_format_alone", reason=waits_for)
        self._waits_for = waits_for
        return key

    async def _signed(
        self, epoch: int, public: bytes, host_key: HostKey | None
    ) -> ActivationKey:
        """Return a key with the signatures that its format needs.

        Raises:
            HsmUnavailableError: the HSM cannot sign now.
        """
        if host_key is None:
            statement = key_statement(self._installation, self._host, epoch, public)
        else:
            unsigned = self._statement(epoch, public, host_key, "")
            statement = unsigned.by_identity()
        spki, signature = await self._session.identity_statement(statement)
        identity = hashlib.sha256(spki).hexdigest()
        key = ActivationKey(
            host=self._host,
            epoch=epoch,
            public=public,
            identity=identity,
            signature=signature,
            made=self._clock.now(),
        )
        if host_key is None:
            return key
        by_host = self._statement(epoch, public, host_key, identity).by_host()
        return replace(key, host_signature=host_key.sign(by_host))

    def _bears(self, key: ActivationKey, host_key: HostKey | None) -> bool:
        """Return whether a published key bears the host's present signature."""
        if host_key is None:
            return True
        by_host = self._statement(key.epoch, key.public, host_key, key.identity)
        # Ed25519 is deterministic: the same statement has the same signature.
        return key.host_signature == host_key.sign(by_host.by_host())

    def _statement(
        self, epoch: int, public: bytes, host_key: HostKey, identity: str
    ) -> HostStatement:
        return HostStatement(
            self._installation, self._host, host_key.public, epoch, public, identity
        )

    @property
    def goes_next(self) -> int:
        """Epoch whose private half is deleted at the end of the present one."""
        return ActivationFormat.WHOLE.oldest_kept(self._clock.now())

    def seal_again(self, seal: Seal, info: bytes) -> Seal:
        """Open a seal whose private half goes next, and seal to the present key.

        Args:
            seal: to this host.
            info: what it is bound to, by what stands recorded.

        Raises:
            ActivationInvalidError: it does not open: something was altered.
            ApplianceError: `ACTIVATION_EXPIRED`: its private half is gone already;
                `STORE_UNAVAILABLE`: the folder.
        """
        unlock = self.unlock(seal, info)
        epoch = ActivationFormat.WHOLE.epoch_at(self._clock.now())
        return Seal(self._host, epoch, seal_to(self._folder.make(epoch), unlock, info))

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


class KeySweep:
    """Deletes private halves whose time is over; needs neither HSM nor record.

    Args:
        folder: of the private halves.
        clock: the time.
        pinned: the oldest format that counts here.
    """

    def __init__(
        self, folder: "ActivationFolder", clock: Clock, pinned: PinnedFormat
    ) -> None:
        self._folder = folder
        self._clock = clock
        self._pinned = pinned
        self._swept: list[int] = []

    async def run(self) -> None:
        """Delete what is over by now; looks at the folder once an epoch.

        Raises:
            ApplianceError: `STORE_UNAVAILABLE`: the folder.
        """
        now = self._clock.now()
        try:
            oldest = self._pinned.oldest
        except ApplianceError:
            # Nobody knows which formats count; that time is over is known.
            oldest = ActivationFormat.FIRST
        kept = [oldest, *_kept(now)]
        if self._swept != kept:
            await asyncio.to_thread(self._folder.sweep, now, oldest)
            self._swept = kept


def _kept(now: datetime) -> list[int]:
    """Return the oldest epoch of each format whose private half is kept."""
    return [kind.oldest_kept(now) for kind in ActivationFormat]


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
                if name in _OTHER_FILES or name.endswith(NEW_KEY):
                    continue
                if not _is_kept(name, now, oldest):
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
    # One that is far ahead was made by a clock that was wrong. Its minute would keep it
    # for as long as the clock was ahead.
    newest = kind.epoch_at(now) + kind.epochs_kept
    return kind >= oldest and kind.oldest_kept(now) <= int(number) <= newest


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
