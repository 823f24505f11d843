"""The one tree of errors: what can go wrong, in stable codes and safe words.

An error carries a code, a sentence that may be shown to anybody, and the values
that the sentence needs. It knows no HTTP status: `appliance.web.problems` maps
codes to answers. The sentences are msgids of the gettext catalogues.
"""

from enum import StrEnum
from typing import Final


class ErrorCode(StrEnum):
    """Every code an answer can carry; a code is never renamed or reused.

    Source: decisions "errors", "PDFs"; grammar SUBJECT_CONDITION.
    """

    # The request as sent
    BAD_HEADER = "BAD_HEADER"
    BODY_NOT_OBJECT = "BODY_NOT_OBJECT"
    BODY_TIMEOUT = "BODY_TIMEOUT"
    BODY_TOO_LARGE = "BODY_TOO_LARGE"
    CONTENT_TYPE = "CONTENT_TYPE"
    FIELD_INVALID = "FIELD_INVALID"
    FIELD_UNKNOWN = "FIELD_UNKNOWN"
    JSON_INVALID = "JSON_INVALID"
    METHOD_NOT_ALLOWED = "METHOD_NOT_ALLOWED"
    NOT_ACCEPTABLE = "NOT_ACCEPTABLE"
    NOT_FOUND = "NOT_FOUND"
    QUERY_INVALID = "QUERY_INVALID"
    # Who is asking
    TOKEN_MISSING = "TOKEN_MISSING"  # noqa: S105 (a code, no secret)
    TOKEN_INVALID = "TOKEN_INVALID"  # noqa: S105 (a code, no secret)
    TOKEN_EXPIRED = "TOKEN_EXPIRED"  # noqa: S105 (a code, no secret)
    MFA_REQUIRED = "MFA_REQUIRED"
    STEP_UP = "STEP_UP"
    LOGIN_FAILED = "LOGIN_FAILED"
    OTP_INVALID = "OTP_INVALID"
    RATE_LIMITED = "RATE_LIMITED"
    # Integrators, sessions, enrolment
    API_KEY_INVALID = "API_KEY_INVALID"
    API_KEY_IN_URL = "API_KEY_IN_URL"
    API_KEY_IN_BROWSER = "API_KEY_IN_BROWSER"
    API_KEY_NOT_FOUND = "API_KEY_NOT_FOUND"
    SESSION_TOKEN_EXPIRED = "SESSION_TOKEN_EXPIRED"  # noqa: S105 (a code, no secret)
    SESSION_TOKEN_INVALID = "SESSION_TOKEN_INVALID"  # noqa: S105 (a code, no secret)
    SESSION_SUPERSEDED = "SESSION_SUPERSEDED"
    SESSION_IN_USE = "SESSION_IN_USE"
    SESSION_DOCUMENTS = "SESSION_DOCUMENTS"
    DOMAIN_INVALID = "DOMAIN_INVALID"
    INIT_INVALID = "INIT_INVALID"
    LEGACY_CREDENTIALS = "LEGACY_CREDENTIALS"
    HANDSHAKE_REQUIRED = "HANDSHAKE_REQUIRED"
    BASE64_INVALID = "BASE64_INVALID"
    MIME = "MIME"
    IDENTITY_MISMATCH = "IDENTITY_MISMATCH"
    SIGNER_PENDING_APPROVAL = "SIGNER_PENDING_APPROVAL"
    BUSY = "BUSY"
    ENROLMENT_UNKNOWN = "ENROLMENT_UNKNOWN"
    ENROLMENT_EXPIRED = "ENROLMENT_EXPIRED"
    ENROLMENT_USED = "ENROLMENT_USED"
    # The console
    ORIGIN_REFUSED = "ORIGIN_REFUSED"
    CSRF_REFUSED = "CSRF_REFUSED"
    NOT_LOCKED = "NOT_LOCKED"
    PERSON_STATE = "PERSON_STATE"
    # Requests and signing
    SOLICITUD_NOT_FOUND = "SOLICITUD_NOT_FOUND"
    LOTE_NOT_FOUND = "LOTE_NOT_FOUND"
    ALREADY_SIGNED = "ALREADY_SIGNED"
    IN_PROGRESS = "IN_PROGRESS"
    STATE = "STATE"
    IDEMKEY_CONFLICT = "IDEMKEY_CONFLICT"
    DOCUMENT_CHANGED = "DOCUMENT_CHANGED"
    NOT_SIGNED_YET = "NOT_SIGNED_YET"
    PAGE_OUT_OF_RANGE = "PAGE_OUT_OF_RANGE"
    POSITION_OUT_OF_PAGE = "POSITION_OUT_OF_PAGE"
    SIGN_PASSWORD_WRONG = "SIGN_PASSWORD_WRONG"  # noqa: S105 (a code, no secret)
    SIGN_LOCKED = "SIGN_LOCKED"
    CERTIFICATE_NOT_USABLE = "CERTIFICATE_NOT_USABLE"
    CERTIFICATE_NOT_FOUND = "CERTIFICATE_NOT_FOUND"
    CERTIFICATE_STATE = "CERTIFICATE_STATE"
    ACTIVATION_EXPIRED = "ACTIVATION_EXPIRED"
    ACTIVATION_INVALID = "ACTIVATION_INVALID"
    SIGNING_FAILED = "SIGNING_FAILED"
    # Credentials, certificates of outside CAs, the trust store
    CREDENTIAL_NOT_FOUND = "CREDENTIAL_NOT_FOUND"
    CREDENTIAL_STATE = "CREDENTIAL_STATE"
    CHAIN_MALFORMED = "CHAIN_MALFORMED"
    CHAIN_ORDER = "CHAIN_ORDER"
    CHAIN_INCOMPLETE = "CHAIN_INCOMPLETE"
    CHAIN_SIGNATURE = "CHAIN_SIGNATURE"
    CHAIN_ROOT_UNTRUSTED = "CHAIN_ROOT_UNTRUSTED"
    CHAIN_ISSUER_NOT_CA = "CHAIN_ISSUER_NOT_CA"
    CHAIN_PATH_LENGTH = "CHAIN_PATH_LENGTH"
    CERTIFICATE_KEY_DIFFERS = "CERTIFICATE_KEY_DIFFERS"
    CERTIFICATE_CUIL_MISSING = "CERTIFICATE_CUIL_MISSING"
    CERTIFICATE_CUIL_DIFFERS = "CERTIFICATE_CUIL_DIFFERS"
    CERTIFICATE_NOT_YET_VALID = "CERTIFICATE_NOT_YET_VALID"
    CERTIFICATE_EXPIRED = "CERTIFICATE_EXPIRED"
    CERTIFICATE_IS_CA = "CERTIFICATE_IS_CA"
    CERTIFICATE_KEY_USAGE = "CERTIFICATE_KEY_USAGE"
    CERTIFICATE_EXTENDED_KEY_USAGE = "CERTIFICATE_EXTENDED_KEY_USAGE"
    CERTIFICATE_EXTENSION_UNKNOWN = "CERTIFICATE_EXTENSION_UNKNOWN"
    CERTIFICATE_WEAK_ALGORITHM = "CERTIFICATE_WEAK_ALGORITHM"
    ANCHOR_NOT_A_ROOT = "ANCHOR_NOT_A_ROOT"
    ANCHOR_FINGERPRINT = "ANCHOR_FINGERPRINT"
    ANCHOR_NOT_FOUND = "ANCHOR_NOT_FOUND"
    REVOCATION_PIN_WRONG = "REVOCATION_PIN_WRONG"
    # Documents
    DOCUMENT_EMPTY = "DOCUMENT_EMPTY"
    DOCUMENT_MISMATCH = "DOCUMENT_MISMATCH"
    DOCUMENT_TOO_LARGE = "DOCUMENT_TOO_LARGE"
    FILENAME = "FILENAME"
    PDF_MALFORMED = "PDF_MALFORMED"
    PDF_PASSWORD_NEEDED = "PDF_PASSWORD_NEEDED"  # noqa: S105 (a code, no secret)
    PDF_ENCRYPTED = "PDF_ENCRYPTED"
    PDF_XFA = "PDF_XFA"
    PDF_NO_PAGES = "PDF_NO_PAGES"
    PDF_TOO_COMPLEX = "PDF_TOO_COMPLEX"
    PICTURE_UNUSABLE = "PICTURE_UNUSABLE"
    PDF_NOT_ALLOWED = "PDF_NOT_ALLOWED"
    PDF_LOCKED = "PDF_LOCKED"
    PDF_ALREADY_SIGNED = "PDF_ALREADY_SIGNED"
    PDF_CERTIFIED = "PDF_CERTIFIED"
    SIGNATURE_FIELD_NOT_FOUND = "SIGNATURE_FIELD_NOT_FOUND"
    SIGNATURE_FIELD_FILLED = "SIGNATURE_FIELD_FILLED"
    SIGNATURE_FIELD_DEMANDS = "SIGNATURE_FIELD_DEMANDS"
    SIGNERS_LOCKED_OUT = "SIGNERS_LOCKED_OUT"
    # The appliance itself
    HSM_UNAVAILABLE = "HSM_UNAVAILABLE"
    STORE_UNAVAILABLE = "STORE_UNAVAILABLE"
    STORAGE_FULL = "STORAGE_FULL"
    SANDBOX_UNAVAILABLE = "SANDBOX_UNAVAILABLE"
    TSA_UNAVAILABLE = "TSA_UNAVAILABLE"
    REVOCATION_UNAVAILABLE = "REVOCATION_UNAVAILABLE"
    OVERLOADED = "OVERLOADED"
    INTERNAL = "INTERNAL"
    # Operators' commands
    ALREADY_EXISTS = "ALREADY_EXISTS"
    PERSON_NOT_FOUND = "PERSON_NOT_FOUND"
    INTEGRATOR_NOT_FOUND = "INTEGRATOR_NOT_FOUND"
    NOT_A_TRIAL = "NOT_A_TRIAL"
    TASK_FAILED = "TASK_FAILED"


