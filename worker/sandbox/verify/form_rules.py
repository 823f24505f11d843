"""Rules for what a later revision may do to a form; for confined jobs only.

A form keeps its fields. One may be filled in or signed; new ones are for signatures.
A rule raises `Objection` with a reason for people, and yields pyHanko's approvals.
"""

import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from html import unescape
from typing import Final

from pyhanko.pdf_utils.generic import (
    ArrayObject,
    DictionaryObject,
    FloatObject,
    NameObject,
    NumberObject,
    PdfObject,
    Reference,
    StreamObject,
)
from pyhanko.pdf_utils.reader import RawPdfPath
from pyhanko.sign.diff_analysis import ModificationLevel, SuspiciousModification
from pyhanko.sign.diff_analysis.commons import compare_dicts, compare_key_refs
from pyhanko.sign.diff_analysis.constants import ACROFORM_EXEMPT_STRICT_COMPARISON
from pyhanko.sign.diff_analysis.form_rules_api import FieldComparisonSpec, FormUpdate
from pyhanko.sign.diff_analysis.rules_api import Context, RelativeContext

from appliance.domain.verification import FilledField
from worker.sandbox.inspect.pdf_objects import (
    Key,
    dictionary,
    entry,
    key_of,
    name,
    number,
    raw_items,
    resolve,
)
from worker.sandbox.verify.field_uses import by_uses
from worker.sandbox.verify.field_values import (
    FieldKind,
    chooses_value,
    inherited,
    is_blank,
    is_same_value,
    kind_of,
    shown_state,
    shows_value,
    values_of,
)
from worker.sandbox.verify.form_defaults import drawn_otherwise
from worker.sandbox.verify.form_shapes import (
    FIELD_SHAPES,
    FLAG_SHAPES,
    GROUP_SHAPES,
    MARK_SHAPES,
    SIGNING_SHAPES,
    VALUE_SHAPES,
    WIDGET_SHAPES,
    Shape,
    changed_entries,
    demand_shapes,
)
from worker.sandbox.verify.form_tree import FormField, FormTree
from worker.sandbox.verify.page_entries import copied_entries, demand_same_entries
from worker.sandbox.verify.revisions import Use, same
from worker.sandbox.verify.shown_values import plain_text
from worker.sandbox.verify.step_context import (
    Objection,
    StepContext,
    raw_entry,
    ref_key,
    title_of,
)

_MOMENTS: Final = ("/R", "/D")
_LOOKS: Final = ("/N", *_MOMENTS)
_SILENT: Final = {"/Type", "/Ff", "/F", "/M", "/NM", "/V", "/AP", "/AS"}
"""Entries that show nothing by themselves, or are compared apart."""
_REDRAWN: Final = "is drawn in another way than it was signed"
_FLAGGED: Final = "got flags by which readers show its value in another way"
_DRAWING: Final = frozenset({"/DA", "/MK", "/Q", "/BS", "/DS"})
"""Entries by which readers draw a field that has no appearance."""
_NESTED: Final = "has widgets within a widget, whose looks are not compared"
_HARMLESS_FLAGS: Final = 1 | 2 | 4
"""Field flags ReadOnly, Required and NoExport. Source: ISO 32000-2, table 227."""
_TEXT_CHARS: Final = 200
_TAG: Final = re.compile(r"<[^<>]*>")
_UNSHOWN: Final = re.compile(r"display|visibility|font-size\s*:\s*0", re.IGNORECASE)
_HIDING: Final = 1 | 2 | 32
"""Annotation flags Invisible, Hidden and NoView. Source: ISO 32000-2, table 167."""
_NO_VIEW: Final = 32
_PRINT: Final = 4
"""Annotation flag Print: without it the value is missing on paper alone."""
_TOGGLES: Final = 256
"""Annotation flag ToggleNoView."""

_Approval = tuple[ModificationLevel, FormUpdate]
Approvals = Iterable[_Approval]


@dataclass(slots=True)
class FormNotes:
    """Facts that the form rules note while they judge one step."""

    marks: dict[Key, str] = field(default_factory=dict)
    """New signature fields that can be seen, with their names: each must hold a
    signature in the end."""
    values: list[FilledField] = field(default_factory=list)
    doubts: dict[str, str] = field(default_factory=dict)
    """Exact full names of filled fields whose looks no text can be compared with, and
    why."""


