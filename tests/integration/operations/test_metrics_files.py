"""What roles hand over, and what is made of what they may not be believed."""

import asyncio
import json
import math
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from prometheus_client.parser import text_string_to_metric_families

from appliance.admission.fair_queue import FairLimits, FairQueue
from appliance.admission.work_owner import WorkOwner
from appliance.domain.errors import ApplianceError
from appliance.metrics import metrics
from appliance.metrics.metrics_file import FORMAT, MetricsFile, handing_over
from appliance.operations.metrics.exposition import exposition
from appliance.operations.metrics.reading import FILE_BYTES, LATEST_S, read_all

Sample = tuple[str, dict[str, str]]
BUILD: Sample = ("rubrica_build_info", {"version": "1.2.3"})


def told(folder: Path) -> dict[tuple[str, str, str], list[tuple[Any, float]]]:
    """What Prometheus reads: by name, role and number the other labels and values."""
    found: dict[tuple[str, str, str], list[tuple[Any, float]]] = {}
    text = exposition(read_all(folder)).decode()
    for family in text_string_to_metric_families(text):
        for one in family.samples:
            labels = dict(one.labels)
            key = (one.name, labels.pop("role"), labels.pop("number"))
            found.setdefault(key, []).append((labels, one.value))
    return found


def hand_over(folder: Path, role: str, *samples: object, number: int = 1) -> Path:
    """Write what a role might."""
    path = folder / role / f"{number}.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps({"format": FORMAT, "samples": samples}))
    return path


def good(folder: Path) -> None:
    """A neighbour whose figures are right."""
    hand_over(folder, "embed", [*BUILD, 1])


def neighbour_is_told(folder: Path) -> bool:
    """Whether that one's figures came through."""
    key = ("rubrica_build_info", "embed", "1")
    return told(folder).get(key) == [({"version": "1.2.3"}, 1.0)]


async def test_process_hands_over_and_is_told(tmp_path: Path) -> None:
    """With its role and number; private to it and to the folder's group."""
    metrics.HTTP_REQUESTS.labels("/solicitudes", "GET", "2xx").inc()
    async with handing_over(tmp_path, "api", 2):
        # It writes as soon as it has its turn.
        await asyncio.sleep(0)
        found = told(tmp_path)

    requests = found["rubrica_http_requests_total", "api", "2"]
    labels = {"route": "/solicitudes", "method": "GET", "status": "2xx"}
    assert any(one == labels and value >= 1 for one, value in requests)
    assert found["rubrica_role_up", "api", "2"] == [({}, 1.0)]
    assert (tmp_path / "api").stat().st_mode & 0o007 == 0
    assert (tmp_path / "api/2.json").stat().st_mode & 0o007 == 0


def test_role_tells_nothing_of_what_others_measure(tmp_path: Path) -> None:
    """A face has no HSM; and what nobody knows yet is not told as 0."""
    MetricsFile(tmp_path, "api", 1).write()
    MetricsFile(tmp_path, "chores", 1).write()
    metrics.BELL_CONNECTED.set(0)
    MetricsFile(tmp_path, "signing", 1).write()
    names = {(name, role) for name, role, _ in told(tmp_path)}
    assert ("rubrica_worker_in_hand", "api") not in names
    assert ("rubrica_redis_connected", "chores") not in names
    assert ("rubrica_redis_connected", "signing") in names
    assert ("rubrica_ocsp_first_next_update_timestamp_seconds", "chores") not in names


def test_dead_process_is_down_and_tells_nothing(tmp_path: Path) -> None:
    """RubricaRoleDown: its last figures are not those of now."""
    path = hand_over(tmp_path, "signing", [*BUILD, 1], number=2)
    good(tmp_path)
    old = time.time() - LATEST_S - 1
    os.utime(path, (old, old))
    found = told(tmp_path)
    assert found["rubrica_role_up", "signing", "2"] == [({}, 0.0)]
    assert ("rubrica_build_info", "signing", "2") not in found
    assert neighbour_is_told(tmp_path)