SENTENCES: Final[dict[ErrorCode, str]] = {
    ErrorCode.BAD_HEADER: "A header of the request is malformed or repeated.",
    ErrorCode.BODY_NOT_OBJECT: "The body must be a JSON object.",
    ErrorCode.BODY_TIMEOUT: "The body took too long to arrive.",
    ErrorCode.BODY_TOO_LARGE: "The body is larger than this service accepts.",
    ErrorCode.CONTENT_TYPE: "The content type of the body is not accepted here.",
    ErrorCode.FIELD_INVALID: "The field {field} does not have an allowed value.",
    ErrorCode.FIELD_UNKNOWN: "The field {field} is not known here.",
    ErrorCode.JSON_INVALID: "The body is not valid JSON.",
    ErrorCode.METHOD_NOT_ALLOWED: "This address does not answer that method.",
    ErrorCode.NOT_ACCEPTABLE: "None of the accepted content types can be produced.",
    ErrorCode.NOT_FOUND: "There is nothing at this address.",
    ErrorCode.QUERY_INVALID: "The query parameter {field} has no allowed value.",
    ErrorCode.TOKEN_MISSING: "Sign in first: the request carries no bearer token.",
    ErrorCode.TOKEN_INVALID: "The bearer token is not valid.",
    ErrorCode.TOKEN_EXPIRED: "The bearer token has expired; sign in again.",
    ErrorCode.MFA_REQUIRED: "This needs a sign-in with a second factor.",
    ErrorCode.STEP_UP: "The second factor is too old for this; sign in again.",
    ErrorCode.LOGIN_FAILED: "The user or the password is not right.",
    ErrorCode.OTP_INVALID: "The code is not right or was used already.",
    ErrorCode.RATE_LIMITED: "Too many attempts; wait a moment and try again.",
    ErrorCode.API_KEY_INVALID: "The integrator or its API key is not right.",
    ErrorCode.API_KEY_IN_URL: (
        "The API key came in the address; send it in the header X-Api-Key and "
        "replace this one."
    ),
    ErrorCode.API_KEY_IN_BROWSER: (
        "The API key came from a browser; call from the integrator's backend and "
        "replace this one."
    ),
    ErrorCode.API_KEY_NOT_FOUND: "There is no such API key.",
    ErrorCode.SESSION_TOKEN_EXPIRED: (
        "The session has expired; the integrator's backend can open a new one."
    ),
    ErrorCode.SESSION_TOKEN_INVALID: "The session is not known here.",
    ErrorCode.SESSION_SUPERSEDED: "The session was taken up in another window.",
    ErrorCode.SESSION_IN_USE: (
        "The session is already being used for something else; open a new one."
    ),
    ErrorCode.SESSION_DOCUMENTS: (
        "The session has brought as many documents as it may; open a new one."
    ),
    ErrorCode.DOMAIN_INVALID: (
        "That origin cannot be allowed; write one such as https://app.example."
    ),
    ErrorCode.INIT_INVALID: "The initial message lacks a valid {field}.",
    ErrorCode.LEGACY_CREDENTIALS: (
        "The page sent an API key; it must send a session token instead."
    ),
    ErrorCode.HANDSHAKE_REQUIRED: "The document came before the handshake.",
    ErrorCode.BASE64_INVALID: (
        "The document is not plain Base64; send it without a data: prefix."
    ),
    ErrorCode.MIME: "Only application/pdf is accepted.",
    ErrorCode.IDENTITY_MISMATCH: "These data do not match an enrolled person.",
    ErrorCode.SIGNER_PENDING_APPROVAL: (
        "The signer's application has to be approved before signing."
    ),
    ErrorCode.BUSY: "The previous step is not finished yet; wait a moment.",
    ErrorCode.ENROLMENT_UNKNOWN: "This enrolment link is not known.",
    ErrorCode.ENROLMENT_EXPIRED: "This enrolment link has expired.",
    ErrorCode.ENROLMENT_USED: "This enrolment link was used already.",
    ErrorCode.ORIGIN_REFUSED: (
        "That did not come from a page of the console; open it at {url}."
    ),
    ErrorCode.CSRF_REFUSED: (
        "The page is from an earlier sign-in; go back, reload it and try again."
    ),
    ErrorCode.NOT_LOCKED: "The signing password is not locked.",
    ErrorCode.PERSON_STATE: "The person's state ({state}) does not allow that.",
    ErrorCode.SOLICITUD_NOT_FOUND: "There is no such signature request.",
    ErrorCode.LOTE_NOT_FOUND: "There is no such batch, or it is too long ago.",
    ErrorCode.ALREADY_SIGNED: "It is already signed, with other parameters.",
    ErrorCode.IN_PROGRESS: (
        "Another signature or change is going on; try again in a moment."
    ),
    ErrorCode.STATE: "The request's state ({estado}) does not allow that.",
    ErrorCode.IDEMKEY_CONFLICT: "That idempotency key was used for something else.",
    ErrorCode.DOCUMENT_CHANGED: "The document is not the one that was seen.",
    ErrorCode.NOT_SIGNED_YET: "The request is not signed, so there is no document.",
    ErrorCode.PAGE_OUT_OF_RANGE: "The document has {pages} pages; {page} is past them.",
    ErrorCode.POSITION_OUT_OF_PAGE: "The stamp would not lie wholly on the page.",
    ErrorCode.SIGN_PASSWORD_WRONG: "The signing password is not right.",
    ErrorCode.SIGN_LOCKED: "Signing is locked after too many wrong passwords.",
    ErrorCode.CERTIFICATE_NOT_USABLE: "There is no certificate that can sign now.",
    ErrorCode.CERTIFICATE_NOT_FOUND: "There is no such certificate.",
    ErrorCode.CERTIFICATE_STATE: "The certificate was revoked, or is being revoked.",
    ErrorCode.ACTIVATION_EXPIRED: (
        "Signing took too long and was undone; enter the signing password again."
    ),
    ErrorCode.ACTIVATION_INVALID: (
        "What was authorised and what stands recorded are not the same, so nothing "
        "was signed; enter the signing password again."
    ),
    ErrorCode.SIGNING_FAILED: "The document could not be signed.",
    ErrorCode.CREDENTIAL_NOT_FOUND: "There is no such credential.",
    ErrorCode.CREDENTIAL_STATE: (
        "The credential's state ({estado}) does not allow that."
    ),
    ErrorCode.CHAIN_MALFORMED: (
        "That is not a chain of certificates: send 1 to {most} of them in PEM."
    ),
    ErrorCode.CHAIN_ORDER: (
        "The certificates are not in order: the signer's first, then each one's "
        "issuer, the root last or left out."
    ),
    ErrorCode.CHAIN_INCOMPLETE: (
        "The chain ends at {subject}, whose issuer ({issuer}) is neither in the file "
        "nor in the trust store."
    ),
    ErrorCode.CHAIN_SIGNATURE: (
        "The certificate of {subject} was not signed by {issuer}, whom it names."
    ),
    ErrorCode.CHAIN_ROOT_UNTRUSTED: (
        "The chain ends at {subject}, a root that is not in the trust store."
    ),
    ErrorCode.CHAIN_ISSUER_NOT_CA: (
        "The certificate of {subject} may not issue others: it is not that of a CA."
    ),
    ErrorCode.CHAIN_PATH_LENGTH: (
        "The certificate of {subject} does not allow so many CAs below it."
    ),
    ErrorCode.CERTIFICATE_KEY_DIFFERS: (
        "The certificate of {subject} is of another key than the credential's."
    ),
    ErrorCode.CERTIFICATE_CUIL_MISSING: (
        "The certificate of {subject} has no CUIL in its subject's serialNumber."
    ),
    ErrorCode.CERTIFICATE_CUIL_DIFFERS: (
        "The certificate of {subject} has another CUIL than the credential's holder."
    ),
    ErrorCode.CERTIFICATE_NOT_YET_VALID: (
        "The certificate of {subject} is valid only from {date} on."
    ),
    ErrorCode.CERTIFICATE_EXPIRED: "The certificate of {subject} expired on {date}.",
    ErrorCode.CERTIFICATE_IS_CA: (
        "The certificate of {subject} is that of a CA, not of a signer."
    ),
    ErrorCode.CERTIFICATE_KEY_USAGE: (
        "The key usage of the certificate of {subject} does not allow signing "
        "documents."
    ),
    ErrorCode.CERTIFICATE_EXTENDED_KEY_USAGE: (
        "The extended key usage of the certificate of {subject} does not allow "
        "signing documents."
    ),
    ErrorCode.CERTIFICATE_EXTENSION_UNKNOWN: (
        "The certificate of {subject} has a critical extension that is not known "
        "here: {oid}."
    ),
    ErrorCode.CERTIFICATE_WEAK_ALGORITHM: (
        "The certificate of {subject} has a key or signature that is not accepted: "
        "{algorithm}."
    ),
    ErrorCode.ANCHOR_NOT_A_ROOT: (
        "The certificate of {subject} is not a root: it is not signed by itself."
    ),
    ErrorCode.ANCHOR_FINGERPRINT: (
        "The certificate of {subject} has another fingerprint than that: {sha256}."
    ),
    ErrorCode.ANCHOR_NOT_FOUND: "There is no such certificate in the trust store.",
    ErrorCode.REVOCATION_PIN_WRONG: "The CUIL or the revocation PIN is not right.",
    ErrorCode.DOCUMENT_EMPTY: "The document is empty.",
    ErrorCode.DOCUMENT_MISMATCH: "The file sent is not the request's document.",
    ErrorCode.DOCUMENT_TOO_LARGE: "The document is larger than {limit} bytes.",
    ErrorCode.FILENAME: "The file name is not an acceptable PDF name.",
    ErrorCode.PDF_MALFORMED: "The file cannot be read as a PDF.",
    ErrorCode.PDF_PASSWORD_NEEDED: "The PDF does not open without its password.",
    ErrorCode.PDF_ENCRYPTED: "The PDF is encrypted in a way that cannot be extended.",
    ErrorCode.PDF_XFA: "The PDF is a dynamic XFA form, which cannot be signed.",
    ErrorCode.PDF_NO_PAGES: "The PDF has no pages.",
    ErrorCode.PDF_TOO_COMPLEX: "The PDF needs more work than this service allows.",
    ErrorCode.PICTURE_UNUSABLE: (
        "The picture is no PNG or JPEG file of up to 1 MB and 4096 by 4096 pixels."
    ),
    ErrorCode.PDF_NOT_ALLOWED: "Documents like this are not taken in here: {kinds}.",
    ErrorCode.PDF_LOCKED: "An earlier signature of the PDF forbids this one.",
    ErrorCode.PDF_ALREADY_SIGNED: "The PDF is signed; it can no longer be certified.",
    ErrorCode.PDF_CERTIFIED: (
        "The PDF is certified: it can be signed in one of its own fields, or "
        "without a stamp."
    ),
    ErrorCode.SIGNATURE_FIELD_NOT_FOUND: (
        "The PDF has no empty signature field of that name."
    ),
    ErrorCode.SIGNATURE_FIELD_FILLED: "That signature field is signed already.",
    ErrorCode.SIGNATURE_FIELD_DEMANDS: (
        "The signature field demands what this signature would not have: {needs}."
    ),
    ErrorCode.SIGNERS_LOCKED_OUT: (
        "Others are to sign after you; that would keep them from it."
    ),
    ErrorCode.HSM_UNAVAILABLE: "The keys cannot be used right now; try again soon.",
    ErrorCode.STORE_UNAVAILABLE: "The records cannot be reached; try again soon.",
    ErrorCode.STORAGE_FULL: "There is no room for documents; try again later.",
    ErrorCode.SANDBOX_UNAVAILABLE: "Documents cannot be examined right now.",
    ErrorCode.TSA_UNAVAILABLE: "No timestamp can be had right now; try again soon.",
    ErrorCode.REVOCATION_UNAVAILABLE: (
        "It cannot be told right now whether a certificate is revoked; try again soon."
    ),
    ErrorCode.OVERLOADED: "The service is busy; try again soon.",
    ErrorCode.INTERNAL: "Something went wrong on our side.",
    ErrorCode.ALREADY_EXISTS: "There is one already: {field}.",
    ErrorCode.PERSON_NOT_FOUND: "There is no such person.",
    ErrorCode.INTEGRATOR_NOT_FOUND: "There is no such integrator.",
    ErrorCode.NOT_A_TRIAL: "This is done only in a trial installation.",
    ErrorCode.TASK_FAILED: "The HSM task did not succeed: {reason}.",
}
"""What is said for each code: a msgid with named places, safe for anybody."""


