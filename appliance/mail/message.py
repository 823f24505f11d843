"""Mails as they go over the wire: text, HTML, logo and document in one message.

Source: RFC 5322, RFC 2047, RFC 3834 (`Auto-Submitted`).
"""

from dataclasses import dataclass
from datetime import datetime
from email.headerregistry import Address
from email.message import EmailMessage
from email.policy import SMTP
from pathlib import Path
from typing import Final

from jinja2 import Environment, FileSystemLoader, StrictUndefined, select_autoescape

from appliance.domain.text.unicode_nfc import is_line
from appliance.mail.contents import MailContent
from appliance.mail.words import CATALOGUE, words
from appliance.settings import Settings
from appliance.system.catalogues import LANGUAGES, catalogue

# Seven bits: not every server on the way takes eight.
_POLICY: Final = SMTP.clone(cte_type="7bit")
_ENVIRONMENT: Final = Environment(
    loader=FileSystemLoader(Path(__file__).parent / "templates"),
    autoescape=select_autoescape(("html",)),
    undefined=StrictUndefined,
    trim_blocks=True,
    lstrip_blocks=True,
)
_LONGEST_NAME: Final = 120


@dataclass(frozen=True, slots=True)
class MailParts:
    """What a reader shows of a mail."""

    subject: str
    text: str
    html: str
    logo: str
    """Content-ID of the picture that the HTML shows; empty: none."""


def load() -> None:
    """Read templates and catalogues now: none is read later, when it may be another."""
    for name in ("mail.txt", "mail.html"):
        _ENVIRONMENT.get_template(name)
    for lang in LANGUAGES:
        catalogue(lang, CATALOGUE)


def mail_message(
    content: MailContent, settings: Settings, mail_id: str, at: datetime
) -> EmailMessage:
    """Make the message of a mail; the same whenever it is made.

    Args:
        content: what it tells.
        settings: of the installation, with mail on.
        mail_id: of its row; a mail that is sent twice has one Message-ID.
        at: of its `Date`.
    """
    parts = mail_parts(content, settings, mail_id)
    domain = (settings.mail.from_address or "").rpartition("@")[2]
    made = EmailMessage(policy=_POLICY)
    made["From"] = _from(content, settings)
    made["To"] = _address(content.name, content.address)
    if settings.mail.reply_to is not None:
        made["Reply-To"] = settings.mail.reply_to
    made["Subject"] = parts.subject
    made["Date"] = at
    made["Message-ID"] = f"<{mail_id}@{domain}>"
    made["Auto-Submitted"] = "auto-generated"
    made.set_content(parts.text)
    made.add_alternative(parts.html, subtype="html")
    if content.logo is not None:
        payload = made.get_payload()
        html = payload[1] if isinstance(payload, list) else None
        if isinstance(html, EmailMessage):
            html.add_related(
                content.logo,
                "image",
                "png",
                cid=f"<{parts.logo}>",
                disposition="inline",
                filename="logo.png",
            )
    # Only now: what is said of the first part goes into it as parts are added.
    made["Content-Language"] = content.lang
    if content.pdf is not None:
        made.add_attachment(
            content.pdf,
            "application",
            "pdf",
            filename=one_line(content.documents[0]),
        )
    return made


def mail_parts(content: MailContent, settings: Settings, mail_id: str) -> MailParts:
    """What a mail says, as text and as HTML.

    Args:
        content: what it tells.
        settings: of the installation.
        mail_id: of its row.
    """
    text = words(content, settings.installation)
    domain = (settings.mail.from_address or "").rpartition("@")[2]
    cid = f"logo.{mail_id}@{domain}" if content.logo is not None else ""
    given = {"text": text, "lang": content.lang, "sender": content.sender}
    return MailParts(
        one_line(text.subject),
        _ENVIRONMENT.get_template("mail.txt").render(given),
        _ENVIRONMENT.get_template("mail.html").render(given, logo=cid),
        cid,
    )


def _from(content: MailContent, settings: Settings) -> Address:
    name = settings.mail.from_name or settings.installation
    if content.on_behalf:
        name = f"{content.sender} · {name}"
    return _address(name, settings.mail.from_address or "")


def _address(name: str, address: str) -> Address:
    return Address(one_line(name)[:_LONGEST_NAME], addr_spec=address)


def one_line(text: str) -> str:
    """A text as a header can have it: no line break, no control character.

    And no encoded word (RFC 2047), which would be decoded, and may hold an address.

    Args:
        text: of anybody.
    """
    text = text.replace("=?", "= ?")
    if is_line(text):
        return text
    return " ".join("".join(c if is_line(c) else " " for c in text).split())
