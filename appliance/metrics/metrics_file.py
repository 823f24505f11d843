"""A process's figures, handed over through a file in a folder of its role's own.

    async with handing_over(settings.metrics_dir, "api", 1):
        ...

Most roles may open no port, and the sandbox has no network: each writes what it
measured every few seconds, whole, to `<folder>/<role>/<number>.json`, and `rubrica
serve metrics` reads all of them. prometheus-client's own mode for several processes
shares memory-mapped files instead: its files belong to one user, are numbered by
process id and stay for ever after each restart, it knows neither roles nor values that
are looked up (pools), and whoever reads them trusts a binary format of all writers.
Here the age of the file tells that its process is alive, and its counters begin anew
with the process, as Prometheus expects of a target. The time of the last damaged
document alone is taken over from the process before: it counts for a day, and a restart
mends no document.
"""

import asyncio
import contextlib
import json
import math
import os
import socket
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final

import structlog

from appliance.metrics import metrics

EVERY_S: Final = 5.0
"""Time between two writings."""
FORMAT: Final = 1
"""Of the file; who knows another one takes nothing of it."""
_FOLDER: Final = 0o750
_FILE: Final = 0o640
_EARLIER_BYTES: Final = 1_048_576
"""Of an earlier process's file: a larger one is none of ours."""
_DAMAGED: Final = "rubrica_document_damaged_timestamp_seconds"
_log = structlog.get_logger(__name__)


class MetricsFile:
    """The file of one process.

    Args:
        folder: of all roles.
        role: whose folder in it is written to; made where it is not there.
        number: of the process among its kind, from 1.
    """

    def __init__(self, folder: Path, role: str, number: int) -> None:
        self._role = role
        self._path = folder / role
        self._name = f"{number}.json"
        self._descriptor: int | None = None
        self._failed = False

    def open(self, owner: int | None = None) -> None:
        """Open the folder, so that it can be written to from anywhere.

        Args:
            owner: whom it shall belong to: the user that this process, as root now,
                is about to become.

        Raises:
            OSError: it is not there, and cannot be made.
        """
        with contextlib.suppress(FileExistsError):
            # The group is whose the folder above says: the metrics role's.
            self._path.mkdir(_FOLDER, parents=True)
        flags = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
        self._descriptor = os.open(self._path, flags)
        if owner is not None:
            os.fchown(self._descriptor, owner, -1)

    def write(self) -> None:
        """Write what the process measured; where it cannot, say so once."""
        try:
            if self._descriptor is None:
                self.open()
            self._replace(snapshot(self._role))
        except OSError as exc:
            # The folder may be made anew, by whoever cleans /run.
            self.close()
            if not self._failed:
                _log.warning(
                    "metrics.not_written", path=str(self._path), cause=exc.strerror
                )
            self._failed = True
        else:
            self._failed = False

    def take_over(self) -> None:
        """Go on with the time of the last damaged document of the process before.

        A file that is absent, unreadable or malformed changes nothing.
        """
        found = _damaged_at(self._path / self._name)
        own = metrics.REGISTRY.get_sample_value(_DAMAGED) or 0.0
        # A time ahead of this clock would keep the alert up for longer than a day.
        if 0 < found <= time.time() and not own >= found:
            metrics.DOCUMENT_DAMAGED.set(found)

    def _replace(self, content: bytes) -> None:
        """Put a new file in the old one's place; a reader sees one or the other.

        Raises:
            OSError: it cannot be written.
        """
        folder, new = self._descriptor, f".{self._name}"
        flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC
        descriptor = os.open(new, flags, _FILE, dir_fd=folder)
        try:
            left = memoryview(content)
            while left:
                left = left[os.write(descriptor, left) :]
        finally:
            os.close(descriptor)
        os.rename(new, self._name, src_dir_fd=folder, dst_dir_fd=folder)

    def close(self) -> None:
        """Let go of the folder."""
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None


def _damaged_at(path: Path) -> float:
    """Return when a process last met a damaged document, by its file; else 0."""
    try:
        # A pipe in its place would block whoever opens it.
        flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
        with open(os.open(path, flags), "rb") as file:  # noqa: PTH123
            content = file.read(_EARLIER_BYTES + 1)
        if len(content) > _EARLIER_BYTES:
            return 0.0
        for name, labels, value in json.loads(content)["samples"]:
            if name == _DAMAGED and not labels:
                return float(value)
    except (OSError, ValueError, TypeError, LookupError, RecursionError):
        return 0.0
    return 0.0


def snapshot(role: str) -> bytes:
    """All that this process measured, as JSON: `[name, labels, value]` each.

    Beside it stands its host, by the name that its signs of life have.

    Args:
        role: of the process; what is another's to measure is left out.
    """
    samples = [
        [one.name, one.labels, one.value]
        for family in metrics.REGISTRY.collect()
        if metrics.FAMILIES[family.name].is_of(role)
        for one in family.samples
        # `_created` is of a format that we do not speak.
        if not one.name.endswith("_created") and math.isfinite(one.value)
    ]
    # Containers have a host name each, and may share the folder of figures.
    told = {"format": FORMAT, "samples": samples, "host": socket.gethostname()}
    return json.dumps(told, separators=(",", ":")).encode()


@asynccontextmanager
async def handing_over(
    folder: Path, role: str, number: int, every_s: float = EVERY_S
) -> AsyncIterator[None]:
    """Write the process's file now and then, for as long as its event loop turns.

    At the end the file stays: that its process is gone is worth knowing too.

    Args:
        folder: of all roles.
        role: of this process.
        number: among its kind, from 1.
        every_s: time between two writings, in seconds.
    """
    file = MetricsFile(folder, role, number)
    file.take_over()
    writing = asyncio.create_task(_write(file, every_s), name="metrics")
    try:
        yield
    finally:
        writing.cancel()
        await asyncio.wait({writing})
        file.close()


async def _write(file: MetricsFile, every_s: float) -> None:
    while True:
        file.write()
        before = time.monotonic()
        await asyncio.sleep(every_s)
        metrics.LOOP_LAG.set(max(0.0, time.monotonic() - before - every_s))
