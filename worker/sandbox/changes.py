"""Which changes after a signature leave it valid; for confined jobs only.

pyHanko's own rules, by which each revision that follows a signature is weighed.
"""

from collections.abc import Iterable
from typing import Final

from pyhanko.pdf_utils.misc import IndirectObjectExpected
from pyhanko.sign.diff_analysis import (
    DEFAULT_DIFF_POLICY,
    BaseFieldModificationRule,
    FormUpdatingRule,
    GenericFieldModificationRule,
    ModificationLevel,
    SigFieldCreationRule,
    SigFieldModificationRule,
    StandardDiffPolicy,
)
from pyhanko.sign.diff_analysis.form_rules_api import (
    FieldComparisonContext,
    FieldMDPRule,
    FormUpdate,
)


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
        for name, spec in context.field_specs.items():
            try:
                allowed = [*self._usual.check_form_field(name, spec, context)]
            except IndirectObjectExpected:
                allowed = [*self._strict.check_form_field(name, spec, context)]
            yield from allowed


POLICY: Final = StandardDiffPolicy(
    global_rules=DEFAULT_DIFF_POLICY.global_rules,
    form_rule=FormUpdatingRule(
        field_rules=[
            SigFieldCreationRule(),
            _AnyLooks(SigFieldModificationRule),
            _AnyLooks(GenericFieldModificationRule),
        ]
    ),
)
"""pyHanko's, with a verdict on forms where its own rules have none."""
