"""A web server of a test: pages on 127.0.0.1, localhost or host.localhost.

    with HostPage() as host:
        host.put("/", "<!doctype html>…", policy="frame-src 'none'")
        await page.goto(host.url("/", name="localhost"))

One server answers to all three names: 127.0.0.1 and localhost are two sites,
`host.localhost` and `embed.localhost` two origins of one. Each is a secure
context in every browser and needs no set-up of names.
"""

import http.server
import json
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from types import TracebackType
from typing import Final, Self
from urllib.parse import urlsplit

POLL_S: Final = 0.02
"""How often a server looks whether it shall stop."""
_HTML: Final = "text/html; charset=utf-8"


@dataclass(frozen=True, slots=True)
class Call:
    """A request that came."""

    method: str
    target: str
    headers: dict[str, str]
    body: bytes = field(repr=False)

    @property
    def path(self) -> str:
        """The target without its query."""
        return urlsplit(self.target).path


@dataclass(frozen=True, slots=True)
class Reply:
    """What a page answers."""

    content: bytes
    kind: str = _HTML
    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)

    @classmethod
    def of_json(cls, value: object, status: int = 200) -> "Reply":
        """An answer of JSON."""
        return cls(json.dumps(value).encode(), "application/json", status)


Respond = Callable[[Call], Reply]


class HostPage:
    """Pages that a test gives, and the calls that came for them."""

    def __init__(self) -> None:
        self.calls: list[Call] = []
        self._responders: dict[tuple[str, str], Respond] = {}
        self._server = http.server.ThreadingHTTPServer(
            ("127.0.0.1", 0), self._handler()
        )
        self._server.daemon_threads = True
        self.port: int = self._server.server_address[1]
        self._thread = threading.Thread(
            target=self._server.serve_forever, args=(POLL_S,), daemon=True
        )

    def __enter__(self) -> Self:
        """Start to serve."""
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        value: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Stop and free the port."""
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def origin(self, name: str = "127.0.0.1") -> str:
        """The server's origin under one of its names."""
        return f"http://{name}:{self.port}"

    def url(self, path: str = "/", name: str = "127.0.0.1") -> str:
        """The address of a page under one of the server's names."""
        return self.origin(name) + path

    def put(
        self, path: str, content: str | bytes, kind: str = _HTML, policy: str = ""
    ) -> None:
        """Serve content at a path.

        Args:
            path: from its slash.
            content: of the page.
            kind: its Content-Type.
            policy: its Content-Security-Policy; none when empty.
        """
        data = content.encode() if isinstance(content, str) else content
        headers = {"Content-Security-Policy": policy} if policy else {}
        self.on("GET", path, lambda _: Reply(data, kind, headers=headers))

    def on(self, method: str, path: str, respond: Respond) -> None:
        """Answer calls of a method for a path by a function, in a thread."""
        self._responders[method, path] = respond

    def answer(self, call: Call) -> Reply:
        """Note a call, and answer it."""
        self.calls.append(call)
        respond = self._responders.get((call.method, call.path))
        return Reply(b"not here", status=404) if respond is None else respond(call)

    def _handler(self) -> type[http.server.BaseHTTPRequestHandler]:
        pages = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            timeout = 30

            def _do(self) -> None:
                length = int(self.headers.get("Content-Length") or 0)
                body = self.rfile.read(length)
                call = Call(self.command, self.path, dict(self.headers.items()), body)
                reply = pages.answer(call)
                self.send_response(reply.status)
                for name, value in reply.headers.items():
                    self.send_header(name, value)
                self.send_header("Content-Type", reply.kind)
                self.send_header("Content-Length", str(len(reply.content)))
                self.end_headers()
                self.wfile.write(reply.content)

            do_GET = do_POST = do_PUT = do_OPTIONS = _do  # noqa: N815 (inherited names)

            def log_message(self, format: str, *args: object) -> None:  # noqa: A002 (inherited)
                """Write nothing: the calls are kept."""

        return Handler
