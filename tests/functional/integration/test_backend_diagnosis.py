"""What a backend is told of how its integrator is set up.

Source: docs/integration.md "What is wrong".
"""

from datetime import timedelta

import pytest
from sqlalchemy import insert, update

from appliance.bootstrap import ServiceRegistry
from appliance.database.tables import blocked_origin, webhook_endpoint
from appliance.domain.integrators.api_keys import ApiKeyScope
from tests.support.appliance.appliance import Appliance
from tests.support.appliance.backends import TestBackend, backend_of, let_vouch
from tests.support.appliance.http_calls import problem

PATH = "/api/integration/diagnose"
ORIGIN = "https://app.example"


def found(backend: TestBackend) -> list[tuple[str, str | None]]:
    """What is amiss, and with what."""
    told = backend.client.get(PATH)
    assert told.status_code == 200, told.text
    return [(each["codigo"], each["sobre"]) for each in told.json()["avisos"]]


def add_origin(backend: TestBackend) -> None:
    """Register one whose pages may show the iframe."""

    async def add(front: ServiceRegistry) -> None:
        await front.integrators.add_domain("operator", backend.code, ORIGIN)

    backend.appliance.do(add)


def test_new_integrator_is_told_what_it_lacks(appliance: Appliance) -> None:
    """Until it has it; in the language that is asked for."""
    with backend_of(appliance) as backend:
        first = found(backend)
        add_origin(backend)
        let_vouch(backend)
        later = found(backend)
        told = backend.client.get(PATH, headers={"Accept-Language": "en"}).json()

    assert first == [("sin_dominios", None), ("sin_derecho_a_responder", None)]
    assert later == [("dominio_sin_uso", ORIGIN)]
    assert told["avisos"][0]["texto"].startswith("No page of this origin")
    assert told["dominios"] == [{"origen": ORIGIN, "visto": None}]
    assert told["clave"]["claveId"] == backend.key.secret.split("_")[2]
    assert told["clave"]["alcances"] == [scope.value for scope in ApiKeyScope]
    assert told["correo"] == {"servidor": False, "firmantes": False}


def test_what_went_wrong_is_told(appliance: Appliance) -> None:
    """Of pages, of webhooks, of the key: with what it is about, and of nobody else."""
    with backend_of(appliance) as backend, backend_of(appliance) as other:
        add_origin(backend)
        let_vouch(backend)
        urls = [
            f"https://receiver.example/{name}" for name in ("apagado", "falla", "bien")
        ]
        made = [
            backend.client.post("/api/integration/webhooks", json={"url": url}).json()
            for url in urls
        ]
        backend.client.patch(
            f"/api/integration/webhooks/{made[0]['webhookId']}",
            json={"habilitado": False},
        )

        async def spoil(front: ServiceRegistry) -> None:
            now = front.clock.now()
            async with front.core.store.write() as transaction:
                await transaction.connection.execute(
                    update(webhook_endpoint)
                    .where(webhook_endpoint.c.id == made[1]["webhookId"])
                    .values(failing_since=now - timedelta(hours=1))
                )
                integrator = await front.integrators.get(backend.code)
                await transaction.connection.execute(
                    insert(blocked_origin).values(
                        integrator=integrator.id,
                        origin="https://otra.example",
                        first=now,
                        last=now,
                        count=3,
                    )
                )

        appliance.do(spoil)
        told = backend.client.get(PATH).json()

        assert found(backend) == [
            ("dominio_sin_uso", ORIGIN),
            ("origen_bloqueado", "https://otra.example"),
            ("webhook_apagado", urls[0]),
            ("webhook_con_fallas", urls[1]),
        ]
        assert told["origenesBloqueados"][0]["veces"] == 3
        assert [each["habilitado"] for each in told["webhooks"]] == [False, True, True]
        assert found(other) == [
            ("sin_dominios", None),
            ("sin_derecho_a_responder", None),
        ]


@pytest.mark.parametrize("scope", list(ApiKeyScope))
def test_any_key_may_ask(appliance: Appliance, scope: ApiKeyScope) -> None:
    """And is told what concerns it; one that was flagged is told so."""
    with backend_of(appliance, scope) as backend:
        problem(
            backend.client.get(PATH, params={"x": backend.key.secret}),
            400,
            "API_KEY_IN_URL",
        )
        codes = [code for code, _ in found(backend)]

    assert codes[0] == "clave_expuesta"
    assert ("sin_dominios" in codes) == (scope is ApiKeyScope.SESSIONS_WRITE)
    assert ("sin_derecho_a_responder" in codes) == (scope is ApiKeyScope.PEOPLE_WRITE)
