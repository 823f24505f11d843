"""Clients that leave, that ask twice, and that ask at the same time.

Source: decisions "repeating firmar"; design §3 "A client that hangs up".
"""

import asyncio
from collections import Counter
from typing import Any

import httpx
import pytest

from appliance.domain.vocab import IntentState, RequestState
from tests.support.appliance.appliance import Appliance, TestPerson
from tests.support.appliance.ledger import Ledger, read_ledger
from tests.support.documents import pdfs
from tests.support.faults.fault_injection import until
from tests.support.faults.retrying_callers import LET_IN
from tests.support.patience import CALL_S

SIGN = "/solicitudes/firmar"
_FULL = 503
_PATIENCE_S = 120
"""After which a test gives up on a place; calls that wait for one have 60 s each."""


def body(request: int, person: TestPerson, **fields: object) -> dict[str, object]:
    """A signing command."""
    return {
        "solicitudId": request,
        "password": person.signing_password,
        **fields,
    }


async def post_all(
    appliance: Appliance, token: str, bodies: list[dict[str, object]]
) -> list[tuple[int, dict[str, Any]]]:
    """Send several commands at once; status and body of each answer."""
    headers = {"Authorization": f"Bearer {token}"}
    async with httpx.AsyncClient(
        base_url=appliance.base_url, headers=headers, timeout=CALL_S
    ) as client:
        answers = await asyncio.gather(*(client.post(SIGN, json=b) for b in bodies))
    return [(answer.status_code, answer.json()) for answer in answers]


def assert_signed_once(appliance: Appliance, requests: list[int]) -> Ledger:
    """One completed use of a key each, and a clean ledger."""
    ledger = read_ledger(appliance, after=min(requests) - 1)
    for request in requests:
        assert ledger.attempts(request) == [IntentState.COMPLETED]
    assert ledger.faults() == []
    return ledger


async def test_client_that_leaves_changes_nothing(
    sqlite_appliance: Appliance, people: list[TestPerson]
) -> None:
    """Left after 5 to 100 ms: signed or untouched; the repeat gives the document."""
    person = people[0]
    requests = [
        sqlite_appliance.new_request(person, pdfs.one_page()) for _ in range(20)
    ]
    token = sqlite_appliance.bearer(person)
    headers = {"Authorization": f"Bearer {token}"}

    left = 0
    for number, request in enumerate(requests, start=1):
        async with httpx.AsyncClient(
            base_url=sqlite_appliance.base_url, headers=headers, timeout=number * 0.005
        ) as client:
            try:
                await client.post(SIGN, json=body(request, person))
            except httpx.TimeoutException:
                left += 1
    # Whatever was begun goes on without its caller.
    until(
        lambda: not read_ledger(sqlite_appliance).with_state(RequestState.IN_PROGRESS)
    )
    signed = {
        r.id for r in read_ledger(sqlite_appliance).with_state(RequestState.SIGNED)
    }
    # A call whose client left holds its place until it ends, so a repeat may be told to
    # come again (docs/limits.md). It does, as any client may, until it has an answer.
    waiting, answers = list(requests), Counter[int]()
    async with asyncio.timeout(_PATIENCE_S):
        while waiting:
            some = waiting[:LET_IN]
            bodies = [body(request, person) for request in some]
            given = await post_all(sqlite_appliance, token, bodies)
            told = {r: status for r, (status, _) in zip(some, given, strict=True)}
            answers.update(status for status in told.values() if status != _FULL)
            waiting = [r for r in waiting if told.get(r, _FULL) == _FULL]

    assert left > 0
    assert signed.intersection(requests)
    assert answers == {200: len(requests)}
    assert_signed_once(sqlite_appliance, requests)


async def test_same_command_many_times_at_once_signs_once(
    sqlite_appliance: Appliance, people: list[TestPerson]
) -> None:
    """50 equal calls in parallel, and one after: the same document for all."""
    person = people[1]
    request = sqlite_appliance.new_request(person, pdfs.one_page())
    token = sqlite_appliance.bearer(person)

    answers = await post_all(sqlite_appliance, token, [body(request, person)] * 50)
    answers += await post_all(sqlite_appliance, token, [body(request, person)])

    assert Counter(status for status, _ in answers) == {200: 51}
    assert len({answer["sha256"] for _, answer in answers}) == 1
    assert_signed_once(sqlite_appliance, [request])


async def test_different_commands_at_once_sign_one_of_them(
    sqlite_appliance: Appliance, people: list[TestPerson]
) -> None:
    """Whichever came first is signed; the other is told so."""
    person = people[2]
    request = sqlite_appliance.new_request(person, pdfs.one_page())
    token = sqlite_appliance.bearer(person)
    one, other = (body(request, person, fontSize=size) for size in (10, 14))

    answers = await post_all(sqlite_appliance, token, [one, other] * 10)

    told = Counter(answer.get("code", "") for _, answer in answers)
    assert set(told) <= {"", "IN_PROGRESS", "ALREADY_SIGNED"}
    assert told[""] == 10
    assert {s for s, answer in answers if "code" in answer} == {409}
    assert len({answer["sha256"] for s, answer in answers if s == 200}) == 1
    assert_signed_once(sqlite_appliance, [request])


@pytest.mark.parametrize("copies", [1, 20])
async def test_key_of_a_repeated_call_is_honoured(
    sqlite_appliance: Appliance, people: list[TestPerson], copies: int
) -> None:
    """One Idempotency-Key: the same document, and no other content under it."""
    person = people[3]
    first, second = (
        sqlite_appliance.new_request(person, pdfs.one_page()) for _ in range(2)
    )
    headers = {
        "Authorization": f"Bearer {sqlite_appliance.bearer(person)}",
        "Idempotency-Key": f"repeat-{first}",
    }
    async with httpx.AsyncClient(
        base_url=sqlite_appliance.base_url, headers=headers, timeout=CALL_S
    ) as client:
        same = await asyncio.gather(
            *(client.post(SIGN, json=body(first, person)) for _ in range(copies))
        )
        other = await client.post(SIGN, json=body(second, person))

    assert {answer.status_code for answer in same} == {200}
    assert other.status_code == 409
    assert other.json()["code"] == "IDEMKEY_CONFLICT"
    assert_signed_once(sqlite_appliance, [first])
