"""Mails of a running appliance: asked, reminded, invited, and the signed copy."""

import json
import threading
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from appliance.bootstrap import ServiceRegistry
from embed.demo.mail_catcher import CaughtMail
from tests.support.appliance.appliance import Appliance, TestPerson
from tests.support.appliance.backends import (
    REQUESTS,
    TestBackend,
    assert_valid,
    backend_of,
    let_vouch,
    sign,
)
from tests.support.appliance.http_calls import code_of, log_in
from tests.support.appliance.manual import run_block
from tests.support.documents import pdfs
from tests.support.patience import CALL_S
from tests.support.processes.operator_shell import OperatorShell
from tests.support.processes.plain_http import NO_TLS
from tests.support.processes.scratch import short_folder
from tests.support.services.mail_server import TestMailServer, mail_server

PDF = pdfs.one_page()
NEW_CUIL = "20-05536168-2"


class Mailbox:
    """Mails to one address, as they come."""

    def __init__(self, server: TestMailServer) -> None:
        self.server = server

    def next(self, address: str, subject: str) -> CaughtMail:
        """The mail to somebody with these words in its subject, once it came."""
        waited = threading.Event()
        for _ in range(1200):
            for mail in self.server.caught:
                if mail.recipients == (address,) and subject in mail.message["Subject"]:
                    return mail
            waited.wait(0.1)
        subjects = [str(mail.message["Subject"]) for mail in self.server.caught]
        raise AssertionError(subjects)


@pytest.fixture(scope="module")
def mailbox() -> Iterator[Mailbox]:
    """A server that catches everything."""
    with mail_server() as server:
        yield Mailbox(server)


@pytest.fixture(scope="module")
def mailing(mailbox: Mailbox) -> Iterator[Appliance]:
    """An appliance whose mails go there."""
    section = (
        f'[mail]\nhost = "127.0.0.1"\nport = {mailbox.server.port}\ntls = "none"\n'
        'from_address = "firma@rubrica.example"'
    )
    with (
        short_folder() as folder,
        Appliance.made(Path(folder), more=section) as made,
    ):
        yield made


@pytest.fixture(scope="module")
def backend(mailing: Appliance) -> Iterator[TestBackend]:
    """A backend whose signers are written to."""
    with backend_of(mailing) as made:

        async def switch_on(front: ServiceRegistry) -> None:
            await front.integrators.set_mail(
                "operator",
                made.code,
                mails_signers=True,
                sign_url="https://acme.example/f/{procesoId}",
            )

        mailing.do(switch_on)
        yield made


@pytest.fixture(scope="module")
def ana(mailing: Appliance) -> TestPerson:
    """Somebody who can sign."""
    return mailing.new_person("Ana Ruiz")


def text_of(mail: CaughtMail) -> str:
    """What a mail says in plain text."""
    part = mail.message.get_body(("plain",))
    assert part is not None
    return str(part.get_content())


def test_request_is_told_reminded_signed_and_the_copy_comes(
    mailing: Appliance,
    backend: TestBackend,
    ana: TestPerson,
    mailbox: Mailbox,
    tmp_path: Path,
) -> None:
    """The signer is asked, reminded once a day, and gets what they signed."""
    told = backend.made(
        PDF,
        ana,
        documento={"nombre": "contrato.pdf"},
        mensaje="Firmá antes del viernes.",
    )
    process = told["procesoId"]
    asked = mailbox.next(ana.email, "te pide que firmes contrato.pdf")
    assert f"https://acme.example/f/{process}" in text_of(asked)
    assert "> Firmá antes del viernes." in text_of(asked)

    shell = OperatorShell.of(mailing, tmp_path)
    shell.variables["API_KEY"] = backend.key.secret
    shell.run(f"WEB_URL={mailing.settings.web.web_url}; PROCESO={process}")
    [signer] = told["firmantes"]
    assert json.loads(run_block("integration.md", "Remind", 0, shell.run)) == {
        "procesoId": process,
        "recordados": [
            {"solicitudId": signer["solicitudId"], "personaId": signer["personaId"]}
        ],
    }
    mailbox.next(ana.email, "Recordatorio: contrato.pdf")
    again = backend.client.post(f"{REQUESTS}/{process}/remind")
    assert (again.status_code, again.json()["code"]) == (429, "RATE_LIMITED")
    assert 86_000 < int(again.headers["Retry-After"]) <= 86_400

    sign(mailing, ana, signer["solicitudId"])
    mail = mailbox.next(ana.email, "Firmado: contrato")
    [part] = mail.message.iter_attachments()
    assert part.get_filename() == "contrato-firmado.pdf"
    assert_valid(mailing, part.get_content(), 1)
    over = backend.client.post(f"{REQUESTS}/{process}/remind")
    assert (over.status_code, over.json()["code"]) == (409, "STATE")


