"""Rules for what a later revision may do to a form; for confined jobs only.

Most judge by pyHanko's own rules, and say more strictly what those let through. A rule
raises `Objection` with a reason for people.
"""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
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
    pdf_string,
)
from pyhanko.pdf_utils.misc import IndirectObjectExpected
from pyhanko.pdf_utils.reader import HistoricalResolver, RawPdfPath
from pyhanko.sign.diff_analysis import (
    BaseFieldModificationRule,
    FormUpdatingRule,
    GenericFieldModificationRule,
    ModificationLevel,
    SigFieldCreationRule,
    SigFieldModificationRule,
    SuspiciousModification,
)
from pyhanko.sign.diff_analysis.commons import compare_dicts
from pyhanko.sign.diff_analysis.constants import VALUE_UPDATE_KEYS
from pyhanko.sign.diff_analysis.form_rules_api import (
    FieldComparisonContext,
    FieldComparisonSpec,
    FieldMDPRule,
    FormUpdate,
)
from pyhanko.sign.diff_analysis.rules_api import RelativeContext

from appliance.domain.verification import FilledField
from worker.sandbox.inspect.forms import form_fields, leaves_appearances_open
from worker.sandbox.inspect.pdf_objects import (
    Budget,
    Key,
    dictionary,
    entry,
    key_of,
    name,
    number,
    raw_items,
    resolve,
)
from worker.sandbox.verify.revisions import (
    ReferenceIndex,
    RevisionView,
    demand_clear_names,
    same,
)

_NODES: Final = 500_000
"""Nodes of a form or page tree: more than any signed document has."""
_ACTIONS: Final = ("/A", "/AA")
_LOOKS: Final = ("/N", "/R", "/D")
_TEXT_CHARS: Final = 200
_NAME_CHARS: Final = 4000
_EMPTY_BYTES: Final = 1024
"""Longest stream, encoded, that is read to see whether it draws nothing."""
_DEEPEST: Final = 32
"""Fields within each other."""
_FONT: Final = re.compile(r"/([^\s/()<>\[\]{}%]+)\s+[-+.\d]+\s+Tf\b")
"""Font of a default appearance. Source: ISO 32000-2, 12.7.4.3."""
_HIDING: Final = 1 | 2 | 32
"""Annotation flags Invisible, Hidden and NoView. Source: ISO 32000-2, table 167."""
_PRINT: Final = 4
"""Annotation flag Print: without it the value is missing on paper alone."""
_TOGGLES: Final = 256
"""Annotation flag ToggleNoView."""

_VALUE_KEYS: Final = frozenset({"/I", "/TI", "/RV", "/M"})
"""Entries that change with a value, and that pyHanko does not expect: chosen items, the
first visible one, rich text, the date. Source: ISO 32000-2, tables 166, 228 and 234."""

Approvals = Iterable[tuple[ModificationLevel, FormUpdate]]


class Objection(SuspiciousModification):
    """A change that is not allowed, with its reason in words.

    Args:
        reason: a sentence for people, without text of the file but field names.
    """

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


@dataclass(slots=True)
class FormNotes:
    """Facts that the form rules note while they judge one step."""

    marks: set[str] = field(default_factory=set)
    """New signature fields that can be seen: each must hold a signature in the end."""
    values: list[FilledField] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class StepContext:
    """Two neighbouring revisions, and what the later one defines."""

    index: ReferenceIndex
    """Standing at the earlier revision."""
    old: RevisionView
    new: RevisionView
    changed: frozenset[Key]
    """Objects that the later revision adds or replaces."""


def title_of(text: object) -> str:
    """Field name for people: printable characters, at most 200."""
    plain = text.decode("latin-1") if isinstance(text, bytes) else str(text)
    return "".join(
        c if c.isprintable() else " " if c.isspace() else "\N{REPLACEMENT CHARACTER}"
        for c in plain[:_TEXT_CHARS]
    )


def _touches(spec: FieldComparisonSpec, changed: frozenset[Key]) -> bool:
    """Return whether a step replaces a field, or one of its drawings.

    An unchanged field needs no approval, and pyHanko would report drawings that did
    not change as updates that locks forbid.
    """
    for ref in (spec.old_field_ref, spec.new_field_ref):
        if ref is None or (ref.idnum, ref.generation) in changed:
            return True
    node = spec.new_field
    if node is None or "/AP" not in node:
        return False
    looks = node.raw_get("/AP")
    keys = [key_of(looks)]
    drawings = resolve(looks)
    if isinstance(drawings, DictionaryObject):
        keys += (key_of(drawings.raw_get(k)) for k in _LOOKS if k in drawings)
    return any(key in changed for key in keys)


