"""What *Salud* shows of other hosts: what their `metrics` roles tell, or their silence.

The other host here is a `rubrica serve metrics` over a folder of its own.
"""

import json
import time
from collections.abc import AsyncIterator, Iterator
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any

import pytest

from admin_ui.figures import KEY, FiguresInReach
from appliance.metrics.metrics_file import FORMAT
from appliance.operations.metrics.other_hosts import ANSWER_BYTES, OtherHosts
from appliance.operations.metrics.processes_json import (
    PATH,
    processes_from,
    processes_json,
)
from appliance.operations.metrics.reading import (
    MOST_FILES,
    MOST_SAMPLES,
    BadFileError,
    Labels,
    Process,
    read_all,
)
from tests.integration.console.health_page import (
    HOST,
    hand_over,
    plain,
    sample,
    section,
)
from tests.support.installation.console import Console
from tests.support.installation.installation import Installation
from tests.support.processes.command_folder import CommandFolder, make_command_folder
from tests.support.processes.plain_http import answers
from tests.support.processes.scratch import free_port
from tests.support.services.http_service import HttpService

READY_S = 60
ADDRESS = "http://second.example:8083"
BUILT = ["rubrica_build_info", {"version": "1.2.3"}, 1]


@pytest.fixture
async def console(tmp_path: Path) -> AsyncIterator[Console]:
    """A console, somebody signed in."""
    async with Installation(tmp_path).console() as made:
        await made.sign_in()
        yield made


@pytest.fixture
def other_folder(tmp_path: Path) -> Path:
    """Figures of the other host."""
    folder = tmp_path / "other"
    hand_over(folder, "signing", sample("rubrica_redis_connected", 0), host="second")
    hand_over(folder, "sandbox", host="second", version="1.2.4")
    return folder


@pytest.fixture
def other_host(other_folder: Path) -> Iterator[str]:
    """Address of that host's `metrics` role."""
    port = free_port()
    make_command_folder(other_folder)
    command_folder = CommandFolder(other_folder)
    with (other_folder / "settings.toml").open("a") as settings:
        settings.write(
            f'[metrics]\nlisten = "127.0.0.1:{port}"\nfolder = "{other_folder}"\n'
        )
    with command_folder.begin("serve", "metrics") as process:
        try:
            deadline = time.monotonic() + READY_S
            while not answers(f"http://127.0.0.1:{port}/healthz"):
                assert process.poll() is None
                assert time.monotonic() < deadline
                time.sleep(0.1)
            yield f"http://127.0.0.1:{port}"
        finally:
            process.terminate()


async def shown(console: Console, *addresses: str) -> str:
    """*Salud* of a console whose settings name those hosts."""
    folder = console.front.settings.metrics_dir
    console.app.extensions[KEY] = FiguresInReach(folder, OtherHosts(addresses))
    answer = await console.get("/admin/health")
    assert answer.status == 200, answer.text
    return str(answer.text)


async def test_other_host_is_told_beside_ones_own(
    console: Console, other_host: str
) -> None:
    """Each process by its host, with its version, and what the host stands on."""
    hand_over(console.front.settings.metrics_dir, "signing")
    text = await shown(console, other_host)
    workers = plain(section(text, "workers"))
    for slot in (f"signing/{HOST}/1", "signing/second/1", "sandbox/second/1"):
        assert slot in workers
    assert "1.2.3, 1.2.4" in workers
    ground = plain(section(text, "ground"))
    assert "Redis second Atención Iniciá Redis" in ground


async def test_host_that_does_not_answer_is_named(console: Console) -> None:
    """With what to do; the console's own figures are told as ever."""
    hand_over(console.front.settings.metrics_dir, "signing")
    address = f"http://127.0.0.1:{free_port()}"
    text = await shown(console, address)
    workers = plain(section(text, "workers"))
    assert f"Sin cifras de {address} Mal No responde: fijate" in workers
    assert "RubricaFiguresAway en docs/alerts.md" in workers
    assert "ClientConnectorError" in workers
    assert f"signing/{HOST}/1" in workers
    assert 'href="#workers"' in section(text, "look")


class Strange(HttpService):
    """A host that answers something else."""

    def __init__(self, body: bytes, status: int = 200) -> None:
        super().__init__()
        self.asked = 0
        self._body, self._status = body, status

    def serve(self, http: BaseHTTPRequestHandler) -> None:
        """Answer it."""
        self.asked += 1
        assert http.path == PATH
        http.send_response(self._status)
        http.send_header("Content-Length", str(len(self._body)))
        http.send_header("Location", "/other")
        http.end_headers()
        http.wfile.write(self._body)


@pytest.mark.parametrize(
    ("body", "status", "fault"),
    [
        (b"{", 200, "malformed"),
        (b'{"format": 1}', 200, "malformed"),
        (b'{"format": 2, "processes": []}', 200, "format"),
        (b" " * (ANSWER_BYTES + 1), 200, "too-large"),
        (b"", 404, "format"),
        (b"", 302, "unreachable"),
    ],
)
async def test_answer_that_tells_nothing(body: bytes, status: int, fault: str) -> None:
    """It is said why, and for a while that host is not asked again."""
    with Strange(body, status) as host:
        others = OtherHosts([host.origin])
        for _ in range(2):
            (answer,) = await others.read()
            assert (answer.address, answer.fault) == (host.origin, fault)
            assert answer.processes == ()
        assert host.asked == 1


