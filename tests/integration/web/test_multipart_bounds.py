"""What is not a part's content is refused before it is collected, on every reader."""

from collections.abc import Awaitable, Callable
from typing import Final

import pytest
from quart import Quart
from werkzeug.sansio.multipart import File, MultipartDecoder

from appliance.domain.errors import ApplianceError
from appliance.web import body, forms
from appliance.web.body import (
    BoundedRequest,
    Budget,
    Limits,
    brings_document,
    brings_documents,
    read_documents,
)
from appliance.web.body.multipart_decoder import (
    AROUND_BYTES,
    HEAD_BYTES,
    BoundedDecoder,
)
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


def many(names: list[str], size: int = 4) -> bytes:
    """A body of documents and their options."""
    disposition = "--x\r\nContent-Disposition: form-data; name="
    files = [f'{disposition}"{name}"\r\n\r\n{"y" * size}\r\n' for name in names]
    return f'{"".join(files)}{disposition}"options"\r\n\r\n{{}}\r\n--x--'.encode()


@pytest.mark.parametrize(
    ("names", "size", "answer"),
    [
        (["a", "b", "c"], 4, b"a:4 b:4 c:4"),
        (["a", "b", "c", "d"], 4, b"FIELD_INVALID"),
        (["a", "b", "c"], 30_000, b"a:30000 b:30000 c:30000"),
        (["a", "b", "c"], 70_000, b"BODY_TOO_LARGE"),
        (["a"], 100_001, b"DOCUMENT_TOO_LARGE a"),
        (["a", "a"], 4, b"FIELD_INVALID a"),
        (["b", "options"], 4, b"FIELD_INVALID options"),
    ],
)
async def test_so_many_documents_come_in_one_body(
    names: list[str], size: int, answer: bytes
) -> None:
    """Each has its bounds, and all of them together."""
    app = Quart("documents")
    app.request_class = BoundedRequest
    app.asgi_http_class = Exchange
    limits = Limits(json=1_000, document=100_000, timeout_s=60, bodies=400_000)
    app.extensions["rubrica.limits"] = limits
    app.extensions["rubrica.budget"] = Budget(400_000, limits.multipart)
    app.extensions["rubrica.proxies"] = Proxies((), "forwarded")

    @app.post("/")
    @brings_documents
    async def take() -> str:
        try:
            form = await read_documents(3)
        except ApplianceError as exc:
            return f"{exc.code} {exc.extras.get('field', '')}".removesuffix(" (body)")
        return " ".join(
            f"{name}:{len(bytes(file.content))}" for name, file in form.files.items()
        )

    assert (await sent(app, many(names, size))).strip() == answer


@pytest.mark.parametrize(
    ("sent", "read"),
    [
        ("año.pdf".encode(), "año.pdf"),
        ("año.pdf".encode("latin-1"), "año.pdf"),
        ("«5 €».pdf".encode("cp1252"), "«5 €».pdf"),
        (b"a\x81.pdf", "a\ufffd.pdf"),
    ],
)
def test_file_name_of_another_code_page_is_read(sent: bytes, read: str) -> None:
    """As text, or with a mark that no file name may have: the body is whole."""
    decoder = BoundedDecoder(b"x", max_parts=1)
    disposition = b'Content-Disposition: form-data; name="f"; filename="%s"' % sent
    decoder.receive_data(b"--x\r\n" + disposition + b"\r\n\r\n%PDF\r\n--x--\r\n")
    decoder.receive_data(None)
    events = [decoder.next_event() for _ in range(3)]

    assert [each.filename for each in events if isinstance(each, File)] == [read]