class _ChangedFields(FieldMDPRule):
    """pyHanko's rule for one kind of field, applied to the fields that a step changes.

    pyHanko lets a drawing be replaced in place, and for that takes each entry of a
    field without /AS for one drawing. Some files have a dictionary of drawings there,
    one a state, and pyHanko raises `IndirectObjectExpected` whatever was changed (its
    issue 719). Such a field is judged by the rule without replacing in place.

    Args:
        kind: the rule.
        step: the two revisions.
        notes: receives values that were changed.

    Source: ISO 32000-2, 12.5.2 and 12.5.5.
    """

    def __init__(
        self, kind: type[BaseFieldModificationRule], step: StepContext, notes: FormNotes
    ) -> None:
        keys = VALUE_UPDATE_KEYS
        if kind is GenericFieldModificationRule:
            keys |= _VALUE_KEYS
        self._usual = kind(value_update_keys=keys)
        self._strict = kind(
            allow_in_place_appearance_stream_changes=False, value_update_keys=keys
        )
        self._step = step
        self._notes = notes

    def apply(self, context: FieldComparisonContext) -> Approvals:
        """Yield the objects of changed fields that may be as they are now.

        Args:
            context: the form before and after.

        Raises:
            Objection: a change is not allowed.
        """
        for title, spec in context.field_specs.items():
            if not _touches(spec, self._step.changed):
                continue
            try:
                yield from self._judge(title, spec, context)
            except Objection:
                raise
            except SuspiciousModification as exc:
                shown = title_of(title)
                raise Objection(f'the field "{shown}" was changed after it') from exc

    def _judge(
        self, title: str, spec: FieldComparisonSpec, context: FieldComparisonContext
    ) -> list[tuple[ModificationLevel, FormUpdate]]:
        try:
            allowed = [*self._usual.check_form_field(title, spec, context)]
        except IndirectObjectExpected:
            allowed = [*self._strict.check_form_field(title, spec, context)]
        if spec.field_type == "/Sig":
            if allowed:
                _demand_blank_timestamp(title, spec)
        elif allowed:
            self._note(title, spec, allowed)
        return allowed

    def _note(
        self,
        title: str,
        spec: FieldComparisonSpec,
        allowed: list[tuple[ModificationLevel, FormUpdate]],
    ) -> None:
        """Note a filled field.

        Raises:
            Objection: it was hidden or shown, or looks different with the same value.
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
        flags = [int(number(entry(each, "/F")) or 0) for each in (before, after)]
        lost, gained = flags[0] & ~flags[1], flags[1] & ~flags[0]
        if (lost | gained) & _HIDING or lost & _PRINT or gained & _TOGGLES:
            raise Objection(f'the field "{shown}" was hidden or shown after it')
        old, new = (_value(each) for each in (before, after))
        if _same_value(before, after) and (name(before, "/AS") == name(after, "/AS")):
            # pyHanko takes another drawing of the same value for form filling; that
            # is how "shadow replace" attacks show another amount.
            raise Objection(
                f'the field "{shown}" shows something else with the same value'
            )
        if spec.field_type == "/Btn":
            _demand_shown_state(shown, after, new)
        self._notes.values.append(FilledField(shown, old, new))


def _demand_shown_state(title: str, widget: object, value: str) -> None:
    """Demand that a button shows the state that is its value, or none.

    Raises:
        Objection: it shows another one.

    Source: ISO 32000-2, 12.7.5.2.3 and 12.7.5.2.4 (/AS and /V).
    """
    state = name(widget, "/AS")
    if state is not None and state not in {"/Off", f"/{value}"}:
        raise Objection(f'the field "{title}" shows another state than its value')


class _Widgets(FieldMDPRule):
    """Rule that the widgets of a field with several may show its new value.

    pyHanko passes over kids without a name: to it no radio button may be chosen, and
    no field be filled in that is shown on two pages.

    Args:
        step: the two revisions.

    Source: ISO 32000-2, 12.7.4.1 (kids without /T are widgets of their parent).
    """

    def __init__(self, step: StepContext) -> None:
        self._step = step

    def apply(self, context: FieldComparisonContext) -> Approvals:
        """Yield changed widgets of fields whose value was changed.

        Args:
            context: the form before and after.
        """
        for title, spec in context.field_specs.items():
            old, new = spec.old_field, spec.new_field
            if spec.field_type == "/Sig" or old is None or new is None:
                continue
            if _same_value(old, new):
                continue
            for raw in raw_items(entry(new, "/Kids")):
                key = key_of(raw)
                if key in self._step.changed and key is not None:
                    if spec.field_type == "/Btn":
                        widget = self._step.new(Reference(*key))
                        _demand_shown_state(title_of(title), widget, _value(new))
                    yield from self._approve(title, key)

    def _approve(self, title: str, key: Key) -> Approvals:
        """Approve a widget that differs in its appearance alone."""
        ref, step = Reference(*key), self._step
        old, new = step.old(ref), step.new(ref)
        if not _is_widget(old) or not _is_widget(new):
            return
        changed = {
            each
            for each in old.keys() | new.keys()
            if not same(_raw(old, each), _raw(new, each))
        }
        if not changed <= {"/AS", "/AP", "/M"}:
            return
        refs = {ref}
        if "/AP" in new:
            refs |= step.new.collect_dependencies(
                new.raw_get("/AP"), since_revision=step.new.revision
            )
        for each in refs:
            yield ModificationLevel.FORM_FILLING, FormUpdate(each, field_name=title)


def _same_value(old: object, new: object) -> bool:
    """Return whether a field has one value, in whatever form it is stored.

    Another encoding, or a stream in place of a string, is no other value.
    """
    values = [entry(node, "/V") for node in (old, new)]
    if same(*values, spelled=False):
        return True
    if any(isinstance(each, ArrayObject) for each in values):
        return False
    texts = [
        pdf_string(each.data) if isinstance(each, StreamObject) else each
        for each in values
    ]
    return all(isinstance(each, str | bytes) for each in texts) and (
        texts[0] == texts[1]
    )


def _is_widget(node: object) -> bool:
    return isinstance(node, DictionaryObject) and "/T" not in node


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


def _demand_blank_timestamp(title: str, spec: FieldComparisonSpec) -> None:
    """Demand that a document timestamp draws nothing, in whatever field it is.

    Source: ISO 32000-2, 12.8.5 (a document timestamp should have no appearance).

    Raises:
        Objection: it may be seen.
    """
    after = spec.new_field
    was_filled = spec.old_field is not None and "/V" in spec.old_field
    if was_filled or name(entry(after, "/V"), "/Type") != "/DocTimeStamp":
        return
    kids = [resolve(raw) for raw in raw_items(entry(after, "/Kids"))]
    if any(_is_seen(each, title_of(title)) for each in (after, *kids)):
        raise Objection(f'the document timestamp "{title_of(title)}" shows something')


class _NewFields(FieldMDPRule):
    """pyHanko's rule for new signature fields, with one mark each on one page.

    pyHanko lets a field have any number of marks, on any number of pages.

    Args:
        step: the two revisions.
        notes: receives the fields that can be seen.
    """

    def __init__(self, step: StepContext, notes: FormNotes) -> None:
        # Widgets are judged here: pyHanko walks all pages of both revisions for that.
        self._usual = SigFieldCreationRule(approve_widget_bindings=False)
        self._step = step
        self._notes = notes

    def apply(self, context: FieldComparisonContext) -> Approvals:
        """Yield the objects of new fields, and the pages that got their marks.

        Args:
            context: the form before and after.

        Raises:
            Objection: a field is of another kind, was deleted, or has several marks.
        """
        marks: dict[Key, str] = {}
        unseen: set[str] = set()
        for title, spec in context.field_specs.items():
            shown = title_of(title)
            if spec.new_field_ref is None:
                raise Objection(f'the field "{shown}" was deleted after it')
            if spec.old_field_ref is not None:
                continue
            if spec.field_type != "/Sig":
                raise Objection(f'the field "{shown}" was added after it')
            node = spec.new_field_ref.get_object()
            key, mark = _mark_of(node, spec.new_field_ref, shown)
            marks[key] = title
            seen = [_is_seen(each, shown) for each in (node, mark)]
            if any(seen):
                self._notes.marks.add(shown)
            else:
                unseen.add(title)
        for level, update in self._usual.apply(context):
            # pyHanko counts any appearance of a field as form filling. One that
            # draws nothing is none: EU DSS writes it for document timestamps.
            if update.field_name in unseen:
                yield (
                    ModificationLevel.LTA_UPDATES,
                    replace(update, valid_when_locked=True),
                )
            else:
                yield level, update
        if marks:
            yield from _bindings(self._step, marks)


def _mark_of(
    node: object, reference: Reference, title: str
) -> tuple[Key, PdfObject | None]:
    """Find the one annotation of a field, which may be the field itself.

    Raises:
        Objection: there are several, or one has an action.
    """
    kids = list(raw_items(entry(node, "/Kids")))
    if len(kids) > 1 or (kids and name(node, "/Subtype") is not None):
        raise Objection(f'the new signature field "{title}" has several marks')
    mark = resolve(kids[0]) if kids else resolve(node)
    if any(entry(each, action) for each in (node, mark) for action in _ACTIONS):
        raise Objection(f'the new signature field "{title}" has an action')
    key = key_of(kids[0]) if kids else (reference.idnum, reference.generation)
    if key is None:
        raise Objection(f'the mark of the new field "{title}" is no object of its own')
    return key, mark


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


def _has_area(box: Sequence[float]) -> bool:
    return box[0] != box[2] and box[1] != box[3]


def _is_drawn(looks: object) -> bool:
    """Return whether an appearance dictionary draws anything in any state."""
    if looks is None:
        return False
    if not isinstance(looks, DictionaryObject):
        return True
    return any(not _is_blank(entry(looks, kind)) for kind in looks)


def _is_blank(drawing: object) -> bool:
    """Return whether a drawing is missing, has no content, or an empty /BBox."""
    if drawing is None:
        return True
    if not isinstance(drawing, StreamObject):
        return False
    raw = drawing.raw_get("/BBox") if "/BBox" in drawing else None
    box = _direct_box(raw)
    if box is not None and not _has_area(box):
        return True
    return len(drawing.encoded_data) <= _EMPTY_BYTES and not drawing.data.strip()


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
            demand_same_entries(old, new, frozenset({"/Annots"}))
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
        UnclearNameError: only names may differ.
    """
    compare_dicts(old, new, ignored)
    for key in old:
        if key in ignored:
            continue
        if not same(old.raw_get(key), new.raw_get(key)):
            raise SuspiciousModification(f"{key} is spelled differently")
        demand_clear_names(old.raw_get(key))


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
                and key_of(_raw(step.old(Reference(*each)), "/Annots")) == key
            }
    return sorted(found)


