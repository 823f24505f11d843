"""Drawings of fields and widgets that a step changes; for confined jobs only.

Source: ISO 32000-2, 12.5.5.
"""

from collections.abc import Iterator
from typing import Final

from pyhanko.pdf_utils.generic import (
    DictionaryObject,
    Reference,
    StreamObject,
)
from pyhanko.pdf_utils.reader import RawPdfPath
from pyhanko.sign.diff_analysis.form_rules_api import FieldComparisonSpec, FormUpdate
from pyhanko.sign.diff_analysis.rules_api import RelativeContext

from worker.sandbox.inspect.pdf_objects import (
    Key,
    dictionary,
    entry,
    key_of,
    resolve,
)
from worker.sandbox.verify.field_values import (
    FieldKind,
    is_blank,
    values_of,
)
from worker.sandbox.verify.form_changes import form_update, fresh_below, was_in_use
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


def approved_looks(
    step: StepContext, title: str, ref: Reference
) -> Iterator[FormUpdate]:
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
    is_taken = has is not None and has != had and was_in_use(step, has)
    is_plain = isinstance(new, DictionaryObject) and not isinstance(new, StreamObject)
    if not is_plain or is_taken or not is_own:
        raise Objection(f'the field "{title_of(title)}" was changed after it')
    fresh = fresh_below(step, after) | fresh_below(step, new)
    yield from (form_update(each, title) for each in fresh)
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
            fresh = fresh_below(step, step.new(drawing))
            yield from (form_update(each, title) for each in fresh)


def _is_used_once(step: StepContext, key: Key, place: Use) -> bool:
    uses = (use for use in step.index.uses(key[0]) if use != place)
    return not any(map(step.index.is_used, uses))


def _in_place(
    ref: Reference, title: str, holder: Reference, path: list[str]
) -> FormUpdate:
    context = RelativeContext(holder, RawPdfPath(*path))
    return FormUpdate(ref, field_name=title, context_checked=context)


def is_touched(spec: FieldComparisonSpec, changed: frozenset[Key]) -> bool:
    """Return whether a step replaces a field, or one of its drawings.

    An unchanged field needs no approval.
    """
    refs = [ref for ref in (spec.old_field_ref, spec.new_field_ref) if ref is not None]
    is_replaced = any(ref_key(ref) in changed for ref in refs)
    return is_replaced or is_redrawn(spec.new_field, changed)


def is_redrawn(node: object, changed: frozenset[Key]) -> bool:
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


def has_other_look(step: StepContext, before: object, after: object) -> bool:
    """Return whether the drawings of a field or widget are others than before."""
    is_kept = same(raw_entry(before, "/AP"), raw_entry(after, "/AP"))
    return not is_kept or is_redrawn(after, step.changed)


def has_other_moments(step: StepContext, before: object, after: object) -> bool:
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


def stay_empty(*fields: object) -> bool:
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


def is_untold(kind: FieldKind, value: object, widget: object) -> bool:
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


def demand_drawn(title: str, before: object, after: object, value: str) -> None:
    """Demand that what showed a value still has an appearance, unless it is empty.

    Raises:
        Objection: its appearance was removed.
    """
    lost = entry(before, "/AP") is not None and entry(after, "/AP") is None
    if lost and value:
        raise Objection(f'the field "{title_of(title)}" was changed after it')
