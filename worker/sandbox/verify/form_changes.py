"""One step of a form: its fields before and after, and what is approved and noted.

For confined jobs only.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace

from pyhanko.pdf_utils.generic import (
    DictionaryObject,
    PdfObject,
    Reference,
    StreamObject,
)
from pyhanko.sign.diff_analysis import ModificationLevel
from pyhanko.sign.diff_analysis.form_rules_api import FieldComparisonSpec, FormUpdate

from appliance.domain.documents.verification import FilledField
from worker.sandbox.inspect.pdf_objects import (
    Key,
    dictionary,
    key_of,
    name,
)
from worker.sandbox.verify.form_tree import FormTree
from worker.sandbox.verify.step_context import (
    Objection,
    StepContext,
    raw_entry,
    title_of,
)

Approval = tuple[ModificationLevel, FormUpdate]
Approvals = Iterable[Approval]


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


def form_update(ref: Reference, title: str) -> FormUpdate:
    """Approve an object for a field, wherever it is referred to.

    Args:
        ref: of the object.
        title: full name of the field, by which locks are asked.
    """
    return FormUpdate(ref, field_name=title)


def fresh_below(step: StepContext, raw: PdfObject) -> set[Reference]:
    """Find the objects below a value that are new in the step."""
    found: set[Reference] = step.new.collect_dependencies(
        raw, since_revision=step.new.revision
    )
    return found


def was_in_use(step: StepContext, key: Key) -> bool:
    """Return whether an object was there before the step."""
    return step.old.revisions.in_use(key[0], step.old.revision)


def signature_value(
    step: StepContext, title: str, node: DictionaryObject, *, seen: bool
) -> Iterator[Approval]:
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
        or was_in_use(step, key)
    ):
        raise Objection(f'the signature "{title_of(title)}" is no new object')
    is_timestamp = name(value, "/Type") == "/DocTimeStamp" and not seen
    level = ModificationLevel.FORM_FILLING
    if is_timestamp:
        level = ModificationLevel.LTA_UPDATES
    for ref in fresh_below(step, node.raw_get("/V")):
        yield level, replace(form_update(ref, title), valid_when_locked=is_timestamp)


@dataclass(frozen=True, slots=True)
class FormChange:
    """Fields of a form before and after a step."""

    before: FormTree
    after: FormTree
    fields: tuple[tuple[str, FieldComparisonSpec], ...]
    """Exact full name and both states of each field that is in either."""


def form_change(step: StepContext) -> FormChange:
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
