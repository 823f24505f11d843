"""Places that name a field, and show nothing of it; for confined jobs only.

An object is known by what refers to it. A replaced field is approved for places where
it is a field, an annotation, or named by an action.
"""

from collections.abc import Iterator
from dataclasses import replace

from pyhanko.pdf_utils.generic import ArrayObject, DictionaryObject, Reference
from pyhanko.pdf_utils.reader import RawPdfPath
from pyhanko.sign.diff_analysis.form_rules_api import FormUpdate
from pyhanko.sign.diff_analysis.rules_api import RelativeContext

from worker.sandbox.inspect.pdf_objects import Key, dictionary, name
from worker.sandbox.verify.form_tree import FormTree
from worker.sandbox.verify.revisions import TRAILER, Path
from worker.sandbox.verify.step_context import StepContext, ref_key


def by_uses(
    step: StepContext, tree: FormTree, update: FormUpdate
) -> Iterator[FormUpdate]:
    """Approve a field or widget for each place that names it as such.

    Args:
        step: the two revisions.
        tree: the form before.
        update: of the object.
    """
    ref = update.updated_ref
    for holder, path in step.index.uses(ref.idnum):
        if _names_field(step, tree, ref_key(ref), holder, path):
            context = RelativeContext(Reference(*holder), RawPdfPath(*path))
            yield replace(update, context_checked=context)


def _names_field(
    step: StepContext, tree: FormTree, key: Key, holder: Key, path: Path
) -> bool:
    """Return whether a reference names a field or annotation, and shows nothing else.

    Source: ISO 32000-2, 12.5.2 (/Annots), 12.6.4.11 (Hide), 12.7.3 (/Fields, /CO),
    12.7.4.1 (/Kids, /Parent), 12.7.6 (SubmitForm, ResetForm) and 14.7.5.3 (/Obj).
    """
    if len(path) == 1 and isinstance(path[0], int):
        # An array of its own: everything that refers to it counts.
        return not any(
            step.index.is_used((above, within))
            for above, within in step.index.uses(holder[0])
            if not _is_naming(step, tree, key, above, (*within, path[0]))
        )
    return _is_naming(step, tree, key, holder, path)


def _part(owner: object, part: str | int) -> object:
    """Return an entry or element as it stands there."""
    if isinstance(owner, DictionaryObject) and isinstance(part, str):
        return owner.raw_get(part)
    if isinstance(owner, ArrayObject) and isinstance(part, int):
        return owner.raw_get(part)
    return None


def _is_naming(
    step: StepContext, tree: FormTree, key: Key, holder: Key, path: Path
) -> bool:
    """Return whether the entry of a dictionary names a field or annotation."""
    keys = path[:-1] if isinstance(path[-1], int) else path
    if holder == TRAILER or not keys:
        return False
    inner, last = keys[:-1], keys[-1]
    owner: object = step.old(Reference(*holder))
    for part in inner:
        owner = _part(owner, part)
    form = dictionary(step.old.root, "/AcroForm")
    action = name(owner, "/S")
    is_whole = not inner
    names = {
        "/Annots": is_whole and holder[0] in step.index.pages.numbers,
        "/Kids": is_whole and holder in tree.owners.get(key, ()),
        "/Parent": is_whole and key in tree.owners.get(holder, ()),
        "/Obj": name(owner, "/Type") == "/OBJR",
        "/CO": owner is form,
        "/Fields": owner is form or action in {"/SubmitForm", "/ResetForm"},
        "/T": action == "/Hide",
    }
    return names.get(str(last), False)
