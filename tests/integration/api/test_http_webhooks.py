"""Webhooks of an integrator's backend over HTTP: every address, and its refusals."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import pytest

from appliance.database import tables
from appliance.domain.ids import new_id
from appliance.domain.integrators.api_keys import ApiKeyScope
from appliance.domain.vocab import MessageState, WebhookEvent
from tests.support.installation.api import ApiServices, code, create_api

PATH = "/api/integration/webhooks"
URL = "https://app.example/rubrica"
ALL = tuple(ApiKeyScope)
FIELDS = [
    "webhookId",
    "url",
    "nombre",
    "eventos",
    "habilitado",
    "deshabilitado",
    "motivo",
    "fallaDesde",
    "secretoAnteriorHasta",
    "creado",
]
DELIVERY = [
    "entregaId",
    "tipo",
    "procesoId",
    "solicitudId",
    "estado",
    "intentos",
    "proximoIntento",
    "ultimoIntento",
    "creada",
]


@dataclass
class Backend:
    """An integrator's backend."""

    services: ApiServices
    client: Any
    key: str

    async def call(
        self, method: str, path: str = "", body: object = None, **query: str
    ) -> Any:
        """Call an address of the webhooks."""
        sent = {} if body is None else {"json": body}
        return await self.client.open(
            f"{PATH}{path}",
            method=method,
            headers={"X-Api-Key": self.key},
            query_string=query,
            **sent,
        )

    async def told(
        self,
        method: str,
        path: str = "",
        body: object = None,
        status: int = 200,
        **query: str,
    ) -> Any:
        """The same; the answer's body."""
        answer = await self.call(method, path, body, **query)
        text = await answer.get_data(as_text=True)
        assert answer.status_code == status, text
        return json.loads(text)

    async def made(self, **fields: object) -> str:
        """A new webhook's id."""
        told = await self.told("POST", "", {"url": URL, **fields}, 201)
        return str(told["webhookId"])


async def backend_of(
    services: ApiServices, name: str, scopes: Sequence[ApiKeyScope] = ALL
) -> Backend:
    """The backend of a new integrator."""
    integrators = services.integrators
    await integrators.create("operator", name, name)
    made = await integrators.create_key("operator", name, "k", scopes=scopes)
    client = create_api(services).test_client(use_cookies=False)
    return Backend(services, client, made.secret)


@pytest.fixture
async def backend(api_services: ApiServices) -> Backend:
    """The backend of an integrator."""
    return await backend_of(api_services, "acme")


async def settle(backend: Backend, message: str, state: MessageState) -> None:
    """Have a message be as delivery leaves it, with one try."""
    async with backend.services.store.write() as transaction:
        row = tables.webhook_message.c.id == message
        await transaction.connection.execute(
            tables.webhook_message.update().where(row).values(state=state, tries=1)
        )
        await transaction.connection.execute(
            tables.webhook_attempt.insert().values(
                message=message,
                at=backend.services.clock.now(),
                status=503,
                failure="status",
                took_ms=7,
                answer="no",
            )
        )


async def test_webhook_from_making_to_removing(backend: Backend) -> None:
    """Its secret is in one answer alone; another one takes over."""
    answer = await backend.call("POST", "", {"url": URL, "nombre": "cobros"})
    made = json.loads(await answer.get_data())
    at = f"/{made['webhookId']}"
    listed = await backend.told("GET")
    changed = await backend.told(
        "PATCH", at, {"eventos": ["solicitud.firmada"], "habilitado": False}
    )
    again = await backend.told("POST", f"{at}/rotate", {"inmediata": True})
    later = await backend.told("POST", f"{at}/rotate")
    shown = await backend.told("GET", at)
    removed = await backend.call("DELETE", at)

    assert answer.status_code == 201
    assert answer.headers["Location"].endswith(f"{PATH}{at}")
    assert list(made) == [*FIELDS, "secreto"]
    assert list(listed[0]) == FIELDS
    assert listed == [{name: made[name] for name in FIELDS}]
    assert (made["eventos"], made["habilitado"]) == ([], True)
    assert (changed["eventos"], changed["habilitado"]) == (
        ["solicitud.firmada"],
        False,
    )
    assert (changed["motivo"], changed["nombre"]) == ("pedido", "cobros")
    assert len({made["secreto"], again["secreto"], later["secreto"]}) == 3
    assert list(shown) == FIELDS
    assert shown["secretoAnteriorHasta"] == later["secretoAnteriorHasta"]
    assert removed.status_code == 204
    assert await backend.told("GET") == []
    gone = await code(await backend.call("GET", at), 404)
    assert gone["code"] == "WEBHOOK_NOT_FOUND"


