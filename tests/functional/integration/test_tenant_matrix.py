"""Every address of the API, by whom it may be called, and about whose things.

What belongs to another tenant is as absent as what does not exist: to the byte, but for
the number of the request.
"""

import json
import re
import secrets
from collections.abc import Iterator
from contextlib import ExitStack
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

import httpx
import pytest

from appliance.bootstrap import ServiceRegistry
from appliance.domain.ids import BatchId
from appliance.domain.requests.signing_batch import BatchRow
from appliance.domain.signing_command import SignParameters
from appliance.signing.batch_store import BatchStore
from tests.functional.integration.tenants import ABSENT, ROWS, About, Row, Tenant
from tests.support.appliance.appliance import Appliance, TestPerson
from tests.support.appliance.backends import backend_of, let_vouch
from tests.support.patience import CALL_S

ROUTES: Final = Path(__file__).parents[2] / "vectors" / "names" / "routes.json"
REFUSED: Final = {401, 403, 404, 405}


class Tenants:
    """Two of them, and how anybody calls."""

    def __init__(
        self, appliance: Appliance, own: tuple[Tenant, str], other: tuple[Tenant, str]
    ) -> None:
        self._appliance = appliance
        self.own, own_key = own
        self.other, other_key = other
        self.headers = {
            "nobody": {},
            "own key": {"X-Api-Key": own_key},
            "other key": {"X-Api-Key": other_key},
            "own signer": _bearer(appliance, self.own),
            "other signer": _bearer(appliance, self.other),
        }

    def call(
        self, route: tuple[str, str], role: str, values: dict[str, str]
    ) -> httpx.Response:
        """Call an address as somebody."""
        method, rule = route
        row = ROWS[route]
        if row.renamed:
            values = {**values, "lote": values[row.renamed]}
        path = re.sub(r"<(?:\w+:)?(\w+)>", lambda name: values[name[1]], rule)
        base = self._appliance.settings.web.web_url
        sent: dict[str, Any] = {"headers": dict(self.headers[role])}
        if row.json is not None:
            sent["json"] = _filled(row.json, values)
        if row.content is not None:
            sent["content"] = row.content
            sent["headers"]["Content-Type"] = "application/pdf"
        if rule.endswith("/session/new"):
            sent["params"] = {"id": self.own.backend.code}
        return httpx.request(method, f"{base}{path}", timeout=CALL_S, **sent)


def _bearer(appliance: Appliance, tenant: Tenant) -> dict[str, str]:
    return {"Authorization": f"Bearer {appliance.bearer(tenant.person)}"}


def _filled(body: Any, values: dict[str, str]) -> Any:
    """A body with the values of its parameters."""
    if isinstance(body, dict):
        return {name: _filled(value, values) for name, value in body.items()}
    if isinstance(body, list):
        return [_filled(value, values) for value in body]
    if isinstance(body, str) and body.startswith("<"):
        value = values[body.strip("<>")]
        return int(value) if body == "<solicitud>" else value
    return body


def command_of(appliance: Appliance, person: TestPerson) -> str:
    """A command of somebody's for several requests, as one that goes on is kept."""
    row = BatchRow(
        id=BatchId(secrets.token_hex(16)),
        person=person.id,
        requests=(),
        params=SignParameters(),
        fingerprints={},
        refused={},
        asked=datetime.now(UTC),
    )

    async def keep(front: ServiceRegistry) -> None:
        async with front.core.store.write() as transaction:
            await BatchStore(transaction).put(row)

    appliance.do(keep)
    return row.id


@pytest.fixture(scope="module")
def tenants(appliance: Appliance) -> Iterator[Tenants]:
    """Two integrators, a person of each."""
    with ExitStack() as stack:
        made = []
        for name in ("Ana Ruiz", "Luis Paz"):
            backend = stack.enter_context(backend_of(appliance))
            # What is made for a test and what it calls have a rate each.
            called = stack.enter_context(backend_of(appliance, code=backend.code))
            person = appliance.new_person(name)
            credential = appliance.credential(person).id
            tenant = Tenant(appliance, backend, person, {"credencial": credential})
            tenant.names["command"] = command_of(appliance, person)
            made.append((tenant, called.key.secret))
        let_vouch(made[0][0].backend)
        yield Tenants(appliance, *made)


def routes() -> list[tuple[str, str]]:
    """Method and address of every route of the API."""
    found = json.loads(ROUTES.read_text(encoding="utf-8"))["api"]
    return [
        (method, rule)
        for rule, *methods in (line.split() for line in found)
        for method in methods
        if method not in {"HEAD", "OPTIONS"}
    ]


def test_every_address_has_a_row() -> None:
    """And every row is of one."""
    assert set(ROWS) == set(routes())


