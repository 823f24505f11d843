"""An integrator's backend in tests: its key, and calls with it."""

import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import httpx

from appliance.bootstrap import ServiceRegistry
from appliance.domain.integrators.api_keys import ApiKeyScope
from appliance.domain.integrators.integrators import NewKey
from tests.support.appliance.appliance import Appliance, TestPerson

REQUESTS = "/api/integration/requests"


@dataclass(frozen=True)
class TestBackend:
    """The backend of an integrator of its own, and a client that has its key."""

    __test__ = False

    appliance: Appliance
    code: str
    key: NewKey
    client: httpx.Client

    def ask(self, pdf: bytes, *people: TestPerson, **fields: Any) -> httpx.Response:
        """Ask people to sign a document, by multipart."""
        return self.client.post(
            REQUESTS,
            files={
                "file": ("contrato.pdf", pdf, "application/pdf"),
                "options": (
                    None,
                    _json({"firmantes": [{"cuil": p.cuil} for p in people], **fields}),
                    "application/json",
                ),
            },
        )

    def made(self, pdf: bytes, *people: TestPerson, **fields: Any) -> dict[str, Any]:
        """The same; the answer's body."""
        answer = self.ask(pdf, *people, **fields)
        assert answer.status_code == 201, answer.text
        told: dict[str, Any] = answer.json()
        return told

    def read(self, process: str) -> dict[str, Any]:
        """How a request stands."""
        answer = self.client.get(f"{REQUESTS}/{process}")
        assert answer.status_code == 200, answer.text
        told: dict[str, Any] = answer.json()
        return told


def _json(value: object) -> bytes:
    import json  # noqa: PLC0415 (one use)

    return json.dumps(value).encode()


@contextmanager
def backend_of(
    appliance: Appliance, *scopes: ApiKeyScope, code: str | None = None
) -> Iterator[TestBackend]:
    """A backend whose key has those scopes; none: all of them.

    Args:
        appliance: that runs.
        scopes: of the key.
        code: of an integrator that is there; None: of a new one.
    """
    wanted = scopes or tuple(ApiKeyScope)
    name = code or f"i-{secrets.token_hex(6)}"

    async def make(front: ServiceRegistry) -> NewKey:
        if code is None:
            await front.integrators.create("operator", name, f"Integrador {name}")
        made = await front.integrators.create_key("operator", name, "backend")
        from sqlalchemy import update

        from appliance.core.database.tables import api_key

        async with front.core.store.write() as t:
            await t.connection.execute(
                update(api_key)
                .where(api_key.c.id == made.key.id)
                .values(scopes=[str(x.value) for x in wanted])
            )
        return made

    key = appliance.do(make)
    with httpx.Client(
        base_url=appliance.settings.web.web_url,
        headers={"X-Api-Key": key.secret},
        timeout=60,
    ) as client:
        yield TestBackend(appliance, name, key, client)
