"""Who keeps a place among few connections, and what the protocol answers by itself."""

import asyncio
import json
import socket
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from quart import Quart

from appliance.web.app import create_app
from appliance.web.auth import public
from appliance.web.body import read_bytes
from appliance.web.server.connections import Connection
from appliance.web.server.server import _Server
from tests.support.installation.api import API
from tests.support.installation.installation import Installation

PLACES = 20
MIB = 1 << 20
HEAD = b"Host: a\r\nContent-Type: text/plain\r\n"
HALF = b"POST /reads HTTP/1.1\r\n" + HEAD + b"Content-Length: 16000\r\n\r\nx"
WHOLE = b"POST /works HTTP/1.1\r\n" + HEAD + b"Content-Length: 1\r\n\r\nx"
FRESH = b"GET /quick HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n"


@dataclass
class HttpProfile:
    """A face that is listened to, and what its views wait for."""

    port: int = 0
    working: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(0))
    going: asyncio.Event = field(default_factory=asyncio.Event)
    held: AsyncExitStack = field(default_factory=AsyncExitStack)

    async def send(self, content: bytes) -> tuple[asyncio.StreamReader, socket.socket]:
        """A connection on which that was sent, held until the test's end."""
        plain = socket.create_connection(("127.0.0.1", self.port))
        plain.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4_096)
        reader, writer = await asyncio.open_connection(sock=plain, limit=1_024)
        self.held.callback(writer.close)
        writer.write(content)
        return reader, plain

    async def answer(self, content: bytes = FRESH) -> bytes:
        """All that is answered, to the connection's end."""
        reader, writer = await asyncio.open_connection("127.0.0.1", self.port)
        writer.write(content)
        told = b""
        try:
            async with asyncio.timeout(30):
                while piece := await reader.read(65_536):
                    told += piece
        finally:
            writer.close()
        return told


def views(app: Quart, face: HttpProfile) -> None:
    """Views that read, work, answer much, or are quick."""

    @app.post("/reads")
    @public
    async def reads() -> str:
        return str(len(await read_bytes(("text/plain",), 3 * MIB)))

    @app.post("/works")
    @public
    async def works() -> str:
        await read_bytes(("text/plain",), 10)
        face.working.release()
        await face.going.wait()
        return "worked"

    @app.post("/refuses")
    @public
    async def refuses() -> tuple[str, int]:
        return "", 413

    @app.get("/large")
    @public
    async def large() -> bytes:
        return b"x" * (20 * MIB)

    @app.get("/quick")
    @public
    async def quick() -> str:
        return "quick"


@pytest.fixture
async def face(tmp_path: Path) -> AsyncIterator[HttpProfile]:
    """A face of twenty places."""
    web = {"connections": PLACES, "connections_address": PLACES, "graceful_s": 1}
    settings = Installation(tmp_path, web=web).settings(API)
    app = create_app("places", settings=settings)
    made, stop = HttpProfile(), asyncio.Event()
    views(app, made)
    with socket.create_server(("127.0.0.1", 0)) as listener:
        made.port = listener.getsockname()[1]
        serving = asyncio.create_task(_Server(app, settings).run(listener, stop))
        async with made.held:
            yield made
        made.going.set()
        stop.set()
        await serving


async def test_half_bodies_make_room(face: HttpProfile) -> None:
    """Every fresh caller is answered, however many wait for their bodies."""
    for _ in range(3 * PLACES):
        await face.send(HALF)

    for _ in range(PLACES):
        assert (await face.answer()).startswith(b"HTTP/1.1 200")


async def test_calls_that_are_worked_on_keep_their_places(face: HttpProfile) -> None:
    """Their bodies have come: a further caller is told so at once."""
    working = [(await face.send(WHOLE))[0] for _ in range(PLACES)]
    for _ in working:
        await face.working.acquire()

    told = await face.answer()
    face.going.set()

    assert told.startswith(b"HTTP/1.1 503")
    head, _, body = told.partition(b"\r\n\r\n")
    assert b"application/problem+json" in head
    assert json.loads(body)["code"] == "OVERLOADED"
    assert json.loads(body)["requestId"].encode() in head
    for reader in working:
        assert (await reader.readline()).startswith(b"HTTP/1.1 200")


