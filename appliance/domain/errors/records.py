"""Errors as rows of the record keep them, to be told later in any language."""

from collections.abc import Mapping
from typing import Any, Final

from appliance.domain.errors.codes import ErrorCode
from appliance.domain.errors.exceptions import (
    ApplianceError,
    DocumentsAwayError,
    RequestFailedError,
)
from appliance.domain.errors.sentences import SENTENCES
from appliance.domain.vocab import RequestState

PASSING: Final = frozenset(
    {
        ErrorCode.ACTIVATION_EXPIRED,
        ErrorCode.ACTIVATION_INVALID,
        ErrorCode.BODY_TIMEOUT,
        ErrorCode.BUSY,
        ErrorCode.DOCUMENT_DAMAGED,
        ErrorCode.DOCUMENT_QUOTA,
        ErrorCode.HSM_UNAVAILABLE,
        ErrorCode.INTERNAL,
        ErrorCode.IN_PROGRESS,
        ErrorCode.NOT_SIGNED_YET,
        ErrorCode.OVERLOADED,
        ErrorCode.RATE_LIMITED,
        ErrorCode.REVOCATION_UNAVAILABLE,
        ErrorCode.SANDBOX_UNAVAILABLE,
        ErrorCode.STILL_SIGNING,
        ErrorCode.STORAGE_FULL,
        ErrorCode.STORE_UNAVAILABLE,
        ErrorCode.TASK_FAILED,
        ErrorCode.TSA_UNAVAILABLE,
    }
)
"""Codes after which the same call may succeed later, unless they ended a request."""


def error_to_json(error: ApplianceError) -> dict[str, object]:
    """Write an error as JSON.

    Args:
        error: with plain JSON values in `params` and `extras`.
    """
    told: dict[str, object] = {"code": error.code.value}
    if error.params:
        told["params"] = dict(error.params)
    if error.extras:
        told["extras"] = dict(error.extras)
    if error.sentence != SENTENCES[error.code]:
        told["sentence"] = error.sentence
    return told


def error_from_json(fields: Mapping[str, Any]) -> ApplianceError:
    """Read back what `error_to_json` wrote.

    A code that this version does not know, of a later one, is read as `INTERNAL`.

    Args:
        fields: of the record.
    """
    try:
        code = ErrorCode(fields["code"])
    except ValueError:
        return ApplianceError(ErrorCode.INTERNAL, extras=dict(fields.get("extras", {})))
    return ApplianceError(
        code,
        params=dict(fields.get("params", {})),
        extras=dict(fields.get("extras", {})),
        sentence=fields.get("sentence"),
    )


def error_of_reason(state: RequestState, reason: str) -> ApplianceError | None:
    """Read why the last attempt to sign a request ended without a signature.

    A client repeats a call whose request was given back, and never one whose request
    has failed for good.

    Args:
        state: of the request.
        reason: as its row keeps it: a code, or words of people.

    Returns:
        `RequestFailedError` where a code that else passes has ended the request;
        `STATE` for one that failed without a code of its own, as others of its process
        did; None where no attempt ended so. Words of a signer or an integrator are
        no code, even if they look like one.
    """
    if state not in {RequestState.PENDING, RequestState.FAILED}:
        return None
    if reason not in ErrorCode.__members__:
        is_over = state is RequestState.FAILED
        params: dict[str, object] = {"estado": state.value}
        return ApplianceError(ErrorCode.STATE, params=params) if is_over else None
    code = ErrorCode(reason)
    if state is RequestState.FAILED and code in PASSING:
        return RequestFailedError(code)
    if code is ErrorCode.STORE_UNAVAILABLE:
        # Without a database there would be no row: it was the documents' store.
        return DocumentsAwayError()
    return ApplianceError(code)
