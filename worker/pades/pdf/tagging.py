"""Puts a field's widget into the structure tree of a tagged file.

So that who has a document read aloud comes across its signature. Everything is read
before anything is changed, and a tree that is not as it should be is left alone: it
is no reason not to sign.

Source: ISO 32000-2, 14.7 and 14.8.4.7 (Form); ISO 14289-1, 7.18.
"""

from dataclasses import dataclass, field
from typing import Final

from pyhanko.pdf_utils.generic import (
    ArrayObject,
    DictionaryObject,
    IndirectObject,
    NameObject,
    NumberObject,
    pdf_name,
)
from pyhanko.pdf_utils.incremental_writer import IncrementalPdfFileWriter
from pyhanko.sign.fields import enumerate_sig_fields

from appliance.domain.errors import DocumentRefusedError
from worker.pades.pdf.revision import entry, refusing

_DEPTH: Final = 32


@dataclass(frozen=True, slots=True)
class _Place:
    """Where an element goes, as it was found."""

    root: DictionaryObject
    """StructTreeRoot."""
    parent: DictionaryObject
    parent_ref: IndirectObject
    key: int
    """Of the widget in the parent tree; larger than all others."""
    leaf: ArrayObject | None
    """Nums of the parent tree's last leaf; None where there is no tree."""
    limits: list[ArrayObject] = field(default_factory=list)
    """Limits of the nodes down to that leaf."""


def tag_widget(
    revision: IncrementalPdfFileWriter,
    widget: DictionaryObject,
    widget_ref: IndirectObject,
    page: IndirectObject,
) -> None:
    """Add a Form element for a widget, where the file is tagged.

    Not in a file that is signed already: validators take a change of the structure
    tree for a change of the document, and the earlier signature would look broken.

    Args:
        revision: the open file; the new field is not in its form yet.
        widget: the field, which is its own widget.
        widget_ref: its reference.
        page: the page's reference.
    """
    try:
        with refusing():
            place = _find(revision)
    except DocumentRefusedError:
        return
    if place is None:
        return
    element = DictionaryObject(
        {
            pdf_name("/Type"): pdf_name("/StructElem"),
            pdf_name("/S"): pdf_name("/Form"),
            pdf_name("/P"): place.parent_ref,
            pdf_name("/Pg"): page,
            pdf_name("/K"): DictionaryObject(
                {
                    pdf_name("/Type"): pdf_name("/OBJR"),
                    pdf_name("/Obj"): widget_ref,
                    pdf_name("/Pg"): page,
                }
            ),
        }
    )
    element_ref = revision.add_object(element)
    widget[pdf_name("/StructParent")] = NumberObject(place.key)
    _append(revision, place.parent, element_ref)
    _index(revision, place, element_ref)
    dictionary = page.get_object()
    if "/Tabs" not in dictionary:
        dictionary[pdf_name("/Tabs")] = pdf_name("/S")
        revision.update_container(dictionary)


def _find(revision: IncrementalPdfFileWriter) -> _Place | None:
    """Look where the element goes; None where it goes nowhere."""
    root = entry(revision.root, "/StructTreeRoot", DictionaryObject)
    if root is None or "/K" not in root:
        return None
    root_ref = revision.root.raw_get("/StructTreeRoot")
    signed = next(enumerate_sig_fields(revision, filled_status=True), None)
    if signed is not None or not isinstance(root_ref, IndirectObject):
        return None
    parent, parent_ref = _document(root) or (root, root_ref)
    tree = entry(root, "/ParentTree", DictionaryObject)
    limits: list[ArrayObject] = []
    leaf = None if tree is None else _last_leaf(tree, limits)
    if tree is not None and leaf is None:
        return None
    last = -1
    if leaf:
        number = leaf[len(leaf) - 2] if len(leaf) % 2 == 0 else None
        if not isinstance(number, int):
            return None
        last = int(number)
    key = max(entry(root, "/ParentTreeNextKey", int) or 0, last + 1)
    return _Place(root, parent, parent_ref, key, leaf, limits)


def _document(
    root: DictionaryObject,
) -> tuple[DictionaryObject, IndirectObject] | None:
    """The Document element at the top of the tree, if there is one."""
    raw = root.raw_get("/K")
    kids = entry(root, "/K", ArrayObject)
    if kids is not None:
        raw = kids.raw_get(0) if len(kids) else None
    if not isinstance(raw, IndirectObject):
        return None
    element = raw.get_object()
    if entry(element, "/S", NameObject) != "/Document":
        return None
    return element, raw


def _last_leaf(tree: DictionaryObject, limits: list[ArrayObject]) -> ArrayObject | None:
    """Nums of the last leaf of a number tree, where the largest keys are.

    Args:
        tree: its root.
        limits: gets the Limits of the nodes on the way.
    """
    node: DictionaryObject | None = tree
    for _ in range(_DEPTH):
        if node is None:
            return None
        found = entry(node, "/Limits", ArrayObject)
        if found is not None and len(found) == 2:  # noqa: PLR2004 (low and high)
            limits.append(found)
        kids = entry(node, "/Kids", ArrayObject)
        if not kids:
            return entry(node, "/Nums", ArrayObject)
        below = kids[len(kids) - 1]
        node = below if isinstance(below, DictionaryObject) else None
    return None


def _append(
    revision: IncrementalPdfFileWriter,
    parent: DictionaryObject,
    element_ref: IndirectObject,
) -> None:
    """Make an element the last kid of another, or of the tree's root."""
    kids = entry(parent, "/K", ArrayObject)
    if kids is not None:
        kids.append(element_ref)
        revision.update_container(kids)
        return
    only = [parent.raw_get("/K")] if "/K" in parent else []
    parent[pdf_name("/K")] = ArrayObject([*only, element_ref])
    revision.update_container(parent)


def _index(
    revision: IncrementalPdfFileWriter, place: _Place, element_ref: IndirectObject
) -> None:
    """Enter the element into the parent tree, by the widget's key."""
    pair = [NumberObject(place.key), element_ref]
    if place.leaf is None:
        tree = DictionaryObject({pdf_name("/Nums"): ArrayObject(pair)})
        place.root[pdf_name("/ParentTree")] = revision.add_object(tree)
    else:
        place.leaf.extend(pair)
        revision.update_container(place.leaf)
    for limits in place.limits:
        limits[1] = NumberObject(place.key)
        revision.update_container(limits)
    place.root[pdf_name("/ParentTreeNextKey")] = NumberObject(place.key + 1)
    revision.update_container(place.root)
