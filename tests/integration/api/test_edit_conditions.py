"""`ETag` and `If-Match` of what integrators' backends change, on both databases."""

import asyncio
import json
import re
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import pytest

from appliance.api.declaring.operation import Operation
from appliance.api.openapi.document import OPERATIONS
from appliance.api.wire.versions import VERSIONED
from appliance.database.rights import RIGHTS, Role
from appliance.domain.console.edit_subjects import Subject
from appliance.domain.errors import ErrorCode
from appliance.domain.integrators.api_keys import ApiKeyScope
from appliance.webhooks.endpoints import EndpointChange
from appliance.webhooks.message_queue import MessageQueue
from tests.support.documents import pdfs
from tests.support.installation.api import ApiServices, code, create_api
from tests.support.installation.installation import Installation

BASE: Final = "/api/integration"
CUIL: Final = "20-05536168-2"
CHANGING: Final = frozenset({"PUT", "PATCH", "DELETE"})
ROUNDS: Final = 5
"""Changes that each of two backends makes."""
WORD: Final = {
    "nombre": "Ana Núñez",
    "email": "ana@demo.example",
    "identidad": {
        "metodo": "DNI",
        "responsable": "Mesa de entradas",
        "cuando": "2026-01-01T12:00:00Z",
    },
}
"""What is said of somebody who is vouched for."""


@dataclass
class Backend:
    """An integrator's backend."""

    services: ApiServices
    client: Any
    key: str

    async def call(
        self, method: str, path: str, body: object = None, tag: str | None = None
    ) -> Any:
        """Call an address, with `If-Match` if a tag is given."""
        headers = {"X-Api-Key": self.key}
        if tag is not None:
            headers["If-Match"] = tag
        sent = {} if body is None else {"json": body}
        return await self.client.open(
            f"{BASE}{path}", method=method, headers=headers, **sent
        )

    async def made(self, path: str, body: object, member: str) -> str:
        """Make something and return its id."""
        answer = await self.call("POST", path, body)
        told = json.loads(await answer.get_data())
        assert answer.status_code == 201, told
        return str(told[member])

    async def tag(self, path: str) -> str:
        """Read something and return its tag."""
        answer = await self.call("GET", path)
        assert answer.status_code == 200, await answer.get_data()
        return str(answer.headers["ETag"])

    async def webhook(self, **fields: object) -> str:
        """Return the path of a new webhook."""
        body = {"url": "https://app.example/rubrica", **fields}
        return f"/webhooks/{await self.made('/webhooks', body, 'webhookId')}"

    async def test_signer(self) -> str:
        """Return the path of a new test signer."""
        return f"/test/signers/{await self.made('/test/signers', {}, 'cuil')}"

    async def document(self) -> str:
        """Return the path of a new document."""
        answer = await self.client.post(
            f"{BASE}/documents?nombre=a.pdf",
            headers={"X-Api-Key": self.key, "Content-Type": "application/pdf"},
            data=pdfs.one_page(),
        )
        told = json.loads(await answer.get_data())
        assert answer.status_code == 201, told
        return f"/documents/{told['documentoId']}"

    async def request(self) -> str:
        """Return the path of a new request."""
        cuil = (await self.test_signer()).rpartition("/")[2]
        document = (await self.document()).rpartition("/")[2]
        body = {
            "documento": {"documentoId": document},
            "firmantes": [{"cuil": cuil}],
            "metadatos": {"a": "0"},
        }
        return f"/requests/{await self.made('/requests', body, 'procesoId')}"


async def backend_of(services: ApiServices, name: str) -> Backend:
    """Return the backend of a new integrator."""
    integrators = services.integrators
    await integrators.create("operator", name, name)
    await integrators.change("operator", name, may_vouch=True)
    scopes = tuple(ApiKeyScope)
    made = await integrators.create_key("operator", name, "k", scopes=scopes)
    client = create_api(services).test_client(use_cookies=False)
    return Backend(services, client, made.secret)


@pytest.fixture
async def backend(api_services: ApiServices) -> Backend:
    """The backend of an integrator."""
    return await backend_of(api_services, "acme")


@pytest.fixture
async def each_backend(tmp_path: Path, each_url: str) -> AsyncIterator[Backend]:
    """The same on each database."""
    async with Installation(tmp_path, database={"url": each_url}).api() as services:
        yield await backend_of(services, "acme")