def _update(ref: Reference, title: str) -> FormUpdate:
    return FormUpdate(ref, field_name=title)


def _fresh_below(step: StepContext, raw: PdfObject) -> set[Reference]:
    """Find the objects below a value that are new in the step."""
    found: set[Reference] = step.new.collect_dependencies(
        raw, since_revision=step.new.revision
    )
    return found


def _looks(step: StepContext, title: str, ref: Reference) -> Iterator[FormUpdate]:
    """Approve what a changed field or widget is drawn by.

    New drawings take the place of old ones. Some writers replace a drawing itself,
    which is allowed where nothing else is drawn by it.

    Raises:
        Objection: /AP is no dictionary, or another object that was there before.
    """
    before, after = (raw_entry(view(ref), "/AP") for view in (step.old, step.new))
    had, has = key_of(before), key_of(after)
    old, new = resolve(before), resolve(after)
    if after is None or new is None:
        return
    is_own = had is None or _is_used_once(step, had, (ref_key(ref), ("/AP",)))
    is_taken = has is not None and has != had and _was_in_use(step, has)
    is_plain = isinstance(new, DictionaryObject) and not isinstance(new, StreamObject)
    if not is_plain or is_taken or not is_own:
        raise Objection(f'the field "{title_of(title)}" was changed after it')
    fresh = _fresh_below(step, after) | _fresh_below(step, new)
    yield from (_update(each, title) for each in fresh)
    holder, path = ref, list[str]()
    if had is not None and had == has:
        holder = Reference(*had)
        yield _in_place(holder, title, ref, ["/AP"])
    else:
        path = ["/AP"]
    for kind in _LOOKS:
        key = key_of(raw_entry(old, kind))
        if key is None or key != key_of(raw_entry(new, kind)):
            continue
        drawing = Reference(*key)
        if all(
            isinstance(view(drawing), StreamObject) for view in (step.old, step.new)
        ):
            yield _in_place(drawing, title, holder, [*path, kind])
            fresh = _fresh_below(step, step.new(drawing))
            yield from (_update(each, title) for each in fresh)


def _is_used_once(step: StepContext, key: Key, place: Use) -> bool:
    uses = (use for use in step.index.uses(key[0]) if use != place)
    return not any(map(step.index.is_used, uses))


def _was_in_use(step: StepContext, key: Key) -> bool:
    return step.old.revisions.in_use(key[0], step.old.revision)


def _in_place(
    ref: Reference, title: str, holder: Reference, path: list[str]
) -> FormUpdate:
    context = RelativeContext(holder, RawPdfPath(*path))
    return FormUpdate(ref, field_name=title, context_checked=context)


def _signature_value(
    step: StepContext, title: str, node: DictionaryObject, *, seen: bool
) -> Iterator[_Approval]:
    """Approve the signature of a field that had none.

    Raises:
        Objection: it is no new dictionary of its own.
    """
    key = key_of(raw_entry(node, "/V"))
    value = dictionary(node, "/V")
    if (
        key is None
        or value is None
        or isinstance(value, StreamObject)
        or _was_in_use(step, key)
    ):
        raise Objection(f'the signature "{title_of(title)}" is no new object')
    is_timestamp = name(value, "/Type") == "/DocTimeStamp" and not seen
    level = ModificationLevel.FORM_FILLING
    if is_timestamp:
        level = ModificationLevel.LTA_UPDATES
    for ref in _fresh_below(step, node.raw_get("/V")):
        yield level, replace(_update(ref, title), valid_when_locked=is_timestamp)


def _touches(spec: FieldComparisonSpec, changed: frozenset[Key]) -> bool:
    """Return whether a step replaces a field, or one of its drawings.

    An unchanged field needs no approval.
    """
    refs = [ref for ref in (spec.old_field_ref, spec.new_field_ref) if ref is not None]
    is_replaced = any(ref_key(ref) in changed for ref in refs)
    return is_replaced or _is_redrawn(spec.new_field, changed)


