"""An S3-compatible store that outlives its process: moto's server, and a journal.

    python -m tests.support.services.persistent_s3 FOLDER ADDRESS PORT DESCRIPTOR

What changes something is in the journal before it is answered, and is done once more by
the next process: so a store that is killed comes back with all that it said it had.
Objects are then as old as that process, and uploads in parts are not taken up again.
"""

import base64
import io
import json
import sys
import threading
from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path
from typing import Any, Final

from moto.moto_server.werkzeug_app import (
    DomainDispatcherApplication,
    MotoRequestHandler,
    create_backend_app,
)
from werkzeug.serving import make_server
from werkzeug.test import create_environ, run_wsgi_app

_READS: Final = frozenset({"GET", "HEAD"})
_WELL: Final = "2"
"""What a status begins with that says so."""
_Environ = dict[str, Any]


class PersistentStore:
    """moto's application, which writes down what it is told to change.

    Args:
        journal: a file; there is none at first.
    """

    def __init__(self, journal: Path) -> None:
        self._app = DomainDispatcherApplication(create_backend_app)
        self._lock = threading.Lock()
        if journal.exists():
            for line in journal.read_bytes().splitlines(keepends=True):
                # One that was killed has written half of its last line, at most.
                if line.endswith(b"\n"):
                    self._do_again(json.loads(line))
        self._journal = journal.open("ab", buffering=0)

    def __call__(
        self, environ: _Environ, start_response: Callable[..., Any]
    ) -> Iterable[bytes]:
        """Answer a request; one that changes something after the one before it."""
        if environ["REQUEST_METHOD"] in _READS:
            answer: Iterable[bytes] = self._app(environ, start_response)
            return answer
        content = environ["wsgi.input"].read(int(environ.get("CONTENT_LENGTH") or 0))
        environ["wsgi.input"] = io.BytesIO(content)
        kept = {name: told for name, told in environ.items() if isinstance(told, str)}
        with self._lock:
            pieces, status, headers = run_wsgi_app(self._app, environ, buffered=True)
            if status.startswith(_WELL):
                request = {"environ": kept, "body": base64.b64encode(content).decode()}
                self._journal.write(f"{json.dumps(request)}\n".encode())
        start_response(status, headers.to_wsgi_list())
        return pieces

    def _do_again(self, request: dict[str, Any]) -> None:
        environ = create_environ() | request["environ"]
        environ["wsgi.input"] = io.BytesIO(base64.b64decode(request["body"]))
        _, status, _ = run_wsgi_app(self._app, environ, buffered=True)
        assert status.startswith(_WELL), status


def main(folder: str, address: str, port: str, descriptor: str) -> None:
    """Serve until killed, on two networks.

    Args:
        folder: of the journal.
        address: on the network of this process.
        port: there.
        descriptor: of a socket that listens on another one.
    """
    store = PersistentStore(Path(folder) / "journal")
    server = partial(make_server, threaded=True, request_handler=MotoRequestHandler)
    outside = server("127.0.0.1", 0, app=store, fd=int(descriptor))
    threading.Thread(target=outside.serve_forever, daemon=True).start()
    server(address, int(port), app=store).serve_forever()


if __name__ == "__main__":
    main(*sys.argv[1:])
