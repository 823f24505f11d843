"""The words of mails, and mails as they go over the wire."""

import re
from dataclasses import replace
from datetime import UTC, datetime
from email import policy
from email.message import EmailMessage
from email.parser import BytesParser
from pathlib import Path
from typing import Any

import pytest
from babel.messages.extract import extract_from_file

from appliance.domain.ids import ProcessId, RequestBatchId, RequestId
from appliance.domain.integrators.sign_urls import is_sign_url, sign_link
from appliance.domain.mail.mails import NOTICES, MailKind
from appliance.domain.vocab import RequestState
from appliance.mail.contents import MailContent
from appliance.mail.message import mail_message, mail_parts
from appliance.mail.smtp import shown_answer
from appliance.settings import MailSettings, Settings
from tests.support.installation.settings import settings_in
from tests.tools.messages import ROOT, translated

AT = datetime(2026, 11, 27, 14, 0, tzinfo=UTC)
PNG = b"\x89PNG\r\n\x1a\n"
REQUEST = MailContent(
    kind=MailKind.REQUEST,
    lang="es",
    address="ana@persona.example",
    name="Ana Núñez",
    sender="Ñandú S.A.",
    on_behalf=True,
    at=AT,
    documents=("contrato.pdf",),
    expires=AT,
    message="Firmá antes del viernes.\nGracias <b>.",
    url="https://acme.example/f?p=1&s=2",
)
GOLDEN = """\
Hola, Ana Núñez:

Hay un documento que espera tu firma.

Documento: contrato.pdf
De parte de: Ñandú S.A.
Vence: 27/11/2026 11:00 (UTC-3)

> Firmá antes del viernes.
> Gracias <b>.

Ver y firmar:
https://acme.example/f?p=1&s=2

--
Lo envía Firma Demo en nombre de Ñandú S.A.
Nunca pedimos contraseñas ni códigos por correo.
"""


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    """An installation with mail on."""
    mail = MailSettings(host="mail.example", from_address="firma@rubrica.example")
    return settings_in(tmp_path).model_copy(
        update={"mail": mail, "installation": "Firma Demo"}
    )


def sent(settings: Settings, content: MailContent) -> EmailMessage:
    """A mail as its reader gets it: written, and read again."""
    made = mail_message(content, settings, "id-1", AT).as_bytes()
    read = BytesParser(policy=policy.default).parsebytes(made)
    assert isinstance(read, EmailMessage)
    return read


def part(message: EmailMessage, kind: str) -> str:
    """Its text or HTML."""
    found = message.get_body((kind,))
    assert found is not None
    return str(found.get_content()).replace("\r\n", "\n")


def test_a_request_in_spanish(settings: Settings) -> None:
    """The text, to the letter, and the headers."""
    message = sent(settings, REQUEST)
    assert part(message, "plain") == GOLDEN
    assert message["Subject"] == "Ñandú S.A. te pide que firmes contrato.pdf"
    assert message["From"].addresses[0].display_name == "Ñandú S.A. · Firma Demo"
    assert message["Message-ID"] == "<id-1@rubrica.example>"
    assert message["Auto-Submitted"] == "auto-generated"
    assert message["Content-Language"] == "es"


def test_several_documents_stand_below_one_label(settings: Settings) -> None:
    """Each on a line of its own, ten at most, and how many more there are."""
    names = tuple(f"recibo-{number:02}.pdf" for number in range(1, 13))
    message = sent(settings, replace(REQUEST, documents=names, message=""))

    assert part(message, "plain").split("\n\n")[2] == "\n".join(
        [
            "Documentos:",
            *(f"  - {name}" for name in names[:10]),
            "  - y 2 más",
            "De parte de: Ñandú S.A.",
            "Vence: 27/11/2026 11:00 (UTC-3)",
        ]
    )
    page = part(message, "html")
    assert page.count("Documento") == 1
    assert page.count("<div>recibo-") == 10
    assert "<div>y 2 más</div>" in page


def test_a_batch_that_is_over_tells_what_became_of_each(settings: Settings) -> None:
    """Those that are not signed first, with the reason."""
    message = sent(
        settings,
        replace(
            REQUEST,
            kind=MailKind.SIGNED,
            is_batch=True,
            documents=("enero.pdf", "marzo.pdf"),
            unsigned=(("febrero.pdf", RequestState.REJECTED),),
            message="",
        ),
    )

    assert message["Subject"] == "Firmaste 2 de 3 documentos"
    assert part(message, "plain").split("\n\n")[2].splitlines() == [
        "Sin firmar: febrero.pdf (lo rechazaste)",
        "Firmados:",
        "  - enero.pdf",
        "  - marzo.pdf",
        "De parte de: Ñandú S.A.",
    ]


def test_it_is_seven_bits_and_the_same_each_time(settings: Settings) -> None:
    """A mail that is sent again is recognisable; 8-bit names are coded."""
    first = mail_message(REQUEST, settings, "id-1", AT)
    again = mail_message(REQUEST, settings, "id-1", AT)
    first.as_bytes().decode("ascii")
    for name in ("Message-ID", "Date", "Subject", "From", "To"):
        assert first[name] == again[name]


@pytest.mark.parametrize("kind", MailKind)
@pytest.mark.parametrize("lang", ["es", "en"])
def test_each_mail_says_the_same_in_text_and_html(
    settings: Settings, kind: MailKind, lang: str
) -> None:
    """Every kind can be said, loads nothing from elsewhere, and is one page of HTML."""
    content = replace(REQUEST, kind=kind, lang=lang, logo=PNG)
    message = sent(settings, content)
    page = part(message, "html")
    assert f'lang="{lang}"' in page
    assert "{" not in part(message, "plain")
    assert set(re.findall(r'src="([a-z]+):', page)) == {"cid"}
    assert "url(" not in page
    assert "<script" not in page
    assert "<b>" not in page
    [cid] = re.findall(r'src="cid:([^"]+)"', page)
    pictures = [each["Content-ID"] for each in message.walk() if each["Content-ID"]]
    assert pictures == [f"<{cid}>"]


