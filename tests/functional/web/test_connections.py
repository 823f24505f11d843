"""Connections that are held open, bodies that nobody wants, protocols not spoken."""

import contextlib
import itertools
import socket
import statistics
import threading
import time
from collections.abc import Iterator

import httpx
import psutil
import pytest

from tests.support.appliance.appliance import Appliance
from tests.support.appliance.http_calls import problem
from tests.support.faults.fault_injection import until
from tests.support.patience import CALL_S
from tests.support.processes.scratch import short_folder

HALF = b"GET /healthz HTTP/1.1\r\nHost: a\r\n"
UPGRADE = (
    b"GET /healthz HTTP/1.1\r\nHost: a\r\n"
    b"Connection: Upgrade, HTTP2-Settings, close\r\n"
    b"Upgrade: h2c\r\nHTTP2-Settings: AAMAAABkAAQCAAAAAAIAAAAA\r\n\r\n"
)
PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + b"\0\0\0\4\0\0\0\0\0"
MIB = 1024 * 1024
SHARING, PUSHING = "127.0.0.40", "127.0.0.43"


@pytest.fixture(scope="module")
def crowded() -> Iterator[Appliance]:
    """An appliance of few connections."""
    with (
        short_folder() as folder,
        Appliance.made(
            folder,
            web="connections = 300\nconnections_address = 100",
            execute=True,  # its memory is measured
        ) as running,
    ):
        yield running


def connected(appliance: Appliance, address: str) -> socket.socket:
    """A connection to the API from an address of this machine."""
    port = int(appliance.base_url.rpartition(":")[2])
    return socket.create_connection(
        ("127.0.0.1", port), timeout=30, source_address=(address, 0)
    )


def answer_s(appliance: Appliance) -> float:
    """How long a new client waits for its answer: the middle of some, in seconds."""
    taken = []
    for _ in range(9):
        began = time.perf_counter()
        assert (
            httpx.get(f"{appliance.base_url}/healthz", timeout=CALL_S).status_code
            == 200
        )
        taken.append(time.perf_counter() - began)
    return statistics.median(taken)


def read_all(connection: socket.socket) -> bytes:
    """Everything until its end."""
    told = b""
    with contextlib.suppress(ConnectionError):
        while piece := connection.recv(65_536):
            told += piece
    return told


@pytest.mark.alone
def test_half_requests_keep_nobody_out(crowded: Appliance) -> None:
    """A thousand of them, from several addresses; the log stays small.

    Those that waited longest make room, so a new client is answered as ever.
    """
    quiet = answer_s(crowded)
    logged = crowded.log.stat().st_size
    with contextlib.ExitStack() as held:
        for number in range(1000):
            one = held.enter_context(connected(crowded, f"127.0.0.{2 + number % 8}"))
            with contextlib.suppress(ConnectionError):
                one.sendall(HALF)
        crowd = answer_s(crowded)
        assert len(crowded.children("api")[0].net_connections()) <= 330

    assert crowd <= 5 * quiet + 0.05
    assert crowded.log.stat().st_size - logged < 100_000
    assert "Traceback" not in crowded.log.read_text()


HALF_BODY = (
    b"POST /auth/login HTTP/1.1\r\nHost: a\r\n"
    b"Content-Type: application/json\r\nContent-Length: 50\r\n\r\n{"
)


def dropped_and_served(appliance: Appliance) -> tuple[bytes, bytes]:
    """What the oldest of one address is told, and a client of another address."""
    with connected(appliance, "127.0.0.44") as other, contextlib.ExitStack() as held:
        other.sendall(HALF_BODY)
        first = held.enter_context(connected(appliance, SHARING))
        first.sendall(HALF_BODY)
        for _ in range(100):
            held.enter_context(connected(appliance, SHARING)).sendall(HALF_BODY)
        dropped = read_all(first)
        other.settimeout(60)
        return dropped, other.recv(100)


def test_one_address_has_its_share(crowded: Appliance) -> None:
    """Its next one takes the place of its oldest that waits; others lose nothing."""
    for _ in range(3):
        dropped, served = dropped_and_served(crowded)
        # Where a machine takes 15 s for 100 connections, bodies end for their time.
        if not dropped.startswith(b"HTTP/1.1 408"):
            break

    assert dropped == b""
    assert served.startswith(b"HTTP/1.1 408")


def faces(appliance: Appliance) -> list[int]:
    """The ports of the three faces."""
    urls = (appliance.base_url, appliance.iframe_url, appliance.admin_url)
    return [int(url.rpartition(":")[2]) for url in urls]


