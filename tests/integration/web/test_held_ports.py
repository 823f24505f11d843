"""Ports of a trial: chosen free, and open from then until its commands serve them."""

import json
import os
import socket
import subprocess
import sys
from pathlib import Path
from typing import Final

import pytest

from appliance.cli.demo.host_files import host_address
from appliance.cli.installation.trial_ports import TrialPorts
from appliance.runtime.processes import bind
from appliance.settings import SettingsError, load_settings
from appliance.system.held_listeners import (
    VARIABLE,
    close_held,
    hand_on,
    held_address,
    take_held,
)
from embed.demo.mail_catcher import MailCatcher
from tests.support.patience import CALL_S
from tests.support.processes.rubrica import command_line
from tests.support.processes.scratch import free_port

_WAITING: Final = "import sys; print('held', flush=True); sys.stdin.read()"
"""A command of a trial that has yet to serve anything."""
_SERVING: Final = """
import sys
from pathlib import Path
from appliance.cli.demo.host_files import host_address
from appliance.cli.demo.setup import caught_at
from appliance.runtime.processes import bind
from appliance.settings import load_settings
settings = load_settings(Path(sys.argv[1]))
site = host_address(settings.data_dir)
wanted = [*map(settings.listen, ("api", "embed", "admin", "metrics")), site]
for address in [*wanted, caught_at(settings)]:
    print(bind(address, 16).getsockname()[1])
"""
"""One that serves all of them."""


