"""Listeners that systemd binds: taken over, and told apart from other addresses."""

import os
import shutil
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from appliance.system.passed_sockets import passed_listener
from tests.support.processes.scratch import free_port

_PROGRAM = """\
import os, socket, subprocess, sys
from appliance.runtime.processes import bind
from appliance.settings import SettingsError
try:
    listener = bind(sys.argv[1], 16)
except SettingsError as exc:
    print(exc, flush=True)
    sys.exit(1)
left = [name for name in os.environ if name.startswith("LISTEN_")]
connection, _ = listener.accept()
connection.sendall(f"{listener.fileno()} {left}".encode())
connection.close()
"""
_LONGEST_S = 30

pytestmark = pytest.mark.skipif(
    shutil.which("systemd-socket-activate") is None,
    reason="systemd-socket-activate is not installed (package systemd)",
)


def _started(unit: list[str], wanted: str) -> subprocess.Popen[str]:
    """A process that is given listeners as a socket unit's service is.

    Args:
        unit: addresses of the socket unit.
        wanted: the address of the settings.
    """
    listen = [part for address in unit for part in ("-l", address)]
    passed = [part for name in ("PYTHONPATH", "PATH") for part in ("-E", name)]
    program = [sys.executable, "-c", _PROGRAM, wanted]
    return subprocess.Popen(
        ["systemd-socket-activate", *listen, *passed, *program],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": str(Path(__file__).resolve().parents[3])},
    )


def _told(process: subprocess.Popen[str], family: int, address: object) -> str:
    """What a caller is told, who comes as soon as somebody listens; or nothing."""
    assert process.stderr is not None
    while "Listening on" not in (line := process.stderr.readline()):
        assert line, "systemd-socket-activate ended"
    with socket.socket(family, socket.SOCK_STREAM) as caller:
        caller.settimeout(_LONGEST_S)
        caller.connect(address)  # type: ignore[arg-type] # (host, port) or a path
        try:
            return caller.recv(200).decode()
        except ConnectionResetError:
            return ""


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost"])
def test_listener_of_a_socket_unit_is_taken(host: str) -> None:
    """Callers that came before the process are answered; nothing is handed on."""
    port = free_port()
    with _started([f"127.0.0.1:{port}"], f"{host}:{port}") as process:
        assert _told(process, socket.AF_INET, ("127.0.0.1", port)) == "3 []"
        assert process.wait(_LONGEST_S) == 0


def test_unix_listener_is_taken_and_stays(tmp_path: Path) -> None:
    """Its path is the socket unit's: a process that ends leaves it."""
    path = tmp_path / "sandbox.sock"
    with _started([str(path)], f"unix:{path}") as process:
        assert _told(process, socket.AF_UNIX, str(path)) == "3 []"
        assert process.wait(_LONGEST_S) == 0
    assert path.is_socket()


@pytest.mark.parametrize("more", [0, 1])
def test_other_listeners_are_named(more: int) -> None:
    """A unit that listens elsewhere, or on more, is no listener of the settings'."""
    ports = [free_port() for _ in range(1 + more)]
    wanted = ports[0] if more else free_port()
    unit = [f"127.0.0.1:{port}" for port in ports]
    with _started(unit, f"127.0.0.1:{wanted}") as process:
        assert _told(process, socket.AF_INET, ("127.0.0.1", ports[0])) == ""
        assert process.stdout is not None
        told = process.stdout.read()
        assert process.wait(_LONGEST_S) == 1

    assert told.startswith(f"127.0.0.1:{wanted}: the socket unit listens on ")
    assert all(f"127.0.0.1:{port}" in told for port in ports)


def test_listeners_of_another_process_are_left(monkeypatch: pytest.MonkeyPatch) -> None:
    """The variables may come from a parent that was the one meant."""
    monkeypatch.setenv("LISTEN_PID", str(os.getpid() + 1))
    monkeypatch.setenv("LISTEN_FDS", "1")

    assert passed_listener("127.0.0.1:1") is None
    assert "LISTEN_FDS" not in os.environ
