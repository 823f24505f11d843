"""Where webhooks go, and where they never do: integrators choose the addresses."""

import asyncio
import ipaddress
import socket
import ssl
import threading
from collections.abc import Sequence
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from aiohttp.abc import AbstractResolver, ResolveResult

from appliance.domain.vocab import EventKind
from appliance.settings import SettingsError, WebhookSettings
from tests.integration.webhooks.webhooks import Webhooks
from tests.support.installation.record import CoreFixture
from tests.support.patience import CALL_S
from tests.support.services.server_certificates import make_authority
from tests.support.webhooks.receiver import WebhookReceiver, receiving
from worker.network.address_guard import AddressGuard
from worker.network.webhooks import tls_context


class Names(AbstractResolver):
    """Answers what it is told to, a list of addresses each time."""

    def __init__(self, *answers: Sequence[str]) -> None:
        self.answers = list(answers)

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_INET
    ) -> list[ResolveResult]:
        """The next answer; without one the name is not known."""
        del family
        if not self.answers:
            raise OSError(host)
        return [
            ResolveResult(
                hostname=host,
                host=address,
                port=port,
                family=socket.AF_INET,
                proto=0,
                flags=socket.AI_NUMERICHOST,
            )
            for address in self.answers.pop(0)
        ]

    async def close(self) -> None:
        """Nothing is open."""


@pytest.fixture
def webhooks(sqlite_core: CoreFixture) -> Webhooks:
    """On one database: this is about the network."""
    return Webhooks(sqlite_core)


async def _tried(webhooks: Webhooks, url: str) -> tuple[int | None, str | None, str]:
    """Status, failure and answer of one try to tell an address something."""
    await webhooks.remove_all()
    await webhooks.endpoint(url)
    await webhooks.happen(EventKind.API_KEY_FLAGGED, key="k", reason="url")
    await webhooks.hand_on()
    assert await webhooks.deliver() == 1
    attempt = (await webhooks.attempts())[-1]
    return attempt.status, attempt.failure, attempt.answer


@pytest.mark.parametrize(
    "host",
    [
        "127.0.0.1", "localhost", "0x7f000001", "[::1]",
        "[::ffff:127.0.0.1]", "[::ffff:7f00:1]", "[::127.0.0.1]",
        "[64:ff9b::7f00:1]", "[2002:7f00:1::1]", "[fec0::1]", "[fe80::1]", "10.0.0.1",
        "169.254.169.254", "192.0.0.192", "100.64.0.1",
    ],
)  # fmt: skip
async def test_private_addresses_are_not_told(
    webhooks: Webhooks, receiver: WebhookReceiver, host: str
) -> None:
    """However they are written."""
    webhooks.options = {"allowed_networks": []}
    port = urlsplit(receiver.url).port

    status, failure, _ = await _tried(webhooks, f"http://{host}:{port}/")

    assert (status, failure) == (None, "refused_address")
    assert receiver.got == []


@pytest.mark.parametrize(
    "host",
    [
        "127.1", "2130706433", "0177.0.0.1", "0",
        "\uff11\uff12\uff17.0.0.1", "127\u30020\u30020\u30021", "\u24dbocalhost",
    ],
)  # fmt: skip
async def test_addresses_in_odd_forms_are_none(
    webhooks: Webhooks, receiver: WebhookReceiver, host: str
) -> None:
    """Others take them for addresses; the client goes to none of them."""
    webhooks.options = {"allowed_networks": []}
    port = urlsplit(receiver.url).port

    assert (await _tried(webhooks, f"http://{host}:{port}/"))[:2] == (None, "bad_url")
    assert receiver.got == []


@pytest.mark.parametrize(
    "url",
    [
        "http://u:p@127.0.0.1:{port}/", "http://u@127.0.0.1:{port}/",
        "ftp://127.0.0.1:{port}/", "file:///etc/passwd", "http://", "http://[",
        "gopher://127.0.0.1:{port}/", "http://127.0.0.1:{port}/" + "a" * 2048,
    ],
)  # fmt: skip
async def test_what_is_no_address_to_go_to(
    webhooks: Webhooks, receiver: WebhookReceiver, url: str
) -> None:
    """Another scheme, somebody's name in it, none at all, too long."""
    text = url.replace("{port}", str(urlsplit(receiver.url).port))

    assert (await _tried(webhooks, text))[:2] == (None, "bad_url")
    assert receiver.got == []


async def test_http_is_for_installations_that_allow_it(
    webhooks: Webhooks, receiver: WebhookReceiver
) -> None:
    """By default those of PREPROD."""
    webhooks.schemes = ("https",)

    assert (await _tried(webhooks, receiver.url))[:2] == (None, "bad_url")
    assert receiver.got == []


