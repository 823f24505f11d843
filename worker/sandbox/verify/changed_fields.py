"""Rules for the fields and widgets that a step changes; for confined jobs only.

Source: ISO 32000-2, 12.5 and 12.7.
"""

import re
import unicodedata
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from html import unescape
from typing import Final

from pyhanko.pdf_utils.generic import (
    ArrayObject,
    NameObject,
    Reference,
    StreamObject,
    pdf_string,
)
from pyhanko.sign.diff_analysis import ModificationLevel
from pyhanko.sign.diff_analysis.form_rules_api import FieldComparisonSpec

from appliance.domain.documents.verification import FilledField
from worker.sandbox.inspect.pdf_objects import (
    Key,
    entry,
    number,
    raw_items,
    resolve,
)
from worker.sandbox.verify.field_looks import (
    approved_looks,
    demand_drawn,
    has_other_look,
    has_other_moments,
    is_redrawn,
    is_touched,
    is_untold,
    stay_empty,
)
from worker.sandbox.verify.field_uses import by_uses
from worker.sandbox.verify.field_values import (
    FieldKind,
    chooses_value,
    inherited,
    is_option,
    is_same_value,
    kind_of,
    shown_state,
    shows_value,
    values_of,
)
from worker.sandbox.verify.form_changes import (
    Approval,
    Approvals,
    FormChange,
    FormNotes,
    form_update,
    fresh_below,
    signature_value,
)
from worker.sandbox.verify.form_shapes import (
    FLAG_SHAPES,
    SIGNING_SHAPES,
    VALUE_SHAPES,
    WIDGET_SHAPES,
    Shape,
    changed_entries,
)
from worker.sandbox.verify.marks import demand_blank_timestamp, is_widget, may_cover
from worker.sandbox.verify.new_fields import demand_group
from worker.sandbox.verify.plain_looks import is_legible
from worker.sandbox.verify.step_context import (
    Objection,
    StepContext,
    printable,
    raw_entry,
    ref_key,
    title_of,
)

_SILENT: Final = {"/Type", "/Ff", "/F", "/M", "/NM", "/V", "/AP", "/AS"}
"""Entries that show nothing by themselves, or are compared apart."""
_REDRAWN: Final = "is drawn in another way than it was signed"
_FLAGGED: Final = "got flags by which readers show its value in another way"
_GAP: Final = re.compile(
    r"[ \xa0\u2009\u202f]{3}|\n{3}|[^\S \xa0\n\u2009\u202f]|\n +\n"
)
"""Three blanks or line ends in a row, or a wide blank."""
_LINE_END: Final = re.compile(r"\r\n?")
_DRAWING: Final = frozenset({"/DA", "/MK", "/Q", "/BS", "/DS"})
"""Entries by which readers draw a field that has no appearance."""
_NESTED: Final = "has widgets within a widget, whose looks are not compared"
_OTHER_VALUE: Final = "has a widget with a value of its own"
_HARMLESS_FLAGS: Final = 1 | 2 | 4
"""Field flags ReadOnly, Required and NoExport. Source: ISO 32000-2, table 227."""
_VALUE_CHARS: Final = 4_000
"""Longest value that is compared with the later one, for a report."""
_TAG: Final = re.compile(r"<[^<>]*>")
_UNSHOWN: Final = re.compile(
    r"<!|display|visibility|font-size\s*:\s*0|color\s*:(?!\s*#0{3,6}\b)", re.IGNORECASE
)
_HIDING: Final = 1 | 2 | 32
"""Annotation flags Invisible, Hidden and NoView. Source: ISO 32000-2, table 167."""
_NO_VIEW: Final = 32
_PRINT: Final = 4
"""Annotation flag Print: without it the value is missing on paper alone."""
_TOGGLES: Final = 256
"""Annotation flag ToggleNoView."""
_LISTING: Final[Mapping[str, Shape]] = {"/Kids": lambda _: True}


