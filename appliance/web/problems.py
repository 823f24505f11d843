"""Errors as answers: the one mapping from codes to HTTP, and its one shape.

Only this module knows a status code for an error. What is not one of our
errors is a silent 500 whose cause goes to the log under the request id.
"""

from dataclasses import dataclass
from enum import StrEnum
from http import HTTPStatus
from typing import Final

from quart import Response
from werkzeug.exceptions import HTTPException, MethodNotAllowed

from appliance.domain.errors import (
    ApplianceError,
    ErrorCode,
    RequestFailedError,
    SeveralFaultsError,
)
from appliance.domain.vocab import BatchState, RequestState
from appliance.web import i18n
from appliance.web.allowed_values import in_words
from appliance.web.responses import json_response

MEDIA_TYPE: Final = "application/problem+json"


class Category(StrEnum):
    """What a client does next; the member `category` of every error."""

    RETRY = "retry"
    """The same call may succeed later."""
    TERMINAL = "terminal"
    """No call of this client changes it."""
    NEW_SESSION = "new_session"
    """Sign in again, then repeat the call."""
    FIX_REQUEST = "fix_request"
    """Send something else."""


@dataclass(frozen=True, slots=True)
class Answer:
    """How one code is answered."""

    status: HTTPStatus
    category: Category
    retry_after_s: int | None = None
    """`Retry-After` when the error itself brings no `retryAfter`."""


_S = HTTPStatus
_RETRY, _TERMINAL = Category.RETRY, Category.TERMINAL
_AGAIN, _FIX = Category.NEW_SESSION, Category.FIX_REQUEST

