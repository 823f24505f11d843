"""What signs messages, as the receivers of docs/webhooks.md and of the samples take it.

They stand on libraries of others: `standardwebhooks` of PyPI and of npm, and openssl.

Source: docs/webhooks.md "Verify the signature"; Standard Webhooks 1.0.0.
"""

import re
import shlex
import subprocess
from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Final

import pytest
from standardwebhooks import Webhook, WebhookVerificationError

from appliance.developer_docs.pages import SAMPLES
from appliance.domain.clock import SystemClock
from appliance.domain.integrators.webhooks import new_secret, signed_headers
from tests.support.appliance.manual import DOCS, fenced, run_block
from tests.support.webhooks import node_receiver

PAGE: Final = (DOCS / "webhooks.md").read_text("utf-8")
BODY: Final = '{"type":"solicitud.firmada","data":{"referencia":"añó «1»"}}'
TOLD: Final = {"type": "solicitud.firmada", "data": {"referencia": "añó «1»"}}
MESSAGE: Final = "019ac5f0-7c00-7000-8000-0000000000ff"

Receiver = Callable[[str, str, Mapping[str, str]], dict[str, Any]]


def block_of(language: str) -> str:
    """The page's one block in a language."""
    (found,) = [each.text for each in fenced(PAGE) if each.language == language]
    return found


def python_receiver(source: str) -> Receiver:
    """One in Python."""
    made: dict[str, Any] = {}
    exec(source, made)  # noqa: S102 (the manual's own lines)

    def read(secret: str, body: str, headers: Mapping[str, str]) -> Any:
        try:
            return made["read_message"](secret, body.encode(), dict(headers))
        except WebhookVerificationError:
            return {"refused": "Python"}

    return read


SOURCES: Final = {
    ("python", "page"): block_of("python"),
    ("python", "sample"): SAMPLES["webhook.py"].decode(),
    ("node", "page"): block_of("js"),
    ("node", "sample"): SAMPLES["webhook.mjs"].decode(),
}


@pytest.fixture(params=SOURCES, ids="-".join)
def receive(request: pytest.FixtureRequest, tmp_path: Path) -> Receiver:
    """A receiver that we write; it gives what it read, or `refused`."""
    source = SOURCES[request.param]
    if request.param[0] == "python":
        return python_receiver(source)
    if not node_receiver.MODULES.is_dir():
        pytest.fail(
            "python -m tests.support.webhooks.node_receiver fetches its library"
        )

    def read(secret: str, body: str, headers: Mapping[str, str]) -> dict[str, Any]:
        folder = tmp_path / str(len([*tmp_path.iterdir()]))
        folder.mkdir()
        return node_receiver.read_message(source, folder, secret, body, headers)

    return read


def headers_at(at: datetime, *keys: str) -> Mapping[str, str]:
    """Those of a try."""
    return signed_headers(MESSAGE, BODY.encode(), at, keys)


def test_receiver_reads_what_is_signed_now(receive: Receiver) -> None:
    """And refuses another secret, another body, another id and an old try."""
    secret, now = new_secret(), SystemClock().now()
    headers = headers_at(now, secret)
    old = headers_at(now - timedelta(minutes=6), secret)

    assert receive(secret, BODY, headers) == TOLD
    for wrong in (
        receive(new_secret(), BODY, headers),
        receive(secret, BODY.replace("1", "2"), headers),
        receive(secret, BODY, {**headers, "webhook-id": "otro"}),
        receive(secret, BODY, old),
    ):
        assert "refused" in wrong


def test_receiver_with_either_secret_reads_while_one_takes_over(
    receive: Receiver,
) -> None:
    """Before it changed over, and after; with neither it refuses."""
    new, former = new_secret(), new_secret()
    headers = headers_at(SystemClock().now(), new, former)

    assert receive(former, BODY, headers) == TOLD
    assert receive(new, BODY, headers) == TOLD
    assert "refused" in receive(new_secret(), BODY, headers)
    assert len(headers["webhook-signature"].split(" ")) == 2


def test_signature_is_that_of_the_library() -> None:
    """Its own, made of the same, is the same."""
    secret, at = new_secret(), datetime(2026, 11, 27, 12, 0, 1, 999_000, UTC)

    made = Webhook(secret).sign(MESSAGE, at, BODY)

    assert headers_at(at, secret)["webhook-signature"] == made


def message_of_page() -> tuple[Mapping[str, str], str, str]:
    """Headers and body of the page's message, and its secret."""
    head, _, body = block_of("http").partition("\n\n")
    lines = [line.split(": ", 1) for line in head.splitlines()[1:]]
    (secret,) = set(re.findall(r"`(whsec_[A-Za-z0-9+/=]{40,})`", PAGE))
    return dict(lines), body.strip("\n"), secret


def test_message_of_the_page_has_its_signature() -> None:
    """By what signs here."""
    headers, body, secret = message_of_page()
    at = datetime.fromtimestamp(int(headers["webhook-timestamp"]), UTC)

    made = signed_headers(headers["webhook-id"], body.encode(), at, [secret])

    assert made == {name: headers[name] for name in made}


def test_lines_of_the_page_make_that_signature(tmp_path: Path) -> None:
    """By openssl, in a shell."""
    headers, body, secret = message_of_page()
    (tmp_path / "body.json").write_text(body, "utf-8")
    given = {
        "SECRET": secret,
        "ID": headers["webhook-id"],
        "TIMESTAMP": headers["webhook-timestamp"],
    }
    before = "".join(f"{name}={shlex.quote(text)}\n" for name, text in given.items())

    def run(script: str) -> str:
        done = subprocess.run(
            ["bash", "-euo", "pipefail", "-c", before + script],
            cwd=tmp_path,
            capture_output=True,
            text=True,
            check=True,
        )
        return done.stdout.strip()

    made = run_block("webhooks.md", "Verify the signature", 0, run)

    assert f"v1,{made}" == headers["webhook-signature"]
