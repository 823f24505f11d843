"""Many documents by one call, its workers killed midway, others signing meanwhile.

Source: decisions "several at once"; design §3.
"""

import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import httpx
import pytest

from appliance.database import tables
from appliance.domain.signing.activation import MOST_DOCUMENTS, activation_count
from appliance.domain.vocab import EventKind, IntentState
from tests.support.appliance.appliance import Appliance, TestPerson
from tests.support.appliance.backends import BATCHES, backend_of, ready_batch
from tests.support.appliance.http_calls import problem, sign_at_last
from tests.support.appliance.ledger import Ledger, read_ledger
from tests.support.documents import pdfs
from tests.support.faults.fault_injection import frozen, order_crash, until
from worker.failpoints import AFTER_SIGN, BEFORE_SIGN, FREEZE, ONCE, POINTS

DONE, INTERRUPTED = IntentState.COMPLETED, IntentState.INTERRUPTED
LOTE = "/solicitudes/firmar/lote"
BAD = 2


def batch(person: TestPerson, requests: list[int], **fields: object) -> dict[str, Any]:
    """A body of firmar/lote."""
    required = {"solicitudIds": requests, "password": person.signing_password}
    return {**required, **fields}


def sign_all(client: httpx.Client, body: dict[str, Any]) -> dict[str, Any]:
    """Call firmar/lote and look again until it is over."""
    answer = client.post(LOTE, json=body)
    assert answer.status_code in {200, 202}, answer.text
    while answer.json()["status"] == "en_proceso":
        time.sleep(float(answer.headers["Retry-After"]))
        answer = client.get(f"/solicitudes/lotes/{answer.json()['loteId']}")
        assert answer.status_code == 200, answer.text
    told: dict[str, Any] = answer.json()
    return told


def signed_in_order(ledger: Ledger, requests: list[int]) -> list[int]:
    """Those of some requests that were signed, the first one first."""
    events = [
        row
        for row in ledger.of(tables.audit_event)
        if row.event == EventKind.REQUEST_SIGNED.value and row.request in set(requests)
    ]
    return [row.request for row in sorted(events, key=lambda row: row.at)]


