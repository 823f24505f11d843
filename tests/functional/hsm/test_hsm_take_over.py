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
from tests.support.appliance.backups import RestorableAppliance, appliance_with_backups
from tests.support.appliance.http_calls import sign, signed_pdf, state_of
from tests.support.documents import pdfs
from tests.support.documents.validators import pdfsig, pyhanko_valid
from tests.support.faults.fault_injection import execute, until
from tests.support.patience import CALL_S
from tests.support.processes.event_loops import run_apart
from tests.support.services.postgres import PostgresServer


@pytest.fixture(scope="module", params=["sqlite", "postgresql"])
def restorable_appliance(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[RestorableAppliance]:
    """An appliance of these tests, which the first one loses; each has it sign on."""
    places = tmp_path_factory.mktemp("places")
    if request.param == "sqlite":
        with appliance_with_backups(places, "sqlite") as made:
            yield made
        return
    server: PostgresServer = request.getfixturevalue("postgres_server")
    name = server.create_database()
    with appliance_with_backups(places, server.url(name)) as made:
        yield made
    server.drop_database(name)


def hsm_of(restorable_appliance: RestorableAppliance) -> Any:
    """What `/readyz` says of the HSM."""
    try:
        answer = httpx.get(
            f"{restorable_appliance.appliance.base_url}/readyz", timeout=CALL_S
        )
    except httpx.TransportError:
        return "not listening"
    return answer.json()["checks"]["hsm"]


def assert_refused(restorable_appliance: RestorableAppliance, request: int) -> None:
    """No key is used, and the document waits for its signer."""
    with restorable_appliance.appliance.client(restorable_appliance.person) as client:
        answer = sign(client, restorable_appliance.person, request)
        assert answer.status_code == 503, answer.text
        state = state_of(client, request)
    assert state == "pendiente"
    assert restorable_appliance.appliance.intents(request) == []


def take_overs(restorable_appliance: RestorableAppliance) -> list[dict[str, object]]:
    """What the audit, which is whole, tells of them."""
    verified = restorable_appliance.appliance.rubrica("audit", "verify")
    assert verified.returncode == 0, verified.stdout

    async def read() -> list[dict[str, object]]:
        async with (
            open_core(
                restorable_appliance.appliance.settings, SystemClock(), "operator"
            ) as core,
            core.store.read() as transaction,
        ):
            return [
                row.event.detail
                for writer in await transaction.audit.writers()
                for row in await transaction.audit.of_writer(writer)
                if row.event.event is EventKind.HSM_TAKEN_OVER
            ]

    return run_apart(read())


def assert_signs(restorable_appliance: RestorableAppliance, request: int) -> None:
    """It is signed, by valid signatures."""
    with restorable_appliance.appliance.client(restorable_appliance.person) as client:
        pdf = signed_pdf(client, restorable_appliance.person, request)
    assert pdfsig(pdf)[0].valid
    assert pyhanko_valid(pdf, restorable_appliance.appliance.roots)


def test_restored_record_uses_no_key_before_it_takes_over(
    restorable_appliance: RestorableAppliance,
) -> None:
    """It is ready and signs from then on, without a restart."""
    request = restorable_appliance.appliance.new_request(
        restorable_appliance.person, pdfs.one_page()
    )
    restorable_appliance.back_up_all()
    restorable_appliance.lose()
    assert restorable_appliance.restore_all().returncode == 0
    restorable_appliance.migrate()
    restorable_appliance.appliance.start(unready=True)
    until(lambda: hsm_of(restorable_appliance) == "HSM_TAKEN_OVER")
    assert_refused(restorable_appliance, request)

    restorable_appliance.take_over()

    restorable_appliance.appliance.wait_ready()
    assert_signs(restorable_appliance, request)
    assert take_overs(restorable_appliance) == [{"before": "restored", "after": 1}]


def test_record_that_was_left_signs_no_more(
    restorable_appliance: RestorableAppliance,
) -> None:
    """While it runs; and signs again when it takes over in its turn."""
    request = restorable_appliance.appliance.new_request(
        restorable_appliance.person, pdfs.one_page()
    )
    restorable_appliance.take_over()
    assert_signs(
        restorable_appliance,
        restorable_appliance.appliance.new_request(
            restorable_appliance.person, pdfs.one_page("A")
        ),
    )
    # As the record of before has it.
    execute(
        restorable_appliance.appliance,
        "UPDATE installation SET value = '0' WHERE name = 'generation'",
    )
    until(lambda: hsm_of(restorable_appliance) == "HSM_TAKEN_OVER")
    assert_refused(restorable_appliance, request)

    restorable_appliance.take_over()

    until(lambda: hsm_of(restorable_appliance) == "ok")
    assert_signs(restorable_appliance, request)
