"""Entries of replaced pages and of the catalog; for confined jobs only."""

from typing import Final

from pyhanko.pdf_utils.generic import (
    ArrayObject,
    DictionaryObject,
    NumberObject,
    PdfObject,
    Reference,
)
from pyhanko.sign.diff_analysis import SuspiciousModification
from pyhanko.sign.diff_analysis.commons import compare_dicts

from worker.sandbox.inspect.pdf_objects import Key, key_of
from worker.sandbox.verify.revisions import TRAILER, byte_names, same
from worker.sandbox.verify.step_context import StepContext, raw_entry

_DEEPEST: Final = 32
"""Nodes of a page tree within each other."""
_INHERITED: Final = ("/Resources", "/MediaBox", "/CropBox", "/Rotate")
"""Entries that a page has of the nodes above. Source: ISO 32000-2, table 31."""


def demand_same_entries(
    old: DictionaryObject, new: DictionaryObject, ignored: frozenset[str]
) -> None:
    """Demand that two dictionaries have the same entries, byte for byte in strings.

    Args:
        old: the earlier one.
        new: the later one.
        ignored: keys that may differ.

    Raises:
        SuspiciousModification: an entry was added, removed or changed.
    """
    compare_dicts(old, new, ignored)
    if byte_names(old) != byte_names(new):
        raise SuspiciousModification("a name is spelled differently")
    for key in old:
        if key in ignored:
            continue
        if not same(old.raw_get(key), new.raw_get(key), reals=True):
            raise SuspiciousModification(f"{key} is spelled differently")


def copied_entries(step: StepContext, page: Key) -> frozenset[str]:
    """Return the entries of a page that it inherited before, and now has itself.

    Some writers copy them into each page that they write again.

    Args:
        step: the two revisions.
        page: an object of the page tree.

    Source: ISO 32000-2, 7.7.3.4.
    """
    old, new = step.old(Reference(*page)), step.new(Reference(*page))
    return frozenset(
        key
        for key in _INHERITED
        if raw_entry(old, key) is None
        and (has := raw_entry(new, key)) is not None
        and same(_from_tree(step, page, key), has)
    )


def _from_tree(step: StepContext, page: Key, key: str) -> PdfObject | None:
    """Return an entry that a page inherits, as it stands in the page tree.

    Some readers inherit along the tree, others along /Parent.

    Returns:
        None if there is none, or if the two ways differ.
    """
    above = step.index.pages.parents
    root = key_of(raw_entry(step.old.root, "/Pages"))
    for _ in range(_DEEPEST):
        node = step.old(Reference(*page))
        found = raw_entry(node, key)
        if found is not None:
            return found
        if page == root:
            return NumberObject(0) if key == "/Rotate" else None
        parent = above.get(page[0])
        if isinstance(step.old(Reference(*(parent or TRAILER))), ArrayObject):
            parent = above.get((parent or TRAILER)[0])
        if parent is None or key_of(raw_entry(node, "/Parent")) != parent:
            return None
        page = parent
    return None