@pytest.mark.parametrize(
    ("body", "told", "field"),
    [
        ({}, "FIELD_MISSING", "url"),
        ({"url": 7}, "FIELD_INVALID", "url"),
        ({"url": "ftp://app.example"}, "FIELD_INVALID", "url"),
        ({"url": "https://a:b@app.example"}, "FIELD_INVALID", "url"),
        ({"url": URL, "nombre": ""}, "FIELD_INVALID", "nombre"),
        ({"url": URL, "nombre": "x" * 61}, "FIELD_INVALID", "nombre"),
        ({"url": URL, "eventos": "solicitud.firmada"}, "FIELD_INVALID", "eventos"),
        ({"url": URL, "eventos": ["firmada"]}, "FIELD_INVALID", "eventos"),
        ({"url": URL, "eventos": [1]}, "FIELD_INVALID", "eventos"),
        ({"url": URL, "secreto": "whsec_x"}, "FIELD_UNKNOWN", "secreto"),
        ({"url": URL, "eventos": None}, "FIELD_INVALID", "eventos"),
    ],
)
async def test_what_no_webhook_is_made_of(
    backend: Backend, body: dict[str, object], told: str, field: str
) -> None:
    """Each is told with its field's name."""
    members = await code(await backend.call("POST", "", body), 400)

    assert (members["code"], members["field"]) == (told, field)
    assert await backend.told("GET") == []


@pytest.mark.parametrize(
    ("body", "told"),
    [
        ({}, "FIELD_MISSING"),
        ({"habilitado": "no"}, "FIELD_INVALID"),
        ({"url": "x"}, "FIELD_INVALID"),
        ({"secreto": "x"}, "FIELD_UNKNOWN"),
    ],
)
async def test_what_no_webhook_becomes(
    backend: Backend, body: dict[str, object], told: str
) -> None:
    """It stays as it is."""
    at = f"/{await backend.made()}"
    before = await backend.told("GET", at)

    members = await code(await backend.call("PATCH", at, body), 400)

    assert members["code"] == told
    assert await backend.told("GET", at) == before


async def test_trial_from_sending_to_sending_again(backend: Backend) -> None:
    """It is listed, has its tries, and is sent again under its own id."""
    at = f"/{await backend.made()}"
    sent = await backend.told("POST", f"{at}/test", status=202)
    entrega = f"{at}/deliveries/{sent['entregaId']}"
    await settle(backend, sent["entregaId"], MessageState.GIVEN_UP)
    (listed,) = await backend.told(
        "GET", f"{at}/deliveries", estado="abandonada", tipo="webhook.prueba"
    )
    shown = await backend.told("GET", entrega)
    again = await backend.told("POST", f"{entrega}/replay", status=202)

    assert list(sent) == [*DELIVERY, "cuerpo", "historial"]
    assert (sent["estado"], sent["tipo"]) == ("pendiente", "webhook.prueba")
    assert sent["cuerpo"]["type"] == "webhook.prueba"
    assert sent["proximoIntento"] is not None
    assert list(listed) == DELIVERY
    (only,) = shown["historial"]
    assert only == listed["ultimoIntento"]
    assert (only["estadoHttp"], only["falla"]) == (503, "estado_http")
    assert (only["milisegundos"], only["respuesta"]) == (7, "no")
    assert shown["proximoIntento"] is None
    assert again["entregaId"] == sent["entregaId"]
    assert (again["estado"], again["intentos"]) == ("pendiente", 0)
    assert again["historial"] == shown["historial"]