def _is_redrawn(node: object, changed: frozenset[Key]) -> bool:
    """Return whether a step replaces a drawing of a field or widget."""
    looks = raw_entry(node, "/AP")
    keys = {key_of(looks)}
    for kind in _LOOKS:
        drawings = raw_entry(resolve(looks), kind)
        states = resolve(drawings)
        keys.add(key_of(drawings))
        if isinstance(states, DictionaryObject):
            keys |= {key_of(states.raw_get(each)) for each in states}
    return not changed.isdisjoint(keys - {None})


def _has_other_look(step: StepContext, before: object, after: object) -> bool:
    """Return whether the drawings of a field or widget are others than before."""
    is_kept = same(raw_entry(before, "/AP"), raw_entry(after, "/AP"))
    return not is_kept or _is_redrawn(after, step.changed)


def _has_other_moments(step: StepContext, before: object, after: object) -> bool:
    """Return whether a widget got drawings for the mouse, which nothing compares.

    Source: ISO 32000-2, 12.5.5 (rollover and down appearances).
    """
    old, new = (entry(each, "/AP") for each in (before, after))
    for kind in _MOMENTS:
        had, has = raw_entry(old, kind), raw_entry(new, kind)
        is_new = not same(had, has) or key_of(has) in step.changed
        if is_new and not is_blank(resolve(has)):
            return True
    return False


@dataclass(frozen=True, slots=True)
class FormChange:
    """Fields of a form before and after a step."""

    before: FormTree
    after: FormTree
    fields: tuple[tuple[str, FieldComparisonSpec], ...]
    """Exact full name and both states of each field that is in either."""


def _form_change(step: StepContext) -> FormChange:
    """Read the fields of both revisions, and pair them by their objects."""
    before, after = FormTree(step.old.root), FormTree(step.new.root)
    fields = []
    for key, known in {**after.fields, **before.fields}.items():
        had, has = before.fields.get(key), after.fields.get(key)
        spec = FieldComparisonSpec(
            known.kind or "",
            None if had is None else Reference(*key, pdf=step.old),
            None if has is None else Reference(*key, pdf=step.new),
            None,
        )
        fields.append((known.title, spec))
    return FormChange(before, after, tuple(fields))


_LISTING: Final[Mapping[str, Shape]] = {"/Kids": lambda _: True}


