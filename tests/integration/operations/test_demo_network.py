"""A trial that devices of a private network reach: settings, certificate, TLS front."""

import asyncio
import http.server
import json
import shutil
import ssl
import subprocess
import threading
import tomllib
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Final

import httpx
import pytest

from appliance.cli.demo import network
from appliance.cli.demo.network import prepare, private_address, qr_lines
from appliance.cli.demo.tls_front import (
    CONNECTIONS,
    VALID,
    Forward,
    TlsFront,
    ensure_certificate,
)
from appliance.settings import SettingsError, load_settings
from tests.support.patience import CALL_S
from tests.support.processes.rubrica import run_rubrica
from tests.support.processes.scratch import free_port

ADDRESS: Final = "192.168.0.10"
URLS: Final = ("base_url", "web_url", "iframe_url", "admin_url")
LOCAL: Final = "127.0.0.1"
EVERYWHERE: Final = "0.0.0.0"  # noqa: S104 (it is refused)


@pytest.fixture
def settings_file(tmp_path: Path) -> Path:
    """The settings of a trial, as `./quickstart` has them."""
    done = run_rubrica("init", "--trial", str(tmp_path / "var"))
    assert done.returncode == 0, done.stderr
    return tmp_path / "var/settings.toml"


@pytest.fixture
def target(settings_file: Path) -> Path:
    """Where the settings for the network go."""
    return settings_file.with_name("settings-network.toml")


def test_addresses_are_those_of_the_network(settings_file: Path, target: Path) -> None:
    """By TLS at the same ports; listeners and all else stay as they are."""
    prepare(settings_file, target, ADDRESS)

    before, after = load_settings(settings_file), load_settings(target)
    for name in URLS:
        port = getattr(before.web, name).rpartition(":")[2]
        assert getattr(after.web, name) == f"https://{ADDRESS}:{port}"
    rest = set(type(before.web).model_fields) - set(URLS)
    assert all(getattr(before.web, x) == getattr(after.web, x) for x in rest)
    others = {"web"}
    assert before.model_dump(exclude=others) == after.model_dump(exclude=others)


def test_trial_of_this_machine_is_unchanged(settings_file: Path, target: Path) -> None:
    """Its own settings stay; with them it is open to nobody."""
    before = settings_file.read_bytes()

    prepare(settings_file, target, ADDRESS)

    assert settings_file.read_bytes() == before
    assert network.shared_address(load_settings(settings_file)) == ""
    assert network.shared_address(load_settings(target)) == ADDRESS


def test_what_is_secret_is_its_owners(settings_file: Path, target: Path) -> None:
    """Key, visit key and settings."""
    prepare(settings_file, target, ADDRESS)

    folder = settings_file.parent / network.FOLDER
    secret = [target, folder / "key.pem", folder / "visit-key"]
    assert {path.stat().st_mode & 0o077 for path in secret} == {0}
    assert folder.stat().st_mode & 0o077 == 0


def test_visit_key_is_in_the_part_that_no_server_gets(
    settings_file: Path, target: Path
) -> None:
    """Behind the `#`; it is kept, so that a saved address goes on working."""
    prepare(settings_file, target, ADDRESS)
    first = network.visit_address(load_settings(target), f"https://{ADDRESS}:8090")
    prepare(settings_file, target, ADDRESS)
    second = network.visit_address(load_settings(target), f"https://{ADDRESS}:8090")

    assert first == second
    origin, _, key = first.partition("/#visita=")
    assert origin == f"https://{ADDRESS}:8090"
    assert len(key) >= 22
    own = network.visit_address(load_settings(settings_file), "http://127.0.0.1:8090")
    assert own == "http://127.0.0.1:8090/"


@pytest.mark.parametrize("left", ["", "\n", "abc"])
def test_visit_key_that_is_none_is_made_again(
    settings_file: Path, target: Path, left: str
) -> None:
    """A full disk left the file empty; whole or not at all, it is its owner's."""
    prepare(settings_file, target, ADDRESS)
    path = settings_file.parent / network.VISIT_KEY
    path.write_text(left)

    with pytest.raises(SettingsError, match="holds no visit key"):
        network.visit_address(load_settings(target), f"https://{ADDRESS}:8090")
    prepare(settings_file, target, ADDRESS)

    assert len(path.read_text()) >= 22
    assert path.stat().st_mode & 0o077 == 0
    assert [each.name for each in path.parent.glob(".new-*")] == []


