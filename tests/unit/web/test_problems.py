"""Errors as answers: complete, in two languages, in one shape."""

import re

import pytest
from werkzeug.exceptions import Forbidden, MethodNotAllowed, RequestEntityTooLarge

from appliance.domain.documents.inspected import FindingKind
from appliance.domain.errors import (
    SENTENCES,
    ApplianceError,
    CheckDigitError,
    ErrorCode,
    FieldInvalidError,
    RequestFailedError,
)
from appliance.web import i18n, problems
from appliance.web.allowed_values import PHRASES
from appliance.web.document_warnings import FIELD_OBSTACLES, FINDINGS

_PLACES = re.compile(r"{(\w+)}")


@pytest.mark.parametrize("code", ErrorCode)
def test_every_code_has_answer(code: ErrorCode) -> None:
    """Each code has one status, a category and a sentence; no input is a 500."""
    answer = problems.ANSWERS[code]

    assert 400 <= answer.status < 600
    assert (answer.status == 500) == (code is ErrorCode.INTERNAL)
    assert SENTENCES[code]


@pytest.mark.parametrize("code", ErrorCode)
def test_every_code_has_spanish_sentence(code: ErrorCode) -> None:
    """Each sentence is there in Spanish, with the same places."""
    english = SENTENCES[code]

    spanish = i18n.translate("es", english)

    assert spanish != english
    assert sorted(_PLACES.findall(spanish)) == sorted(_PLACES.findall(english))


@pytest.mark.parametrize(
    "msgid",
    [
        *problems.TITLES.values(),
        *(FINDINGS[kind] for kind in FindingKind),
        *FIELD_OBSTACLES.values(),
    ],
)
def test_titles_and_findings_have_spanish(msgid: str) -> None:
    """Titles and what is told of documents are there in Spanish."""
    assert i18n.translate("es", msgid)
    assert msgid == "Conflict" or i18n.translate("es", msgid) != msgid


@pytest.mark.parametrize("phrase", sorted(PHRASES))
def test_phrases_of_what_a_field_may_be_have_spanish(phrase: str) -> None:
    """Numbers stay where they are; what has no words stays as it is."""
    numbered = re.sub("#", "7", phrase)
    error = FieldInvalidError("x", [numbered, "1..3", "#RRGGBB"])

    spanish = problems.members(error, "es")["allowed"]
    english = problems.members(error, "en")["allowed"]

    expected = re.sub("#", "7", i18n.translate("es", phrase))
    assert spanish == [expected, "1..3", "#RRGGBB"]
    assert english == [numbered, "1..3", "#RRGGBB"]
    assert phrase == "#..# bytes" or expected != numbered


def test_names_from_documents_are_not_translated() -> None:
    """A signature field may be called as one of our phrases."""
    error = ApplianceError(ErrorCode.PDF_LOCKED, extras={"allowed": ["once"]})

    assert problems.members(error, "es")["allowed"] == ["once"]


def test_check_digit_is_named_in_spanish() -> None:
    """Who mistyped a digit is told so."""
    told = problems.members(CheckDigitError("cuil", "XX-XXXXXXXX-X"), "es")

    assert "dígito verificador de cuil" in str(told["detail"])
    assert (told["code"], told["field"]) == ("FIELD_INVALID", "cuil")


def test_every_status_has_title() -> None:
    """No answer lacks a title."""
    used = {answer.status for answer in problems.ANSWERS.values()}

    assert used == problems.TITLES.keys()


async def test_problem_has_the_decided_members() -> None:
    """The members of an error are those of decisions, extras beside them."""
    error = ApplianceError(
        ErrorCode.SIGN_PASSWORD_WRONG, extras={"attemptsLeft": 9, "status": 200}
    )

    response = problems.render(error, "r1", "en")

    assert response.status_code == 403
    assert response.headers["Content-Type"] == "application/problem+json"
    assert await response.get_json() == {
        "type": "urn:rubrica:error:SIGN_PASSWORD_WRONG",
        "title": "Not allowed",
        "status": 403,
        "detail": "The signing password is wrong.",
        "code": "SIGN_PASSWORD_WRONG",
        "category": "fix_request",
        "requestId": "r1",
        "attemptsLeft": 9,
    }


async def test_detail_filled_after_translation() -> None:
    """Values go into the translated sentence, and are never read as places."""
    error = ApplianceError(
        ErrorCode.FIELD_UNKNOWN, params={"field": "{code} %s {0.__class__}"}
    )

    body = await problems.render(error, "r1", "es").get_json()

    assert body["detail"] == "Acá no hay ningún campo {code} %s {0.__class__}."


def test_retry_after_told() -> None:
    """An error's own time to wait goes before the usual one."""
    limited = ApplianceError(ErrorCode.RATE_LIMITED, extras={"retryAfter": 7})

    own = problems.render(limited, "r1", "es")
    usual = problems.render(ApplianceError(ErrorCode.OVERLOADED), "r1", "es")

    assert (own.headers["Retry-After"], usual.headers["Retry-After"]) == ("7", "5")


def test_framework_errors_mapped() -> None:
    """What the framework raises has codes too; the unknown is INTERNAL."""
    codes = [
        problems.of_exception(exc).code
        for exc in (
            MethodNotAllowed(),
            RequestEntityTooLarge(),
            Forbidden(),
            KeyError("secret"),
        )
    ]

    assert codes == [
        ErrorCode.METHOD_NOT_ALLOWED,
        ErrorCode.BODY_TOO_LARGE,
        ErrorCode.BAD_HEADER,
        ErrorCode.INTERNAL,
    ]


@pytest.mark.parametrize(
    "code", [code for code in ErrorCode if problems.ANSWERS[code].retry_after_s]
)
def test_what_failed_for_good_is_not_worth_a_repetition(code: ErrorCode) -> None:
    """Its code and status stay; a client is told to ask with a new request."""
    told = problems.problem(RequestFailedError(code), "r", "es")

    assert (told["code"], told["category"]) == (code.value, "terminal")
    assert told["status"] == problems.ANSWERS[code].status
    assert "retryAfter" not in told
    assert "solicitud nueva" in str(told["detail"])