class _ChangedFields:
    """Rule for the fields that a step changes: filled in, or signed.

    Args:
        step: the two revisions.
        notes: receives values that were changed.

    Source: ISO 32000-2, 12.5.2, 12.5.5 and 12.7.4.
    """

    def __init__(self, step: StepContext, notes: FormNotes) -> None:
        self._step = step
        self._notes = notes

    def apply(self, form: FormChange) -> Approvals:
        """Yield the objects of changed fields that may be as they are now.

        Args:
            form: the form before and after.

        Raises:
            Objection: a change is not allowed.
        """
        for title, spec in form.fields:
            ref = spec.new_field_ref
            if spec.old_field_ref is None or ref is None:
                continue
            if _touches(spec, self._step.changed):
                yield from self._judge(title, spec, ref, form)

    def _judge(
        self, title: str, spec: FieldComparisonSpec, ref: Reference, form: FormChange
    ) -> list[_Approval]:
        step = self._step
        before, after = step.old(ref), step.new(ref)
        is_signature = spec.field_type == "/Sig"
        is_signed = is_signature and "/V" not in before and "/V" in after
        keys = VALUE_SHAPES
        is_group = ref_key(ref) in form.after.groups
        if is_group:
            # What it has, the fields below have, and locks name these.
            keys = _LISTING
            group = form.after.fields[ref_key(ref)]
            if raw_entry(before, "/Kids") != raw_entry(after, "/Kids"):
                _demand_group(group, after, form.after)
        elif is_signature:
            keys = SIGNING_SHAPES if is_signed else FLAG_SHAPES
        changed = changed_entries(title, before, after, keys)
        had, has = (int(number(inherited(n, "/Ff")) or 0) for n in (before, after))
        if (had ^ has) & ~_HARMLESS_FLAGS:
            # It counts if the field is filled in by this or a later step.
            self._notes.doubts[title] = _FLAGGED
        _demand_drawn(title, before, after, _value(after))
        level = ModificationLevel.FORM_FILLING
        is_harmless = changed <= FLAG_SHAPES.keys()
        naming = replace(
            _update(ref, title),
            valid_when_locked=is_harmless,
        )
        own = ModificationLevel.LTA_UPDATES if is_signature else level
        allowed = [(own, each) for each in by_uses(step, form.before, naming)]
        if is_group or (is_signature and not is_signed):
            return allowed
        allowed += ((level, each) for each in _looks(step, title, ref))
        if is_signed:
            kids = [resolve(raw) for raw in raw_items(entry(after, "/Kids"))]
            nodes = [after, *kids]
            _demand_blank_timestamp(title, nodes)
            seen = any(map(_has_place, nodes))
            allowed += _signature_value(step, title, after, seen=seen)
        else:
            for key in changed & after.keys() & {"/V", "/RV"}:
                fresh = _fresh_below(step, after.raw_get(key))
                allowed += ((level, _update(each, title)) for each in fresh)
            self._note(title, spec, changed, allowed)
            widgets = form.after.fields[ref_key(ref)].widgets
            if any(entry(step.new(Reference(*each)), "/Kids") for each in widgets):
                self._notes.doubts[title] = _NESTED
        return allowed

    def _note(
        self,
        title: str,
        spec: FieldComparisonSpec,
        entries: set[str],
        allowed: list[_Approval],
    ) -> None:
        """Note a filled field.

        Raises:
            Objection: it was hidden or shown, is a push button, looks different with
                the same value, or shows another state than its value.
        """
        before, after = spec.old_field, spec.new_field
        changed = any(
            (update.updated_ref.idnum, update.updated_ref.generation)
            in self._step.changed
            and not update.valid_when_locked
            for _, update in allowed
        )
        if not changed:
            return
        shown = title_of(title)
        kind = kind_of(after)
        if kind is FieldKind.PUSH:
            raise Objection(f'the button "{shown}" was changed after it')
        is_redrawn = _has_other_look(self._step, before, after)
        is_in_state = shown_state(before) == shown_state(after)
        looks_as_before = is_in_state and (not is_redrawn or _stay_empty(before, after))
        old, new = (entry(each, "/V") for each in (before, after))
        is_same = is_same_value(old, new)
        _demand_as_visible(shown, before, after, is_same=is_same)
        if is_same and looks_as_before and entries <= _SILENT:
            return
        if kind is FieldKind.STATES:
            _demand_shown_state(shown, after)
        if is_same and any(values_of(new)):
            # pyHanko takes another drawing of the same value for form filling; that is
            # how "shadow replace" attacks show another amount.
            raise Objection(
                f'the field "{shown}" shows something else with the same value'
            )
        if entries & {"/RV"}:
            _demand_rich_text_alike(shown, after)
        if is_same or (
            is_redrawn
            and (
                _is_untold(kind, new, after)
                or _has_other_moments(self._step, before, after)
            )
        ):
            self._notes.doubts[title] = _REDRAWN
        if doubt := _doubt_of(kind, after, entries):
            self._notes.doubts[title] = doubt
        self._notes.values.append(FilledField(title, _value(before), _value(after)))


def _demand_as_visible(
    title: str, before: object, after: object, *, is_same: bool
) -> None:
    """Demand that a field is seen on screen and paper where it was.

    Raises:
        Objection: it is not.
    """
    old, new = (int(number(entry(each, "/F")) or 0) for each in (before, after))
    lost, gained = old & ~new, new & ~old
    # An empty field may have a background, which readers draw by themselves.
    is_printed = gained & _PRINT and is_same
    if (lost | gained) & _HIDING or lost & _PRINT or gained & _TOGGLES or is_printed:
        raise Objection(f'the field "{title}" was hidden or shown after it')


