"""The embed role over fresh storage, called over HTTP.

async with open_frame(folder, assets) as frame:
    answer = await frame.page(await frame.services.token())
"""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

from quart import Quart, Response
from quart import typing as quart_typing

from appliance.bootstrap import ServiceRegistry
from appliance.integrators.logos import Logos
from appliance.signing.signing_calls import SigningCalls
from embed.app import create_embed
from embed.assets import Assets
from tests.support.faces.frame_services import CODE, FrameServices, open_frame_services
from tests.support.faces.template_inputs import checked_inputs
from tests.support.factories.fake_sandbox import PlayedSandbox

ORIGINS = ("https://app.example", "https://otra.example:8443")
SECURITY = {
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "no-store",
    "X-Content-Type-Options": "nosniff",
    "X-Robots-Tag": "noindex, nofollow",
    "Cross-Origin-Embedder-Policy": "require-corp",
    "Cross-Origin-Resource-Policy": "cross-origin",
}


@dataclass
class Frame:
    """The role and its services."""

    services: FrameServices
    app: Quart
    client: quart_typing.TestClientProtocol

    async def page(self, token: str, **headers: str) -> Response:
        """The frame's page for a token."""
        return await self.client.get(f"/embed/?sessionToken={token}", headers=headers)

    async def call(
        self, path: str, bearer: str = "", body: Any = None, **more: Any
    ) -> Response:
        """Call the API."""
        headers = {"Authorization": f"Bearer {bearer}"} if bearer else {}
        headers |= more.pop("headers", {})
        if body is not None:
            more["json"] = body
        method = "POST" if body is not None or "data" in more else "GET"
        return await self.client.open(
            f"/embed/api/{path}", method=method, headers=headers, **more
        )

    async def opened(self) -> tuple[str, dict[str, Any]]:
        """A bearer, and what the page was told with it."""
        token = await self.services.token()
        page = await self.services.services.sessions.page(token, None)
        body = {"page": page.session_public_id, "init": init_of(token)}
        told = await (await self.call("init", body=body)).get_json()
        return told["bearer"], told["session"]


def init_of(token: str, **changes: Any) -> dict[str, Any]:
    """An init payload."""
    payload = {
        "nonce": "n",
        "idemKey": "k",
        "sessionToken": token,
        "userData": {"cuil": "20-26756539-3", "email": "a@b.example", "phone": ""},
    }
    return {**payload, **changes}


@asynccontextmanager
async def open_frame(folder: Path, assets: Assets) -> AsyncIterator[Frame]:
    """Open the role over fresh storage, with two registered origins.

    Raises:
        AssertionError: on exit, if a page read a value that its route did not pass.
    """
    web = {"iframe_url": "https://marco.example", "base_url": "https://firma.example"}
    documents = {"limit_bytes": 4096}
    async with open_frame_services(folder, web=web, documents=documents) as services:
        for origin in ORIGINS:
            await services.services.integrators.add_domain("operator", CODE, origin)
        front = SimpleNamespace(
            settings=services.services.settings,
            clock=services.services.clock,
            sessions=services.services.sessions,
            framing=services.framing,
            frame_signing=services.signing,
            signing_calls=SigningCalls(),
            frame_batches=services.batches,
            health=None,
            logos=Logos(
                services.services.store, PlayedSandbox(), services.services.clock
            ),
        )
        app = create_embed(cast("ServiceRegistry", front), assets)
        with checked_inputs(app):
            yield Frame(services, app, app.test_client())


async def text(answer: Response) -> str:
    """The body of an answer."""
    body: str = await answer.get_data(as_text=True)
    return body


async def problem(answer: Response) -> tuple[int, str]:
    """Status and code of a refusal."""
    told = await answer.get_json()
    return answer.status_code, told["code"]
