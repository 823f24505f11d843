"""The reader of forms: nothing that is sent is read as two things, or is a 500."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from quart import Quart

from admin_ui.session import COOKIE
from appliance.bootstrap import open_admin
from appliance.web import forms
from appliance.web.body import BoundedRequest, Budget, Limits, brings_document
from appliance.web.server.client_address import Proxies
from appliance.web.server.exchange import Exchange
from tests.support.installation.console import ADMIN_URL, Answer, Console
from tests.support.installation.installation import Installation
from tests.support.processes.played_time import in_played_time

FORM = "application/x-www-form-urlencoded"
MULTIPART = "multipart/form-data; boundary=x"
HERE = "/admin/integrators"
UPLOAD = "/admin/requests"


@pytest.fixture(scope="module")
async def console(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Console]:
    """A console, signed in; nothing that is sent here changes it."""
    async with Installation(tmp_path_factory.mktemp("console")).console() as made:
        await made.sign_in()
        yield made


async def send(
    console: Console, body: bytes, media_type: str = FORM, path: str = HERE
) -> Answer:
    """Send any bytes as a form."""
    headers = {
        "Content-Type": media_type,
        "Origin": ADMIN_URL,
        "Sec-Fetch-Site": "same-origin",
        "Cookie": f"{COOKIE}={console.cookies[COOKIE]}",
    }
    return await console.send("POST", path, headers=headers, data=body)


def part(name: str, content: str, more: str = "") -> str:
    """A part of a multipart body."""
    head = f'--x\r\nContent-Disposition: form-data; name="{name}"{more}\r\n\r\n'
    return f"{head}{content}\r\n"


@pytest.mark.parametrize(
    ("body", "status"),
    [
        (b"", 403),
        (b"csrf=1", 403),
        (b"csrf=1&csrf=2", 400),
        (b"name=%00", 400),
        (b"name=%ff", 400),
        (b"\xff=1", 400),
        (b"name=%ed%a0%80", 400),
        (b"&".join(b"a%d=1" % n for n in range(100)), 400),
        (b"name=" + b"a" * 1_100_000, 413),
        (b"%%%&&&===", 403),
    ],
)
async def test_malformed_form_is_refused(
    console: Console, body: bytes, status: int
) -> None:
    """Each has its answer, in words."""
    answer = await send(console, body)

    assert answer.status == status
    assert "<h1>" in answer.text


@pytest.mark.parametrize(
    "media_type",
    ["application/json", "text/plain", "", f"{FORM}; charset=utf-16", MULTIPART],
)
async def test_other_kinds_of_body_are_refused(
    console: Console, media_type: str
) -> None:
    """A route without files takes plain forms alone."""
    assert (await send(console, b"csrf=1", media_type)).status == 415


@pytest.mark.parametrize(
    ("body", "status"),
    [
        (part("csrf", "1") + "--x--\r\n", 403),
        (part("csrf", "1") + part("csrf", "1") + "--x--\r\n", 400),
        (part("csrf", "1"), 400),
        ("", 400),
        ("--y\r\n", 400),
        (part("csrf", "\x00") + "--x--\r\n", 400),
        (part("file", "a", '; filename="a.pdf"') * 2 + "--x--\r\n", 400),
        ("".join(part(f"a{n}", "1") for n in range(100)) + "--x--\r\n", 400),
        (part("csrf", "a" * 1_100_000) + "--x--\r\n", 413),
        ("--x\r\nContent-Disposition: form-data\r\n\r\na\r\n--x--\r\n", 403),
    ],
)
async def test_malformed_multipart_is_refused(
    console: Console, body: str, status: int
) -> None:
    """The same where files are taken."""
    answer = await send(console, body.encode(), MULTIPART, UPLOAD)

    assert answer.status == status


@in_played_time
async def test_large_file_is_waited_for_by_its_size() -> None:
    """As long as what came says that its line is not slower than the slowest one."""
    app = Quart("forms")
    limits = Limits(json=1000, document=1_000_000, timeout_s=0.05)
    app.request_class = BoundedRequest
    app.asgi_http_class = Exchange
    app.extensions["rubrica.limits"] = limits
    app.extensions["rubrica.budget"] = Budget(10_000_000, limits.multipart)
    app.extensions["rubrica.proxies"] = Proxies((), "forwarded")

    @app.post("/")
    @brings_document
    async def take() -> str:
        return str(len((await forms.read(files=True)).files["file"].content))

    sent = part("file", "a" * 900_000, '; filename="a.pdf"').encode() + b"--x--\r\n"
    headers = {"Content-Type": MULTIPART, "Content-Length": str(len(sent))}
    async with app.test_client().request(
        "/", method="POST", headers=headers
    ) as connection:
        await connection.send(sent[:100_000])
        await asyncio.sleep(0.2)
        await connection.send(sent[100_000:])
        await connection.send_complete()
        told = await connection.receive()

    assert told == b"900000"


async def test_multipart_without_boundary_is_refused(console: Console) -> None:
    """Nobody can say where its parts end."""
    answer = await send(console, b"--x--", "multipart/form-data", UPLOAD)

    assert answer.status == 415


async def test_file_beyond_the_limit_is_refused(console: Console) -> None:
    """A file is not held beyond the installation's limit."""
    too_much = "a" * (console.front.settings.documents.limit_bytes + 1)
    body = part("file", too_much, '; filename="a.pdf"') + "--x--\r\n"

    answer = await send(console, body.encode(), MULTIPART, UPLOAD)

    assert answer.status == 413
    assert "DOCUMENT_TOO_LARGE" in answer.text


async def test_console_needs_no_pepper(console: Console) -> None:
    """The role opens without the pepper's file: it never reads it."""
    settings = console.front.settings
    secrets = settings.secrets.model_copy(
        update={"pepper_file": Path("/nowhere/pepper")}
    )
    without = settings.model_copy(update={"secrets": secrets})

    async with open_admin(without, console.clock) as front:
        assert await front.console.users()
