"""The demo integrator's server: what it tells, to whom, and what it keeps."""

import http.client
import json
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import httpx
import pytest

from appliance.cli.demo.host_files import (
    DemoHostFiles,
    host_address,
    keep_key,
    kept_key,
)
from appliance.settings import SettingsError
from embed.demo.config import read_config
from tests.support.browsers.demo_site import DemoSite, running_demo_site
from tests.support.faces.fake_frame import API_KEY, BATCH, INTEGRATOR, PROCESS
from tests.support.patience import CALL_S
from tests.support.processes.rubrica import run_rubrica, start_rubrica
from tests.support.processes.scratch import free_port


@pytest.fixture(scope="module")
def client() -> Iterator[httpx.Client]:
    """A client without certificates: there is no TLS here."""
    with httpx.Client(verify=False, timeout=CALL_S) as client:  # noqa: S501 (plain http)
        yield client


@pytest.fixture
def demo_site(tmp_path: Path) -> Iterator[DemoSite]:
    """A running demo site."""
    with running_demo_site(tmp_path) as running:
        yield running


def ask(client: httpx.Client, demo_site: DemoSite, **headers: str) -> httpx.Response:
    """Ask the site's backend for a session, as its own page does."""
    own = {"Origin": demo_site.url.rstrip("/")}
    return client.post(f"{demo_site.url}sesion", headers={**own, **headers})


def test_session_hands_over_the_token_alone(
    client: httpx.Client, demo_site: DemoSite
) -> None:
    """The page gets the ephemeral token and its end, never the key."""
    answer = ask(client, demo_site)

    assert answer.json() == {
        "tokenSession": "token-1",
        "validUntil": "2030-01-01T00:30:00Z",
    }


def test_session_call_has_key_in_the_header_and_no_body(
    client: httpx.Client, demo_site: DemoSite
) -> None:
    """The call is the contract's: `id` in the query, `X-Api-Key`, nothing else."""
    ask(client, demo_site)

    (call,) = demo_site.service.calls
    assert call.method == "POST"
    assert call.target == f"/api/integration/session/new?id={INTEGRATOR}"
    assert call.headers["X-Api-Key"] == API_KEY
    assert call.body == b""
    assert "Origin" not in call.headers


@pytest.mark.parametrize(
    ("query", "named"),
    [
        (f"?proceso={PROCESS}", {"procesoId": PROCESS}),
        (f"?proceso={PROCESS}&solicitud=8&lote=", {"solicitudId": 8}),
        (f"?proceso={PROCESS}&solicitud=8&lote={BATCH}", {"loteId": BATCH}),
    ],
)
def test_session_is_for_the_request_of_a_mails_link(
    client: httpx.Client, demo_site: DemoSite, query: str, named: dict[str, object]
) -> None:
    """One id names it: the batch, or the signer's own request, or the process."""
    own = {"Origin": demo_site.url.rstrip("/")}
    answer = client.post(f"{demo_site.url}sesion{query}", headers=own)

    assert answer.json()["tokenSession"] == "token-1"
    (call,) = demo_site.service.calls
    assert json.loads(call.body) == named


def test_request_of_a_mails_link_is_told(
    client: httpx.Client, demo_site: DemoSite
) -> None:
    """Its signer, and what is signed; and that there is none."""
    told = client.get(f"{demo_site.url}pedido.json?proceso={PROCESS}&solicitud=8")
    assert told.json() == {
        "cuil": "20-26756539-3",
        "name": "Bruno Díaz",
        "document": "acuerdo.pdf",
    }
    for query in ("", "?proceso=..%2F..%2Fx", "?proceso=otro"):
        refused = client.get(f"{demo_site.url}pedido.json{query}")
        assert refused.status_code in {404, 502}


def test_request_of_a_mails_link_is_private(
    client: httpx.Client, tmp_path: Path
) -> None:
    """Where others reach the site, nobody follows a link without the visit key."""
    with running_demo_site(tmp_path, is_shared=True) as site:
        own = {"Origin": site.url.rstrip("/")}
        query = f"?proceso={PROCESS}&solicitud=8"
        read = client.get(f"{site.url}pedido.json{query}")
        opened = client.post(f"{site.url}sesion{query}", headers=own)
        without = client.post(f"{site.url}sesion", headers=own)

    assert (read.status_code, opened.status_code) == (403, 403)
    assert without.status_code == 200


@pytest.mark.parametrize("origin", ["https://other.example", "null"])
def test_session_is_refused_to_other_pages(
    client: httpx.Client, demo_site: DemoSite, origin: str
) -> None:
    """A page of somebody else cannot spend this integrator's sessions."""
    answer = ask(client, demo_site, Origin=origin)

    assert answer.status_code == 403
    assert demo_site.service.calls == []


