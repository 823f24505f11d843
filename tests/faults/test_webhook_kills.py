"""Chores die in the midst of telling: no event is lost, and each keeps its place."""

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler
from typing import Any

import pytest
from sqlalchemy import insert, select
from standardwebhooks import Webhook

from appliance.bootstrap import data_sealer, open_core
from appliance.database.tables import integrator, webhook_endpoint
from appliance.domain.clock import SystemClock
from appliance.domain.ids import new_id
from appliance.domain.integrators.webhooks import new_secret
from appliance.webhooks.endpoint_secrets import sealed_secret
from tests.support.appliance.appliance import Appliance, TestPerson
from tests.support.appliance.backends import TestBackend, backend_of, sign
from tests.support.documents import pdfs
from tests.support.faults.fault_injection import (
    NO_REDIS,
    kill_one,
    order_crash,
    restarted,
    until,
)
from tests.support.processes.event_loops import run_apart
from tests.support.services.http_service import HttpService
from worker.failpoints import WEBHOOK_SENT

LOOPBACK = '[webhooks]\nallowed_networks = ["127.0.0.0/8"]\n'
SECRET = new_secret()
PATIENCE_S = 300.0


class Backend(HttpService):
    """A receiver that believes what the standard's own library believes."""

    def __init__(self) -> None:
        super().__init__()
        self.got: list[tuple[str, dict[str, Any]]] = []
        """Id and content of each message, as they came."""
        self._lock = threading.Lock()

    def serve(self, http: BaseHTTPRequestHandler) -> None:
        """Take a message."""
        body = http.rfile.read(int(http.headers["Content-Length"]))
        told = Webhook(SECRET).verify(body, dict(http.headers.items()))
        assert told == json.loads(body)
        with self._lock:
            self.got.append((http.headers["webhook-id"], told))
        http.send_response(204)
        http.end_headers()

    def told_of(self, process: str) -> list[str]:
        """What came of a process, each message once."""
        with self._lock:
            seen = {
                key: told["type"]
                for key, told in self.got
                if told["data"]["procesoId"] == process
            }
        return list(seen.values())


@pytest.fixture(scope="module", params=["sqlite_appliance", "postgres_appliance"])
def either(request: pytest.FixtureRequest) -> Appliance:
    """An appliance, on each of the two databases."""
    appliance: Appliance = request.getfixturevalue(request.param)
    return appliance


@pytest.fixture(scope="module")
def told(either: Appliance) -> Iterator[Appliance]:
    """It may tell this machine, and has no Redis: webhooks need none."""
    with restarted(either, more=LOOPBACK + NO_REDIS):
        yield either


@pytest.fixture(scope="module")
def somebody(told: Appliance) -> TestPerson:
    """Who signs on it."""
    return told.new_person()


@pytest.fixture
def receiver() -> Iterator[Backend]:
    """A backend that is told."""
    with Backend() as made:
        yield made


@pytest.fixture
def backend(told: Appliance, receiver: Backend) -> Iterator[TestBackend]:
    """An integrator that has it as its endpoint."""
    with backend_of(told) as made:
        run_apart(_add(told, made.code, receiver.origin))
        yield made


async def _add(appliance: Appliance, code: str, url: str) -> None:
    clock, made = SystemClock(), new_id()
    sealed = sealed_secret(data_sealer(appliance.settings), made, SECRET)
    async with (
        open_core(appliance.settings, clock, "operator") as core,
        core.store.write() as transaction,
    ):
        await transaction.connection.execute(
            insert(webhook_endpoint).values(
                id=made,
                integrator=select(integrator.c.id)
                .where(integrator.c.code == code)
                .scalar_subquery(),
                url=url,
                label="backend",
                events=[],
                secret_sealed=sealed,
                created=clock.now(),
            )
        )


def test_chores_that_die_after_an_answer_ask_again(
    told: Appliance, backend: TestBackend, receiver: Backend, somebody: TestPerson
) -> None:
    """The receiver has the same message twice, by its id, and all that came later."""
    order = order_crash(told, WEBHOOK_SENT)
    process = backend.made(pdfs.one_page(), somebody)["procesoId"]
    until(lambda: not order.exists(), PATIENCE_S)
    request = backend.read(process)["firmantes"][0]["solicitudId"]
    sign(told, somebody, request)

    until(lambda: "solicitud.completada" in receiver.told_of(process), PATIENCE_S)
    assert receiver.told_of(process) == [
        "solicitud.creada",
        "solicitud.firmada",
        "solicitud.completada",
    ]
    ids = [key for key, _ in receiver.got]
    assert ids[0] == ids[1]


def test_kills_lose_no_event(
    told: Appliance, backend: TestBackend, receiver: Backend, somebody: TestPerson
) -> None:
    """Chores are killed after each request; each is told of, in its order."""
    processes = []
    for _ in range(4):
        process = backend.made(pdfs.one_page(), somebody)["procesoId"]
        backend.client.post(f"/api/integration/requests/{process}/cancel")
        processes.append(process)
        kill_one(told, "chores")

    wanted = ["solicitud.creada", "solicitud.cancelada"]
    until(lambda: all(receiver.told_of(p) == wanted for p in processes), PATIENCE_S)