class ApplianceError(Exception):
    """Something that the caller can be told: a code and the values it needs.

    Args:
        code: what happened.
        params: the values that the sentence's places need.
        extras: further members of the answer (`attemptsLeft`, `stamp`, …);
            plain JSON values, safe for the caller.
    """

    def __init__(
        self,
        code: ErrorCode,
        *,
        params: dict[str, object] | None = None,
        extras: dict[str, object] | None = None,
    ) -> None:
        self.code = code
        self.params = params or {}
        self.extras = extras or {}
        super().__init__(code.value)

    @property
    def sentence(self) -> str:
        """The msgid of what is said; fill it with `params` after translation."""
        return SENTENCES[self.code]

    def told(self, sentence: str) -> str:
        """Fill the places of a sentence, perhaps a translated one.

        Args:
            sentence: with the same named places as `sentence`.
        """
        return sentence.format_map(_Blank(self.params))

    def __str__(self) -> str:
        """The code and the English sentence, for logs and terminals."""
        return f"{self.code}: {self.told(self.sentence)}"


class _Blank(dict[str, object]):
    """Params in which a place without a value shows as a question mark."""

    def __missing__(self, key: str) -> str:
        return "?"


class FieldInvalidError(ApplianceError):
    """A field has a value out of its domain (decisions: 400 `FIELD_INVALID`).

    Args:
        field: the field's wire name.
        allowed: the allowed values, or one phrase such as "4 to 72".
    """

    def __init__(self, field: str, allowed: list[str] | str | None = None) -> None:
        extras: dict[str, object] = {"field": field}
        if allowed is not None:
            extras["allowed"] = allowed
        super().__init__(
            ErrorCode.FIELD_INVALID, params={"field": field}, extras=extras
        )
        self.field = field


