"""`/metrics` of a running appliance: every role, and what it did."""

import time
from collections.abc import Callable, Iterator
from pathlib import Path

import httpx
import pytest
from prometheus_client.parser import text_string_to_metric_families

from tests.support.appliance.appliance import Appliance
from tests.support.appliance.http_calls import signed_pdf
from tests.support.documents.pdfs import one_page
from tests.support.patience import CALL_S
from tests.support.plugins.documented import OTHER_FACE
from tests.support.processes.scratch import short_folder

SOON_S = 60
ROLES = {
    ("api", "1"),
    ("embed", "1"),
    ("admin", "1"),
    ("signing", "1"),
    ("signing", "2"),
    ("chores", "1"),
    ("sandbox", "1"),
    ("metrics", "1"),
}
Told = dict[tuple[str, frozenset[tuple[str, str]]], float]


@pytest.fixture(scope="module")
def appliance() -> Iterator[Appliance]:
    """One that nobody else uses: its figures are those of this test."""
    with short_folder() as folder, Appliance.made(Path(folder)) as made:
        yield made


def told(appliance: Appliance) -> Told:
    """What Prometheus would read now."""
    response = httpx.get(appliance.metrics_url, trust_env=False, timeout=CALL_S)
    assert response.status_code == 200
    assert response.headers["content-type"].startswith("text/plain; version=0.0.4")
    return {
        (one.name, frozenset(one.labels.items())): one.value
        for family in text_string_to_metric_families(response.text)
        for one in family.samples
    }


def until(appliance: Appliance, wanted: Callable[[Told], object]) -> Told:
    """Ask until the figures are as wanted."""
    deadline = time.monotonic() + SOON_S
    while not wanted(found := told(appliance)):
        assert time.monotonic() < deadline, sorted(found)
        time.sleep(0.2)
    return found


def value(found: Told, name: str, **labels: str) -> float | None:
    """The sum of a figure's samples that have these labels; None of none."""
    wanted = set(labels.items())
    values = [
        number for (at, of), number in found.items() if at == name and wanted <= of
    ]
    return sum(values) if values else None


def test_every_role_tells_and_signing_counts(appliance: Appliance) -> None:
    """What a signature did stands there, by role, with nothing of whom it was."""
    person = appliance.new_person()
    request = appliance.new_request(person, one_page())
    with appliance.client(person) as client:
        signed_pdf(client, person, request)

    route = {"role": "api", "route": "/solicitudes/firmar", "status": "2xx"}
    found = until(
        appliance,
        lambda found: (
            value(found, "rubrica_signatures_total", outcome="signed") == 1
            # Each process writes in its own time.
            and value(found, "rubrica_http_requests_total", **route) == 1
            and value(found, "rubrica_record_up") == 1
            and value(found, "rubrica_signing_workers", hsm="ready") == 2
            and value(found, "rubrica_hsm_ready", token="firma") == 2
            and value(found, "rubrica_redis_connected", role="signing") == 2
            and value(found, "rubrica_sandbox_jobs_total", outcome="answered")
            and {
                (dict(of)["role"], dict(of)["number"])
                for (name, of), up in found.items()
                if name == "rubrica_role_up" and up
            }
            >= ROLES - {("metrics", "1")}
        ),
    )
    assert value(found, "rubrica_signature_step_seconds_count", step="sign") == 1
    assert (value(found, "rubrica_hsm_operations_total", outcome="done") or 0) >= 1
    assert value(found, "rubrica_queue_length", queue="activations") == 0
    for kind in ("ca", "ocsp"):
        end = value(found, "rubrica_certificate_not_after_timestamp_seconds", kind=kind)
        assert end is None or end > time.time()
    assert value(found, "rubrica_pool_places", pool="sandbox_jobs") == 4
    assert (
        value(found, "rubrica_pool_places", pool="connections", role="api") or 0
    ) > 0
    assert not value(found, "rubrica_metrics_dropped_samples")
    text = str(sorted(map(str, found)))
    for secret in (person.cuil, person.email, person.id, person.name):
        assert secret not in text


def test_listener_has_nothing_else(appliance: Appliance) -> None:
    """The figures, and whether it gets on; the public faces have no such page."""
    at = appliance.metrics_url.removesuffix("/metrics")
    with httpx.Client(base_url=at, trust_env=False, timeout=CALL_S) as client:
        answers = {
            path: client.get(path, extensions={OTHER_FACE: True}).status_code
            for path in ("/healthz", "/", "/solicitudes", "/metrics/")
        }
    # A slash too many is mended, as on every face.
    assert answers == {"/healthz": 200, "/": 404, "/solicitudes": 404, "/metrics/": 308}
    for face in (appliance.base_url, appliance.iframe_url, appliance.admin_url):
        assert (
            httpx.get(f"{face}/metrics", trust_env=False, timeout=CALL_S).status_code
            == 404
        )


def test_folders_are_closed(appliance: Appliance) -> None:
    """Nobody but a role and the folder's group reads what it hands over."""
    folder: Path = appliance.settings.metrics_dir
    assert {path.name for path in folder.iterdir()} == {
        role for role, _ in ROLES if role != "metrics"
    }
    for path in folder.rglob("*"):
        assert path.stat().st_mode & 0o007 == 0