async def test_pages_of_deliveries_follow_each_other(backend: Backend) -> None:
    """By `Link`, with the same filter, and the last one has none."""
    at = f"/{await backend.made()}"
    sent = [
        (await backend.told("POST", f"{at}/test", status=202))["entregaId"]
        for _ in range(3)
    ]

    first = await backend.call(
        "GET", f"{at}/deliveries", limite="2", estado="pendiente"
    )
    address = first.headers["Link"].removesuffix('>; rel="next"').removeprefix("<")
    second = await backend.client.get(
        address.partition("/api")[1] + address.partition("/api")[2],
        headers={"X-Api-Key": backend.key},
    )

    pages = [json.loads(await each.get_data()) for each in (first, second)]
    assert [[each["entregaId"] for each in page] for page in pages] == [
        [sent[2], sent[1]],
        [sent[0]],
    ]
    assert "estado=pendiente" in address
    assert "Link" not in second.headers


async def test_all_given_up_and_all_of_a_time_are_sent_again(
    backend: Backend,
) -> None:
    """How many, and from when a further call goes on."""
    at = f"/{await backend.made()}"
    sent = await backend.told("POST", f"{at}/test", status=202)
    await settle(backend, sent["entregaId"], MessageState.GIVEN_UP)
    lost = await backend.told("POST", f"{at}/replay", {"estado": "abandonada"}, 202)
    await settle(backend, sent["entregaId"], MessageState.DELIVERED)
    span = {"desde": "2020-01-01T00:00:00Z", "hasta": "2100-01-01T00:00:00Z"}
    before = {"desde": "2020-01-01T00:00:00Z", "hasta": "2020-01-02T00:00:00Z"}
    every = await backend.told("POST", f"{at}/replay", span, 202)
    none = await backend.told("POST", f"{at}/replay", before, 202)

    one = {"reenviadas": 1, "siguiente": None}
    assert (lost, every, none) == (one, one, {"reenviadas": 0, "siguiente": None})


@pytest.mark.parametrize(
    ("body", "told", "field"),
    [
        ({}, "FIELD_MISSING", "desde"),
        ({"desde": "2026-01-01T00:00:00Z"}, "FIELD_MISSING", "hasta"),
        ({"estado": "entregada"}, "FIELD_INVALID", "estado"),
        (
            {"estado": "abandonada", "hasta": "2026-01-01T00:00:00Z"},
            "FIELD_INVALID",
            "hasta",
        ),
        (
            {"desde": "2026-01-02T00:00:00Z", "hasta": "2026-01-01T00:00:00Z"},
            "FIELD_INVALID",
            "hasta",
        ),
        ({"desde": "ayer", "hasta": "hoy"}, "FIELD_INVALID", "desde"),
        ({"todo": True}, "FIELD_UNKNOWN", "todo"),
    ],
)
async def test_what_nothing_is_sent_again_by(
    backend: Backend, body: dict[str, object], told: str, field: str
) -> None:
    """A time has two ends, and what was given up has none."""
    at = f"/{await backend.made()}"

    members = await code(await backend.call("POST", f"{at}/replay", body), 400)

    assert (members["code"], members["field"]) == (told, field)


@pytest.mark.parametrize(
    "query",
    [
        {"estado": "perdida"},
        {"tipo": "firmada"},
        {"procesoId": "7"},
        {"desde": "ayer"},
        {"limite": "0"},
        {"cursor": "x"},
        {"cursor": ""},
        {"orden": "creada"},
    ],
)
async def test_what_no_list_of_deliveries_is_asked_by(
    backend: Backend, query: dict[str, str]
) -> None:
    """The parameter is named."""
    at = f"/{await backend.made()}"

    members = await code(await backend.call("GET", f"{at}/deliveries", **query), 400)

    assert members["code"] in {"QUERY_INVALID", "QUERY_UNKNOWN"}
    assert members["field"] in query