ANSWERS: Final[dict[ErrorCode, Answer]] = {
    ErrorCode.BAD_HEADER: Answer(_S.BAD_REQUEST, _FIX),
    ErrorCode.BODY_NOT_OBJECT: Answer(_S.BAD_REQUEST, _FIX),
    ErrorCode.BODY_TIMEOUT: Answer(_S.REQUEST_TIMEOUT, _RETRY),
    ErrorCode.BODY_TOO_LARGE: Answer(_S.REQUEST_ENTITY_TOO_LARGE, _FIX),
    ErrorCode.CONTENT_TYPE: Answer(_S.UNSUPPORTED_MEDIA_TYPE, _FIX),
    ErrorCode.FIELD_INVALID: Answer(_S.BAD_REQUEST, _FIX),
    ErrorCode.FIELD_MISSING: Answer(_S.BAD_REQUEST, _FIX),
    ErrorCode.FIELD_UNKNOWN: Answer(_S.BAD_REQUEST, _FIX),
    ErrorCode.JSON_INVALID: Answer(_S.BAD_REQUEST, _FIX),
    ErrorCode.METHOD_NOT_ALLOWED: Answer(_S.METHOD_NOT_ALLOWED, _FIX),
    ErrorCode.NOT_ACCEPTABLE: Answer(_S.NOT_ACCEPTABLE, _FIX),
    ErrorCode.NOT_FOUND: Answer(_S.NOT_FOUND, _FIX),
    ErrorCode.QUERY_INVALID: Answer(_S.BAD_REQUEST, _FIX),
    ErrorCode.QUERY_UNKNOWN: Answer(_S.BAD_REQUEST, _FIX),
    ErrorCode.RANGE_UNSATISFIABLE: Answer(_S.REQUESTED_RANGE_NOT_SATISFIABLE, _FIX),
    ErrorCode.TOKEN_MISSING: Answer(_S.UNAUTHORIZED, _AGAIN),
    ErrorCode.TOKEN_INVALID: Answer(_S.UNAUTHORIZED, _AGAIN),
    ErrorCode.TOKEN_EXPIRED: Answer(_S.UNAUTHORIZED, _AGAIN),
    ErrorCode.MFA_REQUIRED: Answer(_S.FORBIDDEN, _AGAIN),
    ErrorCode.STEP_UP: Answer(_S.FORBIDDEN, _AGAIN),
    ErrorCode.LOGIN_FAILED: Answer(_S.UNAUTHORIZED, _FIX),
    ErrorCode.OTP_INVALID: Answer(_S.UNAUTHORIZED, _FIX),
    ErrorCode.RATE_LIMITED: Answer(_S.TOO_MANY_REQUESTS, _RETRY, 60),
    ErrorCode.API_KEY_MISSING: Answer(_S.UNAUTHORIZED, _FIX),
    ErrorCode.API_KEY_INVALID: Answer(_S.UNAUTHORIZED, _FIX),
    ErrorCode.API_KEY_ENVIRONMENT: Answer(_S.UNAUTHORIZED, _FIX),
    ErrorCode.API_KEY_IN_URL: Answer(_S.BAD_REQUEST, _FIX),
    ErrorCode.API_KEY_IN_BROWSER: Answer(_S.FORBIDDEN, _FIX),
    ErrorCode.API_KEY_ADDRESS: Answer(_S.FORBIDDEN, _FIX),
    ErrorCode.API_KEY_SCOPE: Answer(_S.FORBIDDEN, _FIX),
    ErrorCode.API_KEY_NOT_FOUND: Answer(_S.NOT_FOUND, _FIX),
    ErrorCode.INTEGRATOR_DISABLED: Answer(_S.FORBIDDEN, _TERMINAL),
    ErrorCode.SESSION_TOKEN_EXPIRED: Answer(_S.UNAUTHORIZED, _AGAIN),
    ErrorCode.SESSION_TOKEN_INVALID: Answer(_S.UNAUTHORIZED, _AGAIN),
    ErrorCode.SESSION_SUPERSEDED: Answer(_S.UNAUTHORIZED, _AGAIN),
    ErrorCode.SESSION_IN_USE: Answer(_S.CONFLICT, _AGAIN),
    ErrorCode.SESSION_DOCUMENTS: Answer(_S.CONFLICT, _AGAIN),
    ErrorCode.SESSION_CODES: Answer(_S.CONFLICT, _AGAIN),
    ErrorCode.DOMAIN_INVALID: Answer(_S.BAD_REQUEST, _FIX),
    ErrorCode.INIT_INVALID: Answer(_S.BAD_REQUEST, _FIX),
    ErrorCode.LEGACY_CREDENTIALS: Answer(_S.BAD_REQUEST, _FIX),
    ErrorCode.HANDSHAKE_REQUIRED: Answer(_S.CONFLICT, _FIX),
    ErrorCode.BASE64_INVALID: Answer(_S.BAD_REQUEST, _FIX),
    ErrorCode.MIME: Answer(_S.BAD_REQUEST, _FIX),
    ErrorCode.IDENTITY_MISMATCH: Answer(_S.FORBIDDEN, _FIX),
    ErrorCode.SIGNER_PENDING_APPROVAL: Answer(_S.FORBIDDEN, _TERMINAL),
    ErrorCode.BUSY: Answer(_S.CONFLICT, _RETRY, 2),
    ErrorCode.ENROLMENT_UNKNOWN: Answer(_S.NOT_FOUND, _TERMINAL),
    ErrorCode.ENROLMENT_EXPIRED: Answer(_S.CONFLICT, _TERMINAL),
    ErrorCode.ENROLMENT_USED: Answer(_S.CONFLICT, _TERMINAL),
    ErrorCode.WEBHOOK_NOT_FOUND: Answer(_S.NOT_FOUND, _FIX),
    ErrorCode.WEBHOOK_DISABLED: Answer(_S.CONFLICT, _FIX),
    ErrorCode.WEBHOOKS_TOO_MANY: Answer(_S.CONFLICT, _FIX),
    ErrorCode.DELIVERY_NOT_FOUND: Answer(_S.NOT_FOUND, _TERMINAL),
    ErrorCode.TEST_SIGNERS_TOO_MANY: Answer(_S.CONFLICT, _FIX),
    ErrorCode.ORIGIN_REFUSED: Answer(_S.FORBIDDEN, _FIX),
    ErrorCode.CSRF_REFUSED: Answer(_S.FORBIDDEN, _AGAIN),
    ErrorCode.CONSOLE_USER_NOT_FOUND: Answer(_S.NOT_FOUND, _TERMINAL),
    ErrorCode.CONSOLE_USER_STATE: Answer(_S.CONFLICT, _TERMINAL),
    ErrorCode.CONSOLE_USER_LAST: Answer(_S.CONFLICT, _TERMINAL),
    ErrorCode.NOT_LOCKED: Answer(_S.CONFLICT, _TERMINAL),
    ErrorCode.PERSON_STATE: Answer(_S.CONFLICT, _TERMINAL),
    ErrorCode.VOUCH_REFUSED: Answer(_S.FORBIDDEN, _TERMINAL),
    ErrorCode.MAIL_OFF: Answer(_S.CONFLICT, _TERMINAL),
    ErrorCode.REFERENCE_IN_USE: Answer(_S.CONFLICT, _FIX),
    ErrorCode.SOLICITUD_NOT_FOUND: Answer(_S.NOT_FOUND, _TERMINAL),
    ErrorCode.LOTE_NOT_FOUND: Answer(_S.NOT_FOUND, _TERMINAL),
    ErrorCode.DOCUMENT_NOT_FOUND: Answer(_S.NOT_FOUND, _TERMINAL),
    ErrorCode.ALREADY_SIGNED: Answer(_S.CONFLICT, _TERMINAL),
    ErrorCode.IN_PROGRESS: Answer(_S.CONFLICT, _RETRY, 2),
    ErrorCode.STILL_SIGNING: Answer(_S.SERVICE_UNAVAILABLE, _RETRY, 2),
    ErrorCode.STATE: Answer(_S.CONFLICT, _TERMINAL),
    ErrorCode.IDEMKEY_CONFLICT: Answer(_S.CONFLICT, _FIX),
    ErrorCode.DOCUMENT_CHANGED: Answer(_S.PRECONDITION_FAILED, _FIX),
    ErrorCode.NOT_SIGNED_YET: Answer(_S.CONFLICT, _RETRY, 2),
    ErrorCode.PAGE_OUT_OF_RANGE: Answer(_S.UNPROCESSABLE_ENTITY, _FIX),
    ErrorCode.POSITION_OUT_OF_PAGE: Answer(_S.UNPROCESSABLE_ENTITY, _FIX),
    ErrorCode.PRESET_FIXED: Answer(_S.CONFLICT, _FIX),
    ErrorCode.STAMP_ANCHOR_NOT_FOUND: Answer(_S.UNPROCESSABLE_ENTITY, _FIX),
    ErrorCode.SIGN_PASSWORD_WRONG: Answer(_S.FORBIDDEN, _FIX),
    ErrorCode.SIGN_LOCKED: Answer(_S.LOCKED, _TERMINAL),
    ErrorCode.CERTIFICATE_NOT_USABLE: Answer(_S.CONFLICT, _TERMINAL),
    ErrorCode.CERTIFICATE_NOT_FOUND: Answer(_S.NOT_FOUND, _TERMINAL),
    ErrorCode.CERTIFICATE_STATE: Answer(_S.CONFLICT, _TERMINAL),
    ErrorCode.ACTIVATION_EXPIRED: Answer(_S.SERVICE_UNAVAILABLE, _RETRY, 2),
    ErrorCode.ACTIVATION_INVALID: Answer(_S.SERVICE_UNAVAILABLE, _RETRY, 2),
    # The request is now `fallida`: its document could not be signed.
    ErrorCode.SIGNING_FAILED: Answer(_S.UNPROCESSABLE_ENTITY, _TERMINAL),
    ErrorCode.CREDENTIAL_NOT_FOUND: Answer(_S.NOT_FOUND, _TERMINAL),
    ErrorCode.CREDENTIAL_STATE: Answer(_S.CONFLICT, _TERMINAL),
    ErrorCode.CHAIN_MALFORMED: Answer(_S.UNPROCESSABLE_ENTITY, _FIX),
    ErrorCode.CHAIN_ORDER: Answer(_S.UNPROCESSABLE_ENTITY, _FIX),
    ErrorCode.CHAIN_INCOMPLETE: Answer(_S.UNPROCESSABLE_ENTITY, _FIX),
    ErrorCode.CHAIN_SIGNATURE: Answer(_S.UNPROCESSABLE_ENTITY, _FIX),
    ErrorCode.CHAIN_ROOT_UNTRUSTED: Answer(_S.UNPROCESSABLE_ENTITY, _FIX),
    ErrorCode.CHAIN_ISSUER_NOT_CA: Answer(_S.UNPROCESSABLE_ENTITY, _FIX),
    ErrorCode.CHAIN_PATH_LENGTH: Answer(_S.UNPROCESSABLE_ENTITY, _FIX),
    ErrorCode.CERTIFICATE_KEY_DIFFERS: Answer(_S.UNPROCESSABLE_ENTITY, _FIX),
    ErrorCode.CERTIFICATE_ISSUED_HERE: Answer(_S.UNPROCESSABLE_ENTITY, _FIX),
    ErrorCode.CERTIFICATE_ISSUED_OUTSIDE: Answer(_S.CONFLICT, _TERMINAL),
    ErrorCode.CERTIFICATE_CUIL_MISSING: Answer(_S.UNPROCESSABLE_ENTITY, _FIX),
    ErrorCode.CERTIFICATE_CUIL_DIFFERS: Answer(_S.UNPROCESSABLE_ENTITY, _FIX),
    ErrorCode.CERTIFICATE_NOT_YET_VALID: Answer(_S.UNPROCESSABLE_ENTITY, _FIX),
    ErrorCode.CERTIFICATE_EXPIRED: Answer(_S.UNPROCESSABLE_ENTITY, _FIX),
    ErrorCode.CERTIFICATE_IS_CA: Answer(_S.UNPROCESSABLE_ENTITY, _FIX),
    ErrorCode.CERTIFICATE_KEY_USAGE: Answer(_S.UNPROCESSABLE_ENTITY, _FIX),
    ErrorCode.CERTIFICATE_EXTENDED_KEY_USAGE: Answer(_S.UNPROCESSABLE_ENTITY, _FIX),
    ErrorCode.CERTIFICATE_EXTENSION_UNKNOWN: Answer(_S.UNPROCESSABLE_ENTITY, _FIX),
    ErrorCode.CERTIFICATE_WEAK_ALGORITHM: Answer(_S.UNPROCESSABLE_ENTITY, _FIX),
    ErrorCode.CERTIFICATE_UNVERIFIABLE: Answer(_S.UNPROCESSABLE_ENTITY, _FIX),
    ErrorCode.ANCHOR_NOT_A_ROOT: Answer(_S.UNPROCESSABLE_ENTITY, _FIX),
    ErrorCode.ANCHOR_FINGERPRINT: Answer(_S.UNPROCESSABLE_ENTITY, _FIX),
    ErrorCode.ANCHOR_NOT_FOUND: Answer(_S.NOT_FOUND, _FIX),
    ErrorCode.REVOCATION_PIN_WRONG: Answer(_S.FORBIDDEN, _FIX),
    ErrorCode.DOCUMENT_EMPTY: Answer(_S.UNPROCESSABLE_ENTITY, _FIX),
    ErrorCode.DOCUMENT_MISMATCH: Answer(_S.UNPROCESSABLE_ENTITY, _FIX),
    ErrorCode.DOCUMENT_TOO_LARGE: Answer(_S.REQUEST_ENTITY_TOO_LARGE, _FIX),
    ErrorCode.FILENAME: Answer(_S.UNPROCESSABLE_ENTITY, _FIX),
    ErrorCode.PDF_MALFORMED: Answer(_S.UNPROCESSABLE_ENTITY, _FIX),
    ErrorCode.PDF_PASSWORD_NEEDED: Answer(_S.UNPROCESSABLE_ENTITY, _FIX),
    ErrorCode.PDF_ENCRYPTED: Answer(_S.UNPROCESSABLE_ENTITY, _FIX),
    ErrorCode.PDF_XFA: Answer(_S.UNPROCESSABLE_ENTITY, _FIX),
    ErrorCode.PDF_NO_PAGES: Answer(_S.UNPROCESSABLE_ENTITY, _FIX),
    ErrorCode.PDF_TOO_COMPLEX: Answer(_S.UNPROCESSABLE_ENTITY, _FIX),
    ErrorCode.PDF_UNVERIFIABLE: Answer(_S.UNPROCESSABLE_ENTITY, _FIX),
    ErrorCode.PDF_AMBIGUOUS: Answer(_S.UNPROCESSABLE_ENTITY, _FIX),
    ErrorCode.PDF_EXTERNAL_CONTENT: Answer(_S.UNPROCESSABLE_ENTITY, _FIX),
    ErrorCode.PICTURE_UNUSABLE: Answer(_S.UNPROCESSABLE_ENTITY, _FIX),
    ErrorCode.PDF_NOT_ALLOWED: Answer(_S.UNPROCESSABLE_ENTITY, _FIX),
    ErrorCode.PDF_LOCKED: Answer(_S.CONFLICT, _TERMINAL),
    ErrorCode.PDF_ALREADY_SIGNED: Answer(_S.CONFLICT, _FIX),
    ErrorCode.PDF_CERTIFIED: Answer(_S.CONFLICT, _FIX),
    ErrorCode.SIGNATURE_FIELD_NOT_FOUND: Answer(_S.UNPROCESSABLE_ENTITY, _FIX),
    ErrorCode.SIGNATURE_FIELD_FILLED: Answer(_S.CONFLICT, _FIX),
    ErrorCode.SIGNATURE_FIELD_DEMANDS: Answer(_S.CONFLICT, _FIX),
    ErrorCode.SIGNERS_LOCKED_OUT: Answer(_S.CONFLICT, _FIX),
    ErrorCode.HSM_UNAVAILABLE: Answer(_S.SERVICE_UNAVAILABLE, _RETRY, 5),
    ErrorCode.STORE_UNAVAILABLE: Answer(_S.SERVICE_UNAVAILABLE, _RETRY, 5),
    ErrorCode.DOCUMENT_QUOTA: Answer(_S.INSUFFICIENT_STORAGE, _RETRY, 60),
    ErrorCode.STORAGE_FULL: Answer(_S.INSUFFICIENT_STORAGE, _RETRY, 60),
    ErrorCode.DOCUMENT_DAMAGED: Answer(_S.SERVICE_UNAVAILABLE, _RETRY, 60),
    ErrorCode.SANDBOX_UNAVAILABLE: Answer(_S.SERVICE_UNAVAILABLE, _RETRY, 5),
    ErrorCode.TSA_UNAVAILABLE: Answer(_S.SERVICE_UNAVAILABLE, _RETRY, 5),
    ErrorCode.REVOCATION_UNAVAILABLE: Answer(_S.SERVICE_UNAVAILABLE, _RETRY, 5),
    ErrorCode.OVERLOADED: Answer(_S.SERVICE_UNAVAILABLE, _RETRY, 5),
    ErrorCode.INTERNAL: Answer(_S.INTERNAL_SERVER_ERROR, _RETRY),
    ErrorCode.ALREADY_EXISTS: Answer(_S.CONFLICT, _FIX),
    ErrorCode.CHANGED_MEANWHILE: Answer(_S.PRECONDITION_FAILED, _FIX),
    ErrorCode.PERSON_NOT_FOUND: Answer(_S.NOT_FOUND, _FIX),
    ErrorCode.INTEGRATOR_NOT_FOUND: Answer(_S.NOT_FOUND, _FIX),
    ErrorCode.NOT_A_TRIAL: Answer(_S.FORBIDDEN, _TERMINAL),
    ErrorCode.TASK_FAILED: Answer(_S.SERVICE_UNAVAILABLE, _RETRY, 5),
}
"""Every code, once (decisions "errors"); a test demands completeness."""

