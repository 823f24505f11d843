"""Of one request: its history, webhooks and mails say what the audit says, no more.

The audit is read as rows of the record, and what follows from it is written here anew.

Source: docs/integration.md "One request, and its history", docs/webhooks.md, mail.md.
"""

import json
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from queue import Queue
from typing import Any, Final

import pytest
from sqlalchemy import select

from appliance.bootstrap import ServiceRegistry
from appliance.database import tables
from tests.functional.integration.test_webhook_listener import Received, receiving
from tests.support.appliance.appliance import Appliance, TestPerson
from tests.support.appliance.backends import (
    REQUESTS,
    TestBackend,
    assert_valid,
    backend_of,
    sign,
)
from tests.support.documents import pdfs
from tests.support.processes.scratch import short_folder
from tests.support.services.mail_server import TestMailServer, mail_server
from tests.support.webhooks import documented_messages

pytestmark = pytest.mark.full

_WEBHOOKS: Final = "/api/integration/webhooks"
_COMPLETED: Final = "solicitud.completada"
_AT_MOST_S: Final = 60
_TOLD: Final = {
    "request.created": ("creada", ("documentSha256", "predecessor", "batch")),
    "request.turn": ("turno", ("documentSha256", "predecessor")),
    "request.viewed": ("vista", ("documentSha256",)),
    "request.changed": ("modificada", ("fields",)),
    "request.rejected": ("rechazada", ()),
    "request.cancelled": ("cancelada", ("predecessor", "reason")),
    "request.signed": ("firmada", ("sha256", "level")),
    "document.raised": ("nivel_elevado", ("version", "sha256", "level")),
}
"""Events of the audit that an integrator is told of, as what, and what of them."""
_NAMES: Final = {
    "documentSha256": "sha256",
    "predecessor": "anterior",
    "batch": "loteId",
    "reason": "motivo",
    "level": "nivel",
    "fields": "campos",
    "message": "mensaje",
}


@pytest.fixture(scope="module")
def server() -> Iterator[TestMailServer]:
    """A mail server that catches everything."""
    with mail_server() as made:
        yield made


@pytest.fixture(scope="module")
def telling(server: TestMailServer) -> Iterator[Appliance]:
    """An appliance that writes mails, and calls addresses of this machine."""
    sections = (
        f'[mail]\nhost = "127.0.0.1"\nport = {server.port}\ntls = "none"\n'
        'from_address = "firma@rubrica.example"\n'
        '[webhooks]\nallow_http = true\nallowed_networks = ["127.0.0.0/8"]\n'
    )
    with (
        short_folder() as folder,
        Appliance.made(Path(folder), more=sections) as made,
    ):
        yield made


@pytest.fixture(scope="module")
def backend(telling: Appliance) -> Iterator[TestBackend]:
    """A backend whose signers are written to."""
    with backend_of(telling) as made:

        async def switch_on(front: ServiceRegistry) -> None:
            await front.integrators.set_mail("operator", made.code, mails_signers=True)

        telling.do(switch_on)
        yield made


@pytest.fixture(scope="module")
def people(telling: Appliance) -> list[TestPerson]:
    """Two who sign in turn."""
    return [telling.new_person("Ana Ruiz"), telling.new_person("Luis Paz")]


def _rows(appliance: Appliance, requests: list[int]) -> list[Any]:
    """Rows of the audit about some requests, in the order of what happened."""
    event = tables.audit_event.c

    async def read(front: ServiceRegistry) -> list[Any]:
        async with front.core.store.read() as transaction:
            found = await transaction.connection.execute(
                select(tables.audit_event)
                .where(event.request.in_(requests))
                .order_by(event.at, event.writer, event.n)
            )
            return [row for row in found if row.event in _TOLD]

    return appliance.do(read)


def _mails(appliance: Appliance, requests: list[int]) -> list[Any]:
    """Rows of the outbox about some requests."""
    mail = tables.mail_message.c

    async def read(front: ServiceRegistry) -> list[Any]:
        async with front.core.store.read() as transaction:
            found = await transaction.connection.execute(
                select(tables.mail_message).where(mail.request.in_(requests))
            )
            return list(found)

    return appliance.do(read)