async def test_console_shows_why_a_host_tells_nothing(console: Console) -> None:
    """One of another version wants an upgrade, not a network."""
    with Strange(b'{"format": 2, "processes": []}') as host:
        workers = plain(section(await shown(console, host.origin), "workers"))
    assert f"Sin cifras de {host.origin} Atención" in workers
    assert "RubricaFiguresRefused en docs/alerts.md Detalle técnico format" in workers


@pytest.mark.parametrize("name", [HOST, "/", " "])
async def test_host_cannot_speak_for_the_consoles_own(
    console: Console, name: str
) -> None:
    """Neither by that one's name nor by none: its figures are its own address's."""
    hand_over(console.front.settings.metrics_dir, "signing")
    away = ["rubrica_redis_connected", {}, 0]
    with Strange(told(one("signing", "1", host=name, samples=[away]))) as host:
        text = await shown(console, host.origin)
    assert f"Redis {HOST}" not in plain(section(text, "ground"))
    workers = plain(section(text, "workers"))
    if name == HOST:
        assert f"Sin cifras de {host.origin} Atención" in workers
        assert f"Detalle técnico named-twice: {HOST}" in workers
    else:
        assert "signing/127.0.0.1/1" in workers


async def test_two_hosts_of_one_name_are_told() -> None:
    """The first is heard, and the other one is not, whichever of them lies."""
    with Strange(told(one(host="b"))) as first, Strange(told(one(host="b"))) as second:
        others = OtherHosts([first.origin, second.origin])
        answers = others.each_host_once(await others.read(), {"a"})
    assert [each.fault for each in answers] == ["", "named-twice"]
    assert [len(each.processes) for each in answers] == [1, 0]


async def test_answer_that_takes_long_to_read_rests(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """So that nobody's console is kept busy by one host."""
    monkeypatch.setattr("appliance.operations.metrics.other_hosts._RESTS", 10_000)
    with Strange(told(one())) as host:
        others = OtherHosts([host.origin])
        first, again = await others.read(), await others.read()
        assert first == again
        assert host.asked == 1


def told(*processes: Any) -> bytes:
    """An answer with some processes."""
    return json.dumps({"format": FORMAT, "processes": processes}).encode()


def one(role: object = "api", number: object = "1", **more: object) -> dict[str, Any]:
    """A process as a host tells of it."""
    named = {"role": role, "number": number, "host": "h", "isAlive": True}
    return named | {"samples": [BUILT]} | more


def test_what_a_host_makes_up_is_left_out() -> None:
    """Roles and numbers that are none, the same twice, figures of other roles."""
    read = processes_from(
        told(
            one(),
            one(samples=[]),
            one("metrics"),
            one("root"),
            one(number="--"),
            one(number="1/../2"),
            one(3),
            "x",
            one("embed", samples=["x", ["rubrica_hsm_ready", {"token": "firma"}, 1]]),
            one("admin", host="a\n", isAlive=1, dropped="7", fault=None),
        ),
        ADDRESS,
    )
    assert [(each.role, each.number) for each in read] == [
        ("api", "1"),
        ("embed", "1"),
        ("admin", "1"),
    ]
    api, embed, admin = read
    assert api.samples == {("rubrica_build_info", (("version", "1.2.3"),)): 1.0}
    assert (embed.samples, embed.dropped) == ({}, 2)
    assert (admin.host, admin.is_alive, admin.samples) == ("second.example", False, {})


def test_folder_that_a_host_may_not_read_is_told() -> None:
    """By the address: it is for somebody there to mend."""
    (folder,) = processes_from(
        told(one("api", "-", fault="unreadable", isAlive=False, samples=[])), ADDRESS
    )
    assert (folder.number, folder.fault) == ("-", "unreadable")


def test_role_that_hands_over_too_much_is_left_out_alone() -> None:
    """Whatever it writes, the other roles of its host are told."""
    labels = {"kind": "\U0001f600" * 120}
    many: dict[tuple[str, Labels], float] = {
        ("rubrica_sandbox_jobs_total", (("kind", f"{n}{labels['kind']}"),)): 1.0
        for n in range(4_000)
    }
    taken = Process("sandbox", "1", is_alive=True, samples=many)
    other = Process("api", "1", is_alive=True, host="b")
    body = processes_json([taken, other], "b")
    assert len(body) < ANSWER_BYTES
    sandbox, api = processes_from(body, ADDRESS)
    assert (sandbox.fault, sandbox.host) == ("too-large", "b")
    assert (api.fault, api.is_alive) == ("", True)


def test_what_a_host_tells_is_bounded() -> None:
    """By what its files may hold: of each role, however it is cut up."""
    samples = [
        ["rubrica_pool_places", {"pool": f"p{n}"}, 1] for n in range(MOST_SAMPLES)
    ]
    numbers = range(1, MOST_FILES + 10)
    read = processes_from(
        told(
            one(samples=samples),
            *(one(number=str(n), samples=samples[:9]) for n in numbers if n > 1),
        ),
        ADDRESS,
    )
    assert len(read) == MOST_FILES
    assert sum(len(each.samples) for each in read) == MOST_SAMPLES


def test_nothing_that_is_told_is_lost(other_folder: Path) -> None:
    """What a host reads from its files is what another one understands."""
    (other_folder / "api").mkdir()
    (other_folder / "api/1.json").write_text("{")
    read = read_all(other_folder)
    assert [each.fault for each in read] == ["malformed", "", ""]
    body = processes_json(read, "second")
    api, *others = processes_from(body, "http://192.0.2.12:8083")
    # It does not say its host, and its own host does.
    assert (api.host, api.fault) == ("second", "malformed")
    assert others == read[1:]
    with pytest.raises(BadFileError):
        processes_from(body[:-1], ADDRESS)
