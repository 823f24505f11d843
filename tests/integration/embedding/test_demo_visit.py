"""Codes and passwords on the demo site: shown to whom, and where never."""

import argparse
import json
import socket
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import ExitStack, asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Final

import httpx
import pytest

from appliance.settings import Settings, SettingsError, load_settings
from embed.demo import commands
from embed.demo.config import HostConfig
from embed.demo.desk import TrialDesk
from embed.demo.host import DemoHost
from embed.demo.mail_catcher import MailCatcher
from tests.support.browsers.host_page import POLL_S
from tests.support.patience import CALL_S
from tests.support.processes.rubrica import run_rubrica
from tests.support.processes.scratch import free_port

VISIT: Final = {"people": [{"cuil": "20-26756539-3", "code": "123456"}]}
PAGE: Final = "http://127.0.0.1:8080/verificar/ABC"
KEY: Final = "the-visit-key-of-a-trial"
PRIVATE: Final = (
    "/ensayo/claves.json",
    "/ensayo/firma/7",
    "/correos",
    "/correos/1/html",
    "/correos/1/text",
)
"""Addresses that show codes, passwords or what mails say."""


class ShownVisit:
    """A visit with one person."""

    people: Final = VISIT["people"]

    def as_json(self) -> dict[str, object]:
        """What the desk shows."""
        return dict(VISIT)


class KnownDesk:
    """A desk with one person and one signature."""

    def __init__(self) -> None:
        self.shown: dict[str, object] | None = dict(VISIT)

    def visit(self) -> dict[str, object] | None:
        """What it shows."""
        return self.shown

    def signature_page(self, request: int) -> str | None:
        """Of request 7 alone."""
        return PAGE if request == 7 else None


StartSite = Callable[..., httpx.Client]


@pytest.fixture
def key_file(tmp_path: Path) -> Path:
    """A file with the visit key."""
    path = tmp_path / "visit-key"
    path.write_text(f"{KEY}\n")
    return path


@pytest.fixture
def config(tmp_path: Path) -> HostConfig:
    """The configuration of a site on this machine."""
    listen = f"127.0.0.1:{free_port()}"
    return HostConfig(listen, "http://api", "http://frame", "demo", tmp_path / "key")


@pytest.fixture
def start_site() -> Iterator[StartSite]:
    """Starts a demo site; returns a client that sends its `Host`."""
    with ExitStack() as stack:

        def start(
            config: HostConfig, desk: KnownDesk | None, *, quiet: bool = True
        ) -> httpx.Client:
            catcher = stack.enter_context(MailCatcher("127.0.0.1:0"))
            server = stack.enter_context(
                DemoHost(config, quiet=quiet, catcher=catcher, desk=desk)
            )
            serving = threading.Thread(target=server.serve_forever, args=(POLL_S,))
            serving.start()
            stack.callback(serving.join)
            stack.callback(server.shutdown)
            host = config.origin.partition("//")[2]
            return stack.enter_context(
                httpx.Client(
                    base_url=f"http://{config.listen}",
                    timeout=CALL_S,
                    headers={"Host": host, "Origin": config.origin},
                )
            )

        yield start


def test_codes_are_shown_on_this_machine(
    start_site: StartSite, config: HostConfig
) -> None:
    """Without a key: the site listens on loopback alone."""
    client = start_site(config, KnownDesk())

    answer = client.get("/ensayo/claves.json")

    assert answer.json() == VISIT
    assert answer.headers["Cache-Control"] == "no-store"
    assert "Access-Control-Allow-Origin" not in answer.headers
    assert answer.headers["Cross-Origin-Resource-Policy"] == "same-origin"
    assert client.get("/config.json").json()["hasCodes"] is True


def test_page_of_a_signature_is_found(
    start_site: StartSite, config: HostConfig
) -> None:
    """Its address, null for a request without one, 404 for what is no number."""
    client = start_site(config, KnownDesk())

    assert client.get("/ensayo/firma/7").json() == {"url": PAGE}
    assert client.get("/ensayo/firma/8").json() == {"url": None}
    for rest in ("x", "", "-1", "7/8", "\u0667", "9" * 40):
        assert client.get(f"/ensayo/firma/{rest}").status_code == 404


def test_codes_that_cannot_be_read_are_said_to_be_away(
    start_site: StartSite, config: HostConfig
) -> None:
    """503: the page asks again."""
    desk = KnownDesk()
    desk.shown = None
    client = start_site(config, desk)

    assert client.get("/ensayo/claves.json").status_code == 503


@pytest.mark.parametrize("path", PRIVATE[:2])
def test_site_without_a_desk_has_no_codes(
    start_site: StartSite, config: HostConfig, path: str
) -> None:
    """Neither the addresses nor the page know of any."""
    client = start_site(config, None)

    assert client.get(path).status_code == 404
    assert client.get("/config.json").json()["hasCodes"] is False