def test_process_begins_anew_where_its_folder_went(tmp_path: Path) -> None:
    """Whoever cleans /run ends no role's figures for good."""
    file = MetricsFile(tmp_path, "api", 1)
    file.write()
    (tmp_path / "api/1.json").unlink()
    (tmp_path / "api").rmdir()
    file.write()
    file.write()
    assert told(tmp_path)["rubrica_role_up", "api", "1"] == [({}, 1.0)]


DAMAGED = "rubrica_document_damaged_timestamp_seconds"


async def _began(folder: Path) -> float | None:
    """Start a process's figures; when they say that a document was damaged."""
    metrics.DOCUMENT_DAMAGED.set(math.nan)
    async with handing_over(folder, "api", 1):
        return metrics.REGISTRY.get_sample_value(DAMAGED)


async def test_damaged_document_outlives_its_process(tmp_path: Path) -> None:
    """A restart mends no document: health and alerts go on saying it."""
    met = time.time() - 60
    hand_over(tmp_path, "api", [*BUILD, 1], [DAMAGED, {}, met])

    assert await _began(tmp_path) == met


@pytest.mark.parametrize(
    "sample",
    [
        [DAMAGED, {}, 0],
        [DAMAGED, {}, -1],
        [DAMAGED, {}, 1e300],
        [DAMAGED, {}, math.nan],
        [DAMAGED, {}, math.inf],
        [DAMAGED, {}, "yesterday"],
        [DAMAGED, {}, None],
        [DAMAGED, {"role": "signing"}, 1],
        [DAMAGED],
        7,
    ],
)
async def test_nonsense_of_an_earlier_process_is_not_taken_over(
    tmp_path: Path, sample: object
) -> None:
    """Nor does it keep the process from starting."""
    hand_over(tmp_path, "api", sample)

    found = await _began(tmp_path)

    assert found is not None
    assert math.isnan(found)


def _pipe(path: Path) -> None:
    path.unlink()
    os.mkfifo(path)


def _link(path: Path) -> None:
    path.unlink()
    path.symlink_to("/dev/zero")


def _large(path: Path) -> None:
    with path.open("r+b") as file:
        file.truncate(FILE_BYTES + 1)


@pytest.mark.parametrize(
    ("spoil", "fault"),
    [
        (_pipe, "unreadable"),
        (_link, "unreadable"),
        (_large, "too-large"),
        (lambda path: path.write_bytes(b"\0\xff" * 999), "malformed"),
        (lambda path: path.write_text("[" * 100_000), "malformed"),
        (lambda path: path.write_text('{"format":1,"samples":{}}'), "malformed"),
        (lambda path: path.write_text('{"format":2,"samples":[]}'), "format"),
        (lambda path: path.write_text('{"format":1,"samples":[NaN]}'), "malformed"),
        (lambda path: path.write_text("9" * 100_000), "malformed"),
    ],
)
def test_garbage_is_said_and_breaks_nothing(
    tmp_path: Path, spoil: Callable[[Path], object], fault: str
) -> None:
    """RubricaFiguresRefused: which process's file it is; the others' come through."""
    good(tmp_path)
    spoil(hand_over(tmp_path, "api", [*BUILD, 1]))
    found = told(tmp_path)
    assert found["rubrica_metrics_fault", "api", "1"] == [({"fault": fault}, 1.0)]
    assert ("rubrica_build_info", "api", "1") not in found
    assert neighbour_is_told(tmp_path)


REQUESTS = "rubrica_http_requests_total"
ROUTE = {"route": "/x", "method": "GET", "status": "2xx"}
BUCKET = "rubrica_http_request_seconds_bucket"


