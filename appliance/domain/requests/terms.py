"""The terms of a signature: what it says and permits besides the document.

Whoever asks for a signature may set them, so its signer is shown them before the
password, also where no stamp shows them.

Source: docs/stamp.md, "What the signer is shown".
"""

from dataclasses import dataclass
from typing import Final, Self

from appliance.domain.appearance.text import as_shown
from appliance.domain.documents.inspected import Inspection
from appliance.domain.signing_command import SignParameters
from appliance.domain.vocab import Restriction

AFTERWARDS: Final = {
    Restriction.NO_CHANGES_ALLOWED: (
        "nothing in the document may be changed, and nobody else may sign it"
    ),
    Restriction.FORM_FILLING: "only its forms may be filled in, and others may sign it",
    Restriction.FORM_FILLING_AND_ANNOTATIONS: (
        "only its forms may be filled in and notes added, and others may sign it"
    ),
}
"""What may happen to a certified document: msgids of the catalogues."""
REASON: Final = "Reason for signing"
PLACE: Final = "Place of signing"
AFTER: Final = "After your signature"
MARK: Final = "Your mark"
NO_MARK: Final = "will not be seen on any page"
FIELD: Final = "Field of the document"
LOCK: Final = "By signing that field"
LOCKED: Final = "fields of the form are locked, and nobody can fill them in any more"
_BY_PERMISSION: Final = (
    Restriction.NO_CHANGES_ALLOWED,
    Restriction.FORM_FILLING,
    Restriction.FORM_FILLING_AND_ANNOTATIONS,
)
"""In the order of P, from 1 (ISO 32000-2, 12.8.2.2)."""


@dataclass(frozen=True, slots=True)
class SignatureTerms:
    """Terms of a signature."""

    reason: str | None
    """As the signature and its stamp have it."""
    place: str | None
    restriction: Restriction
    visible: bool
    """True if a page shows it."""
    field: str | None
    """Full name of the document's own field that it is made in; None: a new one."""
    afterwards: Restriction
    """Changes that the document then permits, by the command or the field's lock."""
    locks: bool
    """True if the field's lock names others that nobody fills in then."""

    @classmethod
    def of(cls, params: SignParameters, inspection: Inspection) -> Self:
        """The terms of a command.

        Args:
            params: its fields.
            inspection: of the document.
        """
        visible, afterwards, locks = params.visible, params.restriction, False
        if params.field is not None:
            field = inspection.signing.find(params.field)
            visible = visible and field is not None and field.rect is not None
            if field is not None:
                afterwards, locks = _stricter(afterwards, field.permits), field.locks
        return cls(
            reason=params.reason and as_shown(params.reason),
            place=params.place and as_shown(params.place),
            restriction=params.restriction,
            visible=visible,
            field=params.field,
            afterwards=afterwards,
            locks=locks,
        )

    def told(self) -> list[tuple[str, str, bool]]:
        """What the signer is to know: label, value, and whether the value is a msgid.

        Empty for an approval signature with its mark on a page, and without reason
        and place.
        """
        rows = [
            (REASON, self.reason, False),
            (PLACE, self.place, False),
            (AFTER, AFTERWARDS.get(self.afterwards), True),
            (MARK, None if self.visible else NO_MARK, True),
            (FIELD, self.field, False),
            (LOCK, LOCKED if self.locks else None, True),
        ]
        return [(label, text, own) for label, text, own in rows if text is not None]


def _stricter(restriction: Restriction, permits: int | None) -> Restriction:
    """Changes that a certification and the P of a field's lock both permit."""
    if permits is None:
        return restriction
    of_lock = _BY_PERMISSION[permits - 1]
    if restriction is Restriction.NO_VALUE:
        return of_lock
    return min(restriction, of_lock, key=_BY_PERMISSION.index)
