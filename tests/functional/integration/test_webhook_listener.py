"""`rubrica webhooks listen`, as docs/webhooks.md writes it, at a running appliance."""

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from queue import Queue
from typing import Any, Final

import pytest
from standardwebhooks import Webhook

from tests.support.appliance.appliance import Appliance
from tests.support.appliance.backends import backend_of
from tests.support.appliance.manual import run_block
from tests.support.processes.operator_shell import OperatorShell

pytestmark = pytest.mark.full

_AT_MOST_S: Final = 60
Received = tuple[dict[str, str], bytes]


@contextmanager
def receiving(*answers: int) -> Iterator[tuple[str, "Queue[Received]"]]:
    """An address of this machine, and what comes there; the last answer stays."""
    came: Queue[Received] = Queue()
    left = [*answers]

    class Receiver(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            came.put(({k.lower(): v for k, v in self.headers.items()}, body))
            self.send_response(left.pop(0) if len(left) > 1 else left[0])
            self.end_headers()

        def log_message(self, *args: Any) -> None:
            """Say nothing."""

    server = HTTPServer(("127.0.0.1", 0), Receiver)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/rubrica", came
    finally:
        server.shutdown()
        server.server_close()


def test_what_is_made_from_then_on_is_posted(
    appliance: Appliance, tmp_path: Path
) -> None:
    """Signed by the secret it shows, and again until it is taken; nothing older is."""
    shell = OperatorShell.of(appliance, tmp_path)
    # In a process of its own, which Ctrl+C ends.
    program = f'#!/bin/sh\nexec {sys.executable} -m appliance "$@"\n'
    (shell.folder / "bin" / "rubrica").write_text(program)
    with backend_of(appliance) as backend, receiving(500, 204) as (url, came):
        address = "/api/integration/webhooks"
        made = backend.client.post(address, json={"url": "https://x.invalid/"}).json()
        at = f"{address}/{made['webhookId']}"
        backend.client.post(f"{at}/test").raise_for_status()
        given = {"API_KEY": backend.key.secret, "WEBHOOK": made["webhookId"]}

        def run(script: str) -> "subprocess.Popen[str]":
            return subprocess.Popen(
                ["bash", "-c", script],
                env={**shell.variables, **given},
                stdout=subprocess.PIPE,
                text=True,
                start_new_session=True,
            )

        with run_block(
            "webhooks.md",
            "In development",
            0,
            run,
            ("http://127.0.0.1:3000/rubrica", url),
        ) as listening:
            assert listening.stdout is not None
            try:
                secret = listening.stdout.readline().split()[-1]
                assert listening.stdout.readline().strip() == "listening"
                sent = backend.client.post(f"{at}/test").json()
                got = [came.get(timeout=_AT_MOST_S) for _ in range(2)]
            finally:
                os.killpg(listening.pid, signal.SIGINT)

    for headers, body in got:
        told = Webhook(secret).verify(body, headers)
        assert told == sent["cuerpo"]
        assert headers["webhook-id"] == sent["entregaId"]
    assert came.empty()