@pytest.mark.parametrize(
    ("line", "replaced"),
    [
        ('base_url = "https://firma.example"', "base_url"),
        ('admin_url = "http://127.0.0.1"', "admin_url"),
        ('iframe_url = "http://marco.example:8081"', "iframe_url"),
    ],
)
def test_addresses_that_somebody_chose_are_left_alone(
    settings_file: Path, target: Path, line: str, replaced: str
) -> None:
    """Refused by name: they are no trial's."""
    lines = settings_file.read_text().splitlines()
    changed = [line if x.startswith(f"{replaced} =") else x for x in lines]
    settings_file.write_text("\n".join(changed))

    with pytest.raises(SettingsError, match=rf"web\.{replaced}: .* no address of a tr"):
        prepare(settings_file, target, ADDRESS)


def test_addresses_in_another_form_are_not_missed(
    settings_file: Path, target: Path
) -> None:
    """A quoted key, TOML as well: refused, not half replaced."""
    text = settings_file.read_text().replace("admin_url =", '"admin_url" =')
    assert tomllib.loads(text)
    settings_file.write_text(text)

    with pytest.raises(SettingsError, match=r"web\.admin_url: write it on a line"):
        prepare(settings_file, target, ADDRESS)


@pytest.mark.parametrize("given", ["192.168.0.10", "10.1.2.3", "172.16.0.1"])
def test_private_addresses_are_taken(given: str) -> None:
    """Those of RFC 1918."""
    assert private_address(given) == given


@pytest.mark.parametrize(
    "given",
    ["8.8.8.8", "190.2.3.4", LOCAL, EVERYWHERE, "224.0.0.1", "::1", "x", ""],
)
def test_other_addresses_are_refused(given: str) -> None:
    """A trial is opened neither to the Internet nor to every network at once."""
    with pytest.raises(SettingsError, match="in a private network"):
        private_address(given)


def test_installation_that_is_no_trial_is_refused(tmp_path: Path) -> None:
    """PREPROD without `trial` opens nothing."""
    run_rubrica("init", str(tmp_path))
    settings = str(tmp_path / "settings.toml")
    target = tmp_path / "settings-network.toml"

    done = run_rubrica(
        *("--settings", settings, "demo", "network"),
        *("--prepare", str(target), "--address", ADDRESS),
    )

    assert done.returncode != 0
    assert "NOT_A_TRIAL" in done.stdout + done.stderr
    assert not target.exists()


def test_front_needs_settings_of_a_network(settings_file: Path) -> None:
    """With those of this machine it says how they are made."""
    done = run_rubrica("--settings", str(settings_file), "demo", "network")

    assert done.returncode != 0
    assert "are not for a network" in done.stderr


def test_certificate_is_made_again_when_it_is_of_no_use(tmp_path: Path) -> None:
    """Kept while it lasts; another one for another address, and before the end."""
    certificate, key = tmp_path / "certificate.pem", tmp_path / "key.pem"
    now = datetime.now(UTC)

    def made(address: str, at: datetime) -> bytes:
        ensure_certificate(certificate, key, address, at)
        return certificate.read_bytes()

    first = made(ADDRESS, now)
    assert made(ADDRESS, now + VALID / 2) == first
    second = made("10.0.0.1", now)
    third = made("10.0.0.1", now + VALID - timedelta(days=1))
    assert len({first, second, third}) == 3
    certificate.write_text("none")
    assert made("10.0.0.1", now) not in {b"none", third}


class Echo(http.server.BaseHTTPRequestHandler):
    """Answers with the path, the host and the size of what came."""

    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        """Answer a POST."""
        length = int(self.headers["Content-Length"])
        size = len(self.rfile.read(length))
        content = json.dumps([self.path, self.headers["Host"], size]).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 (inherited)
        """Say nothing."""


