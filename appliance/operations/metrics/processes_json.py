"""What one host tells another of its processes' figures: `GET /metrics/processes`.

A host's word is a stranger's, as a file is (`appliance.operations.metrics.reading`): it
may lie about its own processes, but tells of no figure that no role has, nor of more
than its files may hold.
"""

import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from appliance.core.metrics_file import FORMAT
from appliance.domain.errors import ApplianceError
from appliance.domain.strict_json import parse
from appliance.domain.text.urls import read_address
from appliance.operations.metrics.reading import (
    MOST_FILES,
    MOST_SAMPLES,
    NUMBER,
    ROLES,
    BadFileError,
    Process,
    host_name,
    take_samples,
)

PATH: Final = "/metrics/processes"


def processes_json(processes: Iterable[Process]) -> bytes:
    """What a host tells another one of its processes.

    Args:
        processes: as they were read.
    """
    told = [
        {
            "role": each.role,
            "number": each.number,
            "host": each.host,
            "isAlive": each.is_alive,
            "dropped": each.dropped,
            "fault": each.fault,
            "samples": [
                [name, dict(labels), value]
                for (name, labels), value in each.samples.items()
            ],
        }
        for each in processes
    ]
    content = {"format": FORMAT, "processes": told}
    return json.dumps(content, separators=(",", ":")).encode()


def processes_from(body: bytes, address: str) -> list[Process]:
    """The processes that a host tells of, as far as they may be.

    Args:
        body: of its answer.
        address: of it, whose name is that of a process that says none.

    Raises:
        BadFileError: `malformed`; `format`: of another version.
    """
    try:
        told = parse(body)
    except ApplianceError as exc:
        fault = "malformed"
        raise BadFileError(fault) from exc
    match told:
        case {"format": int() as version, "processes": list()} if version != FORMAT:
            fault = "format"
            raise BadFileError(fault)
        case {"format": int(), "processes": list() as processes}:
            return _taken(processes, address)
        case _:
            fault = "malformed"
            raise BadFileError(fault)


def _taken(told: Sequence[Any], address: str) -> list[Process]:
    parts = read_address(address)
    name = (parts.hostname if parts else None) or address
    found: dict[tuple[str, str], Process] = {}
    files, samples = Counter[str](), Counter[str]()
    for one in told:
        match one:
            case {"role": str() as role, "number": str() as number, "samples": list()}:
                if role not in ROLES or not NUMBER.fullmatch(number):
                    continue
            case _:
                continue
        # As of files: one of each, and no more of a role than one host has.
        if (role, number) in found or files[role] == MOST_FILES:
            continue
        process = _process(one, name, MOST_SAMPLES - samples[role])
        found[role, number] = process
        files[role] += 1
        samples[role] += len(process.samples)
    return list(found.values())


def _process(one: Mapping[str, Any], name: str, most: int) -> Process:
    """One process, whose role and number are such."""
    process = Process(one["role"], one["number"], is_alive=one.get("isAlive") is True)
    process.host = host_name(one.get("host")) or name
    if isinstance(fault := one.get("fault"), str):
        process.fault = fault
    if process.is_alive:
        take_samples(process, one["samples"], most)
    if isinstance(dropped := one.get("dropped"), int):
        process.dropped += max(0, dropped)
    return process
