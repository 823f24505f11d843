"""How often a signer may call, and how it is told.

Source: docs/api.md "List"; draft-ietf-httpapi-ratelimit-headers-10.
"""

import re
from collections.abc import Iterator
from typing import Final

import httpx
import pytest

from tests.support.appliance.appliance import Appliance, TestPerson
from tests.support.appliance.http_calls import problem, sign, state_of
from tests.support.appliance.rate_windows import in_one_minute
from tests.support.documents import pdfs
from tests.support.documents.validators import pdfsig, pyhanko_valid
from tests.support.processes.scratch import short_folder

_COMMANDS: Final = 3
_LISTS: Final = 5


@pytest.fixture(scope="module")
def limited() -> Iterator[Appliance]:
    """An appliance of low rates."""
    rates = f"commands_per_minute = {_COMMANDS}\nlists_per_minute = {_LISTS}"
    with short_folder() as folder, Appliance.made(folder, rates=rates) as appliance:
        yield appliance


@pytest.fixture
def person(limited: Appliance) -> TestPerson:
    """Somebody who has called for nothing yet."""
    return limited.new_person()


@pytest.fixture
def client(limited: Appliance, person: TestPerson) -> Iterator[httpx.Client]:
    """That person's."""
    with limited.client(person) as opened:
        yield opened


def test_commands_beyond_the_rate_are_told_when(limited: Appliance) -> None:
    """Of one request and of several alike; what is refused leaves no trace."""

    def call() -> tuple[TestPerson, list[int], list[httpx.Response]]:
        person = limited.new_person()
        requests = limited.new_requests(person, pdfs.one_page(), 5)
        password = {"password": person.signing_password}
        some = {**password, "solicitudIds": requests[1:3]}
        more = {**password, "solicitudIds": requests[3:]}
        with limited.client(person) as client:
            return (
                person,
                requests,
                [
                    sign(client, person, requests[0]),
                    client.post("/solicitudes/firmar/lote", json=some),
                    sign(client, person, requests[3], password="no es la clave"),
                    sign(client, person, requests[3]),
                    client.post("/solicitudes/firmar/lote", json=more),
                ],
            )

    person, requests, answers = in_one_minute(call)
    first, several, wrong, *refused = answers

    assert first.headers["RateLimit-Policy"] == f'"firmar";q={_COMMANDS};w=60'
    assert re.fullmatch(r'"firmar";r=2;t=\d+', first.headers["RateLimit"])
    assert several.status_code in {200, 202}
    assert several.headers["RateLimit"].startswith('"firmar";r=1;')
    problem(wrong, 403, "SIGN_PASSWORD_WRONG")
    for answer in refused:
        problem(answer, 429, "RATE_LIMITED")
        assert 1 <= int(answer.headers["Retry-After"]) <= 120
        assert answer.headers["RateLimit"].startswith('"firmar";r=0;t=')
    with limited.client(person) as client:
        left = {state_of(client, request) for request in requests[3:]}
        document = client.get(f"/solicitudes/{requests[0]}/documento").content
    assert left == {"pendiente"}
    assert pdfsig(document)[0].valid
    assert pyhanko_valid(document, limited.roots)


def test_lists_have_a_rate_of_their_own(limited: Appliance) -> None:
    """Another person's are counted apart, and so is all else of this one's."""

    def call() -> tuple[list[httpx.Response], httpx.Response]:
        with limited.client(limited.new_person()) as client:
            lists = [client.get("/solicitudes") for _ in range(_LISTS + 1)]
            return lists, client.get("/solicitudes/1")

    answers, one = in_one_minute(call)

    assert [each.status_code for each in answers[:_LISTS]] == [200] * _LISTS
    assert answers[0].headers["RateLimit-Policy"] == f'"listar";q={_LISTS};w=60'
    problem(answers[_LISTS], 429, "RATE_LIMITED")
    problem(one, 404, "SOLICITUD_NOT_FOUND")
    with limited.client(limited.new_person()) as other:
        assert other.get("/solicitudes").status_code == 200


def test_who_is_nobody_takes_nothing(client: httpx.Client) -> None:
    """A call without a token, or with a wrong one, is refused before it is counted."""
    strange = {"Authorization": "Bearer x"}
    for _ in range(_LISTS + 1):
        answer = client.get("/solicitudes", headers=strange)
        problem(answer, 401, "TOKEN_INVALID")

    assert client.get("/solicitudes").headers["RateLimit"].startswith('"listar";r=4;')