def test_invitation_goes_by_mail_and_its_link_stands_nowhere(
    mailing: Appliance, backend: TestBackend, mailbox: Mailbox
) -> None:
    """The link opens the enrolment; the record has it sealed, and then not at all."""
    let_vouch(backend)
    answer = backend.client.put(
        f"/api/integration/signers/{NEW_CUIL}",
        json={
            "nombre": "Rosa Sánchez",
            "email": "rosa@persona.example",
            "enviarInvitacion": True,
            "identidad": {
                "metodo": "DNI a la vista",
                "responsable": "Marta Gil",
                "cuando": "2026-05-20T14:00:00-03:00",
            },
        },
    )
    assert answer.status_code == 201, answer.text
    link = answer.json()["enlace"]
    mail = mailbox.next("rosa@persona.example", "te invita a firmar")
    assert link in text_of(mail)
    code = link.rpartition("/")[2].encode()
    for path in mailing.folder.glob("*.db*"):
        assert code not in path.read_bytes()
    with mailing.client() as client:
        assert client.get(link).status_code == 200


def test_people_are_told_of_their_certificate(
    ana: TestPerson, mailbox: Mailbox
) -> None:
    """Whoever made it: a notice goes to the stored address."""
    mail = mailbox.next(ana.email, "Tenés un certificado nuevo")
    assert mail.message["Auto-Submitted"] == "auto-generated"


def test_sign_in_from_elsewhere_is_told(
    mailing: Appliance, ana: TestPerson, mailbox: Mailbox
) -> None:
    """In the language of who signs in, text and HTML; not of the first address."""
    for address in ("127.0.0.1", "127.0.0.2"):
        sign_in(mailing, ana, address)
    mail = mailbox.next(ana.email, "Se inició sesión desde otro lugar")

    for kind in ("plain", "html"):
        part = mail.message.get_body((kind,))
        assert part is not None
        text = str(part.get_content())
        assert "una dirección que no usaste últimamente" in " ".join(text.split())
        # The link at the end leads here, to a loopback address as it happens.
        assert "127.0.0" not in text.replace(mailing.base_url, "")
    subjects = [
        str(each.message["Subject"])
        for each in mailbox.server.caught
        if each.recipients == (ana.email,)
    ]
    assert subjects.count("Se inició sesión desde otro lugar") == 1


def sign_in(appliance: Appliance, person: TestPerson, address: str) -> None:
    """Password and code, by a connection from an address of this machine."""
    transport = httpx.HTTPTransport(local_address=address, verify=NO_TLS)
    with httpx.Client(
        base_url=appliance.base_url, transport=transport, timeout=CALL_S
    ) as client:
        ended = client.post(
            "/auth/otp",
            json={
                "loginToken": log_in(client, person),
                "codigo": code_of(appliance, person),
            },
        )
        assert ended.status_code == 200, ended.text


def test_mail_is_switched_on_as_the_manual_says(
    mailing: Appliance, backend: TestBackend, tmp_path: Path
) -> None:
    """Its command, which shows what holds."""
    shell = OperatorShell.of(mailing, tmp_path)
    told = run_block(
        "mail.md",
        "Who is written to",
        0,
        shell.run,
        ("mail demo", f"mail {backend.code}"),
    )
    assert "mails to signers: on" in told
    assert "reminders: 3 and 7 days after the request" in told


def test_the_server_is_tried(mailing: Appliance, mailbox: Mailbox) -> None:
    """`rubrica mail test` sends one mail at once, and says what came of it."""
    done = mailing.rubrica("mail", "test", "operador@rubrica.example")
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip().endswith("taken")
    mailbox.next("operador@rubrica.example", "Un correo para probar el servidor")
