"""The two languages of what people read: Spanish by default, or English.

English sentences are the msgids; `appliance/locale/*/LC_MESSAGES/rubrica.po`
has the others, compiled in memory at start, so that no compiled file can be
older than its source.
"""

import gettext
import io
from functools import cache
from pathlib import Path
from typing import Final

from babel.messages.mofile import write_mo
from babel.messages.pofile import read_po
from quart import request

DEFAULT: Final = "es"
LANGUAGES: Final = ("es", "en")
_SOURCE = "en"
_FOLDER = Path(__file__).resolve().parent.parent / "locale"


@cache
def catalogue(lang: str) -> gettext.NullTranslations:
    """The sentences of one language; English has none to look up.

    Args:
        lang: one of `LANGUAGES`.
    """
    if lang == _SOURCE:
        return gettext.NullTranslations()
    with (_FOLDER / lang / "LC_MESSAGES" / "rubrica.po").open("rb") as source:
        messages = read_po(source, locale=lang, abort_invalid=True)
    compiled = io.BytesIO()
    write_mo(compiled, messages)
    compiled.seek(0)
    return gettext.GNUTranslations(compiled)


def load() -> None:
    """Read every catalogue now, so that a broken one stops the start."""
    for lang in LANGUAGES:
        catalogue(lang)


def translate(lang: str, msgid: str) -> str:
    """Say an English sentence in a language.

    Args:
        lang: one of `LANGUAGES`.
        msgid: the English sentence.
    """
    return catalogue(lang).gettext(msgid)


def requested() -> str:
    """The language that the present request asks for (Accept-Language).

    The first wish whose language we speak, whatever its region: who asks for
    `es-AR, en;q=0.5` reads Spanish (RFC 4647, 3.4).
    """
    for wish, quality in request.accept_languages:
        spoken = wish.partition("-")[0].lower()
        if quality > 0 and spoken in LANGUAGES:
            return spoken
    return DEFAULT
