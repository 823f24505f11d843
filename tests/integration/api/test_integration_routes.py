"""What holds for every address that integrators' backends call."""

import re
from dataclasses import dataclass
from typing import Any

import pytest
from sqlalchemy import update

from appliance.database import tables
from appliance.domain.integrators.api_keys import ApiKeyScope
from appliance.integrators.integrators import Integrators
from tests.support.installation.api import ApiServices, code, create_api

BASE = "/api/integration/"
NEW = ("POST", f"{BASE}session/new")
BROWSER = {"Origin": "https://app.example", "Sec-Fetch-Site": "same-origin"}


@dataclass
class Backend:
    """An integrator's backend, which calls every address."""

    api_services: ApiServices
    integrators: Integrators

    def __post_init__(self) -> None:
        """Make its client."""
        self.app = create_api(self.api_services)
        self.client: Any = self.app.test_client(use_cookies=False)

    def routes(self) -> list[tuple[str, str]]:
        """Method and address of each, numbers filled in."""
        return [
            (method, re.sub(r"<[^>]+>", "7", rule.rule))
            for rule in self.app.url_map.iter_rules()
            if rule.rule.startswith(BASE)
            for method in sorted((rule.methods or set()) - {"HEAD", "OPTIONS"})
        ]

    async def key(self, **wishes: Any) -> str:
        """A fresh key, of all scopes unless told."""
        wishes = {"scopes": tuple(ApiKeyScope), **wishes}
        made = await self.integrators.create_key("operator", "acme", "k", **wishes)
        return made.secret

    async def call(
        self, route: tuple[str, str], headers: dict[str, str], **query: str
    ) -> Any:
        """Call an address; all are given the integrator's code as session/new is."""
        method, path = route
        return await self.client.open(
            path, method=method, headers=headers, query_string={"id": "acme", **query}
        )

    async def flagged(self, secret: str) -> str | None:
        """How a key is flagged."""
        (reason,) = [
            key.flag_reason
            for key in await self.integrators.keys("acme")
            if key.id == secret.split("_")[2]
        ]
        return reason


@pytest.fixture
async def backend(api_services: ApiServices) -> Backend:
    """The backend of an integrator."""
    integrators = api_services.integrators
    await integrators.create("operator", "acme", "ACME S.A.")
    return Backend(api_services, integrators)


async def test_key_that_a_browser_sends_is_flagged_everywhere(backend: Backend) -> None:
    """As X-Api-Key, and as a bearer wherever it may be one."""
    routes = backend.routes()
    assert NEW in routes

    ways = [(route, "X-Api-Key", "") for route in routes]
    ways += [(route, "Authorization", "Bearer ") for route in routes if route != NEW]
    for route, header, before in ways:
        secret = await backend.key()
        answer = await backend.call(route, {header: before + secret, **BROWSER})

        assert (await code(answer, 403))["code"] == "API_KEY_IN_BROWSER", route
        assert await backend.flagged(secret) == "browser", route


@pytest.mark.parametrize("name", ["apiKey", "x_api_key", "anything"])
async def test_key_in_an_address_is_flagged_everywhere(
    backend: Backend, name: str
) -> None:
    """Whatever its parameter is called, and with a good key in the header too."""
    for route in backend.routes():
        secret, good = await backend.key(), await backend.key()
        answer = await backend.call(route, {"X-Api-Key": good}, **{name: secret})

        assert (await code(answer, 400))["code"] == "API_KEY_IN_URL", route
        assert await backend.flagged(secret) == "url", route
        assert await backend.flagged(good) is None, route


async def test_no_route_is_without_a_key(backend: Backend) -> None:
    """No key, none of ours, and a signer's bearer are refused on each."""
    who, _ = await backend.api_services.add_person()
    bearer = await backend.api_services.bearer(who)
    for route in backend.routes():
        nobody = await backend.call(route, {})
        stranger = await backend.call(route, {"X-Api-Key": "rbk_test_x"})
        signer = await backend.call(route, bearer)

        assert (await code(nobody, 401))["code"] == "API_KEY_MISSING", route
        assert (await code(stranger, 401))["code"] == "API_KEY_INVALID", route
        told = (await code(signer, 401))["code"]
        assert told in {"API_KEY_MISSING", "API_KEY_INVALID"}, route


async def test_every_route_heeds_networks_and_scopes(backend: Backend) -> None:
    """A key for elsewhere, and one that may do nothing any more."""
    away = await backend.key(networks=["192.0.2.0/24"])
    idle = await backend.key()
    async with backend.api_services.store._engines.writer.begin() as connection:
        row = update(tables.api_key).where(tables.api_key.c.id == idle.split("_")[2])
        await connection.execute(row.values(scopes=[]))

    for route in backend.routes():
        elsewhere = await backend.call(route, {"X-Api-Key": away})
        scopeless = await backend.call(route, {"X-Api-Key": idle})

        told = await code(elsewhere, 403)
        assert (told["code"], "local" in told["detail"]) == ("API_KEY_ADDRESS", True)
        assert (await code(scopeless, 403))["code"] == "API_KEY_SCOPE", route
