"""Which changes after a signature leave it valid; for confined jobs only.

Each revision that follows a signature is weighed by pyHanko's own rules, and by some
that are stricter: nothing that follows may have a reader draw anew what was signed,
nor show more than the one mark of a signature that is there.
"""

from collections.abc import Iterable, Sequence
from typing import Final

from pyhanko.pdf_utils.generic import DictionaryObject, PdfObject, Reference
from pyhanko.pdf_utils.misc import IndirectObjectExpected
from pyhanko.pdf_utils.reader import HistoricalResolver
from pyhanko.sign.diff_analysis import (
    DEFAULT_DIFF_POLICY,
    BaseFieldModificationRule,
    FormUpdatingRule,
    GenericFieldModificationRule,
    ModificationLevel,
    SigFieldCreationRule,
    SigFieldModificationRule,
    StandardDiffPolicy,
    SuspiciousModification,
)
from pyhanko.sign.diff_analysis.form_rules_api import (
    FieldComparisonContext,
    FieldMDPRule,
    FormUpdate,
)

from worker.sandbox.inspect.forms import form_fields, leaves_appearances_open
from worker.sandbox.inspect.pages import walk_pages
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

_NODES: Final = 500_000
"""Of a form, and pages: more than any document that was signed has."""
_ACTIONS: Final = ("/A", "/AA")


class _AnyLooks(FieldMDPRule):
    """A rule that has a verdict on fields whose looks it does not expect.

    pyHanko lets a form's looks be redrawn in place, and for that takes each entry
    of a field without `/AS` for one drawing. Some files have a dictionary of
    drawings there all the same, one a state, and then it raises
    `IndirectObjectExpected` whatever the revision changed: a signature that
    validation data alone follows would have no verdict. The file is at fault (with
    such drawings `/AS` is required), so pyHanko leaves it so (its issue 719). Here
    the field is weighed by the rule that lets nothing be redrawn in place.

    Args:
        kind: the rule.

    Source: ISO 32000-2, 12.5.2 and 12.5.5.
    """

    def __init__(self, kind: type[BaseFieldModificationRule]) -> None:
        self._usual = kind()
        self._strict = kind(allow_in_place_appearance_stream_changes=False)

    def apply(
        self, context: FieldComparisonContext
    ) -> Iterable[tuple[ModificationLevel, FormUpdate]]:
        """Say which objects of the form may be as they are now.

        Args:
            context: the form before and after.

        Raises:
            SuspiciousModification: one may not.
        """
        for title, spec in context.field_specs.items():
            try:
                allowed = [*self._usual.check_form_field(title, spec, context)]
            except IndirectObjectExpected:
                allowed = [*self._strict.check_form_field(title, spec, context)]
            yield from allowed


class _OneMarkEach(FieldMDPRule):
    """A new signature field has one mark on one page, and does nothing else.

    pyHanko lets a field have as many marks as it likes, on as many pages, and what
    they show is nobody's signature: only one is where that is seen.
    """

    def __init__(self) -> None:
        self._usual: FieldMDPRule = SigFieldCreationRule()

    def apply(
        self, context: FieldComparisonContext
    ) -> Iterable[tuple[ModificationLevel, FormUpdate]]:
        """Say which objects of new fields may be there.

        Args:
            context: the form before and after.

        Raises:
            SuspiciousModification: one may not.
        """
        marks: list[Key] = []
        for spec in context.field_specs.values():
            if spec.new_field_ref is None or spec.old_field_ref is not None:
                continue
            marks.append(_mark_of(spec.new_field_ref.get_object(), spec.new_field_ref))
        if marks:
            _demand_one_place(context.new, marks)
        yield from self._usual.apply(context)


