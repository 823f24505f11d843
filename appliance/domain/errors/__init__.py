"""The one tree of errors: what can go wrong, in stable codes and safe words.

An error carries a code, a sentence that may be shown to anybody, and the values
that the sentence needs. It knows no HTTP status: `appliance.web.problems` maps
codes to answers. The sentences are msgids of the gettext catalogues.

A new code goes into `codes`, and with its sentence into `sentences`.
"""

from appliance.domain.errors.codes import ErrorCode
from appliance.domain.errors.exceptions import (
    ActivationInvalidError,
    ApplianceError,
    BadHeaderError,
    ChainRefusedError,
    CheckDigitError,
    DocumentRefusedError,
    DocumentsAwayError,
    DomainInvalidError,
    FieldInvalidError,
    FieldMissingError,
    HsmRefusedError,
    HsmUnavailableError,
    KeyNotFoundError,
    PageOutOfRangeError,
    SignersInvalidError,
    TsaUnavailableError,
)
from appliance.domain.errors.sentences import (
    API_KEY_ELSEWHERE,
    CHAIN_IN_USE,
    CHECK_DIGIT,
    COMES_WITH,
    HEAD_TOO_LARGE,
    HEADER_CODING,
    HEADER_MALFORMED,
    HEADER_NOT_HERE,
    HEADER_OR_LENGTH,
    HEADER_REPEATED,
    HEADERS_TOO_MANY,
    LINK_OVER,
    SENTENCES,
    SIGNER_REPEATED,
    SIGNERS_TOO_MANY,
    WRONG_TYPES,
)

__all__ = [
    "API_KEY_ELSEWHERE",
    "CHAIN_IN_USE",
    "CHECK_DIGIT",
    "COMES_WITH",
    "HEADERS_TOO_MANY",
    "HEADER_CODING",
    "HEADER_MALFORMED",
    "HEADER_NOT_HERE",
    "HEADER_OR_LENGTH",
    "HEADER_REPEATED",
    "HEAD_TOO_LARGE",
    "LINK_OVER",
    "SENTENCES",
    "SIGNERS_TOO_MANY",
    "SIGNER_REPEATED",
    "WRONG_TYPES",
    "ActivationInvalidError",
    "ApplianceError",
    "BadHeaderError",
    "ChainRefusedError",
    "CheckDigitError",
    "DocumentRefusedError",
    "DocumentsAwayError",
    "DomainInvalidError",
    "ErrorCode",
    "FieldInvalidError",
    "FieldMissingError",
    "HsmRefusedError",
    "HsmUnavailableError",
    "KeyNotFoundError",
    "PageOutOfRangeError",
    "SignersInvalidError",
    "TsaUnavailableError",
]