async def test_disabled_one_is_sent_nothing(backend: Backend) -> None:
    """Until it is enabled."""
    at = f"/{await backend.made()}"
    sent = await backend.told("POST", f"{at}/test", status=202)
    await backend.told("PATCH", at, {"habilitado": False})
    entrega = f"{at}/deliveries/{sent['entregaId']}"

    for path, body in (
        (f"{at}/test", None),
        (f"{entrega}/replay", None),
        (f"{at}/replay", {"estado": "abandonada"}),
    ):
        members = await code(await backend.call("POST", path, body), 409)
        assert members["code"] == "WEBHOOK_DISABLED"
    shown = await backend.told("GET", entrega)
    assert (shown["estado"], shown["proximoIntento"]) == ("retirada", None)


async def test_another_integrators_is_absent(
    backend: Backend, api_services: ApiServices
) -> None:
    """At every address, as what never was."""
    other = await backend_of(api_services, "otro")
    webhook = await backend.made()
    sent = await backend.told("POST", f"/{webhook}/test", status=202)
    calls: list[tuple[str, str, object]] = [
        ("GET", "", None),
        ("PATCH", "", {"habilitado": False}),
        ("DELETE", "", None),
        ("POST", "/rotate", None),
        ("POST", "/test", None),
        ("GET", "/deliveries", None),
        ("GET", "/deliveries/{}", None),
        ("POST", "/deliveries/{}/replay", None),
        ("POST", "/replay", {"estado": "abandonada"}),
    ]

    for method, rest, body in calls:
        for one, two in ((webhook, sent["entregaId"]), (new_id(), new_id())):
            path = f"/{one}{rest.format(two)}"
            members = await code(await other.call(method, path, body), 404)
            assert members["code"] == "WEBHOOK_NOT_FOUND", (method, path)
    beside = f"/{await backend.made()}/deliveries/{sent['entregaId']}"
    for method, path in (("GET", beside), ("POST", f"{beside}/replay")):
        members = await code(await backend.call(method, path), 404)
        assert members["code"] == "DELIVERY_NOT_FOUND"
    assert len(await backend.told("GET")) == 2


async def test_reading_and_writing_are_two_scopes(api_services: ApiServices) -> None:
    """Each is refused what is the other's."""
    reader = await backend_of(api_services, "lee", [ApiKeyScope.WEBHOOKS_READ])
    writer = await backend_of(api_services, "hace", [ApiKeyScope.WEBHOOKS_WRITE])
    webhook = await writer.made()
    reads = [("GET", ""), ("GET", f"/{webhook}"), ("GET", f"/{webhook}/deliveries")]
    writes = [
        ("POST", ""),
        ("PATCH", f"/{webhook}"),
        ("DELETE", f"/{webhook}"),
        ("POST", f"/{webhook}/rotate"),
        ("POST", f"/{webhook}/test"),
        ("POST", f"/{webhook}/replay"),
    ]

    for backend, calls in ((writer, reads), (reader, writes)):
        for method, path in calls:
            members = await code(await backend.call(method, path), 403)
            assert members["code"] == "API_KEY_SCOPE", (method, path)
    assert await reader.told("GET") == []


async def test_log_tells_neither_address_nor_secret(
    backend: Backend, capsys: pytest.CaptureFixture[str], caplog: Any
) -> None:
    """Nor what was sent: the webhook's id alone."""
    made = await backend.told(
        "POST", "", {"url": f"{URL}/ficha-oculta", "nombre": "oculto"}, 201
    )
    await backend.told("POST", f"/{made['webhookId']}/test", status=202)

    shown = capsys.readouterr()
    told = shown.out + shown.err + caplog.text
    assert made["webhookId"] in told
    for hidden in ("ficha-oculta", "oculto", made["secreto"], "webhook.prueba"):
        assert hidden not in told


def test_every_event_has_a_word_of_its_own() -> None:
    """`tipo` of the list takes each; the grammar is that of `historia`."""
    assert all(len(each.value.split(".")) == 2 for each in WebhookEvent)
