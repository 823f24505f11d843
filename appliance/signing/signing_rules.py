"""What a signing call meets: a repeat, a refusal, or how its command ended.

Source: decisions "repeating firmar".
"""

from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime

from appliance.documents.docmdp_policy import lockout
from appliance.domain.appearance.details import StampDetails
from appliance.domain.errors import ApplianceError, ErrorCode, error_of_reason
from appliance.domain.ids import RequestId
from appliance.domain.people.identity import Person
from appliance.domain.requests.preset import SignaturePreset
from appliance.domain.requests.request import (
    RequestView,
    SignCommand,
    SignedDocumentView,
    SignOutcome,
)
from appliance.domain.requests.signing_batch import SignBatch
from appliance.domain.signing_command import GivenParameters, SignParameters
from appliance.domain.vocab import RequestState, Restriction
from appliance.requests.presets import check_makeable


@dataclass(frozen=True, slots=True)
class CallParameters:
    """How each request of a call is signed: by the call, its preset, or defaults."""

    given: GivenParameters = field(default_factory=GivenParameters)
    """By the call."""

    each: dict[RequestId, SignParameters] = field(default_factory=dict)
    of_presets: dict[RequestId, str] = field(default_factory=dict)
    """Fingerprints of those that have a preset."""


def repeated(view: RequestView, fingerprint: str) -> bool:
    """Whether this call repeats one that is done or going on.

    Raises:
        ApplianceError: `ALREADY_SIGNED`, `IN_PROGRESS` or `STATE`; `IN_PROGRESS` also
            while another one of its turn is being signed.

    Source: decisions "repeating firmar".
    """
    if view.state is RequestState.PENDING:
        if view.held:
            raise ApplianceError(ErrorCode.IN_PROGRESS)
        return False
    same = view.params_sha256 == fingerprint
    if view.state is RequestState.SIGNED and not same:
        raise ApplianceError(ErrorCode.ALREADY_SIGNED)
    if view.state is RequestState.IN_PROGRESS and not same:
        raise ApplianceError(ErrorCode.IN_PROGRESS)
    if view.state in {RequestState.SIGNED, RequestState.IN_PROGRESS}:
        return True
    raise ApplianceError(ErrorCode.STATE, params={"estado": view.state.value})


def check_document(view: RequestView, command: SignCommand, sent: str | None) -> None:
    """Refuse a document that is not the one the caller means.

    Of a repaired copy, the damaged file that came in is meant as well, until somebody
    has signed the copy; whoever says by `If-Match` what was seen must have seen it.

    Args:
        view: the request.
        command: of the caller.
        sent: SHA-256 of the file that came with it, hex; None without one.

    Raises:
        ApplianceError: `DOCUMENT_CHANGED` or `DOCUMENT_MISMATCH`.
    """
    if command.if_match is not None and command.if_match != view.sha256:
        raise ApplianceError(ErrorCode.DOCUMENT_CHANGED)
    meant = {view.sha256}
    if view.repair is not None and not view.inspection.signatures:
        meant.add(view.repair.original_sha256)
    if sent is not None and sent not in meant:
        raise ApplianceError(ErrorCode.DOCUMENT_MISMATCH)


def names_document(command: SignCommand | SignBatch, sent: str | None) -> bool:
    """Return whether a call says itself which document it means.

    Args:
        command: of the caller.
        sent: SHA-256 of the file that came with it, hex; None without one.
    """
    is_matched = isinstance(command, SignCommand) and command.if_match is not None
    return is_matched or sent is not None


def check_signable(
    view: RequestView,
    params: SignParameters,
    person: Person,
    now: datetime,
    details: StampDetails,
) -> None:
    """Refuse a request that is over, or cannot be signed in this way.

    Args:
        view: `pendiente`.
        params: of the command.
        person: its signer.
        now: the time.
        details: what its stamp shows besides.

    Raises:
        ApplianceError: `STATE`, `PAGE_OUT_OF_RANGE`, `POSITION_OUT_OF_PAGE`;
            `SIGNERS_LOCKED_OUT` where others have its turn; as `check_makeable`.
    """
    if view.expires is not None and view.expires <= now:
        raise ApplianceError(
            ErrorCode.STATE, params={"estado": RequestState.EXPIRED.value}
        )
    if view.shared and params.restriction is not Restriction.NO_VALUE:
        # Only the first signature certifies, and any of its turn may be the first.
        raise ApplianceError(ErrorCode.SIGNERS_LOCKED_OUT)
    check_makeable(
        view.inspection, params, person, now, details, followed=view.followed
    )


def check_place_of_others(
    view: RequestView, params: SignParameters, later: Iterable[SignaturePreset]
) -> None:
    """Refuse a signature that leaves no place to somebody who signs after it.

    Args:
        view: `pendiente`.
        params: of the command.
        later: what others bring to their signatures.

    Raises:
        ApplianceError: `SIGNERS_LOCKED_OUT`: their place is fixed, and it takes or
            locks their field, or permits no stamp in a new one.
    """
    facts = view.inspection.signing
    for preset in later:
        blamed = lockout(facts, params, preset)
        if blamed is not None:
            raise ApplianceError(ErrorCode.SIGNERS_LOCKED_OUT, extras={"field": blamed})


def standing(
    view: RequestView, signed: SignedDocumentView | None, fingerprint: str
) -> SignOutcome | None:
    """The outcome of a command once there is one, whoever carries it out.

    Args:
        view: the request, which the command was begun on.
        signed: its signed document, if there is one.
        fingerprint: of the command.

    Raises:
        RequestFailedError: the request failed for good, by a code that else passes.
        ApplianceError: what ended the attempt; `ALREADY_SIGNED`, `IN_PROGRESS`:
            it was given back, and another command has come since.
    """
    if view.state in {RequestState.SIGNED, RequestState.IN_PROGRESS}:
        repeated(view, fingerprint)
    if view.state is RequestState.SIGNED and signed is not None:
        return SignOutcome(view.id, signed)
    if view.state is RequestState.IN_PROGRESS:
        return None
    ended = error_of_reason(view.state, view.reason)
    if ended is not None:
        raise ended
    raise ApplianceError(ErrorCode.STATE, params={"estado": view.state.value})