@pytest.fixture
def echo() -> Iterator[int]:
    """The port of a server of this machine."""
    server = http.server.ThreadingHTTPServer((LOCAL, 0), Echo)
    server.daemon_threads = True
    serving = threading.Thread(target=server.serve_forever, args=(0.02,))
    serving.start()
    with server:
        yield server.server_address[1]
        server.shutdown()
    serving.join()


@asynccontextmanager
async def fronted(folder: Path, target: int) -> AsyncIterator[tuple[int, Path]]:
    """A front before a port; its own port and its certificate."""
    certificate, key = folder / "certificate.pem", folder / "key.pem"
    ensure_certificate(certificate, key, LOCAL)
    port, stopped = free_port(), asyncio.Event()
    listening = asyncio.Event()
    front = TlsFront(LOCAL, [Forward(port, (LOCAL, target))], certificate, key)
    serving = asyncio.create_task(front.serve(stopped, listening))
    try:
        await asyncio.wait_for(listening.wait(), CALL_S)
        yield port, certificate
    finally:
        stopped.set()
        await serving


async def test_front_carries_calls_and_answers(tmp_path: Path, echo: int) -> None:
    """Whole, in both directions, on one connection; `Host` is the network's."""
    async with fronted(tmp_path, echo) as (port, certificate):
        trust = ssl.create_default_context(cafile=str(certificate))
        url = f"https://{LOCAL}:{port}"
        async with httpx.AsyncClient(verify=trust, timeout=CALL_S) as client:
            for size in (0, 1, 3_000_000):
                answer = await client.post(f"{url}/a", content=bytes(size))
                assert answer.json() == ["/a", f"{LOCAL}:{port}", size]


async def test_front_ends_a_connection_to_nobody(tmp_path: Path) -> None:
    """The role behind it is away: the connection ends, the front goes on."""
    async with fronted(tmp_path, free_port()) as (port, certificate):
        trust = ssl.create_default_context(cafile=str(certificate))
        async with httpx.AsyncClient(verify=trust, timeout=CALL_S) as client:
            for _ in range(2):
                with pytest.raises(httpx.RemoteProtocolError):
                    await client.get(f"https://{LOCAL}:{port}/")


async def test_front_closes_connections_beyond_its_limit(
    tmp_path: Path, echo: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Those within it go on."""
    assert CONNECTIONS == 256
    monkeypatch.setattr("appliance.cli.demo.tls_front.CONNECTIONS", 1)
    async with fronted(tmp_path, echo) as (port, certificate):
        trust = ssl.create_default_context(cafile=str(certificate))
        first_reader, first = await asyncio.open_connection(LOCAL, port, ssl=trust)
        first.write(b"POST /1 HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\n\r\n")
        assert b"200" in await first_reader.readline()

        second_reader, second = await asyncio.open_connection(LOCAL, port, ssl=trust)
        assert await second_reader.read() == b""
        second.close()

        first.write(b"POST /2 HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\n\r\n")
        await first_reader.readuntil(b'"/2"')
        first.close()


@pytest.mark.skipif(shutil.which("zbarimg") is None, reason="zbar reads the code")
def test_qr_code_of_the_terminal_can_be_scanned(tmp_path: Path) -> None:
    """Half blocks, black on white: drawn as pixels they are the address."""
    address = f"https://{ADDRESS}:8090/#visita=aB3_-xyzaB3_-xyzaB3_-xyz"
    lines = [
        line.partition("m")[2].removesuffix("\x1b[0m") for line in qr_lines(address)
    ]
    halves = {" ": "00", "▀": "10", "▄": "01", "█": "11"}
    rows: list[str] = []
    for line in lines:
        pairs = [halves[block] for block in line]
        rows += ["".join(x[0] for x in pairs), "".join(x[1] for x in pairs)]
    scale = 4
    wide = [" ".join(bit for bit in row for _ in range(scale)) for row in rows]
    picture = tmp_path / "code.pbm"
    head = f"P1\n{len(rows[0]) * scale} {len(rows) * scale}\n"
    picture.write_text(head + "\n".join(x for x in wide for _ in range(scale)))

    read = subprocess.run(
        ["zbarimg", "--quiet", "--raw", "--nodbus", picture],
        capture_output=True,
        check=True,
        text=True,
        timeout=CALL_S,
    )

    assert read.stdout.strip() == address