def test_request_for_another_host_is_refused(
    client: httpx.Client, demo_site: DemoSite
) -> None:
    """A name that was made to point here opens nothing."""
    answer = client.get(demo_site.url, headers={"Host": "other.example"})

    assert answer.status_code == 421


def test_refusal_of_the_service_is_handed_on_as_its_code(
    client: httpx.Client, demo_site: DemoSite
) -> None:
    """The page learns the code of the service's refusal, not its text."""
    demo_site.key_file.write_text("rbk_test_1_other\n")

    answer = ask(client, demo_site)

    assert (answer.status_code, answer.json()) == (502, {"code": "API_KEY_INVALID"})


def test_service_that_is_away_is_told(tmp_path: Path) -> None:
    """Nothing listens at {web_url}: a code, and no page of an error."""
    with running_demo_site(tmp_path) as site:
        raw = json.loads(site.config_file.read_text())
    raw["web_url"] = f"http://127.0.0.1:{free_port()}"
    site.config_file.write_text(json.dumps(raw))
    from embed.demo.host import DemoHost  # noqa: PLC0415 (only here)

    with DemoHost(read_config(site.config_file), quiet=True) as host:
        answer = host.new_session()

    assert answer.status == 502
    assert json.loads(answer.content) == {"code": "UNREACHABLE"}


@pytest.mark.parametrize(
    "path", ["/../config.py", "/%2e%2e/host.py", "/static/app.js", "/demo-api-key"]
)
def test_nothing_beside_the_page_is_served(demo_site: DemoSite, path: str) -> None:
    """Paths outside the page's own files do not exist."""
    where = urlsplit(demo_site.url)
    connection = http.client.HTTPConnection(str(where.hostname), where.port)
    connection.request("GET", path)

    assert connection.getresponse().status == 404
    connection.close()


def test_policy_allows_the_frame_and_nothing_inline(
    client: httpx.Client, demo_site: DemoSite
) -> None:
    """The page carries the policy that the documentation tells integrators."""
    policy = client.get(demo_site.url).headers["Content-Security-Policy"]

    assert f"frame-src {demo_site.service.iframe_url};" in policy
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"listen": None}, "listen"),
        ({"more": 1}, "more"),
        ({"user": {"password": "x"}}, "unknown fields"),
    ],
)
def test_configuration_that_is_wrong_is_refused(
    demo_site: DemoSite, change: dict[str, object], words: str
) -> None:
    """The text names file and fault."""
    raw = json.loads(demo_site.config_file.read_text()) | change
    raw = {key: value for key, value in raw.items() if value is not None}
    demo_site.config_file.write_text(json.dumps(raw))

    with pytest.raises(SettingsError, match=rf"demo-host\.json: .*{words}"):
        read_config(demo_site.config_file)


def test_files_of_setup_are_what_the_site_reads(tmp_path: Path) -> None:
    """What `demo setup` writes is a configuration, and is for its owner alone."""
    listen = host_address(tmp_path)
    assert kept_key(tmp_path) == ""
    keep_key(tmp_path, API_KEY)
    DemoHostFiles(
        listen=listen,
        web_url="http://127.0.0.1:8080",
        iframe_url="http://localhost:8081",
        integrator_id=INTEGRATOR,
        event_prefix="svc",
        download_origins=("http://127.0.0.1:8080",),
        user={"cuil": "20-26756539-3", "email": "bruno@demo.example"},
    ).write(tmp_path)

    config = read_config(tmp_path / "demo-host.json")

    assert config.api_key_file.read_text().strip() == API_KEY
    assert config.sample == tmp_path / "demo.pdf"
    assert kept_key(tmp_path) == API_KEY
    assert host_address(tmp_path) == listen
    assert {path.stat().st_mode & 0o077 for path in tmp_path.iterdir()} == {0}


def test_integrator_without_its_key_is_refused(tmp_path: Path) -> None:
    """Nobody's key is sent in another integrator's name."""
    with running_demo_site(tmp_path) as site:
        pass
    told = ["--config", str(site.config_file), "--integrator", "otro"]

    done = run_rubrica("demo", "host", *told)

    assert done.returncode != 0
    assert "--integrator and --api-key-file go together" in done.stderr


def test_command_serves_until_it_is_told_to_stop(
    client: httpx.Client, tmp_path: Path
) -> None:
    """`rubrica demo host` says where it is, and ends with status 0."""
    with running_demo_site(tmp_path) as site:
        pass
    with start_rubrica(
        *("demo", "host", "--config", str(site.config_file)), stderr=subprocess.DEVNULL
    ) as process:
        assert process.stdout is not None
        try:
            assert process.stdout.readline() == (
                f"demo integrator: {site.url.rstrip('/')}\n"
            )
            assert client.get(site.url).status_code == 200
        finally:
            process.send_signal(signal.SIGTERM)
        assert process.wait(60) == 0
