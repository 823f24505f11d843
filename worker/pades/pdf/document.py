"""What a revision reads of an open document and changes in it.

What its signatures allow, its extensions, its pages, its form, and the structure tree
of a tagged file. Nothing that a file says of itself is trusted: pages are found by
walking the tree, and what is not of the kind that it should be is not there.

Source: ISO 32000-2, 7.7.3 (pages), 12.5 (annotations), 12.7 (forms), 14.7 and
14.8.4.7 (structure; Form); ISO 14289-1, 7.18.
"""

from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Final, TypeVar

from pyhanko.pdf_utils.generic import (
    ArrayObject,
    DictionaryObject,
    IndirectObject,
    NameObject,
    NumberObject,
    TextStringObject,
    pdf_name,
)
from pyhanko.pdf_utils.incremental_writer import IncrementalPdfFileWriter
from pyhanko.pdf_utils.misc import PdfError
from pyhanko.sign.fields import (
    MDPPerm,
    SignatureFormField,
    enumerate_sig_fields,
)
from pyhanko.sign.signers.constants import ESIC_EXTENSION_1

from appliance.domain.errors import DocumentRefusedError, ErrorCode
from appliance.domain.vocab import Restriction
from worker.pades.pdf.revision import refusing

_Kind = TypeVar("_Kind")
_PDF_2_0: Final = (2, 0)
_FLAGS: Final = 3
_DEPTH: Final = 32
"""Levels of a number tree that are walked down."""


@dataclass(frozen=True, slots=True)
class FieldLook:
    """How a signature's field is seen, and what is said of it where it is heard."""

    spoken: str
    """What has it read aloud, and shown by some readers, by more than its name."""
    page: int = 1
    """Of the stamp, 1-based."""
    box: tuple[float, float, float, float] | None = None
    """Where the stamp is shown, x0, y0, x1, y1 in user space; None: nothing is."""
    draw: Callable[[IncrementalPdfFileWriter, DictionaryObject], None] | None = None
    """Gives a widget its appearance: the stamp's, or none that is seen."""


def entry(dictionary: object, key: str, kind: type[_Kind]) -> _Kind | None:
    """The object under a key, references followed; None unless it is of the kind.

    `dict.get` would give the reference itself.

    Args:
        dictionary: where to look; what is no dictionary has no entries.
        key: with its slash.
        kind: the class it must be of.
    """
    if not isinstance(dictionary, DictionaryObject):
        return None
    try:
        value = dictionary[key]
    except KeyError:  # absent, or null
        return None
    return value if isinstance(value, kind) else None


def refuse_if_closed(
    revision: IncrementalPdfFileWriter, restriction: Restriction
) -> None:
    """Refuse what earlier signatures do not allow.

    Args:
        revision: the open file.
        restriction: what the new signature is to forbid; only the first may.

    Raises:
        DocumentRefusedError: `PDF_LOCKED` or `PDF_ALREADY_SIGNED`.
    """
    if _docmdp(revision) == MDPPerm.NO_CHANGES.value:
        raise DocumentRefusedError(ErrorCode.PDF_LOCKED)
    if restriction is Restriction.NO_VALUE:
        return
    if next(enumerate_sig_fields(revision, filled_status=True), None) is not None:
        raise DocumentRefusedError(ErrorCode.PDF_ALREADY_SIGNED)


def _docmdp(revision: IncrementalPdfFileWriter) -> int | None:
    """P of the certification signature, or None.

    Source: ISO 32000-2, 12.8.2.2 (P is 2 when absent).
    """
    permissions = entry(revision.root, "/Perms", DictionaryObject)
    certification = entry(permissions, "/DocMDP", DictionaryObject)
    references = entry(certification, "/Reference", ArrayObject) or ArrayObject()
    for at in range(len(references)):
        if entry(references[at], "/TransformMethod", NameObject) == "/DocMDP":
            parameters = entry(references[at], "/TransformParams", DictionaryObject)
            return entry(parameters, "/P", int) or MDPPerm.FILL_FORMS.value
    return None


def declare_pades(revision: IncrementalPdfFileWriter) -> None:
    """Name the extension of PDF 1.7 that PAdES is; PDF 2.0 has it built in.

    A file whose own list of extensions is broken goes without: it is a hint.

    Args:
        revision: the open file.
    """
    if revision.output_version < _PDF_2_0:
        with suppress(PdfError):
            revision.register_extension(ESIC_EXTENSION_1)


def find_page(revision: IncrementalPdfFileWriter, number: int) -> IndirectObject:
    """Find a page by walking the tree; `/Count` is not asked.

    Args:
        revision: the open file.
        number: 1-based.

    Returns:
        The reference to the page.

    Raises:
        DocumentRefusedError: `PDF_NO_PAGES` when there are fewer pages.
    """
    pages = _walk(revision.root.raw_get("/Pages"), set())
    for at, page in enumerate(pages, 1):
        if at == number:
            return page
    raise DocumentRefusedError(ErrorCode.PDF_NO_PAGES, f"page {number} is not there")