def _doubt_of(kind: FieldKind, field: object, changed: Collection[str]) -> str:
    """Return what leaves open which value a filled field shows; empty: nothing.

    Args:
        kind: of the field.
        field: as it is now.
        changed: keys of its entries that are others than before.
    """
    if entry(field, "/AP") is None and _DRAWING.intersection(changed):
        return "is drawn by each reader, and in another way than before"
    if "/RV" not in changed and not _has_its_rich_text(field):
        return "kept the rich text of another value"
    flags = int(number(entry(field, "/F")) or 0)
    if flags & _NO_VIEW and flags & _PRINT:
        return "is shown on paper alone"
    if kind is FieldKind.CHOICE and not chooses_value(field):
        return "marks other options than its value as chosen"
    return ""


def _stay_empty(*fields: object) -> bool:
    """Return whether fields have no value, and drawings that paint nothing.

    Programs that fill in a form write its empty fields, too.
    """
    if any(map(any, (values_of(entry(node, "/V")) for node in fields))):
        return False
    return all(is_blank(drawing) for each in fields for drawing in _drawings(each))


def _drawings(node: object) -> list[object]:
    """Return the drawings of a field or widget."""
    looks = dictionary(node, "/AP")
    return [entry(looks, kind) for kind in looks or ()]


def _is_untold(kind: FieldKind, value: object, widget: object) -> bool:
    """Return whether no text tells what the drawings of a widget show.

    Args:
        kind: of its field.
        value: of its field.
        widget: with its drawings.
    """
    if kind is FieldKind.STATES:
        return True
    is_text = kind in {FieldKind.TEXT, FieldKind.CHOICE}
    texts = values_of(value)
    if kind is FieldKind.TEXT and len(texts) > 1:
        return True  # readers show one of them, or all
    is_empty = is_text and not any(map(plain_text, texts))
    return is_empty and not all(map(is_blank, _drawings(widget)))


def _demand_drawn(title: str, before: object, after: object, value: str) -> None:
    """Demand that what showed a value still has an appearance, unless it is empty.

    Raises:
        Objection: its appearance was removed.
    """
    lost = entry(before, "/AP") is not None and entry(after, "/AP") is None
    if lost and value:
        raise Objection(f'the field "{title_of(title)}" was changed after it')


def _demand_rich_text_alike(title: str, field: object) -> None:
    """Demand that rich text is the text of the value, which some readers show it for.

    Raises:
        Objection: it has another text, or some that is not shown.

    Source: ISO 32000-2, 12.7.4.4 (/RV).
    """
    if not _has_its_rich_text(field):
        raise Objection(f'the field "{title}" has another rich text than its value')


def _has_its_rich_text(field: object) -> bool:
    """Return whether the rich text of a field, if it has one, is that of its value."""
    rich = entry(field, "/RV")
    if rich is None:
        return True
    text = _whole(rich)
    plain = [
        "".join(each.split())
        for each in (unescape(_TAG.sub("", text)), _whole(entry(field, "/V")))
    ]
    return plain[0] == plain[1] and not _UNSHOWN.search(text)


def _whole(value: object) -> str:
    """Return a text string, or the text of a stream."""
    return "".join(values_of(value))


def _demand_shown_state(title: str, field: object) -> None:
    """Demand that a button's widgets show the state that is its value.

    Raises:
        Objection: one shows another state.
    """
    if not shows_value(field):
        raise Objection(f'the field "{title}" shows another state than its value')


