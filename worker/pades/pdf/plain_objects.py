"""Reads plain PDF objects as pyHanko does, only faster.

pyHanko reads byte by byte. Most objects are plain: no comments, no escapes, no
streams. Those are read here, token by token; at anything else pyHanko reads the
whole object itself, so it alone decides what to make of what is odd.
"""

import re
from collections.abc import Callable, Mapping
from typing import Final

from pyhanko.pdf_utils.generic import (
    ArrayObject,
    BooleanObject,
    DictionaryObject,
    FloatObject,
    IndirectObject,
    NameObject,
    NullObject,
    NumberObject,
    PdfObject,
    Reference,
    TrailerReference,
    pdf_string,
)

_DEEPEST: Final = 32
"""Most containers within each other; pyHanko's own limit is Python's."""
SPACE: Final = rb"[ \n\r\t\f\0]"
# What a token ends before. A number that a comma or sign follows is none of ours.
STOP: Final = rb"(?=[ \n\r\t\f\0()<>\[\]/%]|\Z)"
_TOKEN: Final = re.compile(
    SPACE
    + rb"*+(?:"
    + rb"(?P<name>/[!\"$&'*-.0-;=?-Z\\^-z|~]*+)"
    + STOP
    # Where pyHanko's own look-ahead sees all of it too.
    + rb"|(?P<reference>([1-9]\d{0,8}) (\d{1,5}) R)"
    + STOP
    + rb"(?!\Z)"
    + rb"|(?P<integer>[+-]?\d{1,18})"
    + STOP
    + rb"|(?P<real>[+-]?\d{1,18}\.\d{1,18})"
    + STOP
    + rb"|(?P<open><<|\[)|(?P<close>>>|\])"
    + rb"|<(?P<hex>(?:[0-9A-Fa-f]{2})*+)>"
    + rb"|\((?P<text>[^()\\\r]*+)\)"
    + rb"|(?P<word>true|false|null)"
    + STOP
    + rb")"
)
_WORDS: Final[Mapping[bytes, Callable[[], PdfObject]]] = {
    b"true": lambda: BooleanObject(value=True),
    b"false": lambda: BooleanObject(value=False),
    b"null": NullObject,
}

Container = Reference | TrailerReference


def parse_plain(
    content: bytes, at: int, container: Container
) -> tuple[PdfObject, int] | None:
    """Read one object.

    Args:
        content: where it stands.
        at: where it starts, white space before it included.
        container: what it is to be updated by.

    Returns:
        The object and the place after it; None when it is not plain.
    """
    outer: list[tuple[bytes, list[PdfObject]]] = []
    while (token := _TOKEN.match(content, at)) is not None:
        at = token.end()
        kind = token.lastgroup or ""
        if kind == "open":
            if len(outer) == _DEEPEST:
                return None
            outer.append((token[kind], []))
            continue
        if kind == "close":
            value = _closed(*outer.pop(), token[kind]) if outer else None
        else:
            value = _LEAVES[kind](token, container)
        if value is None:
            return None
        value.container_ref = container
        if not outer:
            return value, at
        outer[-1][1].append(value)
    return None


def _closed(opened: bytes, items: list[PdfObject], close: bytes) -> PdfObject | None:
    """The container that a bracket closes; None for what is not one."""
    if opened + close == b"[]":
        return ArrayObject(items)
    keys, values = items[::2], items[1::2]
    if (
        opened + close != b"<<>>"
        or len(keys) != len(values)
        or not all(isinstance(key, NameObject) for key in keys)
        or len(set(keys)) != len(keys)
    ):
        return None
    return DictionaryObject(dict(zip(keys, values, strict=True)))


_LEAVES: Final[Mapping[str, Callable[[re.Match[bytes], Container], PdfObject]]] = {
    "name": lambda token, _: NameObject(token["name"].decode("ascii")),
    "reference": lambda token, container: IndirectObject(
        int(token[3]),
        int(token[4]),
        container.get_pdf_handler(),  # type: ignore[no-untyped-call]
    ),
    "integer": lambda token, _: NumberObject(token["integer"]),
    "real": lambda token, _: FloatObject(token["real"].decode("ascii")),
    "hex": lambda token, _: pdf_string(bytes.fromhex(token["hex"].decode("ascii"))),
    "text": lambda token, _: pdf_string(token["text"]),
    "word": lambda token, _: _WORDS[token["word"]](),
}