def _said(row: Any) -> tuple[int, str, tuple[tuple[str, str], ...]]:
    """What an integrator may know of a row: whose, what, and its members."""
    name, members = _TOLD[row.event]
    given = {
        _NAMES.get(each, each): row.detail[each]
        for each in members
        if each in row.detail
    }
    if "campos" in given:
        given["campos"] = [_NAMES[each] for each in given["campos"]]
    return row.request, name, _members(given)


def _members(given: dict[str, Any]) -> tuple[tuple[str, str], ...]:
    return tuple(sorted((name, str(value)) for name, value in given.items()))


def _of_history(event: dict[str, Any]) -> tuple[int, str, tuple[tuple[str, str], ...]]:
    known = {"evento", "cuando", "solicitudId"}
    rest = {name: value for name, value in event.items() if name not in known}
    return event["solicitudId"], event["evento"], _members(rest)


def _of_message(body: dict[str, Any]) -> tuple[int, str, tuple[tuple[str, str], ...]]:
    known = {"procesoId", "solicitudId", "referencia"}
    data = body["data"]
    rest = {name: value for name, value in data.items() if name not in known}
    name = body["type"].partition(".")[2]
    return data["solicitudId"], name, _members(rest)


def _deliveries(backend: TestBackend, webhook: str, count: int) -> list[dict[str, Any]]:
    """All of a webhook that were delivered, once there are so many."""
    address = f"{_WEBHOOKS}/{webhook}/deliveries"
    deadline = time.monotonic() + _AT_MOST_S
    found: list[dict[str, Any]] = []
    while time.monotonic() < deadline:
        found = backend.client.get(
            address, params={"limite": 200, "estado": "entregada"}
        ).json()
        if len(found) >= count:
            return [
                backend.client.get(f"{address}/{each['entregaId']}").json()
                for each in found[::-1]
            ]
    raise AssertionError(found)


def _live(
    appliance: Appliance, backend: TestBackend, people: list[TestPerson]
) -> list[dict[str, Any]]:
    """Requests that end in three ways; as they stand at the end."""
    ana, luis = people
    signed = backend.made(pdfs.one_page(), ana, luis, referencia="los dos")
    first, second = (each["solicitudId"] for each in signed["firmantes"])
    address = f"{REQUESTS}/{signed['procesoId']}"
    change = {"mensaje": "Antes del viernes"}
    backend.client.patch(address, json=change).raise_for_status()
    _wait_until_asked(appliance, first)
    with appliance.client(ana) as client:
        client.get(f"/solicitudes/{first}/original").raise_for_status()
    sign(appliance, ana, first)
    _wait_until_asked(appliance, second)
    sign(appliance, luis, second)
    rejected = backend.made(pdfs.one_page(), luis, ana)
    refused = rejected["firmantes"][0]["solicitudId"]
    _wait_until_asked(appliance, refused)
    with appliance.client(luis) as client:
        client.post(
            f"/solicitudes/{refused}/rechazar", json={"motivo": "No es mío"}
        ).raise_for_status()
    cancelled = backend.made(pdfs.one_page(), ana)
    _wait_until_asked(appliance, cancelled["firmantes"][0]["solicitudId"])
    backend.client.post(
        f"{REQUESTS}/{cancelled['procesoId']}/cancel", json={"motivo": "Era otra"}
    ).raise_for_status()
    made = (signed, rejected, cancelled)
    return [backend.read(each["procesoId"]) for each in made]


def _about(mail: Any) -> list[int]:
    """The requests that a mail tells of."""
    return [mail.request, *mail.detail.get("also", [])]


def _wait_until_asked(appliance: Appliance, request: int) -> None:
    """A request that ends before its mail is made has none."""
    deadline = time.monotonic() + _AT_MOST_S
    while not any(mail.kind == "request" for mail in _mails(appliance, [request])):
        assert time.monotonic() < deadline, request