class DomainInvalidError(ApplianceError):
    """An origin that cannot be allowed to show the frame.

    Args:
        reason: why, in English: a msgid, so that people read it translated.
    """

    def __init__(self, reason: str) -> None:
        super().__init__(
            ErrorCode.DOMAIN_INVALID,
            extras={"field": "origin", "allowed": "https://host[:port]"},
        )
        self.reason = reason


class DocumentRefusedError(ApplianceError):
    """A document that cannot be taken in or signed, by a `PDF_*` code.

    Args:
        code: one of the document codes.
        reason: what was found, in English, for logs and operators.
    """

    def __init__(
        self,
        code: ErrorCode,
        reason: str = "",
        *,
        params: dict[str, object] | None = None,
        extras: dict[str, object] | None = None,
    ) -> None:
        super().__init__(code, params=params, extras=extras)
        self.reason = reason


class ChainRefusedError(ApplianceError):
    """A chain of certificates that cannot be taken, by a code of its own.

    Args:
        code: one of the `CHAIN_…`, `CERTIFICATE_…` or `ANCHOR_…` codes.
        place: of the certificate at fault in what was sent, from 0.
        params: the values that the sentence needs.
    """

    def __init__(
        self, code: ErrorCode, place: int | None = None, **params: object
    ) -> None:
        extras: dict[str, object] = {"field": "cadena"}
        if place is not None:
            extras["certificado"] = place
        super().__init__(code, params=params, extras=extras)


