"""Ports that another one has: said plainly, and not taken for our own."""

import os
import socket
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from appliance.runtime.processes import bind
from appliance.settings import SettingsError, load_settings
from appliance.settings.web import INSTALLATION_HEADER
from appliance.system.port_holders import holder_of
from tests.support.patience import CALL_S
from tests.support.processes.command_folder import CommandFolder, make_command_folder


class _Ready(BaseHTTPRequestHandler):
    """Another installation, which is ready, or the one that `ours` names."""

    ours = ""

    def do_GET(self) -> None:
        """Say so."""
        self.send_response(200)
        if self.ours:
            self.send_header(INSTALLATION_HEADER, self.ours)
        self.end_headers()
        self.wfile.write(b"Ready.")

    def log_message(self, *_: object) -> None:
        """Say nothing."""


@pytest.fixture
def other() -> Iterator[int]:
    """A server that answers everything with 200; its port."""
    with ThreadingHTTPServer(("127.0.0.1", 0), _Ready) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield server.server_port
        server.shutdown()
        thread.join()


@pytest.fixture
def command_folder(tmp_path: Path, other: int) -> CommandFolder:
    """An installation whose API has the other one's port."""
    make_command_folder(tmp_path)
    settings = tmp_path / "settings.toml"
    web = "\n".join(
        (
            "[web]",
            f'base_url = "http://127.0.0.1:{other}"',
            f'listen_api = "127.0.0.1:{other}"',
            f'listen_embed = "127.0.0.1:{_free()}"',
            f'listen_admin = "127.0.0.1:{_free()}"',
        )
    )
    settings.write_text(f"{settings.read_text()}\n{web}\n")
    return CommandFolder(tmp_path)


def _free() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def test_holder_of_a_port_is_named(other: int) -> None:
    """By its process id and what it runs; nobody where nobody listens."""
    assert holder_of(other).startswith(f"process {os.getpid()}: ")
    assert holder_of(_free()) == ""


def test_listener_says_who_has_its_port(other: int) -> None:
    """The error of every role that listens."""
    with pytest.raises(SettingsError, match=f"in use by process {os.getpid()}: "):
        bind(f"127.0.0.1:{other}", 1)


def test_command_says_who_and_what_to_do(
    command_folder: CommandFolder, other: int
) -> None:
    """Each taken port with its holder and the keys that choose it; else nothing."""
    said = command_folder.run("check-ports", status=1)

    assert said.startswith(
        f"127.0.0.1:{other}: cannot be listened on (it is in use by "
    )
    assert f"process {os.getpid()}" in said
    assert "web.listen_api and web.base_url in " in said
    assert "listen_embed" not in said
    settings = command_folder.folder / "settings.toml"
    settings.write_text(settings.read_text().replace(str(other), str(_free())))
    assert command_folder.run("check-ports") == ""


def test_demo_site_is_looked_at_too(command_folder: CommandFolder, other: int) -> None:
    """Its port is kept in a file of its own."""
    settings = command_folder.folder / "settings.toml"
    settings.write_text(settings.read_text().replace(str(other), str(_free())))
    site = command_folder.folder / "demo-host.json"
    site.write_text(f'{{"listen": "127.0.0.1:{other}"}}')

    assert f"listen in {site}" in command_folder.run("check-ports", status=1)


def test_another_ones_readiness_is_not_ours(command_folder: CommandFolder) -> None:
    """A process that ended is not ready, whoever answers at its address."""
    ended = command_folder.begin("check-config")
    ended.communicate(timeout=CALL_S)

    said = command_folder.run(
        "ready", "--wait", "30", "--pid", str(ended.pid), status=1
    )

    assert said == f"process {ended.pid}, which was to get ready, has ended\n"


def test_another_installation_is_told_apart_by_its_data_folder(
    command_folder: CommandFolder, other: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Only the installation that was asked repeats its id; a copy has another one."""
    own = load_settings(command_folder.folder / "settings.toml").folder_id
    copy = command_folder.folder.with_name("copy")
    copy.mkdir()
    copy_settings = copy / "settings.toml"
    text = (command_folder.folder / "settings.toml").read_text()
    copy_settings.write_text(text)

    said = command_folder.run("ready", "--pid", str(os.getpid()), status=1)
    assert f"127.0.0.1:{other}: what answers there is not the API of" in said
    assert str(command_folder.folder) in said

    monkeypatch.setattr(_Ready, "ours", load_settings(copy_settings).folder_id)
    assert "is not the API of" in command_folder.run("ready", status=1)

    monkeypatch.setattr(_Ready, "ours", own)
    assert command_folder.run("ready", "--pid", str(os.getpid())) == "Ready.\n"


def test_containers_of_one_installation_name_it_alike(tmp_path: Path) -> None:
    """They have only `pki` in common; a copy of the folder is another installation."""
    one, other, copy = (tmp_path / name for name in ("one", "other", "copy"))
    for folder in (one, other, copy):
        folder.mkdir()
        make_command_folder(folder)
    (one / "pki").mkdir()
    (other / "pki").symlink_to(one / "pki")
    (copy / "pki").mkdir()

    ids = [
        load_settings(folder / "settings.toml").folder_id
        for folder in (one, other, copy)
    ]

    assert ids[0] == ids[1] != ids[2]
