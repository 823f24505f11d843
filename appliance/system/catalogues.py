"""Sentences in the two languages of what people read: Spanish by default, or English.

English sentences are the msgids; the catalogues in `appliance/locale` have the
others (`rubrica.po` what every face says, `frame.po` the frame, `mail.po` mails),
compiled in memory at start, so that no compiled file can be older than its source.
"""

import gettext
import io
from functools import cache
from pathlib import Path
from typing import Final

from babel.messages.mofile import write_mo
from babel.messages.pofile import read_po

from appliance.domain.text.sentences import Sentence

DEFAULT: Final = "es"
LANGUAGES: Final = ("es", "en")
SHARED: Final = "rubrica"
"""Name of the file with what every face says."""
_SOURCE = "en"
_FOLDER = Path(__file__).resolve().parents[1] / "locale"


@cache
def catalogue(lang: str, first: str) -> gettext.NullTranslations:
    """The sentences of one language; English has none to look up.

    Args:
        lang: one of `LANGUAGES`.
        first: name of the file whose sentences hold where two files differ.
    """
    whole = gettext.NullTranslations()
    files = _compiled(lang)
    for name in sorted(sorted(files), key=lambda name: name == first):
        part = gettext.GNUTranslations(io.BytesIO(files[name]))
        part.add_fallback(whole)
        whole = part
    return whole


@cache
def _compiled(lang: str) -> dict[str, bytes]:
    """A language's files by name, compiled; they are read once."""
    files: dict[str, bytes] = {}
    if lang == _SOURCE:
        return files
    for path in (_FOLDER / lang / "LC_MESSAGES").glob("*.po"):
        with path.open("rb") as source:
            messages = read_po(source, locale=lang, abort_invalid=True)
        compiled = io.BytesIO()
        write_mo(compiled, messages)
        files[path.stem] = compiled.getvalue()
    return files


def load() -> None:
    """Read every file now: a broken one stops the start, and none is read later."""
    for lang in LANGUAGES:
        catalogue(lang, SHARED)


def translate(lang: str, msgid: str, first: str = SHARED) -> Sentence:
    """Say an English sentence in a language.

    Args:
        lang: one of `LANGUAGES`.
        msgid: the English sentence.
        first: name of the file whose sentences hold where two files differ.
    """
    return Sentence(catalogue(lang, first).gettext(msgid))