class HsmUnavailableError(ApplianceError):
    """The HSM cannot be used now; nothing is said about any key."""

    def __init__(self, reason: str = "") -> None:
        super().__init__(ErrorCode.HSM_UNAVAILABLE)
        self.reason = reason


class TsaUnavailableError(ApplianceError):
    """No timestamping authority gave a token that can be used.

    Args:
        reason: why, in English, for operators.
    """

    def __init__(self, reason: str = "") -> None:
        super().__init__(ErrorCode.TSA_UNAVAILABLE)
        self.reason = reason


class HsmRefusedError(ApplianceError):
    """The HSM works, and what was asked of it cannot be done.

    Args:
        reason: why, in English, without anything secret; for operators.
        code: how the caller is told.
    """

    def __init__(self, reason: str, code: ErrorCode = ErrorCode.TASK_FAILED) -> None:
        super().__init__(code, params={"reason": reason})
        self.reason = reason


class KeyNotFoundError(ApplianceError):
    """A healthy HSM has no such key; never said of a token that is away."""

    def __init__(self, reason: str = "") -> None:
        super().__init__(ErrorCode.CERTIFICATE_NOT_USABLE)
        self.reason = reason


class ActivationInvalidError(ApplianceError):
    """What was sealed does not open: a row was altered, or a key is not its own.

    Args:
        layer: which one held: `seal` (the activation), `outer` (the credential)
            or `hsm` (the wrapped key).
    """

    def __init__(self, layer: str) -> None:
        super().__init__(ErrorCode.ACTIVATION_INVALID)
        self.layer = layer
