"""Rule for the fields that a step adds; for confined jobs only.

Source: ISO 32000-2, 12.7.4 and 12.7.5.5.
"""

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import replace

from pyhanko.pdf_utils.generic import (
    DictionaryObject,
    Reference,
)
from pyhanko.pdf_utils.reader import RawPdfPath
from pyhanko.sign.diff_analysis import ModificationLevel, SuspiciousModification
from pyhanko.sign.diff_analysis.form_rules_api import FormUpdate
from pyhanko.sign.diff_analysis.rules_api import RelativeContext

from worker.sandbox.inspect.pdf_objects import (
    Key,
    entry,
    key_of,
    name,
    raw_items,
)
from worker.sandbox.verify.form_changes import (
    Approval,
    Approvals,
    FormChange,
    FormNotes,
    form_update,
    fresh_below,
    signature_value,
    was_in_use,
)
from worker.sandbox.verify.form_shapes import (
    FIELD_SHAPES,
    GROUP_SHAPES,
    MARK_SHAPES,
    Shape,
    demand_shapes,
)
from worker.sandbox.verify.form_tree import FormField, FormTree
from worker.sandbox.verify.marks import (
    can_be_seen,
    demand_blank_timestamp,
    is_widget,
    may_cover,
)
from worker.sandbox.verify.new_annotations import pages_of
from worker.sandbox.verify.page_entries import copied_entries, demand_same_entries
from worker.sandbox.verify.revisions import same
from worker.sandbox.verify.step_context import (
    Objection,
    StepContext,
    raw_entry,
    title_of,
)


class NewFields:
    """Rule that fields stay, and that new ones are for one signature mark each.

    Args:
        step: the two revisions.
        notes: receives the fields that can be seen.
    """

    def __init__(self, step: StepContext, notes: FormNotes) -> None:
        self._step = step
        self._notes = notes

    def apply(self, form: FormChange) -> Approvals:
        """Yield the objects of new fields, and the pages that got their marks.

        Args:
            form: the form before and after.

        Raises:
            Objection: a field is of another kind, was deleted, or has several marks.
        """
        _demand_kept(form)
        marks: dict[Key, str] = {}
        for key, each in form.after.fields.items():
            if key in form.before.fields:
                continue
            shown = title_of(each.title)
            is_old = was_in_use(self._step, key)
            if is_old:
                raise Objection(f'the field "{shown}" was added after it')
            if key in form.after.groups:
                yield from self._group(each, form.after)
            elif each.kind == "/Sig":
                yield from self._new(each, form.after, marks)
            else:
                raise Objection(f'the field "{shown}" was added after it')
        if marks:
            yield from _bindings(self._step, marks)

    def _group(self, new: FormField, tree: FormTree) -> Iterator[Approval]:
        """Yield the objects of a new field that only names the fields below it.

        Raises:
            Objection: it has an entry that is more than a name, or a kid that is not a
                field of its own.
        """
        node = self._step.new(Reference(*new.key))
        demand_group(new, node, tree)
        kids = key_of(raw_entry(node, "/Kids"))
        for each in [new.key, *([] if kids is None else [kids])]:
            yield (
                ModificationLevel.LTA_UPDATES,
                replace(
                    form_update(Reference(*each), new.title),
                    valid_when_locked=True,
                    valid_when_certifying=True,
                ),
            )

    def _new(
        self, new: FormField, tree: FormTree, marks: dict[Key, str]
    ) -> Iterator[Approval]:
        """Yield the objects of one new signature field, and note its mark.

        Raises:
            Objection: it has several marks, or an entry that it may not have.
        """
        step, title = self._step, new.title
        node = step.new(Reference(*new.key))
        key, mark = _mark_of(step, new, tree)
        if mark is not None:
            marks[key] = title
        nodes = [node] if mark is None or key == new.key else [node, mark]
        # Each node is looked at: an odd place of any is refused.
        seen = {can_be_seen(each, title_of(title)) for each in nodes}
        is_seen = True in seen
        if is_seen:
            self._notes.marks[new.key] = title
        has_place = any(map(may_cover, nodes))
        filling, lta = ModificationLevel.FORM_FILLING, ModificationLevel.LTA_UPDATES
        kids = key_of(raw_entry(node, "/Kids"))
        for each in {new.key, key, *([] if kids is None else [kids])}:
            yield (
                filling if has_place else lta,
                replace(
                    form_update(Reference(*each), title),
                    valid_when_locked=not has_place,
                    valid_when_certifying=not has_place,
                ),
            )
        below = [each.raw_get("/AP") for each in nodes if "/AP" in each]
        below += [node.raw_get(each) for each in ("/Lock", "/SV") if each in node]
        for value in below:
            for ref in fresh_below(step, value):
                # An appearance that draws nothing is none: EU DSS writes it for
                # document timestamps.
                update = replace(form_update(ref, title), valid_when_locked=not is_seen)
                yield filling if is_seen else lta, update
        if "/V" in node:
            demand_blank_timestamp(title, nodes)
            yield from signature_value(step, title, node, seen=is_seen)


