"""The receivers in PHP and Java that pages for developers show, run as programs."""

import json
import os
import subprocess
from collections.abc import Callable, Mapping
from datetime import timedelta
from pathlib import Path
from typing import Final

import pytest

from appliance.developer_docs.pages import SAMPLES
from appliance.domain.clock import SystemClock
from appliance.domain.integrators.webhooks import new_secret, signed_headers

pytestmark = pytest.mark.long

BODY: Final = '{"type":"solicitud.firmada","data":{"referencia":"añó «1»"}}'
MESSAGE: Final = "019ac5f0-7c00-7000-8000-0000000000ff"
_PHP: Final = """<?php
require 'webhook.php';
[$_, $secret, $body, $headers] = $argv;
read_message($secret, $body, json_decode($headers, true));
"""
_JAVA: Final = """
import java.nio.charset.StandardCharsets;

final class Try {
    public static void main(String[] given) throws Exception {
        byte[] body = given[1].getBytes(StandardCharsets.UTF_8);
        var isOurs = Webhook.isOurs(given[0], body, given[2], given[3], given[4]);
        System.exit(isOurs ? 0 : 1);
    }
}
"""

Receiver = Callable[[str, str, Mapping[str, str]], bool]


@pytest.fixture(params=["php", "java"])
def receive(request: pytest.FixtureRequest, tmp_path: Path) -> Receiver:
    """Whether a receiver takes a message."""
    (tmp_path / "webhook.php").write_bytes(SAMPLES["webhook.php"])
    (tmp_path / "try.php").write_text(_PHP)
    (tmp_path / "Webhook.java").write_bytes(SAMPLES["Webhook.java"])
    (tmp_path / "Try.java").write_text(_JAVA)

    def run(*command: str) -> bool:
        # Java reads its arguments by the locale.
        done = subprocess.run(
            command,
            cwd=tmp_path,
            env={**os.environ, "LC_ALL": "C.UTF-8"},
            check=False,
            timeout=300,
        )
        return done.returncode == 0

    def by_php(secret: str, body: str, headers: Mapping[str, str]) -> bool:
        return run("php", "try.php", secret, body, json.dumps(dict(headers)))

    def by_java(secret: str, body: str, headers: Mapping[str, str]) -> bool:
        return run("java", "-cp", ".", "Try", secret, body, *headers.values())

    if request.param == "php":
        return by_php
    assert run("javac", "Webhook.java", "Try.java")
    return by_java


def test_receiver_takes_what_is_signed_now_and_nothing_else(receive: Receiver) -> None:
    """Either secret while one takes over; no other one, no other body, no old try."""
    secret, former, now = new_secret(), new_secret(), SystemClock().now()
    headers = signed_headers(MESSAGE, BODY.encode(), now, [secret, former])
    old = signed_headers(MESSAGE, BODY.encode(), now - timedelta(minutes=6), [secret])

    assert receive(secret, BODY, headers)
    assert receive(former, BODY, headers)
    assert not receive(new_secret(), BODY, headers)
    assert not receive(secret, BODY.replace("1", "2"), headers)
    assert not receive(secret, BODY, old)
