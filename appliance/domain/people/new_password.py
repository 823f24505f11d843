"""Passwords that nobody may choose: common ones, and the person's own data.

A password is compared in one form: NFKC, case folded, accents and whatever is neither
letter nor digit left out. The list of common ones is local (`zxcvbn`, 30,000, and some
that are common in Argentina); nothing is asked of a server.

Source: NIST SP 800-63B-4, 3.1.1.2 "blocklist"; decisions "passwords".
"""

import re
import sys
import unicodedata
from collections.abc import Iterable
from enum import StrEnum
from functools import cache
from itertools import pairwise
from typing import Final

from appliance.domain.errors import FieldInvalidError
from appliance.domain.errors.sentences import OTHERS_CHOICE, OWN_DATA
from appliance.domain.people.identity import Person

_LOCAL: Final = frozenset(
    """
    acceso administrador administradora argentina barcelona belgrano bocajuniors
    bostero buenosaires caballito campeon clave clavedeacceso clavedefirma
    contrasena contrasenia contraseña corazon cordoba cuchicuchi diegomaradona
    dinero documento empresa escribania escribano estrella estudiantes familia
    felicidad firma firmadigital firmar futbol gallina gatito hola holahola
    holamundo huracan independiente jesucristo jesus juancarlos lanus lionelmessi
    losamo mandarina maradona mariajose mariposa martina mendoza messi miamor micasa
    mifamilia mihija mihijo milagros millonario misamores mivida newells nosecual
    notengo peronista princesa prueba quemeimporta racing racingclub riverplate
    rosario rosariocentral rubrica sanlorenzo secreta secreto sistema sistemas
    soledad teamo teamomucho telefono tequiero trabajo tucuman usuario valentina
    velez
    """.split()  # noqa: SIM905 (words to be read)
)
_TAIL: Final = 4
"""Digits after a common word that leave it common: `argentina2024`."""
_LEAST_LETTERS: Final = 3
"""Letters beside one's own data that make a password another one."""
_LEAST_OF_NAME: Final = 3
"""Shorter words of a name (`de`, `la`) are no data of anybody's."""
_REPEATED: Final = re.compile(r"(.{1,4})\1+")
_DNI: Final = slice(2, 10)
"""Digits of a CUIL that are the DNI."""


class Weakness(StrEnum):
    """Why a password must not be chosen."""

    COMMON = "common"
    """A common password, a row of characters, or one part again and again."""
    OWN = "own"
    """It consists of the person's name, CUIL, DNI or e-mail address."""


ALLOWED: Final = {
    Weakness.COMMON: "no common password",
    Weakness.OWN: "not your own name, CUIL, DNI or e-mail address",
}


SENTENCES: Final = {
    Weakness.COMMON: OTHERS_CHOICE,
    Weakness.OWN: OWN_DATA,
}


class WeakPasswordError(FieldInvalidError):
    """A new password is weak.

    Args:
        field: of the body or form.
        weakness: of the password.
    """

    def __init__(self, field: str, weakness: Weakness) -> None:
        super().__init__(field, ALLOWED[weakness], sentence=SENTENCES[weakness])
        self.weakness = weakness


def own_words(person: Person, email: str) -> tuple[str, ...]:
    """Data of a person that makes no password.

    Args:
        person: name and CUIL.
        email: as it is kept.
    """
    local, _, domain = email.partition("@")
    host = domain.partition(".")[0]
    dni = person.cuil[_DNI]
    return (*person.name.split(), person.cuil, dni, email, local, host)


def weakness(password: str, own: Iterable[str] = ()) -> Weakness | None:
    """Return why a password must not be chosen; None for one that may be.

    Time and memory are linear in the password, which has 1,024 bytes at most.

    Args:
        password: as it was typed.
        own: data of whoever chooses it, such as `own_words`.
    """
    plain = _plain(password)
    if _is_common(plain):
        return Weakness.COMMON
    words = {_plain(each) for each in own}
    return Weakness.OWN if _is_made_of(plain, words) else None


def check_new(password: str, field: str, own: Iterable[str] = ()) -> None:
    """Refuse a new password that is weak.

    Args:
        password: as it was typed.
        field: of the body or form, for the error.
        own: as in `weakness`.

    Raises:
        WeakPasswordError: it is.
    """
    found = weakness(password, own)
    if found is not None:
        raise WeakPasswordError(field, found)


def _plain(text: str) -> str:
    folded = unicodedata.normalize("NFKD", text.casefold())
    return "".join(each for each in folded if each.isalnum())


def _is_common(plain: str) -> bool:
    # What has neither letters nor digits of any script is a row of signs.
    if not plain or _REPEATED.fullmatch(plain) or _is_row(plain):
        return True
    word = plain.rstrip("0123456789")
    is_short_tail = len(plain) - len(word) <= _TAIL
    return _is_listed(plain) or (is_short_tail and _is_listed(word))


def _is_listed(word: str) -> bool:
    return bool(word) and f"\n{word}\n" in _common()


def _is_row(plain: str) -> bool:
    """True if each character follows the one before it, or precedes it."""
    steps = {ord(b) - ord(a) for a, b in pairwise(plain)}
    return steps in ({1}, {-1})


def _is_made_of(plain: str, words: Iterable[str]) -> bool:
    left = plain
    for word in sorted(words, key=len, reverse=True):
        if len(word) >= _LEAST_OF_NAME:
            left = left.replace(word, "")
    letters = sum(each.isalpha() for each in left)
    return len(left) < len(plain) and letters < _LEAST_LETTERS


def load_common() -> None:
    """Read the list of common passwords, of 240 KB, from the library that has it.

    A role does so as it starts: an upgrade takes the library's files away.
    """
    _common()


@cache
def _common() -> str:
    # 16 MB with everything that comes with it, and one list of it is needed.
    before = set(sys.modules)
    from zxcvbn.frequency_lists import FREQUENCY_LISTS  # noqa: PLC0415

    listed = [*FREQUENCY_LISTS["passwords"], *_LOCAL]
    for name in set(sys.modules) - before:
        if name.partition(".")[0] == "zxcvbn":
            del sys.modules[name]
    plain = dict.fromkeys(map(_plain, listed))
    return "\n".join(("", *filter(None, plain), ""))
