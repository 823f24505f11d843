"""Of two records of one installation an HSM serves the one that took over last.

Source: docs/backup.md "One HSM, one record".
"""

from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from appliance.bootstrap import open_core
from appliance.domain.clock import SystemClock
from appliance.domain.vocab import EventKind
from tests.support.appliance.backups import Site, site_with_backups
from tests.support.appliance.http_calls import sign, signed_pdf
from tests.support.documents import pdfs
from tests.support.documents.validators import pdfsig, pyhanko_valid
from tests.support.faults.fault_injection import execute, until
from tests.support.processes.event_loops import run_apart
from tests.support.services.postgres import PostgresServer


@pytest.fixture(scope="module", params=["sqlite", "postgresql"])
def site(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Site]:
    """An appliance of these tests, which the first one loses; each has it sign on."""
    places = tmp_path_factory.mktemp("places")
    if request.param == "sqlite":
        with site_with_backups(places, "sqlite") as made:
            yield made
        return
    server: PostgresServer = request.getfixturevalue("postgres_server")
    name = server.create_database()
    with site_with_backups(places, server.url(name)) as made:
        yield made
    server.drop_database(name)


def hsm_of(site: Site) -> Any:
    """What `/readyz` says of the HSM."""
    try:
        answer = httpx.get(f"{site.appliance.base_url}/readyz")
    except httpx.TransportError:
        return "not listening"
    return answer.json()["checks"]["hsm"]


def assert_refused(site: Site, request: int) -> None:
    """No key is used, and the document waits for its signer."""
    with site.appliance.client(site.person) as client:
        answer = sign(client, site.person, request)
        assert answer.status_code == 503, answer.text
        state = client.get(f"/solicitudes/{request}").json()["estado"]
    assert state == "pendiente"
    assert site.appliance.intents(request) == []


def take_overs(site: Site) -> list[dict[str, object]]:
    """What the audit, which is whole, tells of them."""
    verified = site.appliance.rubrica("audit", "verify")
    assert verified.returncode == 0, verified.stdout

    async def read() -> list[dict[str, object]]:
        async with (
            open_core(site.appliance.settings, SystemClock(), "operator") as core,
            core.store.read() as transaction,
        ):
            return [
                row.event.detail
                for writer in await transaction.audit.writers()
                for row in await transaction.audit.of_writer(writer)
                if row.event.event is EventKind.HSM_TAKEN_OVER
            ]

    return run_apart(read())


def assert_signs(site: Site, request: int) -> None:
    """It is signed, by valid signatures."""
    with site.appliance.client(site.person) as client:
        pdf = signed_pdf(client, site.person, request)
    assert pdfsig(pdf)[0].valid
    assert pyhanko_valid(pdf, site.appliance.roots)


def test_restored_record_uses_no_key_before_it_takes_over(site: Site) -> None:
    """It is ready and signs from then on, without a restart."""
    request = site.appliance.new_request(site.person, pdfs.one_page())
    site.back_up_all()
    site.lose()
    assert site.restore_all().returncode == 0
    site.migrate()
    site.appliance.start(unready=True)
    until(lambda: hsm_of(site) == "HSM_TAKEN_OVER")
    assert_refused(site, request)

    site.take_over()

    site.appliance.wait_ready()
    assert_signs(site, request)
    assert take_overs(site) == [{"before": "restored", "after": 1}]


def test_record_that_was_left_signs_no_more(site: Site) -> None:
    """While it runs; and signs again when it takes over in its turn."""
    request = site.appliance.new_request(site.person, pdfs.one_page())
    site.take_over()
    assert_signs(site, site.appliance.new_request(site.person, pdfs.one_page("A")))
    # As the record of before has it.
    execute(
        site.appliance,
        "UPDATE installation SET value = '0' WHERE name = 'generation'",
    )
    until(lambda: hsm_of(site) == "HSM_TAKEN_OVER")
    assert_refused(site, request)

    site.take_over()

    until(lambda: hsm_of(site) == "ok")
    assert_signs(site, request)