def test_history_webhooks_and_mails_agree_with_the_audit(
    telling: Appliance,
    backend: TestBackend,
    people: list[TestPerson],
    server: TestMailServer,
) -> None:
    """Event by event: nothing is missing, nothing is more, nothing is another."""
    with receiving(204) as (url, came):
        answer = backend.client.post(_WEBHOOKS, json={"url": url})
        webhook = answer.raise_for_status().json()["webhookId"]
        processes = _live(telling, backend, people)
        signers = [each for process in processes for each in process["firmantes"]]
        requests = [each["solicitudId"] for each in signers]
        rows = _rows(telling, requests)
        audited = Counter(map(_said, rows))
        sent = _deliveries(backend, webhook, len(rows) + 1)
        mails = _ended_mails(telling, requests)

    for each in sent:
        documented_messages.check(each["cuerpo"])
    # That all have signed is told besides: it follows from what the audit has.
    deliveries = [each for each in sent if each["tipo"] != _COMPLETED]
    (completed,) = [each for each in sent if each["tipo"] == _COMPLETED]
    assert completed["solicitudId"] == processes[0]["firmantes"][-1]["solicitudId"]
    events = [event for process in processes for event in process["historia"]]
    assert Counter(map(_of_history, events)) == audited
    assert Counter(_of_message(each["cuerpo"]) for each in deliveries) == audited
    assert _received(came) == {each["entregaId"]: each["cuerpo"] for each in sent}
    _assert_in_order(processes, rows, deliveries)
    _assert_mailed(rows, signers, mails)
    caught = Counter(mail.message["Message-ID"].strip("<>") for mail in server.caught)
    for mail in mails:
        # What a mail would ask for may be over before it is sent.
        assert mail.state in {"sent", "withdrawn"}
        assert caught[f"{mail.id}@rubrica.example"] == (mail.state == "sent")
    pdf = backend.client.get(f"{REQUESTS}/{processes[0]['procesoId']}/document")
    assert_valid(telling, pdf.content, 2)


def _assert_mailed(
    rows: list[Any], signers: list[dict[str, Any]], mails: list[Any]
) -> None:
    """Whose turn came was asked, once; all got the copy of what all have signed."""
    first = {each["solicitudId"] for each in signers if each["orden"] == 1}
    asked = {
        row.request
        for row in rows
        if row.event == "request.turn"
        or (row.event == "request.created" and row.request in first)
    }
    done = {each["solicitudId"] for each in signers if each["estado"] == "firmada"}
    told = Counter((request, mail.kind) for mail in mails for request in _about(mail))
    assert told == Counter(
        [(request, "request") for request in asked]
        + [(request, "signed") for request in done]
        + [(row.request, "cancelled") for row in rows if _ends_asked(row, asked)]
    )


def _ends_asked(row: Any, asked: set[int]) -> bool:
    """Whether it takes back what somebody was asked to sign."""
    return row.event == "request.cancelled" and row.request in asked


def _received(came: "Queue[Received]") -> dict[str, Any]:
    """What reached the receiver, by its id."""
    found = {}
    while not came.empty():
        headers, body = came.get()
        found[headers["webhook-id"]] = json.loads(body)
    return found


def _ended_mails(appliance: Appliance, requests: list[int]) -> list[Any]:
    """The mails, once none waits."""
    deadline = time.monotonic() + _AT_MOST_S
    while time.monotonic() < deadline:
        mails = _mails(appliance, requests)
        if mails and all(mail.state != "pending" for mail in mails):
            return mails
    raise AssertionError([(mail.request, mail.kind, mail.state) for mail in mails])


def _assert_in_order(
    processes: list[dict[str, Any]],
    rows: list[Any],
    deliveries: list[dict[str, Any]],
) -> None:
    """Of each request, and at the times that the audit has."""
    for process in processes:
        for signer in process["firmantes"]:
            request = signer["solicitudId"]
            audited = [row for row in rows if row.request == request]
            told = [e for e in process["historia"] if e["solicitudId"] == request]
            sent = [d["cuerpo"] for d in deliveries if d["solicitudId"] == request]
            names = [_TOLD[row.event][0] for row in audited]
            assert [event["evento"] for event in told] == names
            assert [body["type"].partition(".")[2] for body in sent] == names
            times = [row.at.strftime("%Y-%m-%dT%H:%M:%S") for row in audited]
            assert [event["cuando"][:19] for event in told] == times
            assert [body["timestamp"][:19] for body in sent] == times
