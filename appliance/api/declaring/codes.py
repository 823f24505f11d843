"""Which errors operations have in common; each one's status is `problems.ANSWERS`'."""

from typing import Final

from appliance.api.declaring.operation import Caller
from appliance.domain.errors import ErrorCode as E

ANY: Final = frozenset({E.BAD_HEADER, E.INTERNAL, E.OVERLOADED, E.STORE_UNAVAILABLE})
"""Of every operation."""
STORED: Final = frozenset({E.DOCUMENT_DAMAGED})
"""Of a document that is read from its store."""
ADDRESS: Final = frozenset({E.NOT_FOUND})
"""Of an address with parameters that can be none."""
QUERY: Final = frozenset({E.QUERY_INVALID, E.QUERY_UNKNOWN})
BODY: Final = frozenset({E.BODY_TIMEOUT, E.BODY_TOO_LARGE, E.CONTENT_TYPE})
OBJECT: Final = frozenset(
    {
        E.BODY_NOT_OBJECT,
        E.FIELD_INVALID,
        E.FIELD_MISSING,
        E.FIELD_UNKNOWN,
        E.JSON_INVALID,
    }
)
CHANGED: Final = frozenset({E.CHANGED_MEANWHILE})
"""Of a call that takes `If-Match`, so that it changes only what its caller has read."""
FILE: Final = frozenset({E.DOCUMENT_EMPTY, E.DOCUMENT_TOO_LARGE, E.FILENAME})
_BEARER: Final = frozenset(
    {E.TOKEN_MISSING, E.TOKEN_INVALID, E.TOKEN_EXPIRED, E.MFA_REQUIRED}
)
FRESH: Final = frozenset({E.STEP_UP})
"""Where the second factor has to be young."""
_KEY: Final = frozenset(
    {
        E.API_KEY_MISSING,
        E.API_KEY_INVALID,
        E.API_KEY_ENVIRONMENT,
        E.API_KEY_IN_URL,
        E.API_KEY_IN_BROWSER,
        E.API_KEY_ADDRESS,
        E.API_KEY_SCOPE,
        E.INTEGRATOR_DISABLED,
        E.RATE_LIMITED,
    }
)
OF_CALLER: Final = {
    Caller.ANYBODY: frozenset[E](),
    Caller.BEARER: _BEARER,
    Caller.LINK_OR_BEARER: _BEARER,
    Caller.SESSION_KEY: _KEY,
    Caller.KEY: _KEY,
}
EXAMINED: Final = frozenset(
    {
        E.PDF_MALFORMED,
        E.PDF_PASSWORD_NEEDED,
        E.PDF_ENCRYPTED,
        E.PDF_XFA,
        E.PDF_NO_PAGES,
        E.PDF_TOO_COMPLEX,
        E.PDF_UNVERIFIABLE,
        E.PDF_AMBIGUOUS,
        E.PDF_EXTERNAL_CONTENT,
        E.PDF_NOT_ALLOWED,
        E.PDF_LOCKED,
        E.SANDBOX_UNAVAILABLE,
        E.STORAGE_FULL,
        E.DOCUMENT_QUOTA,
        *FILE,
    }
)
"""Of a document that comes in."""
PLACED: Final = frozenset(
    {
        E.DOCUMENT_DAMAGED,
        E.PAGE_OUT_OF_RANGE,
        E.POSITION_OUT_OF_PAGE,
        E.PDF_ALREADY_SIGNED,
        E.PDF_CERTIFIED,
        E.PDF_LOCKED,
        E.SIGNATURE_FIELD_NOT_FOUND,
        E.SIGNATURE_FIELD_FILLED,
        E.SIGNATURE_FIELD_DEMANDS,
        E.SIGNERS_LOCKED_OUT,
        E.SANDBOX_UNAVAILABLE,
    }
)
"""Of a look and place that does not fit its document."""
PASSWORD: Final = frozenset(
    {
        E.SIGN_PASSWORD_WRONG,
        E.SIGN_LOCKED,
        E.RATE_LIMITED,
        E.CERTIFICATE_NOT_USABLE,
        E.IN_PROGRESS,
    }
)
"""Of a signing password that is checked."""
SIGNING: Final = frozenset(
    {
        E.ACTIVATION_EXPIRED,
        E.ACTIVATION_INVALID,
        E.DOCUMENT_DAMAGED,
        E.HSM_UNAVAILABLE,
        E.TSA_UNAVAILABLE,
        E.REVOCATION_UNAVAILABLE,
        E.SIGNING_FAILED,
        E.STORAGE_FULL,
        E.IDEMKEY_CONFLICT,
        E.STATE,
        E.SOLICITUD_NOT_FOUND,
        *PASSWORD,
    }
)
"""Of a signing command."""
BATCH_ORDERED: Final = frozenset(
    {
        E.DOCUMENT_NOT_FOUND,
        E.DOCUMENT_QUOTA,
        E.IDEMKEY_CONFLICT,
        E.PDF_AMBIGUOUS,
        E.PERSON_NOT_FOUND,
        E.REFERENCE_IN_USE,
        E.STORAGE_FULL,
        *FILE,
    }
)
"""Refusals of a call that asks for a batch; faults of its documents come later."""
ORDERED: Final = frozenset(
    {
        E.DOCUMENT_NOT_FOUND,
        E.IDEMKEY_CONFLICT,
        E.PERSON_NOT_FOUND,
        E.PERSON_STATE,
        E.REFERENCE_IN_USE,
        E.STAMP_ANCHOR_NOT_FOUND,
        *EXAMINED,
        *PLACED,
    }
)
"""Of signatures that are asked for."""
TASK: Final = frozenset({E.HSM_UNAVAILABLE, E.TASK_FAILED})
"""Of what the HSM is to do meanwhile."""
CHAIN: Final = frozenset(
    {code for code in E if code.startswith("CHAIN_")}
    | {
        E.CERTIFICATE_KEY_DIFFERS,
        E.CERTIFICATE_ISSUED_HERE,
        E.CERTIFICATE_CUIL_MISSING,
        E.CERTIFICATE_CUIL_DIFFERS,
        E.CERTIFICATE_NOT_YET_VALID,
        E.CERTIFICATE_EXPIRED,
        E.CERTIFICATE_IS_CA,
        E.CERTIFICATE_KEY_USAGE,
        E.CERTIFICATE_EXTENDED_KEY_USAGE,
        E.CERTIFICATE_EXTENSION_UNKNOWN,
        E.CERTIFICATE_WEAK_ALGORITHM,
        E.CERTIFICATE_UNVERIFIABLE,
    }
)
"""Of a chain that an outside CA issued."""