def _page_reason(page: int, key: Key) -> str:
    return f"page {page} was changed after it (object {key[0]})"


class FormRule(FormUpdatingRule):
    """pyHanko's rule for a form, with fields drawn by what was signed.

    pyHanko takes /NeedAppearances and the form's own defaults for harmless. By the
    first a reader draws each field again, by the others it draws fields that have no
    appearance, so that another value may be seen than the signed one.

    Args:
        step: the two revisions.
        notes: receives facts of this step.

    Source: ISO 32000-2, 12.7.3 and 12.7.4.3.
    """

    def __init__(self, step: StepContext, notes: FormNotes) -> None:
        super().__init__(
            field_rules=[
                _UniqueNames(step),
                _NewFields(step, notes),
                _ChangedFields(SigFieldModificationRule, step, notes),
                _ChangedFields(GenericFieldModificationRule, step, notes),
                _Widgets(step),
            ]
        )

    def apply(self, old: HistoricalResolver, new: HistoricalResolver) -> Approvals:
        """Yield the objects of the form that may be as they are now.

        Args:
            old: the revision before.
            new: the revision after.

        Raises:
            Objection: a change is not allowed.
        """
        before = dictionary(old.root, "/AcroForm")
        after = dictionary(new.root, "/AcroForm")
        if before is not None and after is not None:
            reason = _drawn_otherwise(old.root, new.root, before, after)
            if reason and _has_values(old):
                raise Objection(reason)
        yield from super().apply(old, new)


