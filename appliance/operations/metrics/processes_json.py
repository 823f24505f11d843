"""What one host tells another of its processes' figures: `GET /metrics/processes`.

A host's word is a stranger's, as a file is (`appliance.operations.metrics.reading`): it
may lie about its own processes, but tells of no figure that no role has, nor of more
than its files may hold.
"""

import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from appliance.domain.text.urls import read_address
from appliance.metrics.metrics_file import FORMAT
from appliance.operations.metrics.reading import (
    FOLDER,
    MOST_FILES,
    MOST_SAMPLES,
    NUMBER,
    ROLES,
    Process,
    host_name,
    take_samples,
    told_in,
)

PATH: Final = "/metrics/processes"
ROLE_BYTES: Final = 524_288
"""Most that is told of a role: one that was taken over leaves the others their room."""


def processes_json(processes: Iterable[Process], host: str) -> bytes:
    """What a host tells another one of its processes.

    Args:
        processes: as they were read.
        host: its name, which is that of a process that says none.
    """
    left = Counter(dict.fromkeys(ROLES, ROLE_BYTES))
    told = []
    for each in processes:
        if each.role not in ROLES:
            continue
        one = _told(each)
        if len(one) > left[each.role]:
            one = _told(
                Process(
                    each.role,
                    each.number,
                    each.is_alive,
                    host=each.host,
                    fault="too-large",
                )
            )
        left[each.role] -= len(one)
        told.append(one)
    head = _json({"format": FORMAT, "host": host})
    return head[:-1] + b',"processes":[' + b",".join(told) + b"]}"


def _told(process: Process) -> bytes:
    return _json(
        {
            "role": process.role,
            "number": process.number,
            "host": process.host,
            "isAlive": process.is_alive,
            "dropped": process.dropped,
            "fault": process.fault,
            "samples": [
                [name, dict(labels), value]
                for (name, labels), value in process.samples.items()
            ],
        }
    )


def _json(value: object) -> bytes:
    # As it is: escaped, a label may become three times as long as its file had it.
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False).encode()


def processes_from(body: bytes, address: str) -> list[Process]:
    """The processes that a host tells of, as far as they may be.

    Args:
        body: of its answer.
        address: of it, whose name is the host's where it says none.

    Raises:
        BadFileError: `malformed`; `format`: of another version.
    """
    told = told_in(body, "processes")
    parts = read_address(address)
    named = _place(told.get("host")) or (parts.hostname if parts else None)
    return _taken(told["processes"], named or address)


def _place(told: object) -> str:
    """A host's name as it stands in a slot; empty where it is none."""
    name = host_name(told).strip()
    return "" if "/" in name else name


def _taken(told: Sequence[Any], host: str) -> list[Process]:
    found: dict[tuple[str, str], Process] = {}
    files, samples = Counter[str](), Counter[str]()
    for one in told:
        match one:
            case {"role": str() as role, "number": str() as number, "samples": list()}:
                if role not in ROLES or not (
                    NUMBER.fullmatch(number) or number == FOLDER
                ):
                    continue
            case _:
                continue
        # As of files: one of each, and no more of a role than one host has.
        if (role, number) in found or files[role] == MOST_FILES:
            continue
        process = _process(one, host, MOST_SAMPLES - samples[role])
        found[role, number] = process
        files[role] += 1
        samples[role] += len(process.samples)
    return list(found.values())


def _process(one: Mapping[str, Any], host: str, most: int) -> Process:
    """One process, whose role and number are such."""
    process = Process(one["role"], one["number"])
    process.host = _place(one.get("host")) or host
    if isinstance(fault := one.get("fault"), str):
        process.fault = fault
    process.is_alive = one.get("isAlive") is True and process.number != FOLDER
    if process.is_alive:
        take_samples(process, one["samples"], most)
    if isinstance(dropped := one.get("dropped"), int):
        process.dropped += max(0, dropped)
    return process
