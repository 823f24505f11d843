"""Errors that are read back from the record."""

import pytest

from appliance.domain.documents.inspected import Inspection, PageBox, SigningFacts
from appliance.domain.errors import (
    ApplianceError,
    DocumentsAwayError,
    ErrorCode,
    RequestFailedError,
    error_of_reason,
)
from appliance.domain.errors.records import PASSING
from appliance.domain.ids import RequestId
from appliance.domain.requests.backend_batch import BatchDocument
from appliance.domain.requests.terms import SignatureTerms
from appliance.domain.signing_command import SignParameters
from appliance.domain.vocab import RequestState
from appliance.web import problems
from appliance.web.problems import ANSWERS, Category
from embed import wire

INSPECTION = Inspection(
    100, (PageBox(0, 0, 595, 842, 0),), (), 0, None, signing=SigningFacts()
)


def test_codes_that_pass_are_those_of_repeatable_calls() -> None:
    """The domain knows no categories: its list is held to theirs here."""
    repeatable = {
        code for code in ErrorCode if ANSWERS[code].category is Category.RETRY
    }

    assert repeatable == PASSING


@pytest.mark.parametrize("code", ErrorCode)
def test_no_code_of_a_failed_request_asks_for_a_repetition(code: ErrorCode) -> None:
    """The same code of a request that was given back may."""
    failed = error_of_reason(RequestState.FAILED, code.value)
    given_back = error_of_reason(RequestState.PENDING, code.value)

    assert failed is not None
    assert given_back is not None
    assert failed.code is given_back.code is code
    assert problems.category(failed) is not Category.RETRY
    assert problems.category(given_back) is ANSWERS[code].category
    assert not isinstance(given_back, RequestFailedError)


@pytest.mark.parametrize("reason", ["", "PROCESS_ENDED"])
def test_request_that_failed_with_others_has_an_error_too(reason: str) -> None:
    """Its own state, where the record has no code of an error."""
    failed = error_of_reason(RequestState.FAILED, reason)

    assert failed is not None
    assert failed.code is ErrorCode.STATE
    assert failed.params == {"estado": "fallida"}
    assert error_of_reason(RequestState.PENDING, reason) is None


@pytest.mark.parametrize(
    "state",
    [each for each in RequestState if each.value not in {"pendiente", "fallida"}],
)
def test_words_of_people_are_no_code(state: RequestState) -> None:
    """Whatever a signer who rejects, or an integrator who withdraws, writes."""
    assert error_of_reason(state, "SIGNING_FAILED") is None


def test_recorded_store_is_that_of_the_documents() -> None:
    """Without a database nothing could have been recorded."""
    given_back = error_of_reason(RequestState.PENDING, "STORE_UNAVAILABLE")

    assert isinstance(given_back, DocumentsAwayError)


def reason_told(state: RequestState, reason: str) -> dict[str, object] | None:
    """What the frame's list says of a document of a batch."""
    terms = SignatureTerms.of(SignParameters(), INSPECTION)
    document = BatchDocument(
        RequestId(1), "a.pdf", 1, state, reason, is_seen=True, terms=terms
    )
    told = wire.batch_document(document, None, "en")["reason"]
    assert told is None or isinstance(told, dict)
    return told


def test_document_of_a_batch_that_failed_for_good_is_told_so() -> None:
    """And one that was given back as what may be repeated."""
    failed = reason_told(RequestState.FAILED, "TSA_UNAVAILABLE")
    given_back = reason_told(RequestState.PENDING, "TSA_UNAVAILABLE")

    assert failed is not None
    assert failed["category"] == "terminal"
    assert "failed for good (TSA_UNAVAILABLE)" in str(failed["message"])
    assert given_back is not None
    assert given_back["category"] == "retry"
    assert reason_told(RequestState.REJECTED, "STATE") is None


def test_refusal_of_a_batch_keeps_its_category() -> None:
    """Also where it is not that of its code."""
    refused = {RequestId(1): RequestFailedError(ErrorCode.HSM_UNAVAILABLE)}
    passing = ApplianceError(ErrorCode.STATE, params={"estado": "en_espera"})

    (told,) = wire.refused({**refused}, "en")
    (waits,) = wire.refused({RequestId(2): passing}, "en")

    assert told["reason"]["category"] == "terminal"  # type: ignore[index]
    assert waits["reason"]["category"] == "retry"  # type: ignore[index]
