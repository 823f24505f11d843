"""What a field may be, said in the reader's language where it takes words.

`allowed` of an answer lists values, ranges and patterns, which every language writes
alike, and phrases such as `1..50 characters`, which it does not.
"""

import re
from typing import Final

from appliance.domain.errors import ErrorCode
from appliance.domain.people.identity import COMPARABLE
from appliance.web import i18n

_NUMBER: Final = re.compile(r"[0-9]+", re.ASCII)
_TOLD: Final = frozenset(
    {
        ErrorCode.BAD_HEADER,
        ErrorCode.FIELD_INVALID,
        ErrorCode.FIELD_MISSING,
        ErrorCode.QUERY_INVALID,
        ErrorCode.INIT_INVALID,
    }
)
"""Whose `allowed` is ours; elsewhere it may name what stands in a document."""
PHRASES: Final = frozenset(
    {
        "# digits",
        "# hexadecimal digits, once",
        "# to # bytes of UTF-#",
        "# to # characters",
        "# to # printable bytes, of which a letter",
        "# to # printable characters",
        "# to # visible ASCII characters",
        "#..# bytes",
        "#..# characters",
        "#..# objects",
        "#..# of #..#",
        "a file name",
        "a host that is reached from the Internet, not a private address",
        "a time after desde",
        "a time that has been",
        "a time to come",
        "a whole number",
        "an object",
        "another one than before",
        "as Link gave it",
        "as an answer gave it",
        "each person once",
        "https://host/path or http://host/path, up to # characters",
        "https://host/path, up to # characters",
        COMPARABLE,
        "name@domain",
        "not the login password",
        "once",
        "one document",
        "one of cuil, email, personaId",
        "one of procesoId, solicitudId",
        "one of procesoId, solicitudId, loteId",
        "one of solicitudIds, loteId",
        "the digits of cuil",
        "up to # characters",
        "up to # strings of # characters, names of #..#",
        "with limite",
        "x and y come together",
    }
)
"""Those phrases, as msgids; `#` stands for each number."""


def in_words(
    code: ErrorCode, extras: dict[str, object], lang: str
) -> dict[str, object]:
    """Members of an answer, with the phrases of `allowed` in a language.

    Args:
        code: of the answer.
        extras: its members.
        lang: `es` or `en`.
    """
    allowed = extras.get("allowed")
    if code not in _TOLD or not isinstance(allowed, list):
        return extras
    return {**extras, "allowed": [_said(each, lang) for each in allowed]}


def _said(phrase: object, lang: str) -> object:
    if not isinstance(phrase, str):
        return phrase
    msgid = _NUMBER.sub("#", phrase)
    if msgid not in PHRASES:
        return phrase
    numbers = iter(_NUMBER.findall(phrase))
    return re.sub("#", lambda _: next(numbers), i18n.translate(lang, msgid))