class _Widgets:
    """Rule that the widgets of a field may show its new value.

    A widget is a kid without a name. Readers show the value of its parent in it.

    Args:
        step: the two revisions.
        notes: receives fields whose buttons got other drawings.

    Source: ISO 32000-2, 12.7.4.1 (kids without /T are widgets of their parent).
    """

    def __init__(self, step: StepContext, notes: FormNotes) -> None:
        self._step = step
        self._notes = notes

    def apply(self, form: FormChange) -> Approvals:
        """Yield changed widgets of fields whose value was changed.

        Args:
            form: the form before and after.

        Raises:
            Objection: a button shows another state than its value.
        """
        for title, spec in form.fields:
            old, new = spec.old_field, spec.new_field
            if old is None or new is None or spec.new_field_ref is None:
                continue
            owner = ref_key(spec.new_field_ref)
            widgets = form.before.fields[owner].widgets
            if spec.field_type == "/Sig":
                # Readers would show each mark of a signature that has several.
                if "/V" in old or "/V" not in new or len(widgets) > 1:
                    continue
            elif is_same_value(entry(old, "/V"), entry(new, "/V")):
                continue
            kind, value = kind_of(new), entry(new, "/V")
            for key in widgets:
                ref, changed = Reference(*key), self._step.changed
                before, after = self._step.old(ref), self._step.new(ref)
                if key not in changed and not _is_redrawn(after, changed):
                    continue
                is_redrawn = _has_other_look(self._step, before, after)
                if is_redrawn and (
                    _is_untold(kind, value, after)
                    or _has_other_moments(self._step, before, after)
                ):
                    self._notes.doubts[title] = _REDRAWN
                yield from self._approve(title, key, owner, form)
            if widgets and kind is FieldKind.STATES:
                _demand_shown_state(title_of(title), new)

    def _approve(
        self, title: str, key: Key, owner: Key, form: FormChange
    ) -> Iterator[_Approval]:
        """Approve a widget of one field that differs in its appearance alone."""
        ref, step = Reference(*key), self._step
        old, new = step.old(ref), step.new(ref)
        trees = form.before, form.after
        is_mark = form.before.fields[owner].kind == "/Sig"
        if any(tree.owners.get(key) != [owner] for tree in trees) or not all(
            _is_widget(node, owner, is_mark=is_mark) for node in (old, new)
        ):
            return
        changed_entries(title, old, new, WIDGET_SHAPES)
        _demand_drawn(title, old, new, _value(step.new(Reference(*owner))))
        updates = [
            *by_uses(step, form.before, _update(ref, title)),
            *_looks(step, title, ref),
        ]
        for each in updates:
            yield ModificationLevel.FORM_FILLING, each


def _is_widget(node: object, owner: Key, *, is_mark: bool = False) -> bool:
    """Return whether an object is a widget, and no field, below a field.

    Args:
        node: the object.
        owner: the field that lists it.
        is_mark: whether the field is for a signature. pyHanko 0.38 writes marks of
            their own without `/Parent`.
    """
    if (
        not isinstance(node, DictionaryObject)
        or isinstance(node, StreamObject)
        or "/T" in node
        or name(node, "/Subtype") != "/Widget"
    ):
        return False
    if is_mark and not {"/Parent", "/FT", "/V"} & node.keys():
        return True
    return key_of(raw_entry(node, "/Parent")) == owner


def _value(node: object) -> str:
    """Value of a field as text, at most 200 characters. Source: ISO 32000-2, 12.7.5."""
    value = entry(node, "/V")
    if isinstance(value, ArrayObject):
        return ", ".join(_text(resolve(raw)) for raw in raw_items(value))[:_TEXT_CHARS]
    return _text(value)


def _text(value: object) -> str:
    if isinstance(value, StreamObject):
        value = value.data[:_TEXT_CHARS]
    # The state of a check box is a name, which people see without its slash.
    if isinstance(value, NameObject):
        value = value[1:]
    return "" if value is None else title_of(value)


def _demand_blank_timestamp(title: str, nodes: Sequence[object]) -> None:
    """Demand that a document timestamp draws nothing, in whatever field it is.

    Args:
        title: full name of the field.
        nodes: the field, and its widget.

    Source: ISO 32000-2, 12.8.5 (a document timestamp should have no appearance).

    Raises:
        Objection: it may be seen.
    """
    shown = title_of(title)
    is_timestamp = name(entry(nodes[0], "/V"), "/Type") == "/DocTimeStamp"
    if is_timestamp and any(_is_seen(each, shown) for each in nodes):
        raise Objection(f'the document timestamp "{shown}" shows something')


