"""What a field may be, said in the reader's language where it takes words.

`allowed` of an answer lists values, ranges and patterns, which every language writes
alike, and phrases such as `1..50 characters`, which it does not.
"""

import re
from typing import Final

from appliance.domain.errors import ErrorCode
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
        "#..# characters",
        "#..# bytes",
        "#..# of #..#",
        "# to # bytes of UTF-#",
        "# to # characters",
        "# to # printable characters",
        "# to # visible ASCII characters",
        "up to # characters",
        "# digits",
        "# hexadecimal digits, once",
        "a whole number",
        "as Link gave it",
        "another one than before",
        "not the login password",
        "once",
        "the digits of cuil",
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
