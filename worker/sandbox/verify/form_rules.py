"""Rules for what a later revision may do to a form; for confined jobs only.

A form keeps its fields. One may be filled in or signed; new ones are for signatures.
A rule raises `Objection` with a reason for people, and yields pyHanko's approvals.
"""

from collections.abc import Iterator

from pyhanko.pdf_utils.generic import (
    DictionaryObject,
    PdfObject,
)
from pyhanko.pdf_utils.reader import RawPdfPath
from pyhanko.sign.diff_analysis import ModificationLevel, SuspiciousModification
from pyhanko.sign.diff_analysis.commons import compare_dicts, compare_key_refs
from pyhanko.sign.diff_analysis.constants import ACROFORM_EXEMPT_STRICT_COMPARISON
from pyhanko.sign.diff_analysis.form_rules_api import FormUpdate
from pyhanko.sign.diff_analysis.rules_api import Context

from worker.sandbox.inspect.pdf_objects import (
    Key,
    dictionary,
)
from worker.sandbox.verify.changed_fields import ChangedFields, ChangedWidgets
from worker.sandbox.verify.form_changes import (
    Approval,
    Approvals,
    FormChange,
    FormNotes,
    form_change,
    fresh_below,
)
from worker.sandbox.verify.form_defaults import drawn_otherwise
from worker.sandbox.verify.new_fields import NewFields
from worker.sandbox.verify.step_context import (
    Objection,
    StepContext,
    title_of,
)


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
            NewFields(step, notes),
            ChangedFields(step, notes),
            ChangedWidgets(step, notes),
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
        form = form_change(self._step)
        _demand_unique_names(form, self._step.changed)
        for rule in self._rules:
            yield from rule.apply(form)

    def _defaults(
        self, before: DictionaryObject, after: DictionaryObject
    ) -> Iterator[Approval]:
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
            for ref in fresh_below(self._step, value):
                yield ModificationLevel.FORM_FILLING, FormUpdate(ref)

    def _entry(
        self, before: DictionaryObject, after: DictionaryObject, *path: str
    ) -> Iterator[Approval]:
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