@pytest.mark.parametrize("path", PRIVATE)
def test_name_that_was_made_to_point_here_reads_nothing(
    start_site: StartSite, config: HostConfig, path: str
) -> None:
    """DNS rebinding: the browser says another host."""
    client = start_site(config, KnownDesk())

    answer = client.get(path, headers={"Host": "other.example"})

    assert answer.status_code == 421


def test_log_has_no_line_for_each_look_at_the_codes(
    start_site: StartSite, config: HostConfig, capfd: pytest.CaptureFixture[str]
) -> None:
    """Pages look every few seconds; other requests, unreadable ones too, are there."""
    client = start_site(config, KnownDesk(), quiet=False)
    host, _, port = config.listen.rpartition(":")

    client.get("/ensayo/claves.json")
    client.get("/config.json")
    with socket.create_connection((host, int(port)), CALL_S) as raw:
        raw.sendall(b"\x16\x03\x01\r\n")
        assert b"400" in raw.recv(1_000)

    logged = capfd.readouterr().err
    assert "claves" not in logged
    assert "/config.json" in logged
    assert "Traceback" not in logged


@pytest.fixture
def shared(config: HostConfig, key_file: Path) -> HostConfig:
    """The configuration of a site behind a TLS front of a network."""
    port = config.listen.rpartition(":")[2]
    origin = f"https://192.168.0.10:{port}"
    return replace(config, public_origin=origin, visit_key_file=key_file)


@pytest.mark.parametrize("path", PRIVATE)
@pytest.mark.parametrize(
    "cookie",
    [
        "",
        "=;",
        "visita-{port}=",
        "visita-{port}=wrong",
        f"visita-{{port}}={KEY[:-1]}",
        f"visita-1={KEY}",
        f"visita={KEY}",
    ],
)
def test_network_sees_nothing_private_without_the_key(
    start_site: StartSite, shared: HostConfig, path: str, cookie: str
) -> None:
    """403, whatever stands there; the page itself is shown."""
    client = start_site(shared, KnownDesk())
    sent = cookie.format(port=shared.listen.rpartition(":")[2])

    answer = client.get(path, headers={"Cookie": sent})

    assert answer.status_code == 403
    assert answer.json() == {"code": "VISIT_KEY_MISSING"}
    assert client.get("/").status_code == 200


def test_visit_key_opens_what_is_private(
    start_site: StartSite, shared: HostConfig
) -> None:
    """Once in a header; then a cookie has it, hidden from scripts and other sites."""
    client = start_site(shared, KnownDesk())

    entered = client.post("/visita", headers={"X-Visita": KEY})

    assert entered.status_code == 204
    cookie = entered.headers["Set-Cookie"]
    # Another trial of this machine has another port, and browsers share cookies.
    port = shared.listen.rpartition(":")[2]
    assert cookie == f"visita-{port}={KEY}; Path=/; HttpOnly; Secure; SameSite=Strict"
    sent = {"Cookie": cookie.partition(";")[0]}
    assert client.get("/ensayo/claves.json", headers=sent).json() == VISIT
    assert client.get("/correos", headers=sent).status_code == 200


@pytest.mark.parametrize("content", [b"", b"\n", b"abc", b"\xff" * 24])
def test_file_without_a_visit_key_opens_nothing(
    start_site: StartSite, shared: HostConfig, key_file: Path, content: bytes
) -> None:
    """As a full disk left it: every visitor would have the empty key."""
    key_file.write_bytes(content)

    with pytest.raises(SettingsError, match="holds no visit key"):
        start_site(shared, KnownDesk())


@pytest.mark.parametrize("path", PRIVATE)
def test_shared_site_without_a_key_shows_nothing_private(
    start_site: StartSite, shared: HostConfig, path: str
) -> None:
    """Mails neither, which need no desk."""
    client = start_site(replace(shared, visit_key_file=None), KnownDesk())

    assert client.get(path).status_code == 403


@pytest.mark.parametrize("key", ["", "wrong", "ñ", f"{KEY}x"])
def test_wrong_visit_key_opens_nothing(
    start_site: StartSite, shared: HostConfig, key: str
) -> None:
    """403, and no cookie."""
    client = start_site(shared, KnownDesk())

    answer = client.post("/visita", headers={b"X-Visita": key.encode()})

    assert answer.status_code == 403
    assert "Set-Cookie" not in answer.headers


def test_page_of_another_site_enters_nowhere(
    start_site: StartSite, shared: HostConfig
) -> None:
    """Not even with the key."""
    client = start_site(shared, KnownDesk())
    foreign = {"Origin": "https://other.example", "X-Visita": KEY}

    assert client.post("/visita", headers=foreign).status_code == 403