TITLES: Final[dict[HTTPStatus, str]] = {
    _S.BAD_REQUEST: "Bad request",
    _S.UNAUTHORIZED: "Not signed in",
    _S.FORBIDDEN: "Not allowed",
    _S.NOT_FOUND: "Not found",
    _S.METHOD_NOT_ALLOWED: "Method not allowed",
    _S.NOT_ACCEPTABLE: "Not acceptable",
    _S.REQUEST_TIMEOUT: "Request timeout",
    _S.CONFLICT: "Conflict",
    _S.PRECONDITION_FAILED: "Precondition failed",
    _S.REQUEST_ENTITY_TOO_LARGE: "Too large",
    _S.UNSUPPORTED_MEDIA_TYPE: "Unsupported media type",
    _S.REQUESTED_RANGE_NOT_SATISFIABLE: "Range not in the document",
    _S.UNPROCESSABLE_ENTITY: "Unprocessable content",
    _S.LOCKED: "Locked",
    _S.TOO_MANY_REQUESTS: "Too many requests",
    _S.INTERNAL_SERVER_ERROR: "Internal error",
    _S.SERVICE_UNAVAILABLE: "Service unavailable",
    _S.INSUFFICIENT_STORAGE: "No room left",
}
"""`title` by status: msgids of our own, for Python's phrases change."""

