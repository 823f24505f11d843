"""Values that readers draw by the defaults of a form; for confined jobs only."""

import re
from collections.abc import Iterator
from typing import Final

from pyhanko.pdf_utils.generic import DictionaryObject

from worker.sandbox.inspect.forms import form_fields, leaves_appearances_open
from worker.sandbox.inspect.pages import walk_pages
from worker.sandbox.inspect.pdf_objects import (
    Budget,
    dictionary,
    entry,
    name,
    number,
    raw_items,
    resolve,
)
from worker.sandbox.verify.field_values import inherited
from worker.sandbox.verify.revisions import RevisionView, same
from worker.sandbox.verify.step_context import StepContext, raw_entry, title_of

_NODES: Final = 500_000
"""Nodes of a form or page tree: more than any signed document has."""
_FONT: Final = re.compile(r"/([^\s/()<>\[\]{}%]+)\s+[-+.\d]+\s+Tf\b")
"""Font of a default appearance. Source: ISO 32000-2, 12.7.4.3."""


def drawn_otherwise(
    step: StepContext, before: DictionaryObject, after: DictionaryObject
) -> str:
    """Say which entry makes readers draw signed values differently; empty: none."""
    resources, later = (dictionary(each, "/DR") for each in (before, after))
    reason = _redrawn(step, before, after) or _replaced_resource(resources, later)
    if reason:
        # Without such values the entry draws nothing.
        is_shown = any(
            str(inherited(n, "/FT")) != "/Sig" for n in _by_defaults(step.old)
        )
        return reason if is_shown else ""
    return _newly_drawn(step.old, after, resources, later)


def _redrawn(
    step: StepContext, before: DictionaryObject, after: DictionaryObject
) -> str:
    old, new = step.old.root, step.new.root
    if leaves_appearances_open(new) > leaves_appearances_open(old):
        return "readers are asked to draw the form's fields again"
    looks = entry(before, "/DA")
    if looks is not None and not same(looks, entry(after, "/DA")):
        return "the form's default appearance was changed after it"
    if (number(entry(after, "/Q")) or 0) != (number(entry(before, "/Q")) or 0):
        return "the form's text alignment was changed after it"
    return ""


def _replaced_resource(
    resources: DictionaryObject | None, later: DictionaryObject | None
) -> str:
    for kind in resources or ():
        had, has = dictionary(resources, kind), dictionary(later, kind)
        for each in had or ():
            if not same(raw_entry(had, each), raw_entry(has, each)):
                return "resources of the form were changed after it"
    return ""


def _by_defaults(view: RevisionView) -> Iterator[DictionaryObject]:
    """Yield what readers may draw by the form's defaults.

    These are the form's fields, and the widgets and free texts of pages, which need
    not be in the form.

    Source: ISO 32000-2, 12.5.6.6 and 12.7.4.3.
    """
    nodes = [resolve(raw) for raw in form_fields(view.root, Budget(_NODES))]
    for page in walk_pages(view.root, _NODES).pages:
        nodes += (
            node
            for raw in raw_items(entry(page.node, "/Annots"))
            if name(node := resolve(raw), "/Subtype") in {"/Widget", "/FreeText"}
        )
    for node in nodes:
        if isinstance(node, DictionaryObject) and (
            "/Rect" in node or inherited(node, "/FT") is not None
        ):
            yield node


def _newly_drawn(
    old: RevisionView,
    after: DictionaryObject,
    resources: DictionaryObject | None,
    later: DictionaryObject | None,
) -> str:
    """Name a signed value that readers draw by defaults that were added; empty: none.

    Readers draw a value without an appearance by its default appearance. Where the
    form had none, or not the font, they drew nothing, or in a font of their own.
    """
    had, has = (dictionary(each, "/Font") for each in (resources, later))
    added = {
        each[1:]
        for each in has or ()
        if each not in (had or ()) and not _is_helvetica(entry(has, each))
    }
    default, now = entry(dictionary(old.root, "/AcroForm"), "/DA"), entry(after, "/DA")
    if not added and (default is not None or now is None):
        return ""
    is_open = leaves_appearances_open(old.root)
    for node in _by_defaults(old):
        is_note = name(node, "/Subtype") == "/FreeText"
        is_drawn = entry(dictionary(node, "/AP"), "/N") is not None
        if "/Rect" not in node or (is_drawn and (is_note or not is_open)):
            continue
        if inherited(node, "/Contents" if is_note else "/V") is None:
            continue
        if str(inherited(node, "/FT")) == "/Sig":
            continue
        own = inherited(node, "/DA")
        is_new = own is default is None and now is not None
        if is_new or added & {*_FONT.findall(str(own or default or now))}:
            title = title_of(inherited(node, "/T") or "")
            return f'the form draws the value of the field "{title}" in another way'
    return ""


def _is_helvetica(font: object) -> bool:
    """Return whether a font is the one that readers take for a missing font.

    PDFBox adds it to each form that has none.
    """
    return (
        isinstance(font, DictionaryObject)
        and font.keys() <= {"/Type", "/Subtype", "/BaseFont", "/Encoding"}
        and name(font, "/Subtype") == "/Type1"
        and name(font, "/BaseFont") == "/Helvetica"
        and name(font, "/Encoding") in {None, "/WinAnsiEncoding", "/PDFDocEncoding"}
        and not isinstance(entry(font, "/Encoding"), DictionaryObject)
    )
