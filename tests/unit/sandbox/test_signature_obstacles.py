"""Answers for signatures that the libraries cannot read."""

import pytest
from cryptography.exceptions import UnsupportedAlgorithm
from pyhanko.sign.ades.report import AdESFailure, AdESIndeterminate
from pyhanko.sign.validation.errors import SignatureValidationError

from appliance.domain.documents.verification import Answer, CheckCode
from worker.sandbox.verify.signature_checks import obstacle

WORDS = "/Contents of the file"


@pytest.mark.parametrize(
    ("raised", "answer", "code"),
    [
        (
            UnsupportedAlgorithm(WORDS),
            Answer.UNCHECKED,
            CheckCode.ALGORITHM_UNSUPPORTED,
        ),
        (NotImplementedError(WORDS), Answer.UNCHECKED, CheckCode.ALGORITHM_UNSUPPORTED),
        (
            SignatureValidationError(
                WORDS, ades_subindication=AdESFailure.FORMAT_FAILURE
            ),
            Answer.NO,
            CheckCode.FORMAT_FAILURE,
        ),
        (
            SignatureValidationError(
                WORDS, ades_subindication=AdESIndeterminate.NO_SIGNING_CERTIFICATE_FOUND
            ),
            Answer.UNCHECKED,
            CheckCode.NO_SIGNING_CERTIFICATE_FOUND,
        ),
        (
            SignatureValidationError(WORDS),
            Answer.UNCHECKED,
            CheckCode.SIGNATURE_UNREADABLE,
        ),
        (ValueError(WORDS), Answer.UNCHECKED, CheckCode.SIGNATURE_UNREADABLE),
    ],
)
def test_obstacle_is_named_in_our_words(
    raised: Exception, answer: Answer, code: CheckCode
) -> None:
    """A code for programs; what the file says is not repeated."""
    check = obstacle(raised)

    assert (check.answer, check.code) == (answer, code)
    assert check.reason
    assert WORDS not in check.reason