@pytest.mark.parametrize(
    "sample",
    [
        "no sample",
        [*BUILD],
        [*BUILD, 1, 2],
        [*BUILD, "1"],
        [*BUILD, True],
        [*BUILD, 10**4000],
        ["rubrica_build_info", {}, 1],
        ["rubrica_build_info", {"version": "1", "role": "signing"}, 1],
        ["rubrica_build_info", {"version": 1}, 1],
        ["rubrica_build_info", {"version": "x" * 1000}, 1],
        ["rubrica_build_info", {"version": "1\n2"}, 1],
        ["rubrica_role_up", {"role": "signing", "number": "1"}, 0],
        ["rubrica_queue_length", {"queue": "activations"}, 9],
        ["up", {}, 0],
        [REQUESTS, ROUTE, -1],
        ["rubrica_http_requests", ROUTE, 1],
        [BUCKET, {"route": "/x"}, 1],
        [BUCKET, {"route": "/x", "le": "0.123"}, 1],
    ],
)
def test_sample_that_no_role_has_is_left_out(tmp_path: Path, sample: object) -> None:
    """Counted as dropped; what else the file holds is told."""
    hand_over(tmp_path, "api", sample, [REQUESTS, ROUTE, 3])
    found = told(tmp_path)
    names = {name for name, role, _ in found if role == "api"}
    assert names == {REQUESTS, "rubrica_role_up", "rubrica_metrics_dropped_samples"}
    assert found[REQUESTS, "api", "1"] == [(ROUTE, 3.0)]
    assert found["rubrica_metrics_dropped_samples", "api", "1"] == [({}, 1.0)]


def test_a_sample_twice_and_too_many_are_left_out(tmp_path: Path) -> None:
    """Prometheus would refuse the whole answer for one that stands there twice."""
    routes = [[REQUESTS, {**ROUTE, "route": f"/{n}"}, 1] for n in range(6_000)]
    hand_over(tmp_path, "api", [REQUESTS, ROUTE, 3], [REQUESTS, ROUTE, 4], *routes)
    found = told(tmp_path)
    assert len(found[REQUESTS, "api", "1"]) == 4_999
    assert found["rubrica_metrics_dropped_samples", "api", "1"] == [({}, 1_003.0)]


def test_files_of_a_role_are_bounded_together(tmp_path: Path) -> None:
    """Many large ones cost no more than a few, and say so."""
    good(tmp_path)
    for number in range(1, 101):
        _large(hand_over(tmp_path, "api", number=number))
        os.truncate(tmp_path / f"api/{number}.json", FILE_BYTES)
    found = told(tmp_path)
    faults = [
        labels["fault"]
        for (name, _, _), told_of in found.items()
        if name == "rubrica_metrics_fault"
        for labels, _ in told_of
    ]
    assert faults.count("malformed") == 4
    assert faults.count("too-large") == 60
    assert neighbour_is_told(tmp_path)


async def test_pool_tells_how_it_stands(tmp_path: Path) -> None:
    """RubricaPoolFull: who holds a place, waits, and has waited or was refused."""
    one, other = WorkOwner("a", "a"), WorkOwner("b", "b")
    limits = FairLimits(places=1, per_share=1, per_party=1, waiting=1)
    queue = FairQueue(limits, "of-a-test")
    file = MetricsFile(tmp_path, "api", 1)

    def pool() -> dict[str, float]:
        file.write()
        return {
            "_".join(
                (name.removeprefix("rubrica_pool_"), labels.get("cause", ""))
            ): value
            for (name, _, _), samples in told(tmp_path).items()
            for labels, value in samples
            if labels.get("pool") == "of-a-test"
        }

    held = await queue.acquire(one)
    waiter = asyncio.create_task(queue.acquire(other))
    await asyncio.sleep(0)
    with pytest.raises(ApplianceError):
        await queue.acquire(WorkOwner("c", "c"))
    before = pool()
    held.release()
    (await waiter).release()

    assert (before["places_"], before["held_"], before["waiting_"]) == (1, 1, 1)
    assert (before["refused_total_full"], before["refused_total_late"]) == (1, 0)
    after = pool()
    assert (after["held_"], after["waiting_"], after["waits_total_"]) == (0, 0, 1)
    assert after["wait_seconds_total_"] > 0