_FRAMEWORK: Final[dict[int, ErrorCode]] = {
    400: ErrorCode.BAD_HEADER,
    404: ErrorCode.NOT_FOUND,
    405: ErrorCode.METHOD_NOT_ALLOWED,
    406: ErrorCode.NOT_ACCEPTABLE,
    408: ErrorCode.BODY_TIMEOUT,
    413: ErrorCode.BODY_TOO_LARGE,
    415: ErrorCode.CONTENT_TYPE,
    416: ErrorCode.BAD_HEADER,
    431: ErrorCode.BAD_HEADER,
    503: ErrorCode.OVERLOADED,
}
"""What Quart and Werkzeug raise by themselves, by status."""
_ERROR_OF_OURS = 500


def of_exception(exc: Exception) -> ApplianceError:
    """Turn whatever a handler raised into one of our errors.

    Args:
        exc: ours, the framework's, or anything else.

    Returns:
        Itself if ours; else the code of its status, or `INTERNAL`.
    """
    if isinstance(exc, ApplianceError):
        return exc
    if isinstance(exc, HTTPException) and exc.code is not None:
        # Whatever else the framework refuses, it is the request's fault.
        refused = ErrorCode.BAD_HEADER if exc.code < _ERROR_OF_OURS else None
        code = _FRAMEWORK.get(exc.code, refused)
        if code is not None:
            return ApplianceError(code, extras=_methods(exc))
    return ApplianceError(ErrorCode.INTERNAL)