@dataclass(frozen=True)
class Change:
    """A call that changes something, and what of it is told beside what is stored."""

    body: dict[str, Any] | None = None
    compared: tuple[str, ...] = ()
    """Members of `yours`."""


CHANGES: Final[dict[str, Change]] = {
    "changeWebhook": Change({"nombre": "mío", "habilitado": False}, ("nombre",)),
    "deleteWebhook": Change(),
    "changeRequest": Change({"metadatos": {"a": "1"}}, ("metadatos",)),
    "deleteDocument": Change(),
    "vouchForSigner": Change(WORD),
    "deleteTestSigner": Change(),
}
"""By operation."""


async def path_for(backend: Backend, operation: str) -> str:
    """Make what an operation changes and return its path."""
    match operation:
        case "changeWebhook" | "deleteWebhook":
            return await backend.webhook()
        case "changeRequest":
            return await backend.request()
        case "deleteDocument":
            return await backend.document()
        case "deleteTestSigner":
            return await backend.test_signer()
        case _:
            return f"/signers/{CUIL}"


SHOWN: Final[dict[Subject, dict[str, str]]] = {
    Subject.WEBHOOK: {
        "url": "url",
        "label": "nombre",
        "events": "eventos",
        "disabled": "deshabilitado",
        "former_until": "secretoAnteriorHasta",
    },
    Subject.PROCESS: {
        "reference": "referencia",
        "unique": "referenciaUnica",
        "metadata": "metadatos",
        "language": "idioma",
        "message": "mensaje",
        "expires": "vence",
    },
    Subject.UPLOAD: {"name": "nombre", "document": "sha256"},
    Subject.SIGNER: {"state": "estado"},
}
"""By subject and versioned value: the member of the answer that shows it."""
UNSHOWN: Final = {
    (Subject.SIGNER, "link"): "an enrolment link is a secret; `PUT` makes another one",
}
"""Versioned values that no answer shows, and why they count."""
MOVED_BY_WORKERS: Final = {
    (Subject.WEBHOOK, "disabled"): "`PATCH` sets it, and `current` has `habilitado`",
    (Subject.SIGNER, "state"): "chores disable test signers in PROD alone",
}
"""Versioned columns that a worker may move, and why they count."""
TABLES: Final = {
    Subject.WEBHOOK: "webhook_endpoint",
    Subject.PROCESS: "signing_process",
    Subject.UPLOAD: "uploaded_document",
    Subject.SIGNER: "person",
}


def columns_of_workers(table: str) -> set[str]:
    """Return the columns of a table that workers may change."""
    given = (RIGHTS[table].get(role, "") for role in (Role.CHORES, Role.SIGNING))
    lists = re.findall(r"UPDATE \(([^)]*)\)", " ".join(given))
    return {column for each in lists for column in each.split(", ")}


@pytest.mark.parametrize("subject", VERSIONED)
async def test_versioned_values_are_shown_and_do_not_move_by_themselves(
    backend: Backend, subject: Subject
) -> None:
    """Else a call is refused as too late, with what its backend read before."""
    operation = {
        Subject.WEBHOOK: "changeWebhook",
        Subject.PROCESS: "changeRequest",
        Subject.UPLOAD: "deleteDocument",
        Subject.SIGNER: "vouchForSigner",
    }[subject]
    answer = await backend.call("GET", await path_for(backend, operation))
    shown = json.loads(await answer.get_data())

    for name in VERSIONED[subject]:
        if (subject, name) not in UNSHOWN:
            assert SHOWN[subject][name] in shown, name
        is_moved = name in columns_of_workers(TABLES[subject])
        assert is_moved == ((subject, name) in MOVED_BY_WORKERS), name