def test_half_bodies_keep_nobody_out(crowded: Appliance) -> None:
    """More of them than places, on each face: all fresh callers are answered."""
    for port in faces(crowded):
        with contextlib.ExitStack() as held:
            for number in range(1_100):
                one = held.enter_context(
                    socket.create_connection(
                        ("127.0.0.1", port),
                        timeout=30,
                        source_address=(f"127.0.0.{50 + number % 5}", 0),
                    )
                )
                with contextlib.suppress(ConnectionError):
                    one.sendall(
                        b"POST /auth/login HTTP/1.1\r\nHost: a\r\n"
                        b"Content-Type: application/json\r\n"
                        b"Content-Length: 16000\r\n\r\n{"
                    )
            answers = [
                httpx.get(
                    f"http://127.0.0.1:{port}/nowhere", timeout=CALL_S
                ).status_code
                for _ in range(50)
            ]

        assert all(status < 500 for status in answers), answers
    assert "Traceback" not in crowded.log.read_text()


def test_no_target_is_a_fault_of_ours(crowded: Appliance) -> None:
    """Whatever a first line asks for, on each face: no 500, and no traceback."""
    bits = [*"/?#[]:@%*.;=&\\\"'<>{}|^~a1", "//", "http:", "://", "%2f", "%00", "%ff"]
    starts = ["", "/", "http://", "http://a/", "/healthz", "//"]
    targets = ["?x", "??", "http://[", "http://a]/healthz", "http://[1.2.3.4]/", "*"]
    walked = itertools.islice(itertools.product(starts, bits, bits, bits), 0, None, 509)
    targets += ["".join(each) for each in walked]
    methods = itertools.cycle(["GET", "OPTIONS", "POST", "CONNECT", "HEAD"])
    for port in faces(crowded):
        for target, method in zip(targets, methods, strict=False):
            told = _raw(port, f"{method} {target} HTTP/1.1\r\nHost: a\r\n")
            status = int(told.split()[1])

            assert status < 500, (method, target)
            assert b"\r\nx-request-id: " in told.lower(), (method, target)
    assert "Traceback" not in crowded.log.read_text()
    assert "trace=" not in crowded.log.read_text()


def _raw(port: int, head: str) -> bytes:
    with socket.create_connection(("127.0.0.1", port), timeout=30) as one:
        one.sendall(f"{head}Connection: close\r\n\r\n".encode())
        return read_all(one)


@pytest.mark.parametrize("first", [HALF, b"GET /healthz HTTP/1.1\r\nHost: a\r\n\r\n"])
def test_head_is_not_waited_for(crowded: Appliance, first: bytes) -> None:
    """Ten seconds for a first head, and for a further one from its first byte."""
    with connected(crowded, "127.0.0.41") as one:
        began = time.monotonic()
        one.sendall(first)
        if first.endswith(b"\r\n\r\n"):
            assert one.recv(4096).startswith(b"HTTP/1.1 200")
            one.sendall(b"GET /he")
        one.settimeout(60)
        read_all(one)
        waited = time.monotonic() - began

    # The service's own patience is a timer: no machine is slower than 50 s.
    assert 8 < waited < 50


@pytest.mark.parametrize(("sent", "status"), [(UPGRADE, b"200"), (PREFACE, b"400")])
def test_http2_in_clear_text_is_off(
    crowded: Appliance, sent: bytes, status: bytes
) -> None:
    """Neither by upgrade nor by a client that begins with it."""
    with connected(crowded, "127.0.0.42") as one:
        one.sendall(sent)
        told = read_all(one)

    assert told.startswith(b"HTTP/1.1 " + status)
    assert b"101" not in told.split(b"\r\n", 1)[0]


def push(appliance: Appliance, head: str, size: int) -> bytes:
    """Send a head and a large body to the end; what was answered."""
    with connected(appliance, PUSHING) as one, contextlib.suppress(ConnectionError):
        one.sendall(head.encode())
        for _ in range(size // MIB):
            one.sendall(b"x" * MIB)
        return read_all(one)
    return b""


@pytest.mark.parametrize(
    "line", ["GET /readyz", "POST /auth/login", "POST /solicitudes/firmar"]
)
def test_memory_of_bodies_that_nobody_wants(crowded: Appliance, line: str) -> None:
    """40 of 48 MiB at once, as whatever type: they stay with their senders."""
    (api,) = crowded.children("api")
    before = api.memory_info().rss
    head = (
        f"{line} HTTP/1.1\r\nHost: a\r\nContent-Length: {48 * MIB}\r\n"
        "Content-Type: multipart/form-data; boundary=x\r\n\r\n"
    )
    pushers = [
        threading.Thread(target=push, args=(crowded, head, 48 * MIB)) for _ in range(40)
    ]
    most = 0
    for one in pushers:
        one.start()
    while any(one.is_alive() for one in pushers):
        most = max(most, _rss(api))
        time.sleep(0.05)
    for one in pushers:
        one.join()

    assert most - before < 60 * MIB
    until(lambda: _rss(api) - before < 40 * MIB)
    problem(httpx.get(f"{crowded.base_url}/nada", timeout=CALL_S), 404, "NOT_FOUND")


def _rss(process: psutil.Process) -> int:
    return int(process.memory_info().rss)
