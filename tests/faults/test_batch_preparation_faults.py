"""Batches in preparation, whose workers die and whose sandbox and Redis go away."""

import base64
from collections.abc import Iterator
from typing import Any

import pytest

from tests.support.appliance.appliance import Appliance, TestPerson
from tests.support.appliance.backends import (
    BATCHES,
    TestBackend,
    backend_of,
    prepared_batch,
)
from tests.support.documents import pdfs
from tests.support.faults.fault_injection import (
    NO_REDIS,
    kill_one,
    order_crash,
    restarted,
    until,
)
from worker.failpoints import BATCH_GROUP

MANY = 48
"""Documents of three groups."""


@pytest.fixture(scope="module")
def person(postgres_appliance: Appliance) -> TestPerson:
    """A signer."""
    return postgres_appliance.new_person()


@pytest.fixture
def backend(postgres_appliance: Appliance) -> Iterator[TestBackend]:
    """A backend of an integrator of its own."""
    with backend_of(postgres_appliance) as made:
        yield made


def asked(backend: TestBackend, person: TestPerson, word: str) -> str:
    """A batch of documents that come with it; its id."""
    documents = [
        {"contenido": base64.b64encode(pdfs.one_page(f"{word} {n}")).decode()}
        for n in range(MANY)
    ]
    answer = backend.client.post(
        BATCHES,
        json={"firmante": {"cuil": person.cuil}, "documentos": documents},
    )
    assert answer.status_code == 202, answer.text
    return str(answer.json()["loteId"])


def assert_whole(told: dict[str, Any]) -> None:
    """Each of its documents has one request, in order."""
    assert told["estado"] == "listo"
    assert told["estados"] == {"pendiente": MANY}
    numbers = [each["solicitudId"] for each in told["solicitudes"]]
    assert numbers == sorted(set(numbers))
    assert len({each["documento"]["sha256"] for each in told["solicitudes"]}) == MANY


def test_worker_that_dies_between_groups_loses_nothing(
    postgres_appliance: Appliance, backend: TestBackend, person: TestPerson
) -> None:
    """Settled documents stay so; the next one goes on, and every request is there."""
    order = order_crash(postgres_appliance, BATCH_GROUP)
    lote = asked(backend, person, "muere")
    until(lambda: not order.exists())
    assert_whole(prepared_batch(backend.client, lote))


def test_restart_loses_nothing(
    postgres_appliance: Appliance, backend: TestBackend, person: TestPerson
) -> None:
    """In the midst of it, of everything."""
    lote = asked(backend, person, "reinicio")
    postgres_appliance.stop()
    postgres_appliance.start()
    assert_whole(prepared_batch(backend.client, lote))


def test_sandbox_that_dies_refuses_nothing(
    postgres_appliance: Appliance, backend: TestBackend, person: TestPerson
) -> None:
    """It comes back, and the batch goes on."""
    kill_one(postgres_appliance, "sandbox")
    lote = asked(backend, person, "sandbox")
    kill_one(postgres_appliance, "sandbox")
    assert_whole(prepared_batch(backend.client, lote))


def test_batches_are_prepared_without_redis(
    postgres_appliance: Appliance, backend: TestBackend, person: TestPerson
) -> None:
    """Whoever prepares them looks by itself."""
    with restarted(postgres_appliance, more=NO_REDIS):
        lote = asked(backend, person, "redis")
        assert_whole(prepared_batch(backend.client, lote))
