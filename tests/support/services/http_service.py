"""An outside service that a test plays over real HTTP.

class FakeShop(HttpService):
    def serve(self, http: BaseHTTPRequestHandler) -> None: ...

with FakeShop() as shop:
    ... shop.origin ...
"""

import ssl
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Self

from tests.support.browsers.host_page import POLL_S


class HttpService:
    """A server on 127.0.0.1; each call has a thread of its own.

    Args:
        tls: its side of TLS; without, it speaks plain HTTP.
    """

    def __init__(self, tls: ssl.SSLContext | None = None) -> None:
        self._stop = threading.Event()
        """Set when it ends, for calls that take their time."""
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(self))
        self._server.daemon_threads = True
        self._scheme = "https" if tls else "http"
        if tls is not None:
            self._server.socket = tls.wrap_socket(
                self._server.socket, server_side=True, do_handshake_on_connect=False
            )
        self._thread = threading.Thread(
            target=self._server.serve_forever, args=(POLL_S,)
        )

    @property
    def origin(self) -> str:
        """Where it answers."""
        return f"{self._scheme}://127.0.0.1:{self._server.server_port}"

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_exc: object) -> None:
        self._stop.set()
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def serve(self, http: BaseHTTPRequestHandler) -> None:
        """Answer one call."""
        raise NotImplementedError


def _handler(served: HttpService) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        """One connection."""

        def do_GET(self) -> None:
            """Answer."""
            try:
                served.serve(self)
            except (ConnectionError, ssl.SSLError):
                # Who asked has gone, as of 50 MB they should.
                self.close_connection = True

        do_HEAD = do_PUT = do_POST = do_DELETE = do_GET  # noqa: N815 (the base class has it so)

        def log_message(self, *_args: object) -> None:
            """Say nothing."""

    return Handler
