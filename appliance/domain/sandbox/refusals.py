"""How the sandbox refuses a document."""

from collections.abc import Mapping
from typing import Any, Final

from appliance.domain.errors import DocumentRefusedError, ErrorCode
from appliance.domain.sandbox.messages import MessageInvalidError

REFUSALS: Final = frozenset(
    {
        ErrorCode.DOCUMENT_EMPTY,
        ErrorCode.DOCUMENT_TOO_LARGE,
        ErrorCode.PAGE_OUT_OF_RANGE,
        ErrorCode.PDF_MALFORMED,
        ErrorCode.PDF_PASSWORD_NEEDED,
        ErrorCode.PDF_ENCRYPTED,
        ErrorCode.PDF_XFA,
        ErrorCode.PDF_NO_PAGES,
        ErrorCode.PDF_TOO_COMPLEX,
        ErrorCode.PDF_UNVERIFIABLE,
        ErrorCode.PDF_AMBIGUOUS,
        ErrorCode.PDF_EXTERNAL_CONTENT,
        ErrorCode.PICTURE_UNUSABLE,
    }
)
"""The codes by which the sandbox may refuse a document."""

DIED: Final = "the job ended with"
"""First words of the reason where a job ended without an answer."""
_PARAM_CHARS: Final = 100


def refusal_to_json(error: DocumentRefusedError) -> dict[str, object]:
    """Write a refusal."""
    return {
        "refused": error.code.value,
        "reason": error.reason[:200],
        "params": {
            name: value for name, value in error.params.items() if _is_plain(value)
        },
    }


def refusal_from_json(message: Mapping[str, Any]) -> DocumentRefusedError:
    """Read a refusal.

    Raises:
        MessageInvalidError: its code is not one of `REFUSALS`.
    """
    try:
        code = ErrorCode(message["refused"])
    except (ValueError, TypeError) as exc:
        raise MessageInvalidError from exc
    params, reason = message.get("params"), message.get("reason")
    if code not in REFUSALS or not isinstance(params, dict):
        raise MessageInvalidError
    kept = {name: value for name, value in params.items() if _is_plain(value)}
    return DocumentRefusedError(code, str(reason)[:200], params=kept)


def _is_plain(value: object) -> bool:
    """Say whether a value may stand in a sentence."""
    return isinstance(value, int | str) and len(str(value)) <= _PARAM_CHARS


def says_nothing(refusal: DocumentRefusedError) -> bool:
    """True if the job came to no answer, so that nothing is known of the document.

    Args:
        refusal: of the sandbox.
    """
    is_too_much = refusal.code is ErrorCode.PDF_TOO_COMPLEX
    return is_too_much or refusal.reason.startswith(DIED)
