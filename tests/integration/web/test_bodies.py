"""Bodies are taken while a view reads them, within the process's bytes."""

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
from quart import Quart, request
from quart.typing import TestClientProtocol as Client

from appliance.web.app import create_app
from appliance.web.auth import public
from appliance.web.body import Budget, Held, read_object
from appliance.web.server import exchange
from appliance.web.server.exchange import ArrivingBody
from tests.support.installation.api import (
    API,
    ApiServices,
    create_api,
    shorten_body_timeout,
)
from tests.support.installation.installation import Installation

JSON = {"Content-Type": "application/json"}
BIG = 48 * 1024 * 1024


@pytest.fixture
def app(api_services: ApiServices) -> Quart:
    """The REST API."""
    return create_api(api_services)


@pytest.fixture
def client(app: Quart) -> Client:
    """A client without cookies."""
    return app.test_client(use_cookies=False)


async def _member(response: Any, name: str) -> Any:
    return json.loads(await response.get_data())[name]


@pytest.mark.parametrize(
    "kind",
    ["multipart/form-data; boundary=x", "application/pdf", "application/json", ""],
)
async def test_unread_body_stays_with_its_sender(
    tmp_path: Path, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever its type says: one piece at most is held while nobody reads."""
    app = create_app("bodies", settings=Installation(tmp_path).settings(API))
    most = 0
    append = ArrivingBody.append

    def watched(body: ArrivingBody, data: bytes) -> None:
        nonlocal most
        append(body, data)
        most = max(most, len(body._data))

    monkeypatch.setattr(ArrivingBody, "append", watched)
    going = asyncio.Event()

    @app.get("/nobody-reads")
    @public
    async def view() -> str:
        await going.wait()
        return "ok"

    headers = {"Content-Type": kind, "Content-Length": str(BIG)}
    async with app.test_client().request("/nobody-reads", headers=headers) as sent:
        for _ in range(64):
            await sent.send(b"x" * 65_536)
        for _ in range(200):
            await asyncio.sleep(0)
        going.set()
        await sent.send_complete()
    answer = await sent.as_response()

    assert (answer.status_code, most) == (200, 65_536)


async def test_public_json_is_small(tmp_path: Path) -> None:
    """16 KiB from whoever has not said who they are."""
    settings = Installation(tmp_path, web={"body_limit_bytes": 1_048_576}).settings(API)
    app = create_app("bodies", settings=settings)

    @app.post("/public")
    @public
    async def view() -> dict[str, int]:
        return {"n": len(await read_object())}

    at = await app.test_client().post("/public", headers=JSON, data=b"{}".ljust(16_384))
    over = await app.test_client().post(
        "/public", headers=JSON, data=b"{}".ljust(16_385)
    )

    assert at.status_code == 200
    assert (over.status_code, await _member(over, "code")) == (413, "BODY_TOO_LARGE")


async def test_stranger_makes_no_large_body(client: Client) -> None:
    """Refused before its body is taken, and the mark does not open other routes."""
    headers = {
        "Content-Type": "multipart/form-data; boundary=x",
        "Content-Length": str(BIG),
    }
    for path, status in (("/solicitudes/firmar", 401), ("/auth/login", 415)):
        async with client.request(path, method="POST", headers=headers) as sent:
            await sent.send(b"--x")
            await sent.send_complete()
        answer = await sent.as_response()

        assert answer.status_code == status


async def test_beyond_the_process_bytes(app: Quart, client: Client) -> None:
    """503 at once, with a time to come back; what is answered is given back."""
    budget = Budget(10_000, 5_000)
    app.extensions["rubrica.budget"] = budget
    held = Held(budget, {"somebody else": 1})
    held.grow(9_990)
    body = json.dumps({"usuario": "x", "password": "y"}).encode()

    over = await client.post("/auth/login", headers=JSON, data=body)
    held.release()
    after = await client.post("/auth/login", headers=JSON, data=body)

    assert (over.status_code, await _member(over, "code")) == (503, "OVERLOADED")
    assert over.headers["Retry-After"] == "5"
    assert after.status_code == 401
    assert budget.held == 0


async def test_who_asks_holds_it(tmp_path: Path) -> None:
    """An unknown caller holds a body as its address, and all such ones together."""
    app = create_app("bodies", settings=Installation(tmp_path).settings(API))
    seen: dict[str, int] = {}

    @app.post("/public")
    @public
    async def view() -> str:
        await read_object()
        seen.update(app.extensions["rubrica.budget"]._held)
        return request.method

    await app.test_client().post("/public", headers=JSON, data=b"{}")

    assert seen == {"address local": 2, "anyone": 2}
    assert app.extensions["rubrica.budget"].held == 0


async def test_body_slower_than_the_slowest_line(
    api_services: ApiServices,
    app: Quart,
    client: Client,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """What comes must come at a rate: a trickle is not waited for by its length."""
    shorten_body_timeout(app)
    # After the answer nobody sends the rest, which is not waited for.
    monkeypatch.setattr(exchange, "LINGER_S", 0.0)
    person, _ = await api_services.add_person()
    headers = {
        **await api_services.bearer(person),
        "Content-Type": "multipart/form-data; boundary=x",
        "Content-Length": "8000",
    }
    async with client.request(
        "/solicitudes/firmar", method="POST", headers=headers
    ) as sent:
        await sent.send(b"--x\r\n")
    answer = await sent.as_response()

    assert (answer.status_code, await _member(answer, "code")) == (408, "BODY_TIMEOUT")
