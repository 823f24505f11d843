"""Who calls the REST API as one person, over fakes where workers stand.

caller = Caller(api_services, await api_services.bearer(person))
response = await caller.get("/solicitudes")
"""

import json
from typing import Any

from appliance.api.app import create_api
from tests.support.faces.api_services import ApiServices

SIGN = {"solicitudId": 7, "password": "clave de firma"}
"""Body of a call of firmar."""


class Caller:
    """Calls the API with the same headers each time."""

    def __init__(self, api_services: ApiServices, headers: dict[str, str]) -> None:
        self.client = create_api(api_services).test_client(use_cookies=False)
        self.headers = headers

    async def get(self, path: str, **headers: str) -> Any:
        """GET, with more headers."""
        return await self.client.get(path, headers=self._with(headers))

    async def post(self, path: str, body: object, **headers: str) -> Any:
        """POST a JSON body, with more headers."""
        return await self.client.post(path, headers=self._with(headers), json=body)

    def _with(self, more: dict[str, str]) -> dict[str, str]:
        named = {name.replace("_", "-"): value for name, value in more.items()}
        return {**self.headers, **named}


async def code(response: Any, status: int) -> dict[str, Any]:
    """Check a refusal's status, and give its members."""
    members: dict[str, Any] = json.loads(await response.get_data())
    assert response.status_code == status, members
    return members