class _NewFields:
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
            is_old = _was_in_use(self._step, key)
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

    def _group(self, new: FormField, tree: FormTree) -> Iterator[_Approval]:
        """Yield the objects of a new field that only names the fields below it.

        Raises:
            Objection: it has an entry that is more than a name, or a kid that is not a
                field of its own.
        """
        node = self._step.new(Reference(*new.key))
        _demand_group(new, node, tree)
        kids = key_of(raw_entry(node, "/Kids"))
        for each in [new.key, *([] if kids is None else [kids])]:
            yield (
                ModificationLevel.LTA_UPDATES,
                replace(
                    _update(Reference(*each), new.title),
                    valid_when_locked=True,
                    valid_when_certifying=True,
                ),
            )

    def _new(
        self, new: FormField, tree: FormTree, marks: dict[Key, str]
    ) -> Iterator[_Approval]:
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
        seen = {_is_seen(each, title_of(title)) for each in nodes}
        is_seen = True in seen
        if is_seen:
            self._notes.marks[new.key] = title
        has_place = any(map(_has_place, nodes))
        filling, lta = ModificationLevel.FORM_FILLING, ModificationLevel.LTA_UPDATES
        kids = key_of(raw_entry(node, "/Kids"))
        for each in {new.key, key, *([] if kids is None else [kids])}:
            yield (
                filling if has_place else lta,
                replace(
                    _update(Reference(*each), title),
                    valid_when_locked=not has_place,
                    valid_when_certifying=not has_place,
                ),
            )
        below = [each.raw_get("/AP") for each in nodes if "/AP" in each]
        below += [node.raw_get(each) for each in ("/Lock", "/SV") if each in node]
        for value in below:
            for ref in _fresh_below(step, value):
                # An appearance that draws nothing is none: EU DSS writes it for
                # document timestamps.
                update = replace(_update(ref, title), valid_when_locked=not is_seen)
                yield filling if is_seen else lta, update
        if "/V" in node:
            _demand_blank_timestamp(title, nodes)
            yield from _signature_value(step, title, node, seen=is_seen)


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
    if not _is_widget(mark, new.key, is_mark=True):
        raise Objection(f'the mark of the new field "{title}" is none of its own')
    demand_shapes(title, mark, {**MARK_SHAPES, "/Parent": lambda _: True})
    return key, mark


def _demand_group(group: FormField, node: DictionaryObject, tree: FormTree) -> None:
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


def _is_seen(mark: object, title: str) -> bool:
    """Return whether an annotation can show anything.

    pyHanko takes a /Rect that it cannot compute with for one without area: numbers by
    reference, null, names, three or five entries. Readers draw some of these, so an
    empty signature field could cover a page.

    Raises:
        Objection: /Rect is not four direct numbers.

    Source: ISO 32000-2, 12.5.2 (/Rect) and 12.5.5 (no area, nothing drawn).
    """
    if not isinstance(mark, DictionaryObject) or not {"/Rect", "/AP"} & mark.keys():
        return False
    box = _direct_box(mark.raw_get("/Rect") if "/Rect" in mark else None)
    if box is None:
        raise Objection(f'the place of the field "{title}" is not four plain numbers')
    return _has_area(box) or _is_drawn(entry(mark, "/AP"))


def _direct_box(raw: object) -> list[float] | None:
    """Read four numbers that stand in the array itself, and the array in its holder."""
    items = list(raw_items(raw))
    direct = all(isinstance(each, NumberObject | FloatObject) for each in items)
    known = [n for each in items if (n := number(each)) is not None]
    return known if direct and len(items) == len(known) == 4 else None  # noqa: PLR2004 (corners)


def _has_place(node: object) -> bool:
    """Return whether an annotation may cover a part of its page."""
    raw = raw_entry(node, "/Rect")
    box = _direct_box(raw)
    return raw is not None and (box is None or _has_area(box))


def _has_area(box: Sequence[float]) -> bool:
    return box[0] != box[2] and box[1] != box[3]


def _is_drawn(looks: object) -> bool:
    """Return whether an appearance dictionary draws anything in any state."""
    if looks is None:
        return False
    if not isinstance(looks, DictionaryObject):
        return True
    drawings = [entry(looks, kind) for kind in looks]
    return not all(_has_no_area(each) or is_blank(each) for each in drawings)


def _has_no_area(drawing: object) -> bool:
    """Return whether a drawing has an empty /BBox."""
    box = _direct_box(raw_entry(drawing, "/BBox"))
    return isinstance(drawing, StreamObject) and box is not None and not _has_area(box)


