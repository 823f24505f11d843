"""Two neighbouring revisions, and objections to the later; for confined jobs only."""

from dataclasses import dataclass
from typing import Final

from pyhanko.pdf_utils.generic import DictionaryObject, PdfObject, Reference
from pyhanko.sign.diff_analysis import SuspiciousModification

from worker.sandbox.inspect.pdf_objects import Key
from worker.sandbox.verify.revisions import ReferenceIndex, RevisionView

_TEXT_CHARS: Final = 200


class Objection(SuspiciousModification):
    """A change that is not allowed, with its reason in words.

    Args:
        reason: a sentence for people, without text of the file but field names.
    """

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


@dataclass(frozen=True, slots=True)
class StepContext:
    """Two neighbouring revisions, and what the later one defines."""

    index: ReferenceIndex
    """Standing at the earlier revision."""
    old: RevisionView
    new: RevisionView
    changed: frozenset[Key]
    """Objects that the later revision adds or replaces."""


def title_of(text: object) -> str:
    """Field name for people: printable characters, at most 200."""
    return printable(text, _TEXT_CHARS)


def printable(text: object, most: int) -> str:
    """Text of a file for people: printable characters, at most a number of them."""
    plain = text.decode("latin-1") if isinstance(text, bytes) else str(text)
    return "".join(
        c if c.isprintable() else " " if c.isspace() else "\N{REPLACEMENT CHARACTER}"
        for c in plain[:most]
    )


def ref_key(ref: Reference) -> Key:
    """Return number and generation of a reference."""
    return ref.idnum, ref.generation


def raw_entry(holder: object, key: str) -> PdfObject | None:
    """Return an entry with its reference unresolved."""
    if not isinstance(holder, DictionaryObject) or key not in holder:
        return None
    value: PdfObject = holder.raw_get(key)
    return value
