"""Debian's Prometheus scrapes every role, and alerts fire by real faults.

`for:` of the rules is cut to two seconds; all else is as operators get it.
"""

import re
import shutil
import sqlite3
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Final

import pytest

from appliance.domain.vocab import ActivationState
from tests.functional.calls import command
from tests.parts.appliance import Appliance
from tests.parts.places import short_folder
from tests.parts.prometheus import Prometheus
from tests.parts.redis import RedisServer
from tests.parts.role_faults import stopped
from tests.pdfs import one_page

_RULES: Final = Path(__file__).resolve().parents[2] / "docs/samples/rubrica-alerts.yaml"
_HOUR: Final = timedelta(hours=1)
_LAST_BACKUP: Final = "rubrica_backup_last_success_timestamp_seconds"
_PROCESSES: Final = {
    *(("api", "1"), ("embed", "1"), ("admin", "1"), ("metrics", "1")),
    *(("signing", "1"), ("signing", "2"), ("chores", "1"), ("sandbox", "1")),
}

pytestmark = [
    pytest.mark.long,
    pytest.mark.skipif(
        shutil.which("prometheus") is None,
        reason="prometheus is not installed (Debian's prometheus)",
    ),
]


@pytest.fixture(scope="module")
def redis() -> Iterator[RedisServer]:
    """One that the tests stop."""
    with short_folder() as folder:
        server = RedisServer(Path(folder))
        server.start()
        yield server
        server.stop()


@pytest.fixture(scope="module")
def appliance(redis: RedisServer) -> Iterator[Appliance]:
    """One whose roles are stopped and let go on."""
    with (
        short_folder() as folder,
        Appliance.made(
            Path(folder),
            signing="wait_s = 1",
            more=f'[redis]\nurl = "{redis.url}"\n',
        ) as made,
    ):
        yield made


@pytest.fixture(scope="module")
def prometheus(
    appliance: Appliance, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Prometheus]:
    """It has scraped every role, and has nothing to alarm anybody about."""
    folder = tmp_path_factory.mktemp("prometheus")
    rules = folder / "rules.yaml"
    text = _RULES.read_text("utf-8")
    rules.write_text(re.sub(r"( for: )\w+", r"\g<1>2s", text))
    with Prometheus.watching(appliance.metrics_url, folder, rules) as running:
        running.until('rubrica_role_up{role="sandbox"} == 1')
        running.until('rubrica_signing_workers{hsm="ready"} == 2')
        running.until_quiet()
        yield running


def test_every_role_is_scraped(prometheus: Prometheus) -> None:
    """Each process has a version, the listener's own too; all but it are up."""
    found = prometheus.until("rubrica_build_info")
    assert {(one["role"], one["number"]) for one in found} == _PROCESSES
    assert prometheus.firing() == set()


def test_no_worker_and_what_waits_for_one(
    appliance: Appliance, prometheus: Prometheus
) -> None:
    """A signature and a CRL, which grows old meanwhile."""
    person = appliance.new_person()
    request = appliance.new_request(person, one_page())
    with appliance.client(person) as client:
        order = command(person, request)
        with stopped(appliance, "signing-1", "signing-2"):
            answer = client.post("/solicitudes/firmar", json=order)
            assert answer.status_code == 202, answer.text
            _age_crls(appliance)
            prometheus.until_firing("RubricaNoSigningWorker")
            prometheus.until_firing("RubricaCrlOld", ca="issuing")
            prometheus.until_firing("RubricaCrlOld", ca="root")
            prometheus.until_firing("RubricaQueueWaits")
    prometheus.until_quiet()


def _age_crls(appliance: Appliance) -> None:
    """Have every CRL end in a moment, as if none had been made for days."""
    now = datetime.now(UTC)
    with sqlite3.connect(appliance.folder / "rubrica.db", timeout=30) as connection:
        times = [f"{at:%Y-%m-%d %H:%M:%S.%f}" for at in (now - _HOUR, now + _HOUR / 60)]
        changed = connection.execute(
            "UPDATE crl SET this_update = ?, next_update = ?", times
        )
        assert changed.rowcount == 2
        open_ones = connection.execute(
            "SELECT count(*) FROM activation WHERE state = ?",
            (ActivationState.WAITING.value,),
        )
        assert open_ones.fetchone()[0] == 1