@pytest.mark.storage
async def test_tag_of_a_webhook_outlives_its_deliveries(each_backend: Backend) -> None:
    """That one failed or arrived is nothing that a call can change."""
    path = await each_backend.webhook()
    endpoint, store = path.rpartition("/")[2], each_backend.services.store
    tag = await each_backend.tag(path)

    async with store.write() as transaction:
        await MessageQueue(transaction).failed(endpoint, transaction.clock.now())
    failing = await each_backend.call("GET", path)
    changed = await each_backend.call("PATCH", path, {"nombre": "uno"}, tag)
    assert json.loads(await failing.get_data())["fallaDesde"]
    assert changed.status_code == 200, await changed.get_data()

    tag = await each_backend.tag(path)
    async with store.write() as transaction:
        await MessageQueue(transaction).succeeded(endpoint)
    changed = await each_backend.call("PATCH", path, {"nombre": "dos"}, tag)
    assert changed.status_code == 200, await changed.get_data()


def changing() -> list[Operation]:
    """Return the operations of backends that change or remove something."""
    return [
        each
        for each in OPERATIONS
        if each.method in CHANGING and each.path.startswith(BASE)
    ]


def test_every_change_has_a_condition(api_services: ApiServices) -> None:
    """No route is without one: neither in the document nor among the tests here."""
    rules = {
        (method, rule.rule.count("/"))
        for rule in create_api(api_services).url_map.iter_rules()
        for method in (rule.methods or set()) & CHANGING
        if rule.rule.startswith(BASE)
    }

    assert rules == {(each.method, each.path.count("/")) for each in changing()}
    assert {each.name for each in changing()} == CHANGES.keys()
    for each in changing():
        assert "If-Match" in {parameter.name for parameter in each.parameters}, each
        assert ErrorCode.CHANGED_MEANWHILE in each.codes, each
        (read,) = [o for o in OPERATIONS if (o.method, o.path) == ("GET", each.path)]
        assert all("ETag" in told.headers for told in read.told), read


@pytest.mark.parametrize("operation", CHANGES)
async def test_stale_change_is_refused_and_told_of(
    backend: Backend, operation: str
) -> None:
    """Both values, and the tag to go on with; then it is carried out."""
    change, path = CHANGES[operation], await path_for(backend, operation)
    method = next(each.method for each in changing() if each.name == operation)
    tag = await backend.tag(path)

    refused = await backend.call(method, path, change.body, '"old"')
    told = await code(refused, 412)

    assert told["code"] == "CHANGED_MEANWHILE"
    assert told["version"] == tag
    assert told["current"]
    assert set(told["yours"]) >= set(change.compared)
    for name in change.compared:
        assert told["yours"][name] == (change.body or {})[name]
        assert told["current"][name] != told["yours"][name]
    assert await backend.tag(path) == tag

    done = await backend.call(method, path, change.body, tag)
    assert done.status_code in {200, 201, 204}, await done.get_data()


@pytest.mark.parametrize("operation", CHANGES)
@pytest.mark.parametrize("tag", [None, "*"])
async def test_change_without_a_condition_is_as_ever(
    backend: Backend, operation: str, tag: str | None
) -> None:
    """A client that knows of no version works unchanged."""
    change, path = CHANGES[operation], await path_for(backend, operation)
    method = next(each.method for each in changing() if each.name == operation)

    done = await backend.call(method, path, change.body, tag)

    assert done.status_code in {200, 201, 204}, await done.get_data()


@pytest.mark.parametrize("tag", ["old", '"', 'W/"', '"a", "b"', ""])
async def test_malformed_condition_is_refused(backend: Backend, tag: str) -> None:
    """Nothing is changed by a call whose condition cannot be read."""
    path = await backend.webhook()

    refused = await backend.call("PATCH", path, {"nombre": "mío"}, tag)

    assert (await code(refused, 400))["code"] == "BAD_HEADER"


async def test_weak_tag_matches_nothing(backend: Backend) -> None:
    """`If-Match` compares strongly (RFC 9110, 13.1.1)."""
    path = await backend.webhook()
    tag = await backend.tag(path)

    refused = await backend.call("PATCH", path, {"nombre": "mío"}, f"W/{tag}")

    assert (await code(refused, 412))["code"] == "CHANGED_MEANWHILE"