def _begin(folder: Path, *command: str) -> subprocess.Popen[str]:
    """Start `init --then` with a command of Python."""
    then = [sys.executable, "-c", *command]
    return subprocess.Popen(
        command_line("init", "--trial", str(folder), "--then", *then),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def _until_held(process: subprocess.Popen[str]) -> None:
    assert process.stdout is not None
    while (line := process.stdout.readline()) != "held\n":
        assert line, process.communicate(timeout=CALL_S)


def _ports(folder: Path) -> list[int]:
    """Ports of the settings: three faces, metrics, mail."""
    settings = load_settings(folder / "settings.toml")
    listening = map(settings.listen, ("api", "embed", "admin", "metrics"))
    ports = [int(each.rpartition(":")[2]) for each in listening]
    return [*ports, settings.mail.server_port]


def test_ports_are_open_before_anything_serves_them(tmp_path: Path) -> None:
    """Between the choice and the service no other program gets one."""
    with _begin(tmp_path, _WAITING) as process:
        _until_held(process)
        refused = []
        for port in _ports(tmp_path):
            with pytest.raises(SettingsError, match="in use by process") as told:
                bind(f"127.0.0.1:{port}", 1)
            refused.append(str(process.pid) in str(told.value))
        process.communicate("", timeout=CALL_S)

    assert refused == [True] * 5


def test_two_trials_at_once_have_ports_of_their_own(tmp_path: Path) -> None:
    """Neither waits for the other, and none of their ports is the same."""
    folders = [tmp_path / name for name in ("a", "b")]
    processes = [_begin(folder, _WAITING) for folder in folders]
    for process in processes:
        _until_held(process)
    ports = [port for folder in folders for port in _ports(folder)]
    for process in processes:
        process.communicate("", timeout=CALL_S)

    assert len(set(ports)) == 10
    assert [process.returncode for process in processes] == [0, 0]


def test_command_serves_what_is_open(tmp_path: Path) -> None:
    """The roles, the mail catcher and the demo site take their listeners."""
    settings = tmp_path / "settings.toml"
    with _begin(tmp_path, _SERVING, str(settings)) as process:
        out, err = process.communicate(timeout=CALL_S)

    assert process.returncode == 0, err
    served = [int(line) for line in out.splitlines() if line.isdigit()]
    api, embed, admin, metrics, mail = _ports(tmp_path)
    assert [*served[:4], served[5]] == [api, embed, admin, metrics, mail]
    assert served[4] not in {api, embed, admin, metrics, mail}


@pytest.mark.parametrize("which", ["api", "mail", "site"])
def test_port_that_is_taken_later_is_said_before_anything_runs(
    tmp_path: Path, which: str
) -> None:
    """Of a trial that was set up before: who has the port, and where it is chosen."""
    with _begin(tmp_path, "print('set up')") as process:
        process.communicate(timeout=CALL_S)
    where = {"api": "web.listen_api", "mail": "mail.port", "site": "listen in"}
    port = {"api": _ports(tmp_path)[0], "mail": _ports(tmp_path)[4]}.get(which)
    if port is None:
        port = free_port()
        told = json.dumps({"listen": f"127.0.0.1:{port}"})
        (tmp_path / "demo-host.json").write_text(told)
    with socket.create_server(("127.0.0.1", port)):
        process = _begin(tmp_path, "print('ran')")
        out, err = process.communicate(timeout=CALL_S)

    assert process.returncode == 1, err
    assert f"127.0.0.1:{port}: cannot be listened on" in out
    assert f"in use by process {os.getpid()}" in out
    assert where[which] in out
    assert "ran" not in out


def test_command_that_is_not_there_is_named(tmp_path: Path) -> None:
    """No traceback."""
    arguments = ("init", "--trial", str(tmp_path), "--then", str(tmp_path / "no"))
    done = subprocess.run(
        command_line(*arguments), capture_output=True, text=True, check=False
    )

    assert done.returncode == 78
    assert (
        done.stderr == f"{tmp_path / 'no'}: cannot be run (No such file or directory)\n"
    )


@pytest.fixture
def held(monkeypatch: pytest.MonkeyPatch) -> socket.socket:
    """A listener that was handed to this process as the demo site's."""
    listener = socket.create_server(("127.0.0.1", 0))
    monkeypatch.setenv(VARIABLE, hand_on({"site": listener}))
    return listener


def _address(listener: socket.socket) -> str:
    return f"127.0.0.1:{listener.getsockname()[1]}"


def test_listener_is_taken_once_by_its_address(held: socket.socket) -> None:
    """Not by another one; whoever takes it keeps it from programs it executes."""
    address = _address(held)
    number = held.detach()
    assert take_held(f"127.0.0.1:{free_port()}") is None

    taken = take_held(address)

    assert taken is not None
    assert (taken.fileno(), taken.get_inheritable()) == (number, False)
    assert take_held(address) is None
    taken.close()


@pytest.fixture
def two_addresses(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every name is that of ::1 first, and of 127.0.0.1."""

    def found(_host: str, port: int, **_: object) -> list[tuple[object, ...]]:
        return [
            (socket.AF_INET6, socket.SOCK_STREAM, 6, "", ("::1", port, 0, 0)),
            (socket.AF_INET, socket.SOCK_STREAM, 6, "", ("127.0.0.1", port)),
        ]

    monkeypatch.setattr("socket.getaddrinfo", found)


@pytest.mark.usefixtures("two_addresses")
def test_name_of_a_host_stands_for_each_of_its_addresses(held: socket.socket) -> None:
    """`localhost` is ::1 first on some machines, and listened on as 127.0.0.1."""
    port = held.getsockname()[1]
    number = held.detach()

    taken = take_held(f"localhost:{port}")

    assert taken is not None
    assert taken.fileno() == number
    taken.close()


@pytest.mark.usefixtures("two_addresses")
def test_port_of_a_name_is_opened_once() -> None:
    """Settings that say `localhost` have the port that was chosen for them."""
    with TrialPorts() as ports:
        port = ports.choose("api", free_port())
        chosen = ports.listeners["api"]

        ports.open("site", f"localhost:{port}")

        assert dict(ports.listeners) == {"api": chosen}


def test_name_tells_the_address_of_a_new_site(
    held: socket.socket, tmp_path: Path
) -> None:
    """The demo site is set up where its port is open."""
    assert held_address("site") == host_address(tmp_path) == _address(held)
    assert held_address("other") == ""
    held.close()


def test_mail_catcher_takes_its_listener(held: socket.socket) -> None:
    """It binds nothing by itself where its port is open."""
    address = _address(held)
    held.detach()

    with MailCatcher(address) as catcher:
        assert f"127.0.0.1:{catcher.port}" == address
        with pytest.raises(SettingsError, match=r"cannot be listened on"):
            MailCatcher(address)


def test_what_nobody_took_is_closed(held: socket.socket) -> None:
    """A role of an appliance keeps no listener of another program."""
    address = _address(held)
    held.detach()

    close_held()

    assert VARIABLE not in os.environ
    bind(address, 1).close()


@pytest.mark.parametrize(
    "value",
    [
        "",
        "no",
        "[]",
        "3",
        '{"site": 1}',
        '{"site": -1}',
        '{"site": 1e3}',
        '{"site": "a"}',
        '{"site": 99999999999}',
        '{"site": true}',
        '{"site": 9999}',
    ],
)
def test_variable_that_names_no_listener_is_as_none(
    monkeypatch: pytest.MonkeyPatch, value: str
) -> None:
    """Whoever set it: nothing is taken, and nothing else is closed."""
    monkeypatch.setenv(VARIABLE, value)

    assert take_held("127.0.0.1:1") is None
    assert held_address("site") == ""
    close_held()
    assert os.fstat(1) is not None
