"""The text of an unknown error, for the log, without a value that it may quote.

Messages of libraries quote what they were given: a statement's parameters, a number
that was none. That may be a secret. So a word stays only if it is the code's own (names
and constants of the functions on the way) or one of the words of Python's errors.
"""

import builtins
import errno
import os
import re
from collections.abc import Iterator
from types import CodeType, TracebackType
from typing import Final

_LONGEST: Final = 300
"""Characters of a text, as it was raised and as it is told."""
_HIDDEN: Final = "…"
_CHUNK: Final = re.compile(
    r"'[^']*'|\"[^\"]*\"|[A-Za-z_][A-Za-z0-9_]*|[^\sA-Za-z_'\"(){}\[\],.:;=<>/-]+|."
)
"""A quoted text, a word, what is no word, or one character between them."""
_BETWEEN: Final = frozenset(" (){}[],.:;=<>/-")
_ORDINARY: Final = frozenset(
    """
    a already an and any are argument arguments as async at attribute await base be
    been before broken but by byte bytes callable called can cannot closed codec
    constraint coroutine could decode depth dictionary different division does
    encode end event exceeded exist expected failed file first for found from given
    got has have in index instance integer into invalid is it item iterable key
    keyword length list literal local lock locked loop many mapping maximum memory
    missing module more must name named no not object of on only open operand or out
    pool position positional range read reading recursion required result returned
    running sequence set size stream string subscriptable takes task tasks than that
    the this time timed timeout to too tuple type types undefined unexpected
    unhashable unique unpack unsupported unterminated use used value values variable
    was were when with without write writing wrong zero
    """.split()  # noqa: SIM905 (read as prose)
)
_NAMES: Final = frozenset({"0", "1", "2", "10", "16", *dir(builtins)}) | frozenset(
    word for number in errno.errorcode for word in os.strerror(number).split()
)
"""Of types and bases, and the words of the operating system's errors."""


def error_text(exc: BaseException) -> str:
    """Tell an error's text with `…` in the place of what may be a value.

    Args:
        exc: what was raised, with its traceback.

    Returns:
        One line; empty for an error without a text.
    """
    own = set(_own_words(exc.__traceback__))
    told = " ".join(_raised(exc)[:_LONGEST].split())
    shown = "".join(_shown(chunk, own) for chunk in _CHUNK.findall(told))
    # How many words were left out is not told either.
    return re.sub(rf"{_HIDDEN}(?:\W*{_HIDDEN})+", _HIDDEN, shown)


def _raised(exc: BaseException) -> str:
    try:
        return str(exc)
    except Exception:  # noqa: BLE001 (a library's own method)
        return ""


def _shown(chunk: str, own: set[str]) -> str:
    if chunk in _BETWEEN:
        return chunk
    if chunk[0] in "'\"" and len(chunk) > 1:
        words = re.split(r"[\s.]+", chunk[1:-1])
        return chunk if all(word in own for word in words) else _HIDDEN
    is_word = chunk in own or chunk.lower() in _ORDINARY or chunk in _NAMES
    return chunk if is_word else _HIDDEN


def _own_words(trace: TracebackType | None) -> Iterator[str]:
    """Names and constants of the functions that an error came through."""
    while trace is not None:
        yield from _words_of(trace.tb_frame.f_code)
        # A type of ours that is a value's is named by messages about it.
        own = trace.tb_frame.f_globals.get("__name__")
        if isinstance(own, str):
            yield from own.split(".")
        trace = trace.tb_next


def _words_of(code: CodeType) -> Iterator[str]:
    yield from code.co_names
    yield from code.co_varnames
    yield from code.co_freevars
    yield code.co_name
    for constant in code.co_consts:
        if isinstance(constant, str):
            yield from re.findall(r"[A-Za-z_][A-Za-z0-9_]*", constant)
        elif isinstance(constant, tuple):
            yield from (each for each in constant if isinstance(each, str))
