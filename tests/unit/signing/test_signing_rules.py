"""What a signing command may do to a request, by the state of the request alone."""

from dataclasses import replace

import pytest

from appliance.domain.documents.inspected import Damage, Repair
from appliance.domain.errors import (
    ApplianceError,
    DocumentsAwayError,
    ErrorCode,
    RequestFailedError,
)
from appliance.domain.ids import IntegratorId, RequestId
from appliance.domain.requests.request import (
    RequestView,
    SignCommand,
    SignedDocumentView,
)
from appliance.domain.signing_command import GivenParameters
from appliance.domain.vocab import RequestState
from appliance.signing.signing_rules import check_document, repeated, standing
from tests.support.factories.fakes import request_view

OURS, OTHER = "f1" * 32, "f2" * 32
"""Fingerprints: of this command, and of another."""
SEEN, CAME = "d1" * 32, "d2" * 32
"""SHA-256 of the document to be signed, and of a damaged file that it was made of."""


def view(state: RequestState, by: str | None = None, reason: str = "") -> RequestView:
    """A request in a state, begun by the command of a fingerprint."""
    plain = replace(request_view(1, "p"), sha256=SEEN)
    return replace(plain, state=state, params_sha256=by, reason=reason)


@pytest.mark.parametrize("state", [RequestState.SIGNED, RequestState.IN_PROGRESS])
def test_the_same_command_again_is_a_repeat(state: RequestState) -> None:
    """It only waits for what is done or going on."""
    assert repeated(view(state, OURS), OURS)


def test_a_pending_request_is_no_repeat() -> None:
    """Not even of the command that was given back to its signer."""
    assert not repeated(view(RequestState.PENDING, OURS), OURS)


@pytest.mark.parametrize(
    ("state", "code"),
    [
        (RequestState.SIGNED, ErrorCode.ALREADY_SIGNED),
        (RequestState.IN_PROGRESS, ErrorCode.IN_PROGRESS),
        (RequestState.REJECTED, ErrorCode.STATE),
        (RequestState.CANCELLED, ErrorCode.STATE),
        (RequestState.EXPIRED, ErrorCode.STATE),
        (RequestState.FAILED, ErrorCode.STATE),
        (RequestState.WAITING, ErrorCode.STATE),
    ],
)
def test_another_command_is_refused(state: RequestState, code: ErrorCode) -> None:
    """By what the request has come to."""
    with pytest.raises(ApplianceError) as refused:
        repeated(view(state, OTHER), OURS)

    assert refused.value.code is code


@pytest.mark.parametrize(
    ("if_match", "sent", "code"),
    [
        (None, None, None),
        (SEEN, SEEN, None),
        (None, CAME, None),
        (CAME, None, ErrorCode.DOCUMENT_CHANGED),
        (SEEN, OTHER, ErrorCode.DOCUMENT_MISMATCH),
    ],
)
def test_document_is_the_one_that_the_caller_means(
    if_match: str | None, sent: str | None, code: ErrorCode | None
) -> None:
    """Of a repaired copy the file that came in is meant too, but was not seen."""
    repaired = replace(
        view(RequestState.PENDING), repair=Repair(CAME, (next(iter(Damage)),))
    )
    command = SignCommand(RequestId(1), GivenParameters(), b"x" * 8, if_match=if_match)

    if code is None:
        check_document(repaired, command, sent)
        return
    with pytest.raises(ApplianceError) as refused:
        check_document(repaired, command, sent)
    assert refused.value.code is code


def test_outcome_is_the_signed_document_or_none_yet() -> None:
    """Whoever carried the command out."""
    signed = SignedDocumentView(
        RequestId(1), IntegratorId("i"), "a.pdf", SEEN, 1, "B-LT"
    )

    done = standing(view(RequestState.SIGNED, OURS), signed, OURS)
    assert done is not None
    assert done.document is signed
    assert standing(view(RequestState.IN_PROGRESS, OURS), None, OURS) is None


@pytest.mark.parametrize(
    ("state", "reason", "code"),
    [
        (RequestState.PENDING, "HSM_UNAVAILABLE", ErrorCode.HSM_UNAVAILABLE),
        (RequestState.FAILED, "SIGNING_FAILED", ErrorCode.SIGNING_FAILED),
        # What a signer wrote may look like a code, and is none.
        (RequestState.REJECTED, "SIGNING_FAILED", ErrorCode.STATE),
        (RequestState.PENDING, "", ErrorCode.STATE),
    ],
)
def test_outcome_is_the_reason_of_the_last_attempt(
    state: RequestState, reason: str, code: ErrorCode
) -> None:
    """Once the request was given back, or given up."""
    with pytest.raises(ApplianceError) as ended:
        standing(view(state, OURS, reason), None, OURS)

    assert ended.value.code is code


@pytest.mark.parametrize(
    ("state", "is_final"), [(RequestState.PENDING, False), (RequestState.FAILED, True)]
)
@pytest.mark.parametrize(
    "code", [ErrorCode.TSA_UNAVAILABLE, ErrorCode.REVOCATION_UNAVAILABLE]
)
def test_code_that_passes_is_final_for_a_failed_request(
    state: RequestState, code: ErrorCode, *, is_final: bool
) -> None:
    """A client repeats what was given back, and never what failed for good."""
    with pytest.raises(ApplianceError) as refused:
        standing(view(state, OURS, code.value), None, OURS)

    assert refused.value.code is code
    assert isinstance(refused.value, RequestFailedError) is is_final


def test_recorded_store_is_that_of_documents() -> None:
    """Without a database nothing could have been recorded."""
    given_back = view(RequestState.PENDING, OURS, ErrorCode.STORE_UNAVAILABLE.value)
    with pytest.raises(DocumentsAwayError):
        standing(given_back, None, OURS)