@pytest.fixture
def trial_settings(tmp_path: Path) -> Path:
    """The settings of a trial that was never started."""
    return made_settings(tmp_path / "trial", "--trial")


def made_settings(folder: Path, *options: str) -> Path:
    """Settings as `rubrica init` writes them."""
    done = run_rubrica("init", *options, str(folder))
    assert done.returncode == 0, done.stderr
    return folder / "settings.toml"


def desk_of(settings: Path, site: HostConfig, **given: object) -> object:
    """The desk that `rubrica demo host` gives a site."""
    told = {"settings": settings, "config": None, "integrator": None, **given}
    return commands._desk(argparse.Namespace(**told), site)


def test_own_site_of_a_trial_has_a_desk(
    trial_settings: Path, config: HostConfig, shared: HostConfig
) -> None:
    """On this machine, and behind the front of a network with its key."""
    assert desk_of(trial_settings, config) is not None
    assert desk_of(trial_settings, shared) is not None


def test_installation_that_is_no_trial_has_none(
    tmp_path: Path, config: HostConfig
) -> None:
    """PREPROD without `trial`; PROD cannot be a trial at all."""
    settings = made_settings(tmp_path / "preprod")

    assert desk_of(settings, config) is None
    prod = settings.read_text().replace('"PREPROD"', '"PROD"')
    settings.write_text(prod.replace("trial = false", "trial = true"))
    refused = run_rubrica("--settings", str(settings), "check-config")
    assert "a trial cannot be PROD" in refused.stdout + refused.stderr


@pytest.mark.parametrize("listen", ["10.0.0.1:8090", "192.168.0.10:8090", "[::]:8090"])
def test_site_that_a_network_reaches_has_none(
    trial_settings: Path, config: HostConfig, shared: HostConfig, listen: str
) -> None:
    """`--listen` elsewhere than on loopback, with a key or without."""
    assert desk_of(trial_settings, replace(config, listen=listen)) is None
    assert desk_of(trial_settings, replace(shared, listen=listen)) is None


def test_shared_site_without_a_key_has_none(
    trial_settings: Path, shared: HostConfig
) -> None:
    """Nothing would keep the network from the codes."""
    assert desk_of(trial_settings, replace(shared, visit_key_file=None)) is None


@pytest.mark.parametrize(
    "given", [{"config": Path("other.json")}, {"integrator": "otro"}]
)
def test_site_of_another_integrator_has_none(
    trial_settings: Path, config: HostConfig, given: dict[str, object]
) -> None:
    """The demo people's codes are on the demo integrator's own site alone."""
    assert desk_of(trial_settings, config, **given) is None


def test_configuration_reads_where_the_key_lies(tmp_path: Path) -> None:
    """A relative path counts from the configuration's folder."""
    from embed.demo.config import read_config  # noqa: PLC0415 (only here)

    file = tmp_path / "demo-host.json"
    told = {
        "listen": "127.0.0.1:8090",
        "web_url": "https://192.168.0.10:8080",
        "iframe_url": "https://192.168.0.10:8081",
        "integrator_id": "demo",
        "api_key_file": "key",
        "public_origin": "https://192.168.0.10:8090",
        "service_url": "http://127.0.0.1:8080",
        "visit_key_file": "network/visit-key",
    }
    file.write_text(json.dumps(told))

    read = read_config(file)

    assert read.origin == "https://192.168.0.10:8090"
    assert read.visit_key_file == tmp_path / "network/visit-key"


def test_desk_of_a_trial_that_was_never_started_shows_nothing(
    trial_settings: Path,
) -> None:
    """No tables yet: nothing is shown, nothing hangs, and it ends."""
    with TrialDesk(load_settings(trial_settings)) as desk:
        assert desk.visit() is None
        assert desk.signature_page(1) is None


def test_desk_opens_as_soon_as_the_trial_can_be_opened(
    trial_settings: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A key is missing at first: the site need not be restarted."""
    failures = iter([SettingsError("no key"), OSError("no folder")])
    opened = threading.Event()

    @asynccontextmanager
    async def open_later(_: Settings) -> AsyncIterator[str]:
        for failure in failures:
            raise failure
        opened.set()
        yield "front"

    async def read(front: str) -> ShownVisit:
        assert front == "front"
        return ShownVisit()

    monkeypatch.setattr("appliance.cli.fronts.operators_front", open_later)
    monkeypatch.setattr("appliance.cli.demo.visit.read_visit", read)

    with TrialDesk(load_settings(trial_settings), retry_s=0) as desk:
        assert opened.wait(CALL_S)
        assert desk.visit() == VISIT


def test_desk_that_cannot_be_opened_shows_nothing(trial_settings: Path) -> None:
    """A secret is missing."""
    (trial_settings.parent / "secrets/data-key").unlink()

    with TrialDesk(load_settings(trial_settings)) as desk:
        assert desk.visit() is None