async def test_name_that_leads_elsewhere_the_second_time(
    webhooks: Webhooks, receiver: WebhookReceiver
) -> None:
    """It is resolved once a try: what was looked at is what is connected to."""
    names = Names(["127.0.0.1"], ["10.0.0.1"])
    webhooks.resolver = names
    url = receiver.url.replace("127.0.0.1", "backend.example")

    assert (await _tried(webhooks, url))[:2] == (204, None)
    assert names.answers == [["10.0.0.1"]]
    await webhooks.happen(EventKind.API_KEY_FLAGGED, key="k", reason="url")
    await webhooks.hand_on()
    await webhooks.deliver()

    assert (await webhooks.attempts())[-1].failure == "refused_address"
    assert len(receiver.got) == 1


async def test_name_with_one_private_address_is_not_told(
    webhooks: Webhooks, receiver: WebhookReceiver
) -> None:
    """Nobody tries which of them it is."""
    webhooks.resolver = Names(["127.0.0.1", "10.0.0.1"])
    url = receiver.url.replace("127.0.0.1", "backend.example")

    assert (await _tried(webhooks, url))[:2] == (None, "refused_address")
    assert receiver.got == []


async def test_name_that_nobody_knows(webhooks: Webhooks) -> None:
    """It may be known later: it is tried again."""
    webhooks.resolver = Names()

    assert (await _tried(webhooks, "http://backend.example/"))[:2] == (None, "name")
    assert (await webhooks.messages())[0].state == "pending"


async def test_slow_names_hold_up_no_other_work(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """They wait in threads of their own, so many at a time."""
    release, began = threading.Event(), threading.Semaphore(0)
    found = [(socket.AF_INET, socket.SOCK_STREAM, 6, "", ("127.0.0.1", 80))]

    def slow(*_: object, **__: object) -> object:
        began.release()
        release.wait(600)
        return found

    monkeypatch.setattr(socket, "getaddrinfo", slow)
    guard = AddressGuard([ipaddress.ip_network("127.0.0.0/8")])
    try:
        asked = [
            asyncio.create_task(guard.resolve("slow.example", 80)) for _ in range(40)
        ]
        await asyncio.sleep(0)
        async with asyncio.timeout(60):
            for _ in range(32):
                assert await asyncio.to_thread(began.acquire, timeout=CALL_S)
        assert not began.acquire(blocking=False)
    finally:
        release.set()
    answers = await asyncio.gather(*asked)
    assert {each["host"] for answer in answers for each in answer} == {"127.0.0.1"}
    await guard.close()


async def test_receiver_that_is_not_there_or_never_answers(
    webhooks: Webhooks, receiver: WebhookReceiver
) -> None:
    """Nobody listens; it hangs; it talks something else."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    assert (await _tried(webhooks, f"http://127.0.0.1:{port}/"))[1] == "connection"

    async def babble(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"220 mail ready\r\n\r\n")
        await writer.drain()
        writer.close()

    async with await asyncio.start_server(babble, "127.0.0.1", 0) as server:
        port = server.sockets[0].getsockname()[1]
        tried = await _tried(webhooks, f"http://127.0.0.1:{port}/")
        assert tried[1] == "bad_answer"
    receiver.hangs = True
    webhooks.options = {"timeout_s": 0.2}
    assert (await _tried(webhooks, receiver.url))[1] == "timeout"


async def test_answer_without_an_end_is_an_answer(
    webhooks: Webhooks, receiver: WebhookReceiver
) -> None:
    """Its status counts, and no more of its body is read than is shown."""
    receiver.status, receiver.is_endless = 200, True

    assert await _tried(webhooks, receiver.url) == (200, None, "x" * 1000)


async def test_receiver_shows_a_certificate_that_is_believed(
    webhooks: Webhooks, tmp_path: Path
) -> None:
    """By an authority of `webhooks.ca_file` beside the system's, for its own name."""
    authority = make_authority(tmp_path)
    certificate, key = authority.certify(tmp_path, "backend.example")
    tls = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    tls.load_cert_chain(certificate, key)
    webhooks.resolver = Names(*[["127.0.0.1"]] * 6)
    async with receiving(tls) as receiver:
        url = receiver.url.replace("127.0.0.1", "backend.example")
        assert (await _tried(webhooks, url))[:2] == (None, "tls")
        webhooks.options = {"ca_file": str(authority.certificate)}
        other = receiver.url.replace("127.0.0.1", "other.example")
        assert (await _tried(webhooks, other))[:2] == (None, "tls")
        assert receiver.got == []
        assert (await _tried(webhooks, url))[:2] == (204, None)


def test_authorities_that_cannot_be_read(tmp_path: Path) -> None:
    """The chores worker says which file, and does not begin."""
    settings = WebhookSettings(ca_file=tmp_path / "none.pem")

    with pytest.raises(SettingsError, match=r"webhooks\.ca_file.*none\.pem"):
        tls_context(settings)