async def test_answers_that_nobody_takes_make_room(face: HttpProfile) -> None:
    """Not at once: who is slow for a second may be a slow line."""
    for _ in range(PLACES):
        await face.send(b"GET /large HTTP/1.1\r\nHost: a\r\n\r\n")

    until = asyncio.get_running_loop().time() + 30
    told = b""
    while not told.startswith(b"HTTP/1.1 200"):
        assert asyncio.get_running_loop().time() < until
        told = await face.answer()
    for _ in range(PLACES // 2):
        assert (await face.answer()).startswith(b"HTTP/1.1 200")


async def test_answer_that_nobody_takes_ends(
    face: HttpProfile, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also where nobody else needs its place."""
    monkeypatch.setattr("appliance.web.server.connections._ANSWER_S", 0.2)
    monkeypatch.setattr("appliance.web.server.connections.SLOWEST", 200 * MIB)
    dropped, drop = asyncio.Event(), Connection.drop

    def noted(connection: Connection) -> None:
        drop(connection)
        dropped.set()

    monkeypatch.setattr(Connection, "drop", noted)
    await face.send(b"GET /large HTTP/1.1\r\nHost: a\r\n\r\n")

    async with asyncio.timeout(60):
        await dropped.wait()


async def test_body_that_keeps_the_pace_stays(face: HttpProfile) -> None:
    """Those that bring less go before it."""
    size = 2 * MIB
    length = f"Content-Length: {size}\r\n\r\n".encode()
    reader, plain = await face.send(b"POST /reads HTTP/1.1\r\n" + HEAD + length)
    loop = asyncio.get_running_loop()
    await loop.sock_sendall(plain, b"x" * (size - 1))
    for _ in range(2 * PLACES):
        await face.send(HALF)
    for _ in range(PLACES):
        assert (await face.answer()).startswith(b"HTTP/1.1 200")
    await loop.sock_sendall(plain, b"x")

    assert (await reader.readline()).startswith(b"HTTP/1.1 200")


@pytest.mark.parametrize(
    ("path", "length", "status"),
    [
        ("/refuses", 10, 413),
        ("/nowhere", 10, 404),
        ("/reads", 4 * MIB, 413),
    ],
)
async def test_refused_body_is_not_asked_for(
    face: HttpProfile, path: str, length: int, status: int
) -> None:
    """Who waits to be told to send it is told the final status alone."""
    expect = f"Content-Length: {length}\r\nExpect: 100-continue\r\n\r\n"
    reader, _ = await face.send(
        f"POST {path} HTTP/1.1\r\n".encode() + HEAD + expect.encode()
    )

    assert (await reader.readline()).startswith(f"HTTP/1.1 {status}".encode())


async def test_body_that_is_read_is_asked_for(face: HttpProfile) -> None:
    """With 100, once; then it is taken."""
    expect = b"Content-Length: 3\r\nExpect: 100-continue\r\n\r\n"
    reader, plain = await face.send(b"POST /reads HTTP/1.1\r\n" + HEAD + expect)
    first = await reader.readuntil(b"\r\n\r\n")
    await asyncio.get_running_loop().sock_sendall(plain, b"abc")

    assert first.startswith(b"HTTP/1.1 100")
    assert (await reader.readline()).startswith(b"HTTP/1.1 200")


CLOSE = b"Host: a\r\nConnection: close\r\n\r\n"
NAMED = {
    "unknown coding": "Transfer-Encoding",
    "WebSocket": "Upgrade",
    "length twice": "Content-Length",
    "length of two": "Content-Length",
}
BARE = {
    "no target": (b"GET ?x HTTP/1.1\r\n" + CLOSE, 400),
    "not HTTP": (b"\x16\x03\x01\r\n\r\n", 400),
    "long head": (b"GET / HTTP/1.1\r\nA: " + b"x" * 70_000, 431),
    "unknown coding": (
        b"POST /reads HTTP/1.1\r\nTransfer-Encoding: gzip\r\n" + CLOSE,
        501,
    ),
    "WebSocket": (
        b"GET /quick HTTP/1.1\r\nUpgrade: websocket\r\nConnection: upgrade\r\n" + CLOSE,
        400,
    ),
    "head in one piece": (
        b"GET / HTTP/1.1\r\nA: " + b"x" * (32 * 1024) + b"\r\n" + CLOSE,
        431,
    ),
    "length twice": (
        b"GET /quick HTTP/1.1\r\nContent-Length: 0\r\ncontent-length: 0\r\n" + CLOSE,
        400,
    ),
    "length of two": (b"GET /quick HTTP/1.1\r\nContent-Length: 0, 0\r\n" + CLOSE, 400),
}


@pytest.mark.parametrize("kind", BARE)
async def test_what_never_was_a_call_is_answered_as_all_errors(
    face: HttpProfile, kind: str
) -> None:
    """With a code, a sentence and the id of the answer."""
    content, status = BARE[kind]
    head, _, body = (await face.answer(content)).partition(b"\r\n\r\n")
    told = json.loads(body)

    assert head.startswith(f"HTTP/1.1 {status}".encode())
    assert b"content-type: application/problem+json" in head.lower()
    assert f"x-request-id: {told['requestId']}".encode() in head.lower()
    assert (told["status"], told["code"]) == (status, "BAD_HEADER")
    assert told.keys() >= {"type", "title", "detail", "category"}
    assert told.get("field") == NAMED.get(kind)


@pytest.mark.parametrize("size", [32 * 1024, 32 * 1024 + 1])
async def test_head_is_as_large_as_it_may_be(face: HttpProfile, size: int) -> None:
    """To the byte, however it comes."""
    first = b"GET /quick HTTP/1.1\r\nA: "
    content = first + b"x" * (size - len(first) - 2 - len(CLOSE)) + b"\r\n" + CLOSE
    assert len(content) == size

    status = b"200" if size == 32 * 1024 else b"431"
    assert (await face.answer(content)).startswith(b"HTTP/1.1 " + status)


async def test_refused_head_request_has_no_body(face: HttpProfile) -> None:
    """As all answers to HEAD; and a later refusal on that connection has one."""
    none = await face.answer(b"HEAD ?x HTTP/1.1\r\n" + CLOSE)
    later = await face.answer(
        b"HEAD /quick HTTP/1.1\r\nHost: a\r\n\r\nnonsense\r\n\r\n"
    )

    assert none.startswith(b"HTTP/1.1 400")
    assert none.endswith(b"\r\n\r\n")
    assert later.endswith(b"}\n")


@pytest.mark.parametrize(
    ("target", "status"),
    [
        (b"/quick", 200),
        (b"/quick?a=http://[", 200),
        (b"http://a/quick", 200),
        (b"HTTP://[::1]:80/quick?x", 200),
        (b"http://a", 404),
        (b"http://a?x", 404),
        (b"//[/quick", 404),
        (b"?x", 400),
        (b"??", 400),
        (b"*", 400),
        (b"quick", 400),
        (b"a:443", 400),
        (b"%2Fquick", 400),
        (b"http://[", 400),
        (b"http://a]/quick", 400),
        (b"http://[1.2.3.4]/", 400),
        (b"http://u@a/quick", 400),
        (b"http:///quick", 400),
        (b"ftp://a/quick", 400),
    ],
)
async def test_target_is_a_path_or_a_whole_address(
    face: HttpProfile, target: bytes, status: int
) -> None:
    """Whatever else is refused before it is a call."""
    told = await face.answer(b"GET " + target + b" HTTP/1.1\r\n" + CLOSE)

    assert told.startswith(f"HTTP/1.1 {status}".encode())