def _of(*kinds: About) -> list[Any]:
    return [
        pytest.param(route, id=" ".join(route))
        for route, row in sorted(ROWS.items())
        if row.about in kinds
    ]


def told(answer: httpx.Response) -> object:
    """What an answer says, but for what is of the call alone."""
    if "json" not in answer.headers.get("Content-Type", ""):
        return answer.status_code
    members = answer.json()
    if isinstance(members, dict):
        members.pop("requestId", None)
    return answer.status_code, members


@pytest.mark.parametrize("route", _of(About.ANYBODY))
def test_who_calls_makes_no_difference(
    tenants: Tenants, route: tuple[str, str]
) -> None:
    """Where an address is for anybody, a key or a bearer opens nothing more."""
    values = tenants.own.fresh(route)

    statuses = {
        role: tenants.call(route, role, values).status_code for role in tenants.headers
    }

    assert len(set(statuses.values())) == 1, statuses


@pytest.mark.parametrize(
    "route", _of(About.BACKEND, About.BACKEND_LIST, About.BACKEND_CALL)
)
def test_backends_calls_are_for_keys_alone(
    tenants: Tenants, route: tuple[str, str]
) -> None:
    """Nobody and no signer gets further than that, about whatever."""
    things = tenants.own.fresh(route)
    for role in ("nobody", "own signer", "other signer"):
        for values in (things, {**things, **ABSENT}):
            answer = tenants.call(route, role, values)

            assert answer.status_code == 401, (role, answer.text)


@pytest.mark.parametrize(
    "route", _of(About.SIGNER, About.SIGNER_LIST, About.SIGNER_CALL)
)
def test_signers_calls_are_for_signers_alone(
    tenants: Tenants, route: tuple[str, str]
) -> None:
    """Nobody and no key gets further than that, about whatever."""
    things = tenants.own.fresh(route)
    for role in ("nobody", "own key", "other key"):
        for values in (things, {**things, **ABSENT}):
            answer = tenants.call(route, role, values)

            assert answer.status_code == 401, (role, answer.text)


@pytest.mark.parametrize("route", _of(About.BACKEND, About.SIGNER))
def test_what_is_anothers_is_as_absent_as_what_is_not(
    tenants: Tenants, route: tuple[str, str]
) -> None:
    """The other tenant is told the same of both; the own one gets further."""
    who = "key" if ROWS[route].about is About.BACKEND else "signer"
    values = tenants.own.fresh(route)

    foreign = tenants.call(route, f"other {who}", values)
    absent = tenants.call(route, f"other {who}", {**values, **ABSENT})
    own = tenants.call(route, f"own {who}", values)
    own_absent = tenants.call(route, f"own {who}", {**values, **ABSENT})

    assert foreign.status_code == 404, foreign.text
    assert told(foreign) == told(absent) == told(own_absent)
    assert own.status_code not in REFUSED, own.text
    assert own.status_code < 500, own.text


@pytest.mark.parametrize("route", _of(About.BACKEND_LIST, About.SIGNER_LIST))
def test_lists_have_what_is_the_callers(
    tenants: Tenants, route: tuple[str, str]
) -> None:
    """And nothing of anybody else's."""
    row: Row = ROWS[route]
    who = "key" if row.about is About.BACKEND_LIST else "signer"
    own, other = tenants.own.fresh(route)[row.ids], tenants.other.fresh(route)[row.ids]

    seen = {
        role: {
            str(each[row.member])
            for each in tenants.call(route, f"{role} {who}", {}).json()
        }
        for role in ("own", "other")
    }

    assert own in seen["own"]
    assert other in seen["other"]
    assert not seen["own"] & seen["other"]


@pytest.mark.parametrize("route", _of(About.BACKEND_CALL))
def test_what_keys_may_ask_they_may(tenants: Tenants, route: tuple[str, str]) -> None:
    """Each for its own integrator; `session/new` names whose it is to be."""
    values = tenants.own.fresh(route)

    own = tenants.call(route, "own key", values)
    other = tenants.call(route, "other key", values)

    assert own.status_code < 300, own.text
    match route:
        case (_, path) if path.endswith("/session/new"):
            assert other.status_code == 401
        case ("PUT", _):
            # That right was given to one of them.
            assert other.status_code == 403
        case _:
            assert other.status_code < 300, other.text


@pytest.mark.parametrize("route", _of(About.SIGNER_CALL))
def test_what_signers_may_do_they_may(tenants: Tenants, route: tuple[str, str]) -> None:
    """An empty body is told what it lacks, after who asks was let in."""
    for role in ("own signer", "other signer"):
        answer = tenants.call(route, role, tenants.own.fresh(route))

        assert answer.status_code == 400, answer.text