@pytest.mark.parametrize("field", ["name", "sender"])
def test_no_name_adds_a_header(settings: Settings, field: str) -> None:
    """A name with line breaks stays one name."""
    changes: dict[str, Any] = {field: "Ana\r\nBcc: x@evil.example\u2028\x00."}
    message = sent(settings, replace(REQUEST, **changes))
    assert message["Bcc"] is None
    assert len(message["To"].addresses) == 1
    assert "Bcc: x@evil.example" in f"{message['To']} {message['From']}"


def test_no_name_adds_an_addressee(settings: Settings) -> None:
    """An encoded word in a name is decoded by nobody (RFC 2047)."""
    name = "=?utf-8?q?x=3Cevil=40x.example=3E=2C?= ñ"
    message = sent(settings, replace(REQUEST, name=name, sender=name))

    assert len(message["To"].addresses) == len(message["From"].addresses) == 1
    assert "evil@x.example" not in f"{message['To']} {message['From']}"


def test_an_answer_is_what_a_record_takes() -> None:
    """Whatever bytes a server says: no lone surrogate, no NUL, no address."""
    said = b"250 aceptaci\xf3n\x00 de ana@example.org\r\n".decode(
        "utf-8", "surrogateescape"
    )

    assert shown_answer(said) == "250 aceptaci n de …"


def test_the_signed_document_comes_along(settings: Settings) -> None:
    """With its name, whatever letters that has."""
    message = sent(
        settings,
        replace(
            REQUEST,
            kind=MailKind.SIGNED,
            documents=("año-firmado.pdf",),
            pdf=b"%PDF-1.7",
        ),
    )
    [file] = message.iter_attachments()
    assert file.get_filename() == "año-firmado.pdf"
    assert file.get_content() == b"%PDF-1.7"
    assert "va adjunto" in part(message, "plain")


def test_a_document_that_is_too_large_is_said_to_be(settings: Settings) -> None:
    """Without it the mail says whom to ask."""
    message = sent(settings, replace(REQUEST, kind=MailKind.SIGNED))
    assert list(message.iter_attachments()) == []
    assert "pedíselo a Ñandú S.A." in part(message, "plain")


@pytest.mark.parametrize("lang", ["es", "en"])
@pytest.mark.parametrize("kind", sorted({*NOTICES.values(), MailKind.HELP_ASKED}))
def test_mail_about_an_account_leads_on(
    settings: Settings, kind: MailKind, lang: str
) -> None:
    """To whom one asks, and where one stops the key, or asks for help without one."""
    told = replace(
        REQUEST,
        kind=kind,
        lang=lang,
        on_behalf=False,
        url=None,
        contact="Mesa de ayuda, interno 12",
        revocation_url="https://firma.example/revocar",
        help_url="https://firma.example/ayuda",
    )
    parts = mail_parts(told, settings, "id-1")

    cannot_sign = kind in {MailKind.PASSWORD_LOCKED, MailKind.REVOKED}
    for said in (parts.text, parts.html):
        assert "Mesa de ayuda, interno 12" in said
        assert (told.revocation_url in said) == (kind is not MailKind.REVOKED)
        assert (told.help_url in said) == cannot_sign
    if kind is not MailKind.REVOKED:
        assert f'<a href="{told.revocation_url}">' in parts.html


def test_mail_says_nothing_of_a_contact_that_is_not_set(settings: Settings) -> None:
    """The sentence is left out."""
    told = replace(REQUEST, kind=MailKind.CERTIFIED, on_behalf=False)

    assert "Contacto" not in mail_parts(told, settings, "id-1").text


def test_every_sentence_has_its_spanish() -> None:
    """None is missing, and none is left over."""
    source = ROOT / "appliance/mail/words.py"
    found = extract_from_file("python", source, keywords={"say": None, "N_": None})
    said = {message for _, message, _, _ in found}
    known = translated(ROOT / "appliance/locale/es/LC_MESSAGES/mail.po")
    assert said == known.keys()
    assert all(known.values())


@pytest.mark.parametrize(
    ("text", "good"),
    [
        ("https://acme.example/f?p={procesoId}&s={solicitudId}", True),
        ("https://acme.example/f?p={procesoId}&l={loteId}", True),
        ("http://localhost:8080/f", True),
        ("https://{procesoId}.example/", False),
        ("https://{loteId}.example/", False),
        ("https://acme.example/{other}", False),
        ("https://acme.example/{", False),
        ("javascript:alert(1)", False),
        ("https://user@acme.example/", False),
        ('https://acme.example/"onclick', False),
        ("https://acme.example/ a", False),
        ("//acme.example", False),
        ("https://acme.example/" + "a" * 500, False),
    ],
)
def test_where_people_sign_is_an_address(text: str, *, good: bool) -> None:
    """One site, and ids in braces alone."""
    assert is_sign_url(text) is good


def test_ids_are_put_into_it() -> None:
    """Each wherever it stands."""
    template = "https://a.example/{procesoId}/{solicitudId}?l={loteId}"
    made = sign_link(template, ProcessId("p"), RequestId(7), RequestBatchId("b"))
    alone = sign_link(template, ProcessId("p"), RequestId(7))
    assert made == "https://a.example/p/7?l=b"
    assert alone == "https://a.example/p/7?l="