@pytest.mark.parametrize("operation", sorted(CHANGES.keys() - {"vouchForSigner"}))
async def test_values_of_another_integrator_are_not_told(
    backend: Backend, operation: str
) -> None:
    """What is another's is as absent, whatever the condition."""
    path = await path_for(backend, operation)
    other = await backend_of(backend.services, "otro")
    method = next(each.method for each in changing() if each.name == operation)

    for tag in ('"old"', await backend.tag(path)):
        refused = await other.call(method, path, CHANGES[operation].body, tag)
        told = json.loads(await refused.get_data())
        if operation == "deleteTestSigner":
            # Told as of somebody who is not known; of such nothing can be removed.
            assert refused.status_code in {404, 412}, told
            assert told.get("current", {}) in ({}, {"estado": "desconocida"})
        else:
            assert refused.status_code == 404, told
            assert "current" not in told


async def test_tag_of_another_integrators_test_signer_is_a_strangers(
    backend: Backend,
) -> None:
    """It does not say that somebody made such a person up."""
    made = (await backend.test_signer()).rpartition("/")[2]
    other = await backend_of(backend.services, "otro")

    assert await other.tag(f"/signers/{made}") == await other.tag(f"/signers/{CUIL}")
    assert await backend.tag(f"/signers/{made}") != await other.tag(f"/signers/{made}")


async def test_repeated_change_needs_the_new_tag(backend: Backend) -> None:
    """A tag is that of one state; the secret that was rotated changes it, too."""
    path = await backend.webhook()
    tag = await backend.tag(path)
    first = await backend.call("PATCH", path, {"nombre": "uno"}, tag)
    second = await backend.call("PATCH", path, {"nombre": "dos"}, tag)
    tag = await backend.tag(path)
    await backend.call("POST", f"{path}/rotate", {})
    third = await backend.call("DELETE", path, None, tag)

    assert first.status_code == 200
    assert (await code(second, 412))["current"]["nombre"] == "uno"
    assert (await code(third, 412))["code"] == "CHANGED_MEANWHILE"


@pytest.mark.storage
@pytest.mark.parametrize("what", ["webhook", "request"])
async def test_backends_at_once_lose_no_change(
    each_backend: Backend, what: str
) -> None:
    """Each adds one to a number as often as it takes: the sum is right."""
    backend = each_backend
    if what == "webhook":
        path = await backend.webhook(nombre="0")
    else:
        path = await backend.request()

    def number(told: dict[str, Any]) -> int:
        return int(told["nombre"] if what == "webhook" else told["metadatos"]["a"])

    def body(value: int) -> dict[str, Any]:
        text = str(value)
        return {"nombre": text} if what == "webhook" else {"metadatos": {"a": text}}

    async def count() -> None:
        for _ in range(ROUNDS):
            while True:
                read = await backend.call("GET", path)
                told, tag = json.loads(await read.get_data()), read.headers["ETag"]
                sent = body(number(told) + 1)
                answer = await backend.call("PATCH", path, sent, tag)
                if answer.status_code == 200:
                    break
                assert (await code(answer, 412))["code"] == "CHANGED_MEANWHILE"

    await asyncio.gather(count(), count())

    told = json.loads(await (await backend.call("GET", path)).get_data())
    assert number(told) == 2 * ROUNDS


@pytest.mark.storage
async def test_console_and_backend_at_once_lose_no_change(
    each_backend: Backend,
) -> None:
    """The same webhook is changed by an operator, who knows of no version."""
    backend, services = each_backend, each_backend.services
    path = await backend.webhook()
    webhook = path.rpartition("/")[2]
    view = await services.integrators.get("acme")
    for turn in range(ROUNDS):
        tag = await backend.tag(path)
        url = f"https://app.example/{turn}"
        answer, _ = await asyncio.gather(
            backend.call("PATCH", path, {"nombre": f"n{turn}"}, tag),
            services.webhooks.change(
                "operator", view.id, webhook, EndpointChange(url=url)
            ),
        )
        found = await services.webhooks.get(view.id, webhook)
        assert found.url == url
        assert (found.label == f"n{turn}") == (answer.status_code == 200)


@pytest.mark.storage
@pytest.mark.parametrize("path", ["/webhooks/%00", "/documents/%00", "/signers/%00"])
@pytest.mark.parametrize("method", ["GET", "DELETE", "PATCH", "PUT"])
async def test_nul_in_an_address_is_absent(
    each_backend: Backend, path: str, method: str
) -> None:
    """No database is asked for a text that it cannot have."""
    answer = await each_backend.call(method, path, {"nombre": "a"}, '"old"')

    assert answer.status_code in {404, 405}