def _walk(root: object, seen: set[tuple[int, int]]) -> Iterator[IndirectObject]:
    """The pages under a node, in order, each node once."""
    stack = [root]
    while stack:
        ref = stack.pop()
        if not isinstance(ref, IndirectObject):
            continue
        key = (ref.idnum, ref.generation)
        node = ref.get_object()
        if key in seen or not isinstance(node, DictionaryObject):
            continue
        seen.add(key)
        kids = entry(node, "/Kids", ArrayObject)
        if kids is not None:
            stack += [kids.raw_get(i) for i in reversed(range(len(kids)))]
        elif entry(node, "/Type", NameObject) in (None, "/Page"):
            yield ref


def add_field(
    revision: IncrementalPdfFileWriter,
    name: str,
    look: FieldLook,
    value: IndirectObject,
) -> None:
    """Add a signature field, which is its own widget, and fill it.

    pyHanko's own way to add a field finds the page by `/Count`, which files lie
    about; so the field is hung up here, and the rest is pyHanko's.

    Args:
        revision: the open file.
        name: wished, without dots; made unique.
        look: of the field.
        value: reference of the signature or document timestamp.

    Raises:
        DocumentRefusedError: `PDF_NO_PAGES` when there are fewer pages.
    """
    fields = _form_fields(revision)
    page_ref = find_page(revision, look.page)
    widget = SignatureFormField(
        _unique(name, fields), box=look.box, include_on_page=page_ref
    )
    if look.draw is not None:
        look.draw(revision, widget)
    widget[pdf_name("/TU")] = TextStringObject(look.spoken)
    widget[pdf_name("/V")] = value
    widget_ref = revision.add_object(widget)
    _tag(revision, widget, widget_ref, page_ref)
    fields.append(widget_ref)
    revision.update_container(fields)
    add_annotation(revision, page_ref, widget_ref)
    flag_signatures(revision)


def flag_signatures(revision: IncrementalPdfFileWriter) -> None:
    """Say in the form that there are signatures, and that revisions are appended.

    How fields are to be shown stays as it was: pyHanko's own way takes away that
    readers draw them (`NeedAppearances`), so that values which a signer has seen would
    be gone.

    Args:
        revision: the open file, with a form.

    Source: ISO 32000-2, table 225.
    """
    form = entry(revision.root, "/AcroForm", DictionaryObject)
    if form is not None and entry(form, "/SigFlags", int) != _FLAGS:
        form[pdf_name("/SigFlags")] = NumberObject(_FLAGS)
        revision.update_container(form)


def _form_fields(revision: IncrementalPdfFileWriter) -> ArrayObject:
    """The form's list of fields, made where it is missing or broken."""
    root = revision.root
    form = entry(root, "/AcroForm", DictionaryObject)
    if form is None:
        form = DictionaryObject()
        root[pdf_name("/AcroForm")] = revision.add_object(form)
        revision.update_root()
    fields = entry(form, "/Fields", ArrayObject)
    if fields is None:
        fields = form[pdf_name("/Fields")] = ArrayObject()
        revision.update_container(form)
    return fields


def _unique(wish: str, fields: ArrayObject) -> str:
    """The name, with a number where a field of the form has it already."""
    objects = (fields[at] for at in range(len(fields)))
    taken = {entry(found, "/T", str) for found in objects}
    name, number = wish, 1
    while name in taken:
        number += 1
        name = f"{wish}-{number}"
    return name


def add_annotation(
    revision: IncrementalPdfFileWriter, page: IndirectObject, annotation: IndirectObject
) -> None:
    """Hang an annotation on a page, after those that it has.

    Args:
        revision: the open file.
        page: from `find_page`.
        annotation: the annotation's reference.
    """
    dictionary = page.get_object()
    annotations = entry(dictionary, "/Annots", ArrayObject)
    if annotations is not None:
        annotations.append(annotation)
        revision.update_container(annotations)
    else:  # absent, null or broken
        dictionary[pdf_name("/Annots")] = ArrayObject([annotation])
        revision.update_container(dictionary)


@dataclass(frozen=True, slots=True)
class _StructurePlace:
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


def _tag(
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
            place = _structure_place(revision)
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
    _append_kid(revision, place.parent, element_ref)
    _index_in_parent_tree(revision, place, element_ref)
    dictionary = page.get_object()
    if "/Tabs" not in dictionary:
        dictionary[pdf_name("/Tabs")] = pdf_name("/S")
        revision.update_container(dictionary)


def _structure_place(revision: IncrementalPdfFileWriter) -> _StructurePlace | None:
    """Look where the element goes; None where it goes nowhere."""
    root = entry(revision.root, "/StructTreeRoot", DictionaryObject)
    if root is None or "/K" not in root:
        return None
    root_ref = revision.root.raw_get("/StructTreeRoot")
    signed = next(enumerate_sig_fields(revision, filled_status=True), None)
    if signed is not None or not isinstance(root_ref, IndirectObject):
        return None
    parent, parent_ref = _document_element(root) or (root, root_ref)
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
    return _StructurePlace(root, parent, parent_ref, key, leaf, limits)


def _document_element(
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


def _append_kid(
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


def _index_in_parent_tree(
    revision: IncrementalPdfFileWriter,
    place: _StructurePlace,
    element_ref: IndirectObject,
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
