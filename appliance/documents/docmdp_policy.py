"""What a document's signature fields allow a signer, before any password.

A certification with P = 2 or 3 permits to fill in forms and to sign; a signature
in a field of the document keeps it valid for every reader. A new field with a
stamp changes how a page looks: ISO 32000-2 leaves it open, Acrobat tolerates it,
pyHanko does not, so it is not made; a new field without a stamp is taken by all.

Source: ISO 32000-2, 12.7.5.5, 12.8.2; decisions "restriccion"; docs/signing.md.
"""

from dataclasses import replace
from enum import StrEnum
from typing import Final

from appliance.domain.documents.inspected import EmptyField, Inspection, SigningFacts
from appliance.domain.errors import (
    FIELD_LOCKED,
    FIELD_READ_ONLY,
    ApplianceError,
    ErrorCode,
)
from appliance.domain.requests.preset import SignaturePreset
from appliance.domain.signing_command import SignParameters
from appliance.domain.vocab import Restriction

_NO_CHANGES: Final = 1
_OUR_DIGESTS: Final = frozenset({"sha256", "sha384"})
CERTIFIES: Final = {
    Restriction.NO_VALUE: 0,
    Restriction.NO_CHANGES_ALLOWED: 1,
    Restriction.FORM_FILLING: 2,
    Restriction.FORM_FILLING_AND_ANNOTATIONS: 3,
}
"""P of each `restriccion`, 0 for an approval signature, as seed values count."""


class NewField(StrEnum):
    """How a signature may be made in a field that the document does not have yet."""

    VISIBLE = "visible"
    INVISIBLE = "invisible"
    """Without a stamp alone."""
    NONE = "none"
    """Not at all: in the document's own fields, if anywhere."""


def new_field(inspection: Inspection) -> NewField:
    """What earlier signatures allow of a new field.

    Args:
        inspection: of the document.
    """
    facts = inspection.signing
    if facts.new_locked:
        return NewField.NONE
    if inspection.docmdp is not None or facts.permitted is not None:
        return NewField.INVISIBLE
    return NewField.VISIBLE


def check_permitted(
    inspection: Inspection, params: SignParameters, *, followed: bool
) -> None:
    """Refuse what earlier signatures, or the field to be signed, do not allow.

    Args:
        inspection: of the document, up to date.
        params: of the command.
        followed: whether others sign after it.

    Raises:
        ApplianceError: `PDF_LOCKED`, `PDF_ALREADY_SIGNED`, `PDF_CERTIFIED`,
            `SIGNATURE_FIELD_NOT_FOUND`, `SIGNATURE_FIELD_FILLED`,
            `SIGNATURE_FIELD_DEMANDS`, `SIGNERS_LOCKED_OUT`; `SANDBOX_UNAVAILABLE`
            for what an earlier version inspected.
    """
    if inspection.is_outdated:
        # What an earlier version saw says nothing of locks; it is inspected again.
        raise ApplianceError(ErrorCode.SANDBOX_UNAVAILABLE)
    facts = inspection.signing
    if _NO_CHANGES in (inspection.docmdp, facts.permitted):
        raise ApplianceError(ErrorCode.PDF_LOCKED)
    if params.restriction is not Restriction.NO_VALUE and inspection.signatures:
        raise ApplianceError(ErrorCode.PDF_ALREADY_SIGNED)
    permitted = new_field(inspection)
    if params.field is not None:
        found = obstacle(
            wanted_field(facts, params.field), params.restriction, followed
        )
        if found is not None:
            raise found
    elif permitted is NewField.NONE:
        raise ApplianceError(ErrorCode.PDF_LOCKED, extras=_fields(facts))
    elif permitted is NewField.INVISIBLE and params.visible:
        raise ApplianceError(ErrorCode.PDF_CERTIFIED, extras=_fields(facts))
    if followed and params.restriction is Restriction.NO_CHANGES_ALLOWED:
        raise ApplianceError(ErrorCode.SIGNERS_LOCKED_OUT)


def lockout(
    facts: SigningFacts, params: SignParameters, later: SignaturePreset
) -> str | None:
    """What of a signature leaves no place to a later one whose place is fixed.

    Args:
        facts: of the document that is signed.
        params: of the signature.
        later: what somebody who signs after it brings.

    Returns:
        The field of the command that is to blame: `campo` or `restriccion`. None: the
        later one can sign.
    """
    if not later.fixed:
        return None
    theirs = later.given.params
    own = None if params.field is None else facts.find(params.field)
    if theirs.field is not None:
        is_locked = own is not None and own.would_lock(theirs.field)
        return "campo" if is_locked or theirs.field == params.field else None
    # A new field that is seen is made under no restriction: see `new_field`.
    if theirs.visible and params.restriction is not Restriction.NO_VALUE:
        return "restriccion"
    if own is not None and (own.closes or (theirs.visible and own.permits)):
        return "campo"
    return None


def nearest_permitted(params: SignParameters, inspection: Inspection) -> SignParameters:
    """What comes nearest to parameters that name no field, for who chose none.

    Where a new field is not permitted as they have it, the first of the document's
    own that can be signed is taken, and else none is shown.

    Args:
        params: without a field.
        inspection: of the document.
    """
    permitted = new_field(inspection)
    unseen = permitted is NewField.INVISIBLE and not params.visible
    if permitted is NewField.VISIBLE or unseen:
        return params
    usable = (
        field
        for field in inspection.signing.empty
        if obstacle(field, params.restriction) is None
    )
    field = next(usable, None)
    if field is not None:
        return replace(params, field=field.name)
    return replace(params, visible=False)


def wanted_field(facts: SigningFacts, name: str) -> EmptyField:
    """The empty field of a name.

    Raises:
        ApplianceError: `SIGNATURE_FIELD_NOT_FOUND`, `SIGNATURE_FIELD_FILLED`.
    """
    field = facts.find(name)
    if field is not None:
        return field
    code = ErrorCode.SIGNATURE_FIELD_NOT_FOUND
    if name in facts.signed:
        code = ErrorCode.SIGNATURE_FIELD_FILLED
    raise ApplianceError(code, extras=_fields(facts))


def obstacle(
    field: EmptyField,
    restriction: Restriction,
    followed: bool = False,  # noqa: FBT001, FBT002 (of the request: `RequestView`)
) -> ApplianceError | None:
    """Why a field cannot be filled in this way; None where it can.

    Args:
        field: empty.
        restriction: of the signature.
        followed: whether others sign after it.

    Returns:
        `PDF_LOCKED`, `SIGNATURE_FIELD_DEMANDS` or `SIGNERS_LOCKED_OUT`.
    """
    if field.locked:
        sentence = FIELD_READ_ONLY if field.read_only else FIELD_LOCKED
        return ApplianceError(ErrorCode.PDF_LOCKED, sentence=sentence)
    needs = list(field.needs)
    if field.digests and not _OUR_DIGESTS & set(field.digests):
        needs.append("DigestMethod")
    if field.certifies not in {None, CERTIFIES[restriction]}:
        needs.append("MDP")
    if needs:
        return ApplianceError(
            ErrorCode.SIGNATURE_FIELD_DEMANDS,
            params={"needs": ", ".join(needs)},
            extras={"field": "restriccion" if needs == ["MDP"] else "campo"},
        )
    if followed and field.closes:
        return ApplianceError(ErrorCode.SIGNERS_LOCKED_OUT)
    return None


def _fields(facts: SigningFacts) -> dict[str, object]:
    """Which fields could be signed instead, for an answer."""
    usable = [field.name for field in facts.empty if field.usable]
    return {"field": "campo", "allowed": usable}
