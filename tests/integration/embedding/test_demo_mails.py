"""The trial's mails at the demo integrator's site."""

import smtplib
import threading
from collections.abc import Iterator
from email.message import EmailMessage
from pathlib import Path

import httpx
import pytest

from embed.demo.config import HostConfig
from embed.demo.host import DemoHost
from embed.demo.mail_catcher import MailCatcher
from tests.support.patience import CALL_S
from tests.support.processes.scratch import free_port


@pytest.fixture
def site() -> Iterator[httpx.Client]:
    """The site, where one mail has come."""
    listen = f"127.0.0.1:{free_port()}"
    config = HostConfig(listen, "http://api", "http://frame", "demo", Path("key"))
    mail = EmailMessage()
    mail["To"], mail["From"] = "ana@persona.example", "firma@rubrica.example"
    mail["Subject"] = "<b>Hola</b>"
    mail.set_content("texto")
    mail.add_alternative("<p>página</p>", subtype="html")
    mail.add_attachment(b"%PDF", "application", "pdf", filename="a.pdf")
    with MailCatcher("127.0.0.1:0") as catcher:
        with smtplib.SMTP("127.0.0.1", catcher.port) as client:
            client.send_message(mail)
        server = DemoHost(config, quiet=True, catcher=catcher)
        serving = threading.Thread(target=server.serve_forever)
        serving.start()
        with server, httpx.Client(base_url=config.origin, timeout=CALL_S) as client:
            yield client
            server.shutdown()
        serving.join()


def test_mails_are_listed_and_shown(site: httpx.Client) -> None:
    """In the list, as text, as a page that can run nothing, and what it brings."""
    listed = site.get("/correos").text
    assert "&lt;b&gt;Hola" in listed
    assert "ana@persona.example" in listed
    assert site.get("/correos/1/text").text.strip() == "texto"
    page = site.get("/correos/1/html")
    assert page.text.strip() == "<p>página</p>"
    assert page.headers["Content-Security-Policy"].endswith("sandbox")
    assert site.get("/correos/1/0").content == b"%PDF"


@pytest.mark.parametrize("rest", ["/2/html", "/1/1", "/1/", "/x"])
def test_what_is_not_there_is_said_not_to_be(site: httpx.Client, rest: str) -> None:
    """Another mail, another file, another part."""
    assert site.get(f"/correos{rest}").status_code == 404
