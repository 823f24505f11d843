"""Patterns that read files commit to what they matched, and match nothing else for it.

Python 3.11.2, which Debian 12 has, forgets look-aheads at the end of some possessive
groups: a name that was not well-formed passed for one. Each pattern is compared with
the same one written by look-aheads and back-references.

Source: https://github.com/python/cpython/issues/106052.
"""

import importlib
import pkgutil
import random  # noqa: TID251 (the same texts in each run; no secret)
import re
from collections.abc import Iterator
from types import ModuleType
from typing import Final

import pytest

import worker.pades.pdf
import worker.sandbox.inspect
import worker.sandbox.structure
import worker.sandbox.verify

_PACKAGES: Final = (
    worker.pades.pdf,
    worker.sandbox.inspect,
    worker.sandbox.structure,
    worker.sandbox.verify,
)
_POSSESSIVE: Final = re.compile(rb"(?<!\\)[*+?}]\+")
_HEAD: Final = re.compile(rb"\((?:\?(?:P<[^>]+>|<?[=!]|[a-z]*:))?")
_CLASS: Final = re.compile(rb"\[\^?\]?(?:\\.|[^\]\\])*\]", re.DOTALL)
_LEAF: Final = re.compile(rb"\\x[0-9a-fA-F]{2}|\\.|.", re.DOTALL)
_COUNT: Final = re.compile(rb"(\*|\+|\?|\{\d*,?\d*\})([+?])?")
_TOKENS: Final = (
    *(
        b"/ # #0 #00 #41 A Tf g re f 0 1 12 7.5 - + . ( ) \\ \\( < > << >> [ ] { } % R "
        b"obj endobj stream null true startxref trailer xref %%EOF /A /V ET BT"
    ).split(b" "),
    *(b" ", b"  ", b" 0 R ", b" 0 obj", b"\n", b"\r", b"\0", b"\t", b"\x80", b"\xff"),
)
_SEED: Final = 20261129
_TRIES: Final = 1_500
_LONGEST: Final = 9


def _modules() -> Iterator[ModuleType]:
    for package in _PACKAGES:
        for found in pkgutil.iter_modules(package.__path__, package.__name__ + "."):
            yield importlib.import_module(found.name)


PATTERNS: Final[dict[str, re.Pattern[bytes]]] = {
    f"{module.__name__}.{name}": value
    for module in _modules()
    for name, value in vars(module).items()
    if isinstance(value, re.Pattern)
    and isinstance(value.pattern, bytes)
    and _POSSESSIVE.search(value.pattern)
}


class _Rewriting:
    """A pattern whose possessive quantifiers are written by look-aheads."""

    def __init__(self, pattern: bytes) -> None:
        self._pattern = pattern
        self._at = 0
        self._names = 0

    def group(self) -> bytes:
        """Rewrite to the end of the group at hand, or of the pattern."""
        parts = []
        while self._at < len(self._pattern) and self._next() != b")":
            if self._next() == b"|":
                self._at += 1
                parts.append(b"|")
            else:
                parts.append(self._counted(self._atom()))
        return b"".join(parts)

    def _next(self) -> bytes:
        return self._pattern[self._at : self._at + 1]

    def _take(self, kind: re.Pattern[bytes]) -> bytes:
        found = kind.match(self._pattern, self._at)
        assert found is not None
        self._at = found.end()
        return found[0]

    def _atom(self) -> bytes:
        if self._next() == b"(":
            atom = self._take(_HEAD) + self.group() + b")"
            self._at += 1
            return atom
        return self._take(_CLASS if self._next() == b"[" else _LEAF)

    def _counted(self, atom: bytes) -> bytes:
        found = _COUNT.match(self._pattern, self._at)
        if found is None:
            return atom
        self._at = found.end()
        if found[2] != b"+":
            return atom + found[0]
        self._names += 1
        name = b"possessive%d" % self._names
        return b"(?:(?=(?P<%s>%s%s))(?P=%s))" % (name, atom, found[1], name)


@pytest.mark.parametrize("name", PATTERNS)
def test_possessive_pattern_matches_as_it_says(name: str) -> None:
    """Short texts of the tokens that such files have."""
    pattern = PATTERNS[name]
    written = re.compile(_Rewriting(pattern.pattern).group(), pattern.flags)
    chosen = random.Random(_SEED)  # noqa: S311 (the same texts in each run)
    for _ in range(_TRIES):
        text = b"".join(chosen.choices(_TOKENS, k=chosen.randint(1, _LONGEST)))
        for match, expected in (
            (pattern.match(text), written.match(text)),
            (pattern.fullmatch(text), written.fullmatch(text)),
        ):
            spans = [
                None if each is None else each.span() for each in (match, expected)
            ]
            assert spans[0] == spans[1], text


def test_rewriting_is_a_check() -> None:
    """A possessive part gives nothing back, and neither does the rewritten one."""
    written = re.compile(_Rewriting(rb"a(?:b|c)*+c").group())
    assert written.match(b"abc") is None
    assert re.match(rb"a(?:b|c)*c", b"abc") is not None
