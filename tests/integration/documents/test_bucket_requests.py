"""Single requests of a bucket, to stores that take their time.

Source: docs/settings.md "[documents]", `request_timeout_s`.
"""

import contextlib
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from appliance.documents.s3.signed_requests import BucketRequests
from appliance.settings import DocumentSettings

_EACH_S = 0.05
"""Between two bytes."""
_STEP_S = 0.5
_HEAD = b"HTTP/1.1 200 OK\r\ncontent-length: 400\r\n\r\n"


@dataclass
class Store:
    """One that answers byte by byte."""

    address: str
    sent: int = 0
    """Bytes that it sent so, so far."""


@contextmanager
def drip(given: bytes, slowly: bytes) -> Iterator[Store]:
    """A store that answers some at once, and the rest byte by byte."""
    ended = threading.Event()

    def serve() -> None:
        with contextlib.suppress(OSError):
            connection, _ = listener.accept()
            with connection:
                connection.recv(65_536)
                connection.sendall(given)
                for at in range(len(slowly)):
                    connection.sendall(slowly[at : at + 1])
                    store.sent += 1
                    if ended.wait(_EACH_S):
                        return

    with socket.create_server(("127.0.0.1", 0)) as listener:
        store = Store(f"http://127.0.0.1:{listener.getsockname()[1]}")
        serving = threading.Thread(target=serve)
        serving.start()
        yield store
        ended.set()
    serving.join()


def requests_of(folder: Path, endpoint: str, step_s: float = _STEP_S) -> BucketRequests:
    """Requests that are given so long for each step, in seconds."""
    for name in ("id", "key"):
        (folder / name).write_text("x" * 16)
    return BucketRequests(
        DocumentSettings(
            url="s3://docs",
            endpoint=endpoint,
            access_key_file=folder / "id",
            secret_key_file=folder / "key",
        ),
        step_s,
    )


@pytest.mark.parametrize(
    ("given", "slowly"),
    [(b"", _HEAD * 9), (b"HTTP/1.1 200 OK\r\n", b"x: y\r\n" * 90), (_HEAD, b"x" * 400)],
)
def test_answer_that_drips_is_given_up(
    tmp_path: Path, given: bytes, slowly: bytes
) -> None:
    """Each byte is in time, and together they would take twenty seconds and more."""
    with drip(given, slowly) as store:
        requests = requests_of(tmp_path, store.address)
        with pytest.raises(TimeoutError):
            requests.ask("GET", "a", most_bytes=400)
        sent = store.sent

    assert sent < len(slowly) / 2


def test_answer_that_comes_in_time_is_whole(tmp_path: Path) -> None:
    """Some at once and the rest later, the connection's end being its own."""
    head = b"HTTP/1.1 200 OK\r\nx-a: b\r\nconnection: close\r\n\r\nhel"
    with drip(head, b"lo") as store:
        answer = requests_of(tmp_path, store.address, step_s=60).ask("GET", "a")
    assert answer.content == b"hello"
    assert answer.headers["x-a"] == "b"


@pytest.mark.parametrize("address", ["https://s3.example :9000", "https://s3\t.a"])
def test_address_with_a_blank_is_refused(address: str) -> None:
    """By the settings; what connects would fail with an error of its own."""
    with pytest.raises(ValueError, match="must be https://host"):
        DocumentSettings(url="s3://docs", endpoint=address)