def _mark_of(field: object, reference: Reference) -> Key:
    """The one annotation of a field, which may be the field itself.

    Raises:
        SuspiciousModification: there are several, or one has an action.
    """
    kids = list(raw_items(entry(field, "/Kids")))
    if len(kids) > 1 or (kids and name(field, "/Subtype") is not None):
        raise SuspiciousModification("a new signature field has several marks")
    mark = resolve(kids[0]) if kids else field
    if any(entry(each, action) for each in (field, mark) for action in _ACTIONS):
        raise SuspiciousModification("a new signature field has an action")
    key = key_of(kids[0]) if kids else (reference.idnum, reference.generation)
    if key is None:
        raise SuspiciousModification("a mark stands in its field itself")
    return key


def _demand_one_place(new: HistoricalResolver, marks: Sequence[Key]) -> None:
    """Demand that each mark stands on one page at the most, once.

    Raises:
        SuspiciousModification: one is shown again elsewhere.
    """
    places = dict.fromkeys(marks, 0)
    for page in walk_pages(new.root, _NODES).pages:
        for raw in raw_items(entry(page.node, "/Annots")):
            if (key := key_of(raw)) in places:
                places[key] += 1
    if any(count > 1 for count in places.values()):
        raise SuspiciousModification("a mark is shown in several places")


class _DrawnAsSigned(FormUpdatingRule):
    """A form whose fields no reader is told to draw in another way than before.

    pyHanko takes `/NeedAppearances` and the form's own defaults for harmless. By
    the one a reader draws each field anew, by the others it draws what has no
    looks of its own, so that another value may be seen than the one signed.

    Source: ISO 32000-2, 12.7.3 and 12.7.4.3.
    """

    def apply(
        self, old: HistoricalResolver, new: HistoricalResolver
    ) -> Iterable[tuple[ModificationLevel, FormUpdate]]:
        """Say which objects of the form may be as they are now.

        Args:
            old: the revision that was signed.
            new: one after it.

        Raises:
            SuspiciousModification: one may not.
        """
        before = dictionary(old.root, "/AcroForm")
        after = dictionary(new.root, "/AcroForm")
        if before is not None and after is not None and _has_values(old):
            if leaves_appearances_open(new.root) > leaves_appearances_open(old.root):
                raise SuspiciousModification("readers are told to draw fields anew")
            _demand_same_defaults(before, after)
        yield from super().apply(old, new)


def _has_values(signed: HistoricalResolver) -> bool:
    """Whether the form has more than fields for signatures."""
    nodes = (resolve(raw) for raw in form_fields(signed.root, Budget(_NODES)))
    return any(name(node, "/FT") not in {None, "/Sig"} for node in nodes)


def _demand_same_defaults(before: DictionaryObject, after: DictionaryObject) -> None:
    """Demand that fields are drawn by what was there; more may have come.

    Raises:
        SuspiciousModification: an entry is another one, or gone.
    """
    looks = entry(before, "/DA")
    if looks is not None and entry(after, "/DA") != looks:
        raise SuspiciousModification("the form's default looks were changed")
    if (number(entry(after, "/Q")) or 0) != (number(entry(before, "/Q")) or 0):
        raise SuspiciousModification("the form's quadding was changed")
    resources, later = (dictionary(each, "/DR") for each in (before, after))
    for kind in resources or ():
        had, has = dictionary(resources, kind), dictionary(later, kind)
        for each in had or ():
            if _raw(has, each) != _raw(had, each):
                raise SuspiciousModification(f"{kind} of the form were changed")


def _raw(holder: DictionaryObject | None, key: str) -> PdfObject | None:
    """A value as it stands there: what a reference points to has its own rules."""
    return holder.raw_get(key) if holder is not None and key in holder else None


POLICY: Final = StandardDiffPolicy(
    global_rules=DEFAULT_DIFF_POLICY.global_rules,
    form_rule=_DrawnAsSigned(
        field_rules=[
            _OneMarkEach(),
            _AnyLooks(SigFieldModificationRule),
            _AnyLooks(GenericFieldModificationRule),
        ]
    ),
)
"""By which every verdict on changes is given."""