class ChangedFields:
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
            if is_touched(spec, self._step.changed):
                yield from self._judge(title, spec, ref, form)

    def _judge(
        self, title: str, spec: FieldComparisonSpec, ref: Reference, form: FormChange
    ) -> list[Approval]:
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
                demand_group(group, after, form.after)
        elif is_signature:
            keys = SIGNING_SHAPES if is_signed else FLAG_SHAPES
        changed = changed_entries(title, before, after, keys)
        had, has = (int(number(inherited(n, "/Ff")) or 0) for n in (before, after))
        if (had ^ has) & ~_HARMLESS_FLAGS:
            # It counts if the field is filled in by this or a later step.
            self._notes.doubts[title] = _FLAGGED
        demand_drawn(title, before, after, _value(after))
        level = ModificationLevel.FORM_FILLING
        is_harmless = changed <= FLAG_SHAPES.keys()
        naming = replace(
            form_update(ref, title),
            valid_when_locked=is_harmless,
        )
        own = ModificationLevel.LTA_UPDATES if is_signature else level
        allowed = [(own, each) for each in by_uses(step, form.before, naming)]
        if is_group or (is_signature and not is_signed):
            return allowed
        allowed += ((level, each) for each in approved_looks(step, title, ref))
        if is_signed:
            kids = [resolve(raw) for raw in raw_items(entry(after, "/Kids"))]
            nodes = [after, *kids]
            demand_blank_timestamp(title, nodes)
            seen = any(map(may_cover, nodes))
            allowed += signature_value(step, title, after, seen=seen)
        else:
            for key in changed & after.keys() & {"/V", "/RV"}:
                fresh = fresh_below(step, after.raw_get(key))
                allowed += ((level, form_update(each, title)) for each in fresh)
            self._note(title, spec, changed, allowed)
            widgets = form.after.fields[ref_key(ref)].widgets
            kids = [step.new(Reference(*each)) for each in widgets]
            if doubt := _doubt_of_kids(kids, changed):
                self._notes.doubts[title] = doubt
        return allowed

    def _note(
        self,
        title: str,
        spec: FieldComparisonSpec,
        entries: set[str],
        allowed: list[Approval],
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
        is_redrawn = has_other_look(self._step, before, after)
        is_in_state = shown_state(before) == shown_state(after)
        looks_as_before = is_in_state and (not is_redrawn or stay_empty(before, after))
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
                is_untold(kind, new, after)
                or has_other_moments(self._step, before, after)
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


def _doubt_of_kids(widgets: Sequence[object], changed: Collection[str]) -> str:
    """Return what leaves open whether widgets show the value of their field.

    Args:
        widgets: as they are now.
        changed: keys of the field's entries that are others than before.
    """
    if any(entry(each, "/Kids") is not None for each in widgets):
        return _NESTED
    if "/V" in changed and any(entry(each, "/V") is not None for each in widgets):
        return _OTHER_VALUE
    return ""


def _doubt_of(kind: FieldKind, field: object, changed: Collection[str]) -> str:
    """Return what leaves open which value a filled field shows; empty: nothing.

    Args:
        kind: of the field.
        field: as it is now.
        changed: keys of its entries that are others than before.
    """
    if doubt := _doubt_of_drawing(field, changed):
        return doubt
    flags = int(number(entry(field, "/F")) or 0)
    most = number(inherited(field, "/MaxLen"))
    doubts = {
        "has gaps that move a part of it out of sight": _has_gaps(field),
        "has a longer value than it may": most is not None
        and len(_whole(entry(field, "/V"))) > most,
        "kept the rich text of another value": not _has_its_rich_text(field),
        "has rich text of which a part may not be seen": _UNSHOWN.search(
            _whole(entry(field, "/RV"))
        ),
        "is shown on paper alone": flags & _NO_VIEW and flags & _PRINT,
        "marks other options than its value as chosen": kind is FieldKind.CHOICE
        and not chooses_value(field),
        "has a value that is none of its options, or reads as another one": kind
        is FieldKind.CHOICE
        and not is_option(field),
    }
    return next((words for words, holds in doubts.items() if holds), "")


def _has_gaps(field: object) -> bool:
    """Return whether a value has blanks, or lines without text, that push it away.

    They do not count where a drawing's text is compared with it. Firefox shows the
    value in a box of its own, and cuts what does not fit.
    """
    # Signs of no width stand between blanks, and part nothing.
    whole = "".join(
        each
        for each in _whole(entry(field, "/V"))
        if unicodedata.category(each) != "Cf"
    )
    text = _LINE_END.sub("\n", whole.rstrip())
    return _GAP.search(text) is not None


def _doubt_of_drawing(widget: object, changed: Collection[str]) -> str:
    """Return what leaves open how readers draw a value by themselves; empty: nothing.

    Args:
        widget: as it is now.
        changed: keys of its entries that are others than before.
    """
    if entry(widget, "/AP") is None and _DRAWING.intersection(changed):
        return "is drawn by each reader, and in another way than before"
    # Firefox turns a field by this, whatever its appearance is.
    turn = entry(entry(widget, "/MK"), "/R")
    if "/MK" in changed and turn is not None and number(turn) != 0:
        return "is turned by some readers, and by others not"
    if {"/DA", "/MK"}.intersection(changed) and not _is_legible(widget):
        return "cannot be read where readers draw fields by themselves"
    return ""


def _is_legible(field: object) -> bool:
    """Return whether a value can be read in Firefox, which draws it by `/DA`."""
    defaults = inherited(field, "/DA")
    ground = [number(each) for each in raw_items(entry(entry(field, "/MK"), "/BG"))]
    return is_legible(
        "0 g" if defaults is None else str(defaults),
        [each for each in ground if each is not None],
    )


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
    return plain[0] == plain[1]


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


class ChangedWidgets:
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
                if key not in changed and not is_redrawn(after, changed):
                    continue
                has_other = has_other_look(self._step, before, after)
                if has_other and (
                    is_untold(kind, value, after)
                    or has_other_moments(self._step, before, after)
                ):
                    self._notes.doubts[title] = _REDRAWN
                yield from self._approve(title, key, owner, form)
            if widgets and kind is FieldKind.STATES:
                _demand_shown_state(title_of(title), new)

    def _approve(
        self, title: str, key: Key, owner: Key, form: FormChange
    ) -> Iterator[Approval]:
        """Approve a widget of one field that differs in its appearance alone."""
        ref, step = Reference(*key), self._step
        old, new = step.old(ref), step.new(ref)
        trees = form.before, form.after
        is_mark = form.before.fields[owner].kind == "/Sig"
        if any(tree.owners.get(key) != [owner] for tree in trees) or not all(
            is_widget(node, owner, is_mark=is_mark) for node in (old, new)
        ):
            return
        changed = changed_entries(title, old, new, WIDGET_SHAPES)
        if doubt := _doubt_of_drawing(new, changed):
            self._notes.doubts[title] = doubt
        demand_drawn(title, old, new, _value(step.new(Reference(*owner))))
        updates = [
            *by_uses(step, form.before, form_update(ref, title)),
            *approved_looks(step, title, ref),
        ]
        for each in updates:
            yield ModificationLevel.FORM_FILLING, each


def _value(node: object) -> str:
    """Value of a field as text, cut where it is very long.

    Source: ISO 32000-2, 12.7.5.
    """
    value = entry(node, "/V")
    if isinstance(value, ArrayObject):
        return ", ".join(_text(resolve(raw)) for raw in raw_items(value))[:_VALUE_CHARS]
    return _text(value)


def _text(value: object) -> str:
    if isinstance(value, StreamObject):
        value = pdf_string(value.data[:_VALUE_CHARS])
    # The state of a check box is a name, which people see without its slash.
    if isinstance(value, NameObject):
        value = value[1:]
    return "" if value is None else printable(value, _VALUE_CHARS)