def _methods(exc: HTTPException) -> dict[str, object]:
    """What a 405 says beside its sentence: the methods that are answered there."""
    if isinstance(exc, MethodNotAllowed) and exc.valid_methods:
        return {"allowed": sorted(exc.valid_methods)}
    return {}


_PASSING_STATES: Final = frozenset(
    {RequestState.WAITING.value, BatchState.PREPARING.value}
)
"""States that pass without anything that the client does."""


def category(error: ApplianceError) -> Category:
    """Next step of a client.

    That of the code, except for a state that will pass, and for a code that ended a
    request for good.

    Args:
        error: what happened.
    """
    if isinstance(error, RequestFailedError):
        return _TERMINAL
    passes = error.params.get("estado") in _PASSING_STATES
    if error.code is ErrorCode.STATE and passes:
        return _RETRY
    return ANSWERS[error.code].category


def members(error: ApplianceError, lang: str) -> dict[str, object]:
    """What is told of an error wherever it stands: in an answer, or in a list.

    Args:
        error: what happened.
        lang: `es` or `en`.
    """
    answer = ANSWERS[error.code]
    told: dict[str, object] = {
        **in_words(error.code, error.extras, lang),
        "detail": i18n.said(error, lang),
        "code": error.code.value,
        "category": category(error).value,
    }
    is_final = isinstance(error, RequestFailedError)
    if answer.retry_after_s is not None and not is_final:
        told.setdefault("retryAfter", answer.retry_after_s)
    return told


