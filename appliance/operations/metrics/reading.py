"""What the roles handed over, read as the word of strangers.

A role that was taken over may write anything into its folder: it can lie about its own
figures, and that is all. Which role and which process a figure is of says the place of
its file; a file that is too large, is none, or holds what no role measures is left out,
and `rubrica_metrics_fault` says so, while the others are told as ever.
"""

import contextlib
import math
import os
import re
import stat
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from appliance.domain.errors import ApplianceError
from appliance.domain.strict_json import parse
from appliance.metrics.metrics import FAMILIES, Family
from appliance.metrics.metrics_file import EVERY_S, FORMAT

ROLES: Final = ("api", "embed", "admin", "signing", "chores", "sandbox")
"""Who hands figures over, each in a folder of that name."""
LATEST_S: Final = 4 * EVERY_S
"""Older than that a file is a dead process's, or one's that hangs."""
MOST_FILES: Final = 64
"""Processes of a role on a host; others are not looked at."""
FILE_BYTES: Final = 1_048_576
ROLE_BYTES: Final = 4_194_304
"""Longest file, and all of a role's: reading more would hold up all others' figures."""
MOST_SAMPLES: Final = 5_000
"""Of a role's processes together: what is told, Prometheus keeps."""
FOLDER: Final = "-"
"""In the place of a process's number: the role's folder, which may not be read."""
NUMBER: Final = re.compile(r"[1-9][0-9]{0,3}")
"""A process's, among its kind."""
_NAME: Final = re.compile(rf"({NUMBER.pattern})\.json")
_LABEL_LENGTH: Final = 120
_FLAGS: Final = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC

Labels = tuple[tuple[str, str], ...]


class BadFileError(Exception):
    """A file that tells nothing.

    Args:
        fault: one of `unreadable`, `too-large`, `malformed`, `format`.
    """

    def __init__(self, fault: str) -> None:
        super().__init__(fault)
        self.fault = fault


@dataclass(slots=True)
class Process:
    """What one process handed over."""

    role: str
    number: str
    """Among its kind, or `FOLDER`."""
    is_alive: bool = False
    samples: dict[tuple[str, Labels], float] = field(default_factory=dict)
    """By the sample's name and its labels; empty of a process that is not alive."""
    host: str = ""
    """As it says itself; empty where it says none: earlier versions did not."""
    dropped: int = 0
    """Samples that were left out: no role has them, or not so."""
    fault: str = ""
    """What its file is not, or nothing."""


def _sample_families() -> dict[str, tuple[Family, str]]:
    """By the name of a sample: its family, and `le` where it has that label too."""
    found: dict[str, tuple[Family, str]] = {}
    for family in FAMILIES.values():
        if family.kind == "counter":
            found[f"{family.name}_total"] = (family, "")
        elif family.kind == "histogram":
            found[f"{family.name}_bucket"] = (family, "le")
            found[f"{family.name}_sum"] = (family, "")
            found[f"{family.name}_count"] = (family, "")
        else:
            found[family.name] = (family, "")
    return found


SAMPLES: Final[Mapping[str, tuple[Family, str]]] = _sample_families()
"""Names that a sample may have, each with its family and its label beside that's."""


def read_all(folder: Path) -> list[Process]:
    """Every process that ever handed figures over since its folder was made.

    Args:
        folder: of all roles.
    """
    return [process for role in ROLES for process in _of_role(folder / role, role)]


def _of_role(folder: Path, role: str) -> Iterator[Process]:
    left, samples_left = ROLE_BYTES, MOST_SAMPLES
    try:
        descriptor = os.open(folder, _FLAGS | os.O_DIRECTORY)
    except FileNotFoundError:
        return
    except OSError:
        yield Process(role, FOLDER, fault="unreadable")
        return
    try:
        for number in _numbers(descriptor):
            process = Process(role, number)
            try:
                age_s, content = _content(descriptor, f"{number}.json", left)
                left -= len(content)
                process.is_alive = abs(age_s) <= LATEST_S
                if process.is_alive:
                    _take(process, content, samples_left)
                    samples_left -= len(process.samples)
            except BadFileError as exc:
                process.fault = exc.fault
            yield process
    finally:
        os.close(descriptor)