def _demand_kept(form: FormChange) -> None:
    """Demand that each field stays the same object with the same name and type.

    Raises:
        Objection: one was deleted, or the list of fields has other entries.
    """
    for key, each in form.before.fields.items():
        shown, now = title_of(each.title), form.after.fields.get(key)
        if now is None:
            what = "replaced" if each.title in form.after.names else "deleted"
            raise Objection(f'the field "{shown}" was {what} after it')
        if (now.title, now.kind, now.above) != (each.title, each.kind, each.above):
            raise Objection(f'the field "{shown}" was changed after it')
    lists = [
        [raw for raw in tree.listed if key_of(raw) is None]
        for tree in (form.before, form.after)
    ]
    known = {key_of(raw) for raw in form.before.listed} | form.after.fields.keys()
    is_odd = any(key_of(raw) not in known for raw in form.after.listed)
    if is_odd or len(lists[0]) != len(lists[1]) or not all(map(same, *lists)):
        raise Objection("the form's list of fields was changed after it")


def _mark_of(
    step: StepContext, new: FormField, tree: FormTree
) -> tuple[Key, DictionaryObject | None]:
    """Find the one widget of a new field, which may be the field itself.

    Returns:
        Its key; the field's own, and None, if the field has none.

    Raises:
        Objection: there are several, or one has an entry that it may not have.
    """
    title = title_of(new.title)
    node = step.new(Reference(*new.key))
    kids = list(raw_items(entry(node, "/Kids")))
    if len(kids) > 1 or (kids and name(node, "/Subtype") is not None):
        raise Objection(f'the new signature field "{title}" has several marks')
    if not kids:
        is_mark = "/Subtype" in node
        marks = MARK_SHAPES if is_mark else {}
        demand_shapes(title, node, {**_below(new, FIELD_SHAPES), **marks})
        return new.key, node if is_mark else None
    key = key_of(kids[0])
    if key is None or key not in new.widgets or tree.owners[key] != [new.key]:
        raise Objection(f'the mark of the new field "{title}" is no object of its own')
    mark = step.new(Reference(*key))
    demand_shapes(title, node, _below(new, FIELD_SHAPES))
    if not is_widget(mark, new.key, is_mark=True):
        raise Objection(f'the mark of the new field "{title}" is none of its own')
    demand_shapes(title, mark, {**MARK_SHAPES, "/Parent": lambda _: True})
    return key, mark


def demand_group(group: FormField, node: DictionaryObject, tree: FormTree) -> None:
    """Demand that a field only names the fields below it, each once.

    Raises:
        Objection: it has an entry that is more than a name, or another kid.
    """
    demand_shapes(title_of(group.title), node, _below(group, GROUP_SHAPES))
    kids = [key_of(raw) for raw in raw_items(entry(node, "/Kids"))]
    below = [None if key is None else tree.fields.get(key) for key in kids]
    is_own = all(each is not None and each.above == group.key for each in below)
    if not is_own or len(set(kids)) < len(kids):
        raise Objection(f'the field "{title_of(group.title)}" was changed after it')


def _below(new: FormField, shapes: Mapping[str, Shape]) -> Mapping[str, Shape]:
    """Return the entries that a new field may have: /Parent, if one is above it."""
    if new.above is None:
        return shapes
    return {**shapes, "/Parent": lambda raw: key_of(raw) == new.above}


def _bindings(
    step: StepContext, marks: dict[Key, str]
) -> Iterator[tuple[ModificationLevel, FormUpdate]]:
    """Approve pages whose only change is the mark of a new field.

    Raises:
        Objection: other annotations were added, removed or put in another order.
    """
    shown: Counter[Key] = Counter()
    for page_key in pages_of(step):
        page, ref = step.index.pages.numbers[page_key[0]], Reference(*page_key)
        view = step.new
        old, new = step.old(ref), view(ref)
        if not (
            isinstance(old, DictionaryObject) and isinstance(new, DictionaryObject)
        ):
            raise Objection(_page_reason(page, page_key))
        before, after = (list(raw_items(entry(each, "/Annots"))) for each in (old, new))
        added = [key for raw in after if (key := key_of(raw)) and key in marks]
        if not added:
            continue
        for each in added:
            mark = view(Reference(*each))
            if isinstance(mark, DictionaryObject) and "/Rect" not in mark:
                # MuPDF draws an empty signature field without /Rect over the page.
                shown_title = title_of(marks[each])
                raise Objection(
                    f'the new field "{shown_title}" has no place on its page'
                )
        kept = [raw for raw in after if key_of(raw) not in added]
        if len(kept) != len(before) or not all(map(same, before, kept)):
            raise Objection(f"annotations of page {page} were changed after it")
        shown.update(added)
        try:
            copied = copied_entries(step, page_key)
            demand_same_entries(old, new, copied | {"/Annots"})
        except SuspiciousModification as exc:
            raise Objection(_page_reason(page, page_key)) from exc
        title = marks[added[0]] if len(added) == 1 else None
        locked = title is not None
        # Pages are referred to from everywhere, and nothing else of it was changed.
        yield (
            ModificationLevel.LTA_UPDATES,
            FormUpdate(ref, field_name=title, valid_when_locked=locked),
        )
        array = key_of(new.raw_get("/Annots"))
        had = key_of(old.raw_get("/Annots")) if "/Annots" in old else None
        if array and (
            array == had or not step.old.revisions.in_use(array[0], step.old.revision)
        ):
            yield (
                ModificationLevel.LTA_UPDATES,
                FormUpdate(
                    Reference(*array),
                    field_name=title,
                    valid_when_locked=locked,
                    context_checked=RelativeContext(ref, RawPdfPath("/Annots")),
                ),
            )
    if any(count > 1 for count in shown.values()):
        raise Objection("the mark of a new field is shown in several places")


def _page_reason(page: int, key: Key) -> str:
    return f"page {page} was changed after it (object {key[0]})"
