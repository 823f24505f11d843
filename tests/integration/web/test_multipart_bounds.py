"""What is not a part's content is refused before it is collected, on every reader."""

from collections.abc import Awaitable, Callable
from typing import Final

import pytest
from quart import Quart
from werkzeug.sansio.multipart import MultipartDecoder

from appliance.domain.errors import ApplianceError
from appliance.web import body, forms
from appliance.web.body import BoundedRequest, Budget, Limits, brings_document
from appliance.web.body.multipart_decoder import AROUND_BYTES, HEAD_BYTES
from appliance.web.server.client_address import Proxies
from appliance.web.server.exchange import Exchange
from tests.support.documents.body_readers import UNENDING

PIECE = 4_096
READERS: Final[dict[str, Callable[[], Awaitable[object]]]] = {
    "api": body.read_form,
    "console": lambda: forms.read(files=True),
}


@pytest.fixture(params=READERS)
def app(request: pytest.FixtureRequest) -> Quart:
    """A face whose view reads multipart bodies, as the API or as the console."""
    made = Quart("multipart")
    made.request_class = BoundedRequest
    made.asgi_http_class = Exchange
    made.extensions["rubrica.limits"] = Limits(1_000_000, 60_000_000, 60)
    made.extensions["rubrica.budget"] = Budget(200_000_000, 70_000_000)
    made.extensions["rubrica.proxies"] = Proxies((), "forwarded")

    @made.post("/")
    @brings_document
    async def take() -> str:
        try:
            await READERS[request.param]()
        except ApplianceError as exc:
            return exc.code.value
        return "taken"

    return made


@pytest.fixture
def taken(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The sizes of what the decoder was given."""
    sizes: list[int] = []
    receive = MultipartDecoder.receive_data

    def counted(decoder: MultipartDecoder, data: bytes | None) -> None:
        sizes.append(len(data or b""))
        receive(decoder, data)

    monkeypatch.setattr(MultipartDecoder, "receive_data", counted)
    return sizes


async def sent(app: Quart, content: bytes, boundary: str = "x") -> bytes:
    """The answer to a body that comes in pieces, as long as it is wanted."""
    headers = {
        "Content-Type": f'multipart/form-data; boundary="{boundary}"',
        "Content-Length": str(len(content)),
    }
    async with app.test_client().request("/", method="POST", headers=headers) as call:
        for start in range(0, min(len(content), 64 * PIECE), PIECE):
            await call.send(content[start : start + PIECE])
        await call.send_complete()
        return bytes(await call.receive())


@pytest.mark.parametrize("kind", UNENDING)
async def test_what_has_no_end_is_not_collected(
    app: Quart, taken: list[int], kind: str
) -> None:
    """Of a body of up to 40 MB, a few KiB are read and none of it is parsed."""
    content = UNENDING[kind](6_000_000)

    assert await sent(app, content) == b"FIELD_INVALID"
    assert len(content) > 5_000_000
    assert sum(taken) <= HEAD_BYTES + AROUND_BYTES + 2 * PIECE


def head(size: int, lines: int = 1) -> bytes:
    """A body of one file and its options; the file's head has that size and lines."""
    text = b'Content-Disposition: form-data; name="file"; filename="a.pdf"'
    more = b"\r\nA: b" * (lines - 2)
    filling = size - len(text) - len(more) - len(b"\r\nX: ")
    options = b'--x\r\nContent-Disposition: form-data; name="options"\r\n\r\n{}\r\n'
    first = b"--x\r\n" + text + more + b"\r\nX: " + b"y" * filling
    return first + b"\r\n\r\n%PDF\r\n" + options + b"--x--\r\n"


@pytest.mark.parametrize(
    ("content", "answer"),
    [
        (head(HEAD_BYTES, 2), b"taken"),
        (head(HEAD_BYTES + 1, 2), b"FIELD_INVALID"),
        (head(500, 17), b"taken"),
        (head(500, 18), b"FIELD_INVALID"),
        (b"p" * (AROUND_BYTES - 2) + b"\r\n\r\n" + head(200, 2), b"taken"),
        (b"p" * (AROUND_BYTES + 1) + b"\r\n" + head(200, 2), b"FIELD_INVALID"),
        (head(200, 2) + b"p" * AROUND_BYTES, b"taken"),
        (head(200, 2) + b"p" * (AROUND_BYTES + 1), b"FIELD_INVALID"),
    ],
)
async def test_bounds_are_where_they_are(
    app: Quart, content: bytes, answer: bytes
) -> None:
    """The longest is taken, and one more is not."""
    assert await sent(app, content) == answer


@pytest.mark.parametrize(
    ("size", "answer"), [(70, b"taken"), (71, b"CONTENT_TYPE"), (0, b"CONTENT_TYPE")]
)
async def test_boundary_has_70_characters(app: Quart, size: int, answer: bytes) -> None:
    """At most."""
    boundary = "x" * size
    content = head(200, 2).replace(b"--x", b"--" + boundary.encode())

    assert await sent(app, content, boundary) == answer
