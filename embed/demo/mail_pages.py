"""Pages of the trial's mails: which were caught, and each as its reader sees it.

A mail's HTML is shown as it came, under a policy that lets it run and load nothing; the
pictures that it brings are put into it.
"""

import base64
from collections.abc import Iterator
from email.message import EmailMessage
from html import escape
from typing import Final

from appliance.domain.text.civil_time import with_zone
from embed.demo.mail_catcher import CaughtMail

PATH: Final = "/correos"
POLICY: Final = (
    "default-src 'none'; style-src 'unsafe-inline'; img-src data:; base-uri 'none'; "
    "form-action 'none'; frame-ancestors 'none'; sandbox"
)
"""Of a mail's own HTML."""
_WORDS: Final = {
    "es": {
        "title": "Correos del ensayo",
        "told": "Acá quedan los correos que el ensayo habría enviado; no salen de esta "
        "máquina.",
        "none": "Todavía no llegó ninguno. Pueden tardar un minuto.",
        "to": "Para",
        "text": "Texto",
        "page": "Ver",
        "back": "Volver al sitio",
    },
    "en": {
        "title": "Mails of the trial",
        "told": "Here are the mails that the trial would have sent; none leaves this "
        "machine.",
        "none": "None came yet. They may take a minute.",
        "to": "To",
        "text": "Text",
        "page": "See",
        "back": "Back to the site",
    },
}


def listing(caught: list[CaughtMail], lang: str) -> str:
    """The page of all mails, newest first.

    Args:
        caught: oldest first.
        lang: `es` or `en`.
    """
    words = _WORDS.get(lang, _WORDS["es"])
    rows = "".join(_row(mail, lang, words) for mail in reversed(caught))
    return (
        f'<!doctype html><html lang="{escape(lang)}"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        '<meta name="color-scheme" content="light dark">'
        f"<title>{escape(words['title'])}</title>"
        '<link rel="icon" href="/icon.svg" type="image/svg+xml">'
        '<link rel="stylesheet" href="/tokens.css">'
        '<link rel="stylesheet" href="/style.css"></head><body>'
        '<header class="top"><div class="brand">'
        '<img src="/icon.svg" alt="" width="36" height="36">'
        f"<div><h1>{escape(words['title'])}</h1><p>{escape(words['told'])}</p></div>"
        '</div><nav class="languages" aria-label="Idioma / Language">'
        f"{_language('es', 'Español', lang)}{_language('en', 'English', lang)}"
        "</nav></header>"
        f'<main class="mails">{rows or _nothing(words)}'
        f'<p><a href="/?lang={escape(lang)}">{escape(words["back"])}</a></p>'
        "</main></body></html>"
    )


def _language(code: str, name: str, shown: str) -> str:
    current = ' aria-current="true"' if code == shown else ""
    return f'<a href="?lang={code}" lang="{code}" hreflang="{code}"{current}>{name}</a>'


def _nothing(words: dict[str, str]) -> str:
    return f'<p class="card">{escape(words["none"])}</p>'


def _row(mail: CaughtMail, lang: str, words: dict[str, str]) -> str:
    message, number = mail.message, mail.number
    links = [
        f'<a href="{PATH}/{number}/html">{escape(words["page"])}</a>',
        f'<a href="{PATH}/{number}/text">{escape(words["text"])}</a>',
        *(
            f'<a href="{PATH}/{number}/{place}">{escape(name)}</a>'
            for place, (name, _) in enumerate(attachments(message))
        ),
    ]
    return (
        f'<article class="card"><h2>{escape(str(message["Subject"]))}</h2>'
        f"<p>{escape(words['to'])} {escape(', '.join(mail.recipients))} · "
        f"{escape(with_zone(mail.at, lang))}</p>"
        f"<p>{' · '.join(links)}</p></article>"
    )


def attachments(message: EmailMessage) -> list[tuple[str, bytes]]:
    """Names and bytes of what comes with a mail.

    Args:
        message: it.
    """
    return [
        (part.get_filename() or "adjunto", bytes(part.get_content()))
        for part in message.iter_attachments()
        if part.get_content_maintype() not in {"text", "multipart"}
    ]


def text_of(message: EmailMessage) -> str:
    """What a mail says to readers of text.

    Args:
        message: it.
    """
    part = message.get_body(("plain",))
    return "" if part is None else str(part.get_content())


def html_of(message: EmailMessage) -> str:
    """What a mail says to readers of HTML, with its pictures in it.

    Args:
        message: it.
    """
    part = message.get_body(("html",))
    page = "" if part is None else str(part.get_content())
    for cid, kind, picture in _pictures(message):
        data = base64.b64encode(picture).decode()
        page = page.replace(f"cid:{cid}", f"data:{kind};base64,{data}")
    return page


def _pictures(message: EmailMessage) -> Iterator[tuple[str, str, bytes]]:
    for part in message.walk():
        cid = part.get("Content-ID")
        if cid is not None and part.get_content_maintype() == "image":
            content = part.get_payload(decode=True)
            if isinstance(content, bytes):
                yield str(cid).strip().strip("<>"), part.get_content_type(), content