class _UniqueNames(FieldMDPRule):
    """Rule that a changed field shares its full name with no other field.

    By their names pyHanko keys fields: of two with one name it judges one. A nameless
    parent, or a name in another string type, makes two of them.

    Args:
        step: the two revisions.

    Source: ISO 32000-2, 12.7.4.2 (one name, one field).
    """

    def __init__(self, step: StepContext) -> None:
        self._step = step

    def apply(self, context: FieldComparisonContext) -> Approvals:
        """Yield nothing.

        Args:
            context: the form before and after.

        Raises:
            Objection: two fields have one name, and the step changes one of them.
        """
        # The later form has all fields of the earlier one, by the other rules.
        seen: dict[str, set[Key]] = {}
        for title, key in _named(context.new.root):
            seen.setdefault(title, set()).add(key)
        for title, keys in seen.items():
            if len(keys) > 1 and not keys.isdisjoint(self._step.changed):
                raise Objection(f'several fields are named "{title_of(title)}"')
        return ()


def _named(catalog: DictionaryObject) -> Iterator[tuple[str, Key]]:
    """Yield each named field that is an object of its own, with its full name."""
    budget = Budget(_NODES)
    todo: list[tuple[object, str]] = [
        (raw, "")
        for raw in raw_items(entry(dictionary(catalog, "/AcroForm"), "/Fields"))
    ]
    seen: set[Key] = set()
    while todo:
        budget.take()
        raw, above = todo.pop()
        key, node = key_of(raw), resolve(raw)
        if key is None or key in seen or not isinstance(node, DictionaryObject):
            continue
        seen.add(key)
        title = above
        if "/T" in node:
            text: object = entry(node, "/T")
            part = text.decode("latin-1") if isinstance(text, bytes) else str(text)
            title = f"{above}.{part}"[-_NAME_CHARS:] if above else part
            yield title, key
        todo += ((kid, title) for kid in raw_items(entry(node, "/Kids")))


