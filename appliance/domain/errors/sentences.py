"""What is said for each code: msgids of the gettext catalogues."""

from typing import Final

from appliance.domain.errors.codes import ErrorCode

SENTENCES: Final[dict[ErrorCode, str]] = {
    ErrorCode.BAD_HEADER: (
        "The first line or a header of the request is malformed or repeated."
    ),
    ErrorCode.BODY_NOT_OBJECT: "The body must be a JSON object.",
    ErrorCode.BODY_TIMEOUT: "The body took too long to arrive.",
    ErrorCode.BODY_TOO_LARGE: "The body is larger than this service accepts.",
    ErrorCode.CONTENT_TYPE: "The content type of the body is not accepted here.",
    ErrorCode.FIELD_INVALID: "The field {field} has a value that is not allowed.",
    ErrorCode.FIELD_MISSING: "The field {field} is missing.",
    ErrorCode.FIELD_UNKNOWN: "There is no field {field} here.",
    ErrorCode.JSON_INVALID: "The body is not valid JSON.",
    ErrorCode.METHOD_NOT_ALLOWED: "This address does not answer that method.",
    ErrorCode.NOT_ACCEPTABLE: "None of the content types asked for is available.",
    ErrorCode.NOT_FOUND: "There is nothing at this address.",
    ErrorCode.QUERY_INVALID: (
        "The query parameter {field} has a value that is not allowed."
    ),
    ErrorCode.QUERY_UNKNOWN: "There is no query parameter {field} here.",
    ErrorCode.RANGE_UNSATISFIABLE: (
        "No byte of that range is in the document; it has {size} bytes."
    ),
    ErrorCode.TOKEN_MISSING: "Sign in first: the request carries no bearer token.",
    ErrorCode.TOKEN_INVALID: "The bearer token is not valid.",
    ErrorCode.TOKEN_EXPIRED: "The bearer token has expired; sign in again.",
    ErrorCode.MFA_REQUIRED: "This needs a sign-in with a second factor.",
    ErrorCode.STEP_UP: "The second factor is too old for this; sign in again.",
    ErrorCode.LOGIN_FAILED: "The user or the password is wrong.",
    ErrorCode.OTP_INVALID: (
        "The code is wrong or was already used: check it, or wait for the next one."
    ),
    ErrorCode.RATE_LIMITED: "Too many attempts; wait a moment and try again.",
    ErrorCode.API_KEY_MISSING: "The header X-Api-Key is missing.",
    ErrorCode.API_KEY_INVALID: "The integrator or its API key is wrong.",
    ErrorCode.API_KEY_ENVIRONMENT: (
        "This API key is of the other environment; this is {environment}."
    ),
    ErrorCode.API_KEY_IN_URL: (
        "The API key came in the address; send it in the header X-Api-Key and "
        "replace this one."
    ),
    ErrorCode.API_KEY_IN_BROWSER: (
        "The API key came from a browser; call from the integrator's backend and "
        "replace this one."
    ),
    ErrorCode.API_KEY_ADDRESS: (
        "This API key may not be used from {address}; call from an address that it "
        "allows, or make a key that allows this one."
    ),
    ErrorCode.API_KEY_SCOPE: (
        "This API key lacks the scope {scope}; make one that has it."
    ),
    ErrorCode.API_KEY_NOT_FOUND: "There is no such API key.",
    ErrorCode.INTEGRATOR_DISABLED: (
        "This integrator is disabled; ask whoever runs this installation."
    ),
    ErrorCode.SESSION_TOKEN_EXPIRED: (
        "The session has expired; the integrator's backend can open a new one."
    ),
    ErrorCode.SESSION_TOKEN_INVALID: "This session does not exist.",
    ErrorCode.SESSION_SUPERSEDED: "The session was continued in another window.",
    ErrorCode.SESSION_IN_USE: (
        "The session is already being used for something else; open a new one."
    ),
    ErrorCode.SESSION_DOCUMENTS: (
        "The session has reached its limit of documents; open a new one."
    ),
    ErrorCode.SESSION_CODES: (
        "Too many wrong codes; close this window and begin again, with the code that "
        "your app shows then."
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
    ErrorCode.ENROLMENT_UNKNOWN: "This enrolment link does not exist.",
    ErrorCode.ENROLMENT_EXPIRED: "This enrolment link has expired.",
    ErrorCode.ENROLMENT_USED: "This enrolment link has already been used.",
    ErrorCode.WEBHOOK_NOT_FOUND: "There is no such webhook.",
    ErrorCode.WEBHOOK_DISABLED: "This webhook is disabled; enable it first.",
    ErrorCode.WEBHOOKS_TOO_MANY: (
        "This integrator has {most} webhooks, the most that it can have; remove one "
        "first."
    ),
    ErrorCode.DELIVERY_NOT_FOUND: (
        "There is no such delivery: its id is wrong, or it is no longer kept."
    ),
    ErrorCode.TEST_SIGNERS_TOO_MANY: (
        "This integrator has {most} test signers, the most that it can have; remove "
        "one first."
    ),
    ErrorCode.ORIGIN_REFUSED: (
        "That did not come from a page of the console; open it at {url}."
    ),
    ErrorCode.CSRF_REFUSED: (
        "The page is from an earlier sign-in; go back, reload it and try again."
    ),
    ErrorCode.CONSOLE_USER_NOT_FOUND: "There is no such administrator.",
    ErrorCode.CONSOLE_USER_STATE: "The administrator is in that state already.",
    ErrorCode.CONSOLE_USER_LAST: (
        "This is the last administrator who can sign in; create another one first."
    ),
    ErrorCode.NOT_LOCKED: "The signing password is not locked.",
    ErrorCode.PERSON_STATE: "The person's state ({state}) does not allow that.",
    ErrorCode.VOUCH_REFUSED: (
        "This integrator may not vouch for people; ask whoever runs this installation."
    ),
    ErrorCode.MAIL_OFF: (
        "No mail is sent: no server is set here, or this integrator's signers are not "
        "written to; ask whoever runs this installation."
    ),
    ErrorCode.REFERENCE_IN_USE: (
        "Another request of this integrator has that reference already."
    ),
    ErrorCode.SOLICITUD_NOT_FOUND: "There is no such signature request.",
    ErrorCode.LOTE_NOT_FOUND: "There is no such batch, or it is too old.",
    ErrorCode.DOCUMENT_NOT_FOUND: (
        "There is no such document: its id is wrong, it was deleted, or its time is "
        "over."
    ),
    ErrorCode.ALREADY_SIGNED: "It is already signed with other parameters.",
    ErrorCode.IN_PROGRESS: (
        "Another signature or change is in progress; try again in a moment."
    ),
    ErrorCode.STILL_SIGNING: (
        "The document is still being signed; repeat the same call to get it."
    ),
    ErrorCode.STATE: "The request's state ({estado}) does not allow that.",
    ErrorCode.IDEMKEY_CONFLICT: "That idempotency key was used for something else.",
    ErrorCode.DOCUMENT_CHANGED: "The document is not the one you saw.",
    ErrorCode.NOT_SIGNED_YET: "The request is not signed, so there is no document.",
    ErrorCode.PAGE_OUT_OF_RANGE: (
        "There is no page {page}; the last one is page {pages}."
    ),
    ErrorCode.POSITION_OUT_OF_PAGE: "The stamp would not fit entirely on the page.",
    ErrorCode.PRESET_FIXED: (
        "Look and place of this signature are fixed by who asked for it: leave out "
        "{fields}."
    ),
    ErrorCode.STAMP_ANCHOR_NOT_FOUND: (
        "The document does not have the text that the stamp is to go below: {text}."
    ),
    ErrorCode.SIGN_PASSWORD_WRONG: "The signing password is wrong.",
    ErrorCode.SIGN_LOCKED: (
        "Signing is locked after too many wrong passwords; ask whoever runs this "
        "installation."
    ),
    ErrorCode.CERTIFICATE_NOT_USABLE: "No certificate can be used to sign right now.",
    ErrorCode.CERTIFICATE_NOT_FOUND: "There is no such certificate.",
    ErrorCode.CERTIFICATE_STATE: (
        "The certificate was revoked or replaced, or is being revoked."
    ),
    ErrorCode.ACTIVATION_EXPIRED: (
        "Signing took too long and was undone; enter the signing password again."
    ),
    ErrorCode.ACTIVATION_INVALID: (
        "What was authorised does not match the record, so nothing was signed; enter "
        "the signing password again."
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
    ErrorCode.CERTIFICATE_ISSUED_HERE: (
        "This service itself issued the certificate of {subject}: only what an "
        "external CA issued can be imported."
    ),
    ErrorCode.CERTIFICATE_ISSUED_OUTSIDE: (
        "An external CA issued the certificate, so it is renewed there and not here."
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
    ErrorCode.CERTIFICATE_UNVERIFIABLE: (
        "Signatures with this certificate would not be valid for the verifier of this "
        "service, so it is not used."
    ),
    ErrorCode.ANCHOR_NOT_A_ROOT: (
        "The certificate of {subject} is not a root: it is not signed by itself."
    ),
    ErrorCode.ANCHOR_FINGERPRINT: (
        "The certificate of {subject} has another fingerprint than that: {sha256}."
    ),
    ErrorCode.ANCHOR_NOT_FOUND: "There is no such certificate in the trust store.",
    ErrorCode.REVOCATION_PIN_WRONG: "The CUIL or the revocation PIN is wrong.",
    ErrorCode.DOCUMENT_EMPTY: (
        "The document is empty: not one byte of it arrived. Send the file's content."
    ),
    ErrorCode.DOCUMENT_MISMATCH: "The file sent is not the request's document.",
    ErrorCode.DOCUMENT_TOO_LARGE: (
        "The document is larger than {limit} bytes. Make it smaller, for example "
        "with pictures of a lower resolution, or split it."
    ),
    ErrorCode.FILENAME: (
        "The file name must end in .pdf, not begin with a dot, and have no slashes or "
        "other special characters; up to 255 bytes."
    ),
    ErrorCode.PDF_MALFORMED: (
        "The file cannot be read as a PDF. Open it in a PDF reader: if it opens, "
        "save or print it as a new PDF and send that; if not, ask whoever made it "
        "for another copy."
    ),
    ErrorCode.PDF_PASSWORD_NEEDED: (
        "The PDF does not open without its password. Save it without a password, "
        "and send that."
    ),
    ErrorCode.PDF_ENCRYPTED: (
        "The PDF is encrypted in a way that does not allow adding a signature. "
        "Save it without encryption, or print it as a new PDF, and send that."
    ),
    ErrorCode.PDF_XFA: (
        "The PDF is a dynamic XFA form, which cannot be signed. Print it as a new "
        "PDF, and send that."
    ),
    ErrorCode.PDF_NO_PAGES: (
        "The PDF has no pages. Make it again, with what is to be signed, and send that."
    ),
    ErrorCode.PDF_TOO_COMPLEX: (
        "The PDF is too complex for this service. Print it as a new PDF, or split "
        "it, and send that."
    ),
    ErrorCode.PDF_UNVERIFIABLE: (
        "The PDF is faulty: other programs would show it otherwise, or call its "
        "signature invalid. Save or print it as a new PDF, and send that."
    ),
    ErrorCode.PDF_AMBIGUOUS: (
        "The PDF says something twice, or in a way that programs read differently: "
        "what is shown to one person may not be what another one sees. Save or print "
        "it as a new PDF, and send that."
    ),
    ErrorCode.PDF_EXTERNAL_CONTENT: (
        "The PDF takes part of its content from another file, which a signature would "
        "not cover. Save or print it as a new PDF, and send that."
    ),
    ErrorCode.PICTURE_UNUSABLE: (
        "The picture is not a PNG or JPEG file of up to 1 MB and 4096 by 4096 pixels."
    ),
    ErrorCode.PDF_NOT_ALLOWED: (
        "Documents like this are not accepted here: {kinds}. Print it as a new "
        "PDF, which leaves that out, and send that."
    ),
    ErrorCode.PDF_LOCKED: (
        "An earlier signature in the PDF does not allow this one. Ask for a copy "
        "from before that signature, or for a document that can still be signed."
    ),
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
        "The signature field requires something this signature would not have: {needs}."
    ),
    ErrorCode.SIGNERS_LOCKED_OUT: (
        "Others have to sign after you; this would prevent it."
    ),
    ErrorCode.HSM_UNAVAILABLE: "The keys cannot be used right now; try again soon.",
    ErrorCode.STORE_UNAVAILABLE: "The database is not available; try again soon.",
    ErrorCode.DOCUMENT_QUOTA: (
        "This organisation's documents that wait to be signed take all their room; "
        "try again later."
    ),
    ErrorCode.STORAGE_FULL: "There is no space left for documents; try again later.",
    ErrorCode.DOCUMENT_DAMAGED: (
        "The stored document is missing or damaged; whoever runs this installation can "
        "bring it back from a backup."
    ),
    ErrorCode.SANDBOX_UNAVAILABLE: "Documents cannot be examined right now.",
    ErrorCode.TSA_UNAVAILABLE: (
        "A timestamp cannot be obtained right now; try again soon."
    ),
    ErrorCode.REVOCATION_UNAVAILABLE: (
        "Whether a certificate is revoked cannot be checked right now; try again soon."
    ),
    ErrorCode.OVERLOADED: "The service is busy; try again soon.",
    ErrorCode.INTERNAL: "Something went wrong on our side.",
    ErrorCode.ALREADY_EXISTS: "There is one already: {field}.",
    ErrorCode.CHANGED_MEANWHILE: (
        "It was changed since you read it, so nothing of your change was saved."
    ),
    ErrorCode.PERSON_NOT_FOUND: "There is no such person.",
    ErrorCode.INTEGRATOR_NOT_FOUND: "There is no such integrator.",
    ErrorCode.NOT_A_TRIAL: "This can only be done in a trial installation.",
    ErrorCode.TASK_FAILED: "The HSM task failed: {reason}.",
}
"""What is said for each code: a msgid with named places, safe for anybody."""
FIELD_LOCKED: Final = (
    "An earlier signature does not allow signing in this field. Choose another field "
    "or place, or ask for a copy from before that signature."
)
FIELD_READ_ONLY: Final = (
    "The signature field is read-only. Choose another field or place, or ask whoever "
    "made the PDF to unlock the field."
)
BASE64_WANTED: Final = (
    "The field {field} is not plain Base64; send it without a data: prefix, and "
    "without blanks or line breaks."
)
HEADER_MALFORMED: Final = "The header {field} is malformed."
HEADER_NOT_HERE: Final = "The header {field} is not allowed here."
HEADER_REPEATED: Final = "The header {field} came more than once."
HEADER_CODING: Final = "Of the header {field} only chunked is understood."
HEADER_OR_LENGTH: Final = "The header {field} cannot come together with Content-Length."
"""Of `BAD_HEADER`, where it is known which one is wrong."""
HEADERS_TOO_MANY: Final = "The request has more than {most} headers."
HEAD_TOO_LARGE: Final = "The headers of the request are larger than {most} bytes."
"""Of `BAD_HEADER`, where it is all of them."""
OTHERS_CHOICE: Final = "Many people use this password: choose another one."
OWN_DATA: Final = (
    "A password that consists of one's own name, CUIL or e-mail address is easily "
    "guessed: choose another one."
)
CHECK_DIGIT: Final = (
    "The check digit of {field} does not fit: look at its digits again."
)
"""Of `FIELD_INVALID` and `INIT_INVALID`, where that alone is wrong."""
WRONG_TYPES: Final = {
    "string": "The field {field} must be a string, in quotes.",
    "integer": "The field {field} must be a whole number, without quotes or decimals.",
    "boolean": "The field {field} must be true or false, without quotes.",
    "array": "The field {field} must be a list of whole numbers.",
    "object": "The field {field} must be an object, in braces.",
    "objects": "The field {field} must be a list of objects.",
    "words": "The field {field} must be a list of words, in quotes.",
}
"""Of `FIELD_INVALID`, where a value is of another JSON type; by what it must be."""
COMES_WITH: Final = "The field {field} is missing: it comes together with {other}."
"""Of `FIELD_INVALID`, where one of two fields is there alone."""
NOT_WITH: Final = "The fields {field} and {other} cannot come together."
"""Of `FIELD_INVALID`, where one of two fields is too many."""
PART_REPEATED: Final = "The part {field} came more than once."
PART_MISSING: Final = "The body has no part {part}, which {field} names."
PART_OF_NONE: Final = "The part {field} is of none of the documents."
"""Of `FIELD_INVALID`, `FIELD_MISSING` and `FIELD_UNKNOWN`, in a multipart body."""
CHAIN_IN_USE: Final = "The credential signs with that certificate already."
"""Of `ALREADY_EXISTS`, where a chain comes that is the credential's already."""
CONTROL_CHARACTERS: Final = (
    "The field {field} must have no control characters, changes of direction or line "
    "breaks."
)
NOTHING_TO_SEE: Final = "Nothing in the field {field} would be seen."
"""Of `FIELD_INVALID`, where a text is as long as it may be."""
NOT_DRAWN: Final = (
    "The stamp cannot show these characters of the field {field}: {characters}. It has "
    "Latin letters, digits and the usual punctuation."
)
"""Reason of `FIELD_INVALID` for a text that would be sealed into a signature."""
DOCUMENT_IS_KNOWN: Final = (
    "This session was opened for something to sign: the page must send no document."
)
"""Of `INIT_INVALID`, where one came with the initial message."""
MINUTE_USED_UP: Final = (
    "The limit of {limit} ({most} a minute) is used up; try again after the time in "
    "Retry-After."
)
"""Of `RATE_LIMITED`, where a caller's limit is; it is called as in `RateLimit`."""
DAY_USED_UP: Final = (
    "The limit of {limit} ({most} a day) is used up; try again after the time in "
    "Retry-After."
)
"""The same of a limit for a day."""
ALL_SIGNING: Final = (
    "Too many calls that sign one document are in work, of yours or of all. Nothing "
    "was signed and no password was tried: repeat the call after the time in "
    "Retry-After, or sign several documents by one call."
)
"""Of `OVERLOADED`, where there is no place for a call that signs one document."""
REMINDED_TODAY: Final = "Everybody whose turn it is was reminded within a day."
"""Of `RATE_LIMITED`, where a reminder is asked for."""
NOT_ENROLLED: Final = (
    "This person was invited and has not enrolled yet: they have to open their link "
    "first."
)
"""Of `SIGNER_PENDING_APPROVAL`, as an integrator is told."""
OTP_USED: Final = (
    "You have used this code already. It is not wrong, but each code works once: wait "
    "for the next one that your app shows."
)
"""Of `OTP_INVALID`, where the code is right and was used before."""
LOGIN_OVER: Final = (
    "This sign-in has expired or was already used: start again with user and password."
)
"""Of `LOGIN_FAILED`, where the user and the password were right before."""
LINK_OVER: Final = (
    "This download link has expired or is not whole: sign in to download the document."
)
"""Of `TOKEN_MISSING`, where the link of a download came and does not open it."""
API_KEY_ELSEWHERE: Final = (
    "The API key goes in the header X-Api-Key, not in Authorization."
)
"""Of `API_KEY_MISSING`, where one came as a bearer."""
NETWORK_MALFORMED: Final = (
    "{network} is neither an IP address nor a network; write one such as 192.0.2.7, "
    "192.0.2.0/24 or 2001:db8::/32."
)
NETWORK_HOST_BITS: Final = (
    "{network} is an address within a network; write {whole} for the whole network, "
    "or {one} for the address alone."
)
NETWORKS_TOO_MANY: Final = "There are {count} networks; a key takes at most {most}."

POSITION_OF_BOTH: Final = (
    "The stamp would not fit entirely on the page: x must be within {x}, and y within "
    "{y}."
)
"""Of `POSITION_OUT_OF_PAGE`, where both are wrong."""
ANCHOR_BEYOND: Final = (
    "The document is too long to be searched whole: the text that the stamp is to go "
    "below is not in the part that was: {text}. Say which page it is on."
)
"""Of `STAMP_ANCHOR_NOT_FOUND`, where some of the document was not searched."""
BATCH_STATE: Final = "The batch's state ({estado}) does not allow that."
"""Sentence of `STATE` for a batch that is not ready."""
SIGNED_MEANWHILE: Final = (
    "Somebody else has signed the document since you last saw it. Look at it again,"
    " then sign."
)
"""Of `DOCUMENT_CHANGED`, where the call does not say which document it means."""
SIGNER_REPEATED: Final = "{cuil} is there more than once: each person signs once."
SIGNERS_TOO_MANY: Final = "There are {count} signers; at most {most} can sign in turn."
"""Of `FIELD_INVALID`, where each of the signers is well written."""

DOCUMENTS_AWAY: Final = "The store of documents is not available; try again soon."
"""The sentence of `STORE_UNAVAILABLE` where it is not the database."""
FILES_AWAY: Final = (
    "A file that the service needs cannot be read: whoever runs it finds which one in "
    "its log."
)
"""The same where it is a file of keys, pins or certificates."""
FAILED_FOR_GOOD: Final = (
    "The request has failed for good ({code}) and is not tried again: ask for the "
    "signature with a new request."
)
"""The sentence of a code that ended a request, where it else passes by itself."""