@pytest.mark.parametrize(
    "count",
    [12, pytest.param(200, marks=[pytest.mark.long, pytest.mark.timeout(600)])],
)
def test_batch_whose_workers_die_is_signed_in_order(
    postgres_appliance: Appliance, count: int
) -> None:
    """Each document once, the bad ones named; somebody else waits for none of it."""
    person, other = postgres_appliance.new_person(), postgres_appliance.new_person()
    good = postgres_appliance.new_requests(person, pdfs.pages(2), count - BAD)
    short = postgres_appliance.new_request(person, pdfs.one_page())
    strange, alone = postgres_appliance.new_requests(other, pdfs.one_page(), 2)
    requests = [*good[:1], short, *good[1:-1], strange, good[-1]]
    body = batch(person, requests, page=2)
    killing, freezing = good[count // 3], good[2 * count // 3]
    order_crash(postgres_appliance, f"{AFTER_SIGN}-{killing}", ONCE)
    order = order_crash(postgres_appliance, f"{BEFORE_SIGN}-{freezing}", FREEZE)

    with (
        postgres_appliance.client(person) as client,
        postgres_appliance.client(other) as single,
        ThreadPoolExecutor(1) as pool,
    ):
        call = pool.submit(sign_all, client, body)
        until(lambda: not order.exists() and bool(frozen(postgres_appliance)))
        # Its worker stands still, the lease holds: nothing of it can go on.
        meanwhile = sign_at_last(single, other, alone)
        for worker in frozen(postgres_appliance):
            worker.kill()
        told = call.result()

        again = sign_all(client, {**body, "password": "otra palabra cualquiera"})
        mended = client.post(LOTE, json=batch(person, [short], page=1))

    assert meanwhile.status_code == 200, meanwhile.text
    results = told["resultados"]
    assert [each["solicitudId"] for each in results] == requests
    assert told["status"] == "parcial"
    assert (told["firmadas"], told["fallidas"]) == (count - BAD, BAD)
    named = {each["solicitudId"]: each.get("code") for each in results}
    assert named == {
        **dict.fromkeys(good),
        short: "PAGE_OUT_OF_RANGE",
        strange: "SOLICITUD_NOT_FOUND",
    }
    assert [*map(_but_link, again["resultados"])] == [*map(_but_link, results)]
    assert mended.json()["status"] == "success"
    ledger = read_ledger(postgres_appliance, after=good[0] - 1)
    # Of a larger one several workers sign some, and the two are not of one group.
    is_one = activation_count(count) == 1
    if is_one:
        assert signed_in_order(ledger, good) == good
    assert signed_in_order(ledger, [alone, freezing]) == [alone, freezing]
    # Twice where both were of one group, whose size follows the pace of the machine.
    *interrupted, last = ledger.attempts(killing)
    assert last == DONE
    assert interrupted in ([INTERRUPTED], [INTERRUPTED] * 2)
    assert ledger.attempts(freezing) == [INTERRUPTED, DONE]
    # One check for the whole batch, and one to mend what failed of it.
    slots = Counter(row.person for row in ledger.of(tables.attempt_slot))
    assert slots[person.id] == 2
    assert ledger.faults() == []


@pytest.mark.full
@pytest.mark.parametrize("point", POINTS)
def test_worker_that_dies_within_a_group_loses_and_doubles_none(
    postgres_appliance: Appliance, point: str
) -> None:
    """At each of its commits, and after some of its signatures were made."""
    person = postgres_appliance.new_person()
    requests = postgres_appliance.new_requests(person, pdfs.one_page(), 6)
    order = order_crash(postgres_appliance, f"{point}-{requests[3]}", ONCE)

    with postgres_appliance.client(person) as client:
        told = sign_all(client, batch(person, requests))

    assert not order.exists()
    assert told["status"] == "success"
    ledger = read_ledger(postgres_appliance, after=requests[0] - 1)
    assert ledger.faults() == []
    before_it_is_kept = point in {BEFORE_SIGN, AFTER_SIGN}
    expected = [INTERRUPTED, DONE] if before_it_is_kept else [DONE]
    assert ledger.attempts(requests[3]) == expected
    # A slow machine makes groups of less than all of them.
    for each in requests:
        assert ledger.attempts(each) in ([DONE], expected)


@pytest.mark.full
def test_whole_batch_whose_worker_dies_is_signed(
    postgres_appliance: Appliance,
) -> None:
    """One that a backend asked for, of several activations: each document once."""
    person = postgres_appliance.new_person()
    with (
        backend_of(postgres_appliance) as backend,
        postgres_appliance.client(person) as client,
    ):
        uploaded = backend.client.post(
            "/api/integration/documents", files={"file": ("a.pdf", pdfs.one_page())}
        ).json()
        document = {"documentoId": uploaded["documentoId"]}
        answer = backend.client.post(
            BATCHES,
            json={
                "firmante": {"cuil": person.cuil},
                "documentos": [document] * (2 * MOST_DOCUMENTS),
            },
        )
        made = ready_batch(backend.client, answer)
        requests = [each["solicitudId"] for each in made["solicitudes"]]
        order = order_crash(postgres_appliance, f"{AFTER_SIGN}-{requests[40]}", ONCE)
        body = {"loteId": made["loteId"], "password": person.signing_password}
        told = sign_all(client, body)
        again = sign_all(client, body)

    assert not order.exists()
    assert told["status"] == "success"
    assert [each["solicitudId"] for each in told["resultados"]] == requests
    assert [*map(_but_link, again["resultados"])] == [
        *map(_but_link, told["resultados"])
    ]
    ledger = read_ledger(postgres_appliance, after=requests[0] - 1)
    assert ledger.attempts(requests[40]) == [INTERRUPTED, DONE]
    assert ledger.faults() == []


def test_wrong_password_refuses_a_batch(postgres_appliance: Appliance) -> None:
    """As one document's; nothing of it is begun."""
    person = postgres_appliance.new_person()
    requests = postgres_appliance.new_requests(person, pdfs.one_page(), 3)
    body = {**batch(person, requests), "password": "otra palabra cualquiera"}
    with postgres_appliance.client(person) as client:
        refused = problem(client.post(LOTE, json=body), 403, "SIGN_PASSWORD_WRONG")
        told = sign_all(client, batch(person, requests))

    assert refused["attemptsLeft"] == 9
    assert told["status"] == "success"


def _but_link(told: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in told.items() if name != "documentoFirmado"}
