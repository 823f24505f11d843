"""Readers of requests' bodies, each with the worst that is known of its kind.

As `tests.support.documents.readers`; a body goes through a face's own reader, in
pieces as a connection brings them.
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from functools import partial
from typing import Final

from quart import Quart

from appliance.domain.errors import ApplianceError
from appliance.web import body, forms
from appliance.web.body import BoundedRequest, Budget, Limits, brings_document
from appliance.web.server.client_address import Proxies
from appliance.web.server.exchange import Exchange
from tests.support.documents.readers import Reader

_PIECE: Final = 16_384
_BOUNDARY: Final = b"\r\n--x"
_FORM: Final = "multipart/form-data; boundary=x"
_URLENCODED: Final = "application/x-www-form-urlencoded"
_LIMITS: Final = Limits(json=4_000_000, document=4_000_000, timeout_s=60)


def _reading(
    read: Callable[[], Awaitable[object]], content_type: str
) -> Callable[[bytes], object]:
    """A reader of bodies of one type, on a face of its own."""
    app = Quart("bodies")
    app.request_class = BoundedRequest
    app.asgi_http_class = Exchange
    app.extensions["rubrica.limits"] = _LIMITS
    app.extensions["rubrica.budget"] = Budget(40_000_000, _LIMITS.multipart)
    app.extensions["rubrica.proxies"] = Proxies((), "forwarded")

    @app.post("/")
    @brings_document
    async def take() -> str:
        try:
            await read()
        except ApplianceError as exc:
            return exc.code.value
        return "taken"

    async def send(content: bytes) -> bytes:
        headers = {"Content-Type": content_type, "Content-Length": str(len(content))}
        async with app.test_client().request(
            "/", method="POST", headers=headers
        ) as connection:
            for start in range(0, len(content), _PIECE):
                await connection.send(content[start : start + _PIECE])
            await connection.send_complete()
            return bytes(await connection.receive())

    return lambda content: asyncio.run(send(content))


def _part(name: bytes, content: bytes, more: bytes = b"") -> bytes:
    head = b'--x\r\nContent-Disposition: form-data; name="' + name + b'"' + more
    return head + b"\r\n\r\n" + content


def _repeated(head: bytes, again: bytes, n: int) -> bytes:
    return head + again * n


UNENDING: Final[dict[str, Callable[[int], bytes]]] = {
    "quotes in a head": lambda n: _part(b'\\"' * n, b""),
    "head without an end": lambda n: _part(b"file", b"", b"; a=b" * n)[:-4],
    "lines of a head": lambda n: _part(b"file", b"", b"\r\nA: b" * n),
    "continued line": lambda n: _part(b"file", b"", b"\r\n a" * n),
    "preamble": lambda n: b"\r\n--y" * n + _part(b"file", b""),
    "epilogue": lambda n: _part(b"file", b"%PDF") + b"\r\n--x--" + b"\r\n--x--" * n,
    "padded boundary": lambda n: b"--x" + b" " * n,
}
"""Multipart bodies of which something besides a part's content has no end."""


def _readers() -> Iterator[tuple[str, Reader]]:
    document = _reading(body.read_form, _FORM)
    console = _reading(lambda: forms.read(files=True), _FORM)
    fields = _reading(lambda: forms.read_fields("pin"), _URLENCODED)
    words = _reading(body.read_object, "application/json")
    for name, again in {
        "line ends": b"\r\n",
        "dashes": b"--",
        "nearly boundaries": _BOUNDARY[:-1] + b"y",
        "zeros": b"\0\0",
    }.items():
        n = 1_600_000 // len(again)
        yield (
            f"multipart, {name}",
            Reader(document, partial(_repeated, _part(b"file", b""), again), n),
        )
        yield (
            f"console's form, {name}",
            Reader(
                console,
                partial(_repeated, _part(b"a", b"", b'; filename="a.pdf"'), again),
                n,
            ),
        )
    yield "multipart, head", Reader(document, lambda n: _part(b"a" * n, b""), 300_000)
    for name, reader in {"multipart": document, "console's form": console}.items():
        for kind, make in UNENDING.items():
            yield f"{name}, {kind}", Reader(reader, make, 300_000)
    yield (
        "multipart, params",
        Reader(document, lambda n: _part(b"file", b"", b"; a=b" * n), 30_000),
    )
    for name, again in {"escapes": b"%cc%81", "pairs": b"a=b&", "pluses": b"+"}.items():
        yield (
            f"form, {name}",
            Reader(fields, partial(_repeated, b"pin=", again), 30_000 // len(again)),
        )
    yield "JSON body", Reader(words, lambda n: b'{"a":"' + b'\\"' * n, 300_000)


BODY_READERS: Final[dict[str, Reader]] = dict(_readers())
"""By a name for people."""
