"""The two languages of what people read: Spanish by default, or English.

English sentences are the msgids; the files `appliance/locale/*/LC_MESSAGES/*.po`
have the others, compiled in memory at start, so that no compiled file can be
older than its source. `rubrica.po` has what more than one face says; a face with
pages has a file of its own.
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
SHARED: Final = "rubrica"
"""The file of what more than one face says."""
_SOURCE = "en"
_FOLDER = Path(__file__).resolve().parent.parent / "locale"


@cache
def catalogue(lang: str, domain: str = SHARED) -> gettext.NullTranslations:
    """The sentences of one language; English has none to look up.

    Args:
        lang: one of `LANGUAGES`.
        domain: name of the file.
    """
    if lang == _SOURCE:
        return gettext.NullTranslations()
    with (_FOLDER / lang / "LC_MESSAGES" / f"{domain}.po").open("rb") as source:
        messages = read_po(source, locale=lang, abort_invalid=True)
    compiled = io.BytesIO()
    write_mo(compiled, messages)
    compiled.seek(0)
    return gettext.GNUTranslations(compiled)


def load(domain: str = SHARED) -> None:
    """Read every catalogue now, so that a broken one stops the start.

    Args:
        domain: name of the file.
    """
    for lang in LANGUAGES:
        catalogue(lang, domain)


def translate(lang: str, msgid: str, domain: str = SHARED) -> str:
    """Say an English sentence in a language.

    Args:
        lang: one of `LANGUAGES`.
        msgid: the English sentence.
        domain: name of the file that has it.
    """
    return catalogue(lang, domain).gettext(msgid)


def requested() -> str:
    """The language that the present request asks for (Accept-Language)."""
    best = request.accept_languages.best_match(LANGUAGES, DEFAULT)
    return best or DEFAULT
