"""Tokens of PDF objects, and the objects that they form.

The reader builds no values. It finds where an object ends, where the entries of its
outermost dictionary begin, and what is wrong with it.

Source: ISO 32000-2, 7.2 and 7.3.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from worker.sandbox.structure.ambiguity import AmbiguityKind, Steps, UsedUpError

_DEEPEST: Final = 64
"""Containers within each other; PDFium reads no more than 64."""
_BYTES_A_STEP: Final = 64
_TAKEN_AT_ONCE: Final = 1_000
_BLANKS: Final = b"\0\t\n\f\r "
_BLANKS_MAX: Final = 4
_PRINTABLE: Final = range(0x20, 0x7F)
_KEY_SHOWN: Final = 40
_STEPS_AN_ESCAPE: Final = 3
_PLACES_MAX: Final = 64
BLANK: Final = rb"[\0\t\n\f\r ]"
SPACE: Final = rb"(?:" + BLANK + rb"++|%[^\r\n]*+)*+"
"""White space and comments."""
END: Final = rb"(?=[\0\t\n\f\r ()<>\[\]{}/%]|\Z)"
"""Look-ahead for the end of a regular token."""
# PDFium takes 80 and FF for white space. Programs differ in what they read of a number
# sign that does not begin two digits, and of a NUL, where some end the name. The group
# is not possessive: Python before 3.11.5 does not go back to its last whole turn.
_NAME: Final = (
    rb"/(?:[^#\x80\xff\0\t\n\f\r ()<>\[\]{}/%]++|#(?!00)[0-9A-Fa-f]{2})*" + END
)
TEXT: Final = rb"\((?:[^()\\]++|\\[\0-\xff]|\((?:[^()\\]++|\\[\0-\xff])*+\))*+\)"
_SIMPLE: Final = (
    rb"(?:"
    + _NAME
    + rb"|\d{1,10}"
    + BLANK
    + rb"++0"
    + BLANK
    + rb"++R"
    + END
    # A reference to another generation than 0 is read apart.
    # qpdf repairs a file with an integer of more than 64 bits.
    + rb"|(?![+\-]?\d{19})[+\-.\d]++"
    + END
    + rb"(?!"
    + BLANK
    + rb"++\d++"
    + BLANK
    + rb"++R"
    + END
    + rb")|"
    + TEXT
    + rb"|<[0-9A-Fa-f\0\t\n\f\r ]*+>"
    + rb"|(?:true|false|null)"
    + END
    + rb")"
)
_OPEN: Final = rb"(?P<open><<|\[)"
_FLAT: Final = rb"\[(?:" + SPACE + _SIMPLE + rb")*+" + SPACE + rb"\]"
_VALUE: Final = re.compile(
    SPACE + rb"(?:(?P<simple>" + _SIMPLE + rb"|" + _FLAT + rb")|" + _OPEN + rb")?"
)
_PAIR: Final = re.compile(
    SPACE
    + rb"(?:/(?P<key>[^\0\t\n\f\r ()<>\[\]{}/%]*+)"
    + SPACE
    + rb"(?:(?P<simple>"
    + _SIMPLE
    + rb"|"
    + _FLAT
    + rb")|"
    + _OPEN
    + rb")?|(?P<close>>>))?"
)
# Not possessive: Python 3.11.2 forgets the look-ahead of the last part.
_RUN: Final = re.compile(
    rb"(?:" + SPACE + _SIMPLE + rb")*" + SPACE + rb"(?:" + _OPEN + rb"|(?P<close>\]))?"
)
_OTHER_REFERENCE: Final = re.compile(
    SPACE + rb"(\d{1,10})" + BLANK + rb"++(\d{1,10})" + BLANK + rb"++R" + END
)
_TEXT_START: Final = re.compile(SPACE + rb"\(")
_TEXT_PART: Final = re.compile(rb"\\[\0-\xff]|[()]")
_ESCAPE: Final = re.compile(rb"#([0-9A-Fa-f]{2})")
_TOKEN: Final = re.compile(
    rb"<<|>>|" + _SIMPLE + rb"|[\[\]<>{}()]|[^\0\t\n\f\r ()<>\[\]{}/%]++|" + SPACE
)
_INTEGER: Final = re.compile(SPACE + rb"\+?(\d{1,18})" + END)
_REFERENCE: Final = re.compile(
    SPACE + rb"(\d{1,10})" + BLANK + rb"++(\d{1,5})" + BLANK + rb"++R" + END
)
_ONE_NAME: Final = re.compile(SPACE + rb"/([^\0\t\n\f\r ()<>\[\]{}/%]*+)")
_CLEAR_NAME: Final = re.compile(_NAME)


@dataclass(frozen=True, slots=True)
class Fault:
    """One thing that is wrong with an object.

    Args:
        kind: of the ambiguity.
        at: offset of the place within the bytes that were read.
        words: follow the object's name in a sentence.
    """

    kind: AmbiguityKind
    at: int
    words: str


@dataclass(slots=True)
class Tokens:
    """Tokens of one object.

    Args:
        at: offset of the object.
        end: offset after the last token that was read.
        entries: keys of the outermost dictionary, each with the offset of its value;
            None if the object is no dictionary.
        faults: what is wrong with it.
        references: those to other generations than 0: number, generation, offset.
        complete: the object was read to its end.
    """

    at: int
    end: int
    entries: Mapping[bytes, int] | None = None
    faults: list[Fault] = field(default_factory=list)
    references: list[tuple[int, int, int]] = field(default_factory=list)
    complete: bool = True


_Frame = dict[bytes, int] | None


class TokenReader:
    """Reader of the objects in one piece of bytes.

    Args:
        data: the piece.
        steps: budget of the whole file.
        compares: whether to report keys that occur twice.
    """

    def __init__(self, data: bytes, steps: Steps, *, compares: bool = True) -> None:
        self._data = data
        self._steps = steps
        self._compares = compares

    def read(self, at: int) -> Tokens:
        """Read one object.

        Args:
            at: offset of it, or of white space before it.

        Raises:
            UsedUpError: the budget is used up, or the object is nested too deeply.
        """
        found = Tokens(at, at)
        taken = 1
        start = _VALUE.match(self._data, at)
        assert start is not None  # noqa: S101 (all of it is optional)
        position = start.end()
        if start["open"] is None:
            if start["simple"] is None:
                position = self._odd(position, found)
        else:
            outer: _Frame = {} if start["open"] == b"<<" else None
            found.entries = outer
            position, taken = self._containers(position, outer, found)
        found.end = position
        self._steps.take(taken + (position - at) // _BYTES_A_STEP)
        return found

    def _containers(
        self, position: int, outer: _Frame, found: Tokens
    ) -> tuple[int, int]:
        """Read to the end of a container; give the offset after it and the steps."""
        data, pair, run = self._data, _PAIR.match, _RUN.match
        stack: list[_Frame] = []
        frame = outer
        taken = 1
        while True:
            taken += 1
            if taken >= _TAKEN_AT_ONCE:
                self._steps.take(taken)
                taken = 0
            match = run(data, position) if frame is None else pair(data, position)
            assert match is not None  # noqa: S101 (all of it is optional)
            position = match.end()
            kind = match.lastgroup
            if frame is not None and kind not in {"close", None}:
                self._enter(frame, match, found)
            if kind == "open":
                stack.append(frame)
                frame = _opened(match, len(stack))
            elif kind == "close":
                if not stack:
                    return position, taken
                frame = stack.pop()
            elif kind != "simple":
                if frame is None or kind == "key":
                    position = self._odd(position, found)
                else:
                    _break(position, found)
                if not found.complete:
                    return position, taken

    def _enter(
        self, frame: dict[bytes, int], match: re.Match[bytes], found: Tokens
    ) -> None:
        """Note a key; report it if the dictionary has it already."""
        key = match["key"]
        if not key.isalnum():  # as most are, and need no closer look
            self._steps.take(_STEPS_AN_ESCAPE)
            start = match.start("key") - 1
            if _CLEAR_NAME.fullmatch(self._data, start, match.end("key")) is None:
                _misname(start, found)
            key = _ESCAPE.sub(lambda code: bytes([int(code[1], 16)]), key)
        value = match.end("key")
        earlier = frame.setdefault(key, value)
        if earlier == value or not self._compares:
            return
        if self._tokens(earlier) != self._tokens(value):
            words = f"has the key /{_shown(key)} twice"
            at = match.start("key") - 1
            found.faults.append(Fault(AmbiguityKind.REPEATED_KEY, at, words))

    def _tokens(self, at: int) -> Sequence[bytes]:
        """Return the tokens of the value there."""
        value = TokenReader(self._data, self._steps, compares=False).read(at)
        piece = self._data[at : value.end]
        self._steps.take(len(piece) // 2)
        return [one for one in _TOKEN.findall(piece) if one.lstrip(b"\0\t\n\f\r ")]

    def _odd(self, position: int, found: Tokens) -> int:
        """Read a token that is rare; note what is none."""
        data = self._data
        reference = _OTHER_REFERENCE.match(data, position)
        if reference is not None:
            if len(found.references) < _PLACES_MAX:
                found.references.append(
                    (int(reference[1]), int(reference[2]), reference.start(1))
                )
            return reference.end()
        name = _ONE_NAME.match(data, position)
        if name is not None:
            _misname(name.start(1) - 1, found)
            return name.end()
        if _TEXT_START.match(data, position) is not None:
            end = self._nested_text(data.find(b"(", position))
            if end is not None:
                return end
        _break(position, found)
        return position

    def _nested_text(self, position: int) -> int | None:
        """Return the offset after a string with parentheses within each other."""
        depth = 0
        for part in _TEXT_PART.finditer(self._data, position):
            self._steps.take(1)
            if part[0] == b"(":
                depth += 1
            elif part[0] == b")":
                depth -= 1
                if depth == 0:
                    return part.end()
        self._steps.take((len(self._data) - position) // _BYTES_A_STEP)
        return None


def _opened(match: re.Match[bytes], depth: int) -> _Frame:
    """Return the frame of a container that begins.

    Raises:
        UsedUpError: it is nested too deeply.
    """
    if depth >= _DEEPEST:
        raise UsedUpError
    return {} if match["open"] == b"<<" else None


def _break(position: int, found: Tokens) -> None:
    """Note that no object can be read there."""
    found.complete = False
    found.faults.append(Fault(AmbiguityKind.SYNTAX, position, "is not well-formed"))


def _misname(position: int, found: Tokens) -> None:
    """Note a name that programs read differently, the first ones of an object."""
    words = "has a name that is not well-formed"
    if len(found.faults) < _PLACES_MAX:
        found.faults.append(Fault(AmbiguityKind.SYNTAX, position, words))


def after_blanks(data: bytes, at: int) -> int:
    """Return the offset after a few bytes of white space.

    An offset of an object may point there: all readers skip white space before it.
    """
    end = min(at + _BLANKS_MAX, len(data))
    while at < end and data[at] in _BLANKS:
        at += 1
    return at


def integer_at(data: bytes, at: int | None) -> int | None:
    """Return the integer without a minus sign at an offset; None if there is none."""
    match = None if at is None else _INTEGER.match(data, at)
    if match is None or _REFERENCE.match(data, match.start()) is not None:
        return None
    return int(match[1])


def reference_at(data: bytes, at: int | None) -> tuple[int, int] | None:
    """Return number and generation of the reference at an offset, or None."""
    match = None if at is None else _REFERENCE.match(data, at)
    return None if match is None else (int(match[1]), int(match[2]))


def name_at(data: bytes, at: int | None) -> bytes | None:
    """Return the name at an offset, without its slash and decoded, or None."""
    match = None if at is None else _ONE_NAME.match(data, at)
    if match is None:
        return None
    return _ESCAPE.sub(lambda code: bytes([int(code[1], 16)]), match[1])


def array_at(data: bytes, at: int | None) -> bytes | None:
    """Return what is between the brackets of a flat array at an offset, or None."""
    match = None if at is None else _VALUE.match(data, at)
    if match is None or match["simple"] is None or match["simple"][:1] != b"[":
        return None
    return match["simple"][1:-1]


def _shown(key: bytes) -> str:
    """A key as a message may show it."""
    return "".join(
        chr(code) if _PRINTABLE.start < code < _PRINTABLE.stop else f"#{code:02X}"
        for code in key[:_KEY_SHOWN]
    )