def problem(error: ApplianceError, request_id: str, lang: str) -> dict[str, object]:
    """The members of an error's answer.

    Args:
        error: what happened.
        request_id: the id under which the log knows this call.
        lang: `es` or `en`.

    Source: RFC 9457.
    """
    answer = ANSWERS[error.code]
    told = members(error, lang)
    if isinstance(error, SeveralFaultsError):
        told["errors"] = [members(each, lang) for each in error.faults]
    return {
        **told,
        "type": f"urn:rubrica:error:{error.code}",
        "title": i18n.translate(lang, TITLES[answer.status]),
        "status": answer.status.value,
        "requestId": request_id,
    }


def render(error: ApplianceError, request_id: str, lang: str) -> Response:
    """Make the answer to an error.

    Args:
        error: what happened.
        request_id: the id under which the log knows this call.
        lang: `es` or `en`.

    Returns:
        `application/problem+json` with the status of the code; `Retry-After`
        where there is a time to wait, `WWW-Authenticate` with every 401.

    Source: RFC 9457; RFC 9110, 11.6.1; decisions "errors".
    """
    answer = ANSWERS[error.code]
    body = problem(error, request_id, lang)
    response = json_response(body, answer.status, media_type=MEDIA_TYPE)
    response.headers["Content-Language"] = lang
    if "retryAfter" in body:
        response.headers["Retry-After"] = str(body["retryAfter"])
    if answer.status == HTTPStatus.UNAUTHORIZED:
        response.headers["WWW-Authenticate"] = _challenge(error.code)
    return response


_BAD_BEARER: Final = frozenset(
    {
        ErrorCode.TOKEN_INVALID,
        ErrorCode.TOKEN_EXPIRED,
        ErrorCode.SESSION_TOKEN_EXPIRED,
        ErrorCode.SESSION_TOKEN_INVALID,
        ErrorCode.SESSION_SUPERSEDED,
    }
)
_BAD_API_KEY: Final = frozenset(
    {
        ErrorCode.API_KEY_MISSING,
        ErrorCode.API_KEY_INVALID,
        ErrorCode.API_KEY_ENVIRONMENT,
    }
)


def _challenge(code: ErrorCode) -> str:
    """The 401's challenge (RFC 6750, 3: no error code when no token came)."""
    if code in _BAD_API_KEY:
        return 'ApiKey realm="rubrica"'
    if code in _BAD_BEARER:
        return 'Bearer realm="rubrica", error="invalid_token"'
    return 'Bearer realm="rubrica"'