def _has_values(signed: HistoricalResolver) -> bool:
    """Return whether the form has fields that are not for signatures."""
    nodes = (resolve(raw) for raw in form_fields(signed.root, Budget(_NODES)))
    return any(name(node, "/FT") not in {None, "/Sig"} for node in nodes)


def _drawn_otherwise(
    old: DictionaryObject,
    new: DictionaryObject,
    before: DictionaryObject,
    after: DictionaryObject,
) -> str:
    """Say which entry makes readers draw signed fields differently; empty: none."""
    if leaves_appearances_open(new) > leaves_appearances_open(old):
        return "readers are asked to draw the form's fields again"
    looks = entry(before, "/DA")
    if looks is not None and not same(looks, entry(after, "/DA")):
        return "the form's default appearance was changed after it"
    if (number(entry(after, "/Q")) or 0) != (number(entry(before, "/Q")) or 0):
        return "the form's text alignment was changed after it"
    resources, later = (dictionary(each, "/DR") for each in (before, after))
    for kind in resources or ():
        had, has = dictionary(resources, kind), dictionary(later, kind)
        for each in had or ():
            if not same(_raw(had, each), _raw(has, each)):
                return "resources of the form were changed after it"
    return _newly_drawn(old, after, resources, later)


def _newly_drawn(
    old: DictionaryObject,
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
    is_open = leaves_appearances_open(old)
    default = entry(dictionary(old, "/AcroForm"), "/DA")
    for raw in form_fields(old, Budget(_NODES)):
        node = resolve(raw)
        if "/Rect" not in (node if isinstance(node, DictionaryObject) else ()):
            continue
        is_drawn = entry(dictionary(node, "/AP"), "/N") is not None and not is_open
        if is_drawn or _inherited(node, "/V") is None:
            continue
        if _inherited(node, "/FT") == "/Sig":
            continue
        looks = _inherited(node, "/DA") or default or entry(after, "/DA")
        is_new = looks is not None and _inherited(node, "/DA") is default is None
        if is_new or added & {*_FONT.findall(_text(looks))}:
            title = title_of(_inherited(node, "/T") or "")
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


def _inherited(node: object, key: str) -> object:
    """Return an entry of a field or of those above it. Source: ISO 32000-2, 12.7.4."""
    for _ in range(_DEEPEST):
        value = entry(node, key)
        if value is not None or node is None:
            return value
        node = entry(node, "/Parent")
    return None


def _raw(holder: object, key: str) -> PdfObject | None:
    """Return an entry with its reference unresolved."""
    if not isinstance(holder, DictionaryObject) or key not in holder:
        return None
    value: PdfObject = holder.raw_get(key)
    return value
