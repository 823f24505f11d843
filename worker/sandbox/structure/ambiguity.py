"""Findings of the structural reader, and its limits."""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

AMBIGUITIES_MAX: Final = 100
_KEPT_MAX: Final = 10_000


class AmbiguityKind(StrEnum):
    """Kinds of structure that two readers may read differently."""

    REPEATED_KEY = "repeated_key"
    """A dictionary has one key twice, with different values."""
    SYNTAX = "syntax"
    """Tokens that form no object, or no `endobj` after it."""
    STREAM_LENGTH = "stream_length"
    """A stream does not end where `/Length` says."""
    LISTED_TWICE = "listed_twice"
    """A number occurs twice in one section, or in one object stream."""
    ENTRY_FORM = "entry_form"
    """A cross-reference entry, or a section, of another form than 7.5.4 or 7.5.8."""
    WRONG_OFFSET = "wrong_offset"
    """An entry does not point exactly at its object."""
    WRONG_GENERATION = "wrong_generation"
    """A generation that does not follow from the earlier entries of the number."""
    OBJECT_STREAM = "object_stream"
    """An object stream does not hold an object where its entry says."""
    HYBRID_CONFLICT = "hybrid_conflict"
    """A table and its `/XRefStm` disagree about a number."""
    OVERLAP = "overlap"
    """A listed object begins inside another one."""
    UNLISTED_OBJECT = "unlisted_object"
    """A second object of a listed number, which no section lists."""
    INEXACT_STARTXREF = "inexact_startxref"
    """`startxref` does not point exactly at a section of its revision."""
    INEXACT_PREV = "inexact_prev"
    """`/Prev` or `/XRefStm` does not point exactly at an earlier section, or loops."""
    SKIPPED_SECTION = "skipped_section"
    """The chain of sections leaves out one that is in the file."""
    TRAILER = "trailer"
    """A trailer without exactly one indirect `/Root`, or with another `/Encrypt`."""
    SECTION_NUMBER = "section_number"
    """A cross-reference stream has the number of another listed object."""
    UNKNOWN_BYTES = "unknown_bytes"
    """Bytes between the objects that are neither objects nor comments."""
    HIDDEN_OBJECT = "hidden_object"
    """An object or a trailer in a stream, string or comment: a repair finds it."""
    SMALL_SIZE = "small_size"
    """`/Size` of a trailer is not greater than a number that is listed."""
    NOT_AT_END = "not_at_end"
    """The last revision does not end the file."""
    LINEARIZED = "linearized"
    """A later revision ends where the linearization dictionary ends the file."""
    REREAD_DIFFERS = "reread_differs"
    """pyHanko finds an object in another place than this reader."""


APPENDED_ONLY: Final = frozenset(
    {
        AmbiguityKind.HIDDEN_OBJECT,
        AmbiguityKind.SMALL_SIZE,
        AmbiguityKind.UNKNOWN_BYTES,
    }
)
"""Kinds that begin a repair of the file, or that only a repair makes use of. Honest
signed files have them, in attachments for example, so that they count in what is
appended alone."""


@dataclass(frozen=True, slots=True)
class Ambiguity:
    """One place of a file that two readers may read differently.

    Args:
        kind: stable word for programs.
        at: byte offset in the file of the part that introduces the ambiguity.
        number: number of the object concerned; None if it concerns no single one.
        words: the same in English, in one clause.
    """

    kind: AmbiguityKind
    at: int
    number: int | None
    words: str


class UsedUpError(Exception):
    """The file needs more steps than the reader may take, or cannot be decoded."""


class NoStepsError(UsedUpError):
    """The file needs more steps than the reader may take."""


class Steps:
    """Budget of one reading.

    Args:
        most: steps that may be taken; a token is about one.
    """

    def __init__(self, most: int) -> None:
        self._left = most

    def take(self, steps: int) -> None:
        """Take some steps.

        Raises:
            NoStepsError: too few are left.
        """
        self._left -= steps
        if self._left < 0:
            raise NoStepsError


class Findings:
    """Collector of ambiguities without repetitions."""

    def __init__(self) -> None:
        self._kept: dict[tuple[AmbiguityKind, int, int | None], Ambiguity] = {}

    def add(self, kind: AmbiguityKind, at: int, number: int | None, words: str) -> None:
        """Add one; the first of a kind, place and number counts.

        Raises:
            UsedUpError: there are too many to go on.
        """
        if len(self._kept) >= _KEPT_MAX:
            raise UsedUpError
        self._kept.setdefault((kind, at, number), Ambiguity(kind, at, number, words))

    def sorted(self) -> Sequence[Ambiguity]:
        """Return the ambiguities by place, at most twice `AMBIGUITIES_MAX`.

        Of more, the first half and the last half are kept: a caller asks about both
        what was signed and what was added after it. Kinds that count in one of the two
        are counted apart, so that they displace no others.
        """
        found = sorted(self._kept.values(), key=lambda one: (one.at, one.kind))
        half = AMBIGUITIES_MAX // 2
        kept: list[Ambiguity] = []
        for is_apart in (False, True):
            group = [one for one in found if (one.kind in APPENDED_ONLY) is is_apart]
            if len(group) > AMBIGUITIES_MAX:
                group = group[:half] + group[-half:]
            kept += group
        return sorted(kept, key=lambda one: (one.at, one.kind))
