"""Annotations that a step adds, where a certification permits them; for confined jobs.

An annotation may hide what was signed and show something else. So where DocMDP permits
annotations they leave a doubt, which names their pages, and elsewhere they are changes.

Source: ISO 32000-2, 12.5.6 and 12.8.2.2 (P = 3).
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final

from pyhanko.pdf_utils.generic import DictionaryObject, Reference, StreamObject
from pyhanko.pdf_utils.reader import RawPdfPath
from pyhanko.sign.diff_analysis import ModificationLevel, SuspiciousModification
from pyhanko.sign.diff_analysis.form_rules_api import FormUpdate
from pyhanko.sign.diff_analysis.rules_api import RelativeContext

from worker.sandbox.inspect.pdf_objects import Key, entry, key_of, name, raw_items
from worker.sandbox.verify.form_changes import Approval, fresh_below, was_in_use
from worker.sandbox.verify.page_entries import copied_entries, demand_same_entries
from worker.sandbox.verify.revisions import same
from worker.sandbox.verify.step_context import StepContext, raw_entry

_KINDS: Final = frozenset(
    ("/Text", "/FreeText", "/Line", "/Square", "/Circle", "/Polygon", "/PolyLine",
     "/Highlight", "/Underline", "/Squiggly", "/StrikeOut", "/Caret", "/Stamp", "/Ink",
     "/Popup")
)  # fmt: skip
"""Markup annotations, and their windows. Source: ISO 32000-2, table 171."""
_ACTIVE: Final = ("/A", "/AA", "/PA", "/FS", "/MK", "/T3D")


@dataclass(slots=True)
class NewAnnotations:
    """Rule that annotations may be added to pages, with nothing else of them changed.

    Args:
        step: the two revisions.
    """

    step: StepContext
    pages: list[int] = field(default_factory=list)
    """1-based pages to which some were added."""

    def apply(self) -> Iterator[Approval]:
        """Yield the pages, their lists of annotations, and what is new below these."""
        step = self.step
        for key in pages_of(step):
            ref = Reference(*key)
            added = self._added(ref)
            if not added:
                continue
            self.pages.append(step.index.pages.numbers[key[0]])
            level = ModificationLevel.ANNOTATIONS
            yield level, FormUpdate(ref)
            array = key_of(raw_entry(step.new(ref), "/Annots"))
            if array is not None:
                place = RelativeContext(ref, RawPdfPath("/Annots"))
                yield level, FormUpdate(Reference(*array), context_checked=place)
            for each in added:
                yield level, FormUpdate(Reference(*each))
                for below in fresh_below(step, step.new(Reference(*each))):
                    yield level, FormUpdate(below)

    def _added(self, ref: Reference) -> list[Key]:
        """Return new annotations of a page on which nothing else was changed."""
        step = self.step
        old, new = step.old(ref), step.new(ref)
        if not isinstance(old, DictionaryObject) or not isinstance(
            new, DictionaryObject
        ):
            return []
        before, after = (list(raw_items(entry(each, "/Annots"))) for each in (old, new))
        if len(after) <= len(before) or not all(map(same, before, after)):
            return []
        added = [key_of(raw) for raw in after[len(before) :]]
        known = [key for key in added if key is not None and self._is_markup(key)]
        try:
            copied = copied_entries(step, (ref.idnum, ref.generation))
            demand_same_entries(old, new, copied | {"/Annots"})
        except SuspiciousModification:
            return []
        return known if len(known) == len(added) == len(set(known)) else []

    def _is_markup(self, key: Key) -> bool:
        """Return whether an object is a new markup annotation without actions."""
        node = self.step.new(Reference(*key))
        return (
            not was_in_use(self.step, key)
            and isinstance(node, DictionaryObject)
            and not isinstance(node, StreamObject)
            and name(node, "/Subtype") in _KINDS
            and not any(each in node for each in _ACTIVE)
        )


def pages_of(step: StepContext) -> list[Key]:
    """List the pages that a step replaces, or whose array of annotations it does."""
    numbers = step.index.pages.numbers
    found = {key for key in step.changed if key[0] in numbers}
    for key in step.changed:
        if key[0] not in numbers:
            above = (each for each in step.index.referrers(key[0]))
            found |= {
                each
                for each in above
                if each[0] in numbers
                and key_of(raw_entry(step.old(Reference(*each)), "/Annots")) == key
            }
    return sorted(found)