def _bindings(
    step: StepContext, marks: dict[Key, str]
) -> Iterator[tuple[ModificationLevel, FormUpdate]]:
    """Approve pages whose only change is the mark of a new field.

    Raises:
        Objection: other annotations were added, removed or put in another order.
    """
    shown: Counter[Key] = Counter()
    for page_key in _pages_of(step):
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


def _pages_of(step: StepContext) -> list[Key]:
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


def _page_reason(page: int, key: Key) -> str:
    return f"page {page} was changed after it (object {key[0]})"


class FormRule:
    """Rule for a form, with fields drawn by what was signed.

    /NeedAppearances and the form's own defaults are not harmless. By the first a
    reader draws each field again, by the others it draws fields that have no
    appearance, so that another value may be seen than the signed one.

    Args:
        step: the two revisions.
        notes: receives facts of this step.

    Source: ISO 32000-2, 12.7.3 and 12.7.4.3.
    """

    def __init__(self, step: StepContext, notes: FormNotes) -> None:
        self._step = step
        self._rules = (
            _NewFields(step, notes),
            _ChangedFields(step, notes),
            _Widgets(step, notes),
        )

    def apply(self) -> Approvals:
        """Yield the objects of the form that may be as they are now.

        Raises:
            Objection: a change is not allowed.
            SuspiciousModification: the same, without a reason for people.
        """
        old, new = self._step.old, self._step.new
        before = dictionary(old.root, "/AcroForm")
        after = dictionary(new.root, "/AcroForm")
        if before is not None and after is not None:
            reason = drawn_otherwise(self._step, before, after)
            if reason:
                raise Objection(reason)
        yield from self._entry(old.root, new.root, "/Root", "/AcroForm")
        compare_dicts(before, after, ACROFORM_EXEMPT_STRICT_COMPARISON)
        if before is None or after is None:
            raise SuspiciousModification("no form")
        for key in ("/Fields", "/DR"):
            yield from self._entry(before, after, "/Root", "/AcroForm", key)
        yield from self._defaults(before, after)
        form = _form_change(self._step)
        _demand_unique_names(form, self._step.changed)
        for rule in self._rules:
            yield from rule.apply(form)

    def _defaults(
        self, before: DictionaryObject, after: DictionaryObject
    ) -> Iterator[_Approval]:
        """Approve what was added to the form's resources, and where it is listed.

        `drawn_otherwise` has found that all that was there is there.
        """
        old, new = dictionary(before, "/DR"), dictionary(after, "/DR")
        if new is None:
            return
        below: list[PdfObject] = [after.raw_get("/DR"), new]
        for kind in new:
            below += [found for found in [dictionary(new, kind)] if found is not None]
            if old is not None and kind in old:
                yield from self._entry(old, new, "/Root", "/AcroForm", "/DR", kind)
        for value in below:
            for ref in _fresh_below(self._step, value):
                yield ModificationLevel.FORM_FILLING, FormUpdate(ref)

    def _entry(
        self, before: DictionaryObject, after: DictionaryObject, *path: str
    ) -> Iterator[_Approval]:
        """Approve the object of an entry, wherever it is now.

        Raises:
            SuspiciousModification: the entry was removed, or is another old object.
        """
        old = self._step.old
        context = Context.from_absolute(old, RawPdfPath(*path))
        is_shown = "/DR" in path
        level = ModificationLevel.LTA_UPDATES
        for ref in compare_key_refs(path[-1], old, before, after):
            yield (
                ModificationLevel.FORM_FILLING if is_shown else level,
                FormUpdate(ref, context_checked=context),
            )


def _demand_unique_names(form: FormChange, changed: frozenset[Key]) -> None:
    """Demand that a field that is added or changed shares its name with no other.

    Readers take fields of one full name for one field. Fields that share a name, and
    stay as they were, were seen by the signer.

    Raises:
        Objection: two fields have one name, and the step changes one of them.

    Source: ISO 32000-2, 12.7.4.2 (one name, one field).
    """
    for title, keys in form.after.names.items():
        is_kept = keys == form.before.names.get(title)
        if len(keys) > 1 and not (is_kept and keys.isdisjoint(changed)):
            raise Objection(f'several fields are named "{title_of(title)}"')
