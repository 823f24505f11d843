"""PostgreSQL comes late, stops or hangs: what each role answers, and when all is well.

Signing under these faults, on several hosts: `test_host_faults.py`. Source:
docs/database.md "Failover", docs/running.md "Start with the machine".
"""

import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Final

import httpx
import psutil
import pytest

from admin_ui.session import COOKIE
from tests.support.appliance.appliance import Appliance
from tests.support.appliance.http_calls import sign, signed_pdf
from tests.support.documents import pdfs
from tests.support.documents.validators import pdfsig, pyhanko_valid
from tests.support.faults.fault_injection import until
from tests.support.patience import CALL_S
from tests.support.processes.scratch import short_folder
from tests.support.services.postgres import PostgresServer

pytestmark = [pytest.mark.long, pytest.mark.timeout(600)]
_LATE_S: Final = 60.0
_OFF_S: Final = 30.0
_WELL_S: Final = 30.0
"""Within which all is as it was; a machine that does other things is slow."""
_ROLES: Final = ("api", "embed", "admin", "signing", "chores", "sandbox", "metrics")
OutsideDatabase = tuple[Appliance, PostgresServer]


@pytest.fixture
def outside_database() -> Iterator[OutsideDatabase]:
    """An appliance that is set up and not started, and its own PostgreSQL."""
    with short_folder() as folder, short_folder() as at:
        server = PostgresServer.start(at)
        name = server.create_database()
        url = f"postgresql://rubrica@127.0.0.1:{server.port}/{name}"
        (folder / "pw").write_text(server.password, "ascii")
        own = Appliance(folder, database=f'{url}"\npassword_file = "pw')
        try:
            own.set_up()
            yield own, server
        finally:
            own.close()
            server.stop()


@contextmanager
def stopped(server: PostgresServer) -> Iterator[None]:
    """Have it be off meanwhile."""
    server.stop()
    yield
    server.start_again()


@contextmanager
def hung(server: PostgresServer) -> Iterator[None]:
    """Have it answer nothing, while its kernel does: a disk that does not come back."""
    first = int((server.folder / "data/postmaster.pid").read_text().split()[0])
    every = [psutil.Process(first), *psutil.Process(first).children()]
    for process in every:
        process.suspend()
    yield
    for process in every:
        process.resume()


def readiness(appliance: Appliance) -> dict[str, str]:
    """What `/readyz` says of each part; nothing before there is a listener."""
    try:
        answer = httpx.get(f"{appliance.base_url}/readyz", timeout=10)
    except httpx.ConnectError:
        return {}
    checks: dict[str, str] = answer.json()["checks"]
    assert (answer.status_code == 200) == (set(checks.values()) == {"ok"})
    return checks


def faces(appliance: Appliance) -> dict[str, int]:
    """Status of a page or an answer of each face that needs the record."""
    asked = {
        "api": f"{appliance.base_url}/.well-known/jwks.json",
        "embed": f"{appliance.iframe_url}/embed/?sessionToken=nobody",
        "admin": f"{appliance.admin_url}/",
    }
    # Somebody whose cookie has to be looked up.
    headers = {"Cookie": f"{COOKIE}=nobody"}
    return {
        face: httpx.get(url, timeout=CALL_S, headers=headers).status_code
        for face, url in asked.items()
    }


def processes(appliance: Appliance) -> dict[str, list[int]]:
    """Process ids of each role."""
    return {role: [p.pid for p in appliance.children(role)] for role in _ROLES}


def assert_signs(appliance: Appliance) -> None:
    """Somebody new signs, validly."""
    person = appliance.new_person()
    request = appliance.new_request(person, pdfs.one_page())
    with appliance.client(person) as client:
        pdf = signed_pdf(client, person, request)
    assert pdfsig(pdf)[0].valid
    assert pyhanko_valid(pdf, appliance.roots)


def test_database_that_comes_late_is_waited_for(
    outside_database: OutsideDatabase,
) -> None:
    """No role ends, `/readyz` says what is lacking, and all is well soon after it."""
    appliance, server = outside_database
    with stopped(server):
        appliance.start(unready=True)
        until(lambda: readiness(appliance).get("database") == "STORE_UNAVAILABLE")
        until(lambda: all(processes(appliance).values()))
        before, away = processes(appliance), time.monotonic()
        told = faces(appliance)
        time.sleep(max(0, _LATE_S - (time.monotonic() - away)))
        assert readiness(appliance)["database"] == "STORE_UNAVAILABLE"
    back = time.monotonic()
    until(lambda: set(readiness(appliance).values()) == {"ok"})
    well_s = time.monotonic() - back

    print(f"| late by {_LATE_S:.0f} s | {told} | {well_s:.1f} s |")  # noqa: T201 (-rP)
    assert set(told.values()) == {503}
    assert processes(appliance) == before
    assert well_s < _WELL_S
    assert_signs(appliance)


@pytest.mark.parametrize("harm", [stopped, hung])
def test_database_that_is_away_is_told_and_nothing_ends(
    outside_database: OutsideDatabase,
    harm: Callable[[PostgresServer], AbstractContextManager[None]],
) -> None:
    """503 from every face and no role ends; what was asked for is signed after it."""
    appliance, server = outside_database
    appliance.start()
    person = appliance.new_person()
    request = appliance.new_request(person, pdfs.one_page("antes"))
    before = processes(appliance)
    with appliance.client(person) as client:
        with harm(server):
            away = time.monotonic()
            told = faces(appliance)
            # That all is well is told for two seconds.
            until(lambda: readiness(appliance)["database"] != "ok")
            checks = readiness(appliance)
            answer = sign(client, person, request)
            time.sleep(max(0, _OFF_S - (time.monotonic() - away)))
        back = time.monotonic()
        until(lambda: set(readiness(appliance).values()) == {"ok"})
        well_s = time.monotonic() - back
        pdf = signed_pdf(client, person, request)

    name = getattr(harm, "__name__", "")
    shown = f"{told}, firmar {answer.status_code}, {checks}"
    print(f"| {name} | {shown} | {well_s:.1f} s |")  # noqa: T201 (-rP)
    assert set(told.values()) == {503}
    assert answer.status_code == 503
    assert checks["database"] in {"STORE_UNAVAILABLE", "TIMEOUT"}
    assert pdfsig(pdf)[0].valid
    assert len(appliance.intents(request)) == 1
    assert processes(appliance) == before
    assert well_s < _WELL_S
    assert_signs(appliance)