def _numbers(folder: int) -> list[str]:
    """Numbers of the processes of a folder, at most `MOST_FILES`."""
    found: list[int] = []
    with contextlib.suppress(OSError), os.scandir(folder) as entries:
        for looked, entry in enumerate(entries):
            if looked >= 4 * MOST_FILES:
                break
            if match := _NAME.fullmatch(entry.name):
                found.append(int(match[1]))
    return [str(number) for number in sorted(found)[:MOST_FILES]]


def _content(folder: int, name: str, left: int) -> tuple[float, bytes]:
    """How old a file is, in seconds, and what it holds.

    Raises:
        BadFileError: `unreadable`; `too-large`: of one, or of all of a role.
    """
    try:
        descriptor = os.open(name, _FLAGS, dir_fd=folder)
    except OSError as exc:
        fault = "unreadable"
        raise BadFileError(fault) from exc
    try:
        found = os.fstat(descriptor)
        most = min(FILE_BYTES, left)
        # A pipe, say, would have a reader wait.
        if not stat.S_ISREG(found.st_mode):
            fault = "unreadable"
            raise BadFileError(fault)
        # It may grow while it is read.
        content = b""
        while len(content) <= most and (part := os.read(descriptor, most + 1)):
            content += part
    except OSError as exc:
        fault = "unreadable"
        raise BadFileError(fault) from exc
    finally:
        os.close(descriptor)
    if len(content) > most:
        fault = "too-large"
        raise BadFileError(fault)
    return time.time() - found.st_mtime, content


def _take(process: Process, content: bytes, most: int = MOST_SAMPLES) -> None:
    """Take what a file holds, as far as it is what a role measures.

    Raises:
        BadFileError: `malformed`; `format`: of another version.
    """
    told = told_in(content, "samples")
    process.host = host_name(told.get("host"))
    take_samples(process, told["samples"], most)


def told_in(content: bytes, name: str) -> dict[str, Any]:
    """What a file or an answer holds, of this version and with a list in it.

    Args:
        content: of anybody's making.
        name: of the list.

    Raises:
        BadFileError: `malformed`; `format`: of another version.
    """
    try:
        told = parse(content)
    except ApplianceError as exc:
        fault = "malformed"
        raise BadFileError(fault) from exc
    if not isinstance(told, dict) or not isinstance(told.get(name), list):
        fault = "malformed"
        raise BadFileError(fault)
    if told.get("format") != FORMAT:
        fault = "format"
        raise BadFileError(fault)
    return told


def host_name(told: object) -> str:
    """The host that a process says it is of; empty where that is no name.

    Args:
        told: as it says.
    """
    return told if isinstance(told, str) and _is_label(told) else ""


def take_samples(process: Process, samples: Sequence[Any], most: int) -> None:
    """Take samples, as far as they are what the process's role measures.

    Args:
        process: whose they are; it counts those that are left out.
        samples: `[name, labels, value]` each, of anybody's making.
        most: of them.
    """
    process.dropped = max(0, len(samples) - most)
    for one in samples[:most]:
        key = _key(one, process.role)
        # Twice the same would have Prometheus refuse all that is told.
        if key is None or key in process.samples:
            process.dropped += 1
        else:
            process.samples[key] = float(one[2])


def _key(one: Any, role: str) -> tuple[str, Labels] | None:
    """A sample's name and labels, if that role has such a one."""
    match one:
        case [str() as name, dict() as labels, int() | float() as value]:
            family, more = SAMPLES.get(name, (None, ""))
        case _:
            return None
    if family is None or not family.is_of(role) or not _is_value(family, value):
        return None
    wanted = (*family.labels, more) if more else family.labels
    if labels.keys() != set(wanted) or not all(map(_is_label, labels.values())):
        return None
    if more and labels[more] not in _bounds(family):
        return None
    return name, tuple((each, labels[each]) for each in wanted)


def _is_value(family: Family, value: float) -> bool:
    """Whether it is a finite number; only a gauge may be below zero."""
    try:
        is_finite = not isinstance(value, bool) and math.isfinite(float(value))
    except OverflowError:
        return False
    return is_finite and (value >= 0 or family.kind == "gauge")


def _bounds(family: Family) -> set[str]:
    return {*map(repr, map(float, family.buckets)), "+Inf"}


def _is_label(text: object) -> bool:
    return isinstance(text, str) and len(text) <= _LABEL_LENGTH and text.isprintable()


def own(content: bytes, role: str) -> Process:
    """What this process itself measured.

    Args:
        content: as it would be handed over.
        role: of this process.
    """
    process = Process(role, "1", is_alive=True)
    _take(process, content)
    return process
