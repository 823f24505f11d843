"""What the console says: English msgids, Spanish in `console.po`.

Templates say their own sentences; here are those for values of vocabularies,
and the functions by which both find the language of the present request.
"""

from collections.abc import Mapping
from typing import Final

from babel.numbers import format_decimal
from quart import g, request

from admin_ui import times
from appliance.domain.documents.inspected import FindingKind
from appliance.domain.errors import (
    NETWORK_HOST_BITS,
    NETWORK_MALFORMED,
    NETWORKS_TOO_MANY,
    ApplianceError,
    CheckDigitError,
    DomainInvalidError,
    ErrorCode,
    FieldInvalidError,
    PrivateAddressError,
    SignersInvalidError,
)
from appliance.domain.errors.sentences import CHAIN_IN_USE, SENTENCES
from appliance.domain.integrators.api_keys import ApiKeyScope
from appliance.domain.integrators.integrators import FlagReason
from appliance.domain.keys.hsm_keys import DigestAlgorithm
from appliance.domain.people.new_password import WeakPasswordError
from appliance.domain.pki.trust_store import AnchorPurpose, ExpiringKind
from appliance.domain.requests.signer_bars import Bar
from appliance.domain.vocab import (
    BatchState,
    CredentialState,
    HelpTopic,
    PersonState,
    RequestState,
    RevocationReason,
    SignatureLevel,
    StatementFault,
    TimestampPolicy,
    VouchedBy,
)
from appliance.web import i18n
from appliance.web.document_warnings import FINDINGS

_FILE: Final = "console"
_THOUSAND: Final = 1000
LANGUAGE_COOKIE: Final = "__Host-rubrica-language"


def N_(text: str) -> str:  # noqa: N802 (gettext's name for a msgid said later)
    """Mark a msgid that is said later.

    Args:
        text: the msgid.
    """
    return text


def lang() -> str:
    """The language of the present request: chosen before, or asked for."""
    if "lang" not in g:
        chosen = request.cookies.get(LANGUAGE_COOKIE, "")
        g.lang = chosen if chosen in i18n.LANGUAGES else i18n.requested()
    known: str = g.lang
    return known


def say(msgid: str, **values: object) -> str:
    """Say a sentence in the language of the present request.

    Args:
        msgid: the English sentence.
        values: for its `%(name)s` places.
    """
    told = i18n.translate(lang(), msgid, _FILE)
    return told % values if values else told


def say_many(one: str, many: str, number: int) -> str:
    """Say a sentence that depends on a number.

    Args:
        one: the English sentence for one.
        many: for any other; both may have `%(num)s`.
        number: how many.
    """
    return i18n.catalogue(lang(), _FILE).ngettext(one, many, number)


def load() -> None:
    """Read all that words and numbers are made of now, and nothing later."""
    for each in i18n.LANGUAGES:
        i18n.catalogue(each, _FILE)
        format_decimal(0, locale=each)
    times.load()


def size(number: int) -> str:
    """Say how big a file is, in units of a thousand.

    Args:
        number: its bytes.
    """
    value, unit = float(number), "B"
    for larger in ("kB", "MB", "GB"):
        if value < _THOUSAND:
            break
        value, unit = value / _THOUSAND, larger
    form = "#,##0" if unit == "B" else "#,##0.0"
    return f"{format_decimal(value, form, locale=lang())} {unit}"


def error(exc: ApplianceError) -> str:
    """Say what went wrong, in words for people.

    Args:
        exc: ours.
    """
    together = isinstance(exc, SignersInvalidError | WeakPasswordError)
    if isinstance(exc, FieldInvalidError) and exc.field in FIELDS and not together:
        return say(_OF_FAULT.get(type(exc), FIELDS[exc.field]))
    if exc.code is ErrorCode.ALREADY_EXISTS:
        return say(EXISTING.get(str(exc.params.get("field", "")), _EXISTS))
    if exc.code in _PLAIN and not (together or exc.sentence in _FOR_PEOPLE):
        return say(_PLAIN[exc.code])
    if exc.code is ErrorCode.PDF_NOT_ALLOWED:
        kinds = str(exc.params.get("kinds", "")).split(", ")
        found = [say(FINDINGS[kind]) for kind in FindingKind if kind.value in kinds]
        return " ".join([say(_NOT_TAKEN), *found])
    told = exc.told(say(exc.sentence), say)
    if isinstance(exc, DomainInvalidError):
        return f"{told} {say(exc.reason)[:1].upper()}{say(exc.reason)[1:]}."
    return told


def reason(code: str, *, is_final: bool = False) -> str:
    """Say why something ended as it did, and what helps.

    Args:
        code: as it stands recorded: an error's, or one of the record's own.
        is_final: nothing tries it again.
    """
    if is_final and code in WHY_FOR_GOOD:
        return say(WHY_FOR_GOOD[code])
    if code in WHY:
        return say(WHY[code])
    if code in _PLAIN:
        return say(_PLAIN[ErrorCode(code)])
    if code in ErrorCode.__members__ and "{" not in SENTENCES[ErrorCode(code)]:
        return say(SENTENCES[ErrorCode(code)])
    return say(_OTHER)


def is_code(text: str) -> bool:
    """Whether a recorded text is a code that nobody should have to read.

    Args:
        text: of a record.
    """
    return text in WHY or text in ErrorCode.__members__


_CHECK_DIGIT: Final = N_(
    "The check digit of the CUIL does not match: look for a mistyped digit."
)
_OF_FAULT: Final[Mapping[type[ApplianceError], str]] = {
    CheckDigitError: _CHECK_DIGIT,
    PrivateAddressError: N_(
        "This address is in a private network, where webhooks are not sent. Write one "
        "that is reached from the Internet, or ask whoever runs the service to allow "
        "its network (webhooks.allowed_networks)."
    ),
}
"""What is said in the place of `FIELDS`, where the fault is one of its own."""
_NOT_TAKEN: Final = N_("This installation does not take in documents like this.")
_EXISTS: Final = N_("There is one already.")
EXISTING: Final = {
    "code": N_("An integrator has this code already: choose another one."),
    "cuil": N_("There is a person with this CUIL already."),
    "email": N_("A person has this e-mail address already."),
    "cuil / email": N_("There is a person with this CUIL or e-mail address already."),
    "origin": N_("This origin is allowed already."),
    "name": N_("An administrator has this name already."),
    "credential": N_("This person has a key already."),
    "cadena": CHAIN_IN_USE,
}
"""What there is already, by the error's field."""

DAY: Final = N_("Write a day, such as 2026-11-29.")
_FIELD: Final = N_("Something that you filled in is not right.")
_ADDRESS: Final = N_("Part of this address is not right: start again.")
_PLAIN: Final = {
    ErrorCode.PERSON_STATE: N_("This person's state does not allow that any more."),
    ErrorCode.STATE: N_("This request's state does not allow that any more."),
    ErrorCode.CREDENTIAL_STATE: N_("This key's state does not allow that any more."),
    ErrorCode.FIELD_INVALID: _FIELD,
    ErrorCode.FIELD_MISSING: _FIELD,
    ErrorCode.FIELD_UNKNOWN: _FIELD,
    ErrorCode.INIT_INVALID: _FIELD,
    ErrorCode.QUERY_INVALID: _ADDRESS,
    ErrorCode.QUERY_UNKNOWN: _ADDRESS,
    ErrorCode.TASK_FAILED: N_("The HSM could not do it; the worker's log says why."),
}
"""Sentences in the place of those that name members of the interface."""

_FOR_PEOPLE: Final = frozenset(
    {NETWORK_HOST_BITS, NETWORK_MALFORMED, NETWORKS_TOO_MANY}
)
"""Sentences of codes in `_PLAIN` that name none."""

_OTHER: Final = N_("It was refused; the log of that moment says why.")
WHY: Final[dict[str, str]] = {
    "PROCESS_ENDED": N_("Another signer of the same document rejected or missed it."),
    ErrorCode.SIGNING_FAILED.value: N_(
        "The document could not be signed as it is. Save the file again and request "
        "the signature once more."
    ),
    ErrorCode.ACTIVATION_EXPIRED.value: N_(
        "No worker took it up in time; the signer can sign again. See in Health "
        "whether one is alive."
    ),
    ErrorCode.ACTIVATION_INVALID.value: N_(
        "What was authorised is not what stood recorded, so nothing was signed; the "
        "signer can sign again."
    ),
    ErrorCode.CERTIFICATE_NOT_USABLE.value: N_(
        "The signer's certificate is not valid: see it on the person's page."
    ),
    ErrorCode.HSM_UNAVAILABLE.value: N_(
        "The HSM could not be used, so nothing was signed; the signer can sign again. "
        "See Health."
    ),
    ErrorCode.TSA_UNAVAILABLE.value: N_(
        "No timestamp can be obtained; it is retried automatically."
    ),
    ErrorCode.DOCUMENT_DAMAGED.value: N_(
        "The stored document is missing or damaged, so nothing was signed: bring it "
        "back from a backup; then the signer can sign again."
    ),
    ErrorCode.STORAGE_FULL.value: N_("The documents' disk is full: make room on it."),
    ErrorCode.BUSY.value: N_("The key was in use at that moment: ask for it again."),
    ErrorCode.CERTIFICATE_UNVERIFIABLE.value: N_(
        "A sample signed with the certificate was not valid for the verifier, so the "
        "certificate was not put into use. The person's name may have characters that "
        "certificates do not allow; the worker's log says what failed."
    ),
    ErrorCode.CERTIFICATE_STATE.value: N_(
        "The certificate was no longer in use, or the person was disabled."
    ),
    ErrorCode.INTERNAL.value: N_(
        "Something went wrong on our side; the log of that moment says what."
    ),
    "attempts used up": N_("It was tried several times in vain; the log says why."),
}
"""Why something ended, and what helps, by the recorded code."""
WHY_FOR_GOOD: Final[dict[str, str]] = {
    ErrorCode.TSA_UNAVAILABLE.value: N_(
        "No timestamp could be obtained in the time that there was, so the signature "
        "was not delivered. It is not tried again."
    ),
    ErrorCode.REVOCATION_UNAVAILABLE.value: N_(
        "Whether a certificate is revoked could not be checked in the time that there "
        "was, so the signature was not delivered. It is not tried again."
    ),
    ErrorCode.HSM_UNAVAILABLE.value: N_(
        "The HSM could not be used. It is not tried again."
    ),
    ErrorCode.STORE_UNAVAILABLE.value: N_(
        "The documents could not be read or stored in the time that there was. It is "
        "not tried again."
    ),
    ErrorCode.STORAGE_FULL.value: N_(
        "The documents' disk was full. It is not tried again: make room first."
    ),
    ErrorCode.DOCUMENT_DAMAGED.value: N_(
        "The stored document is missing or damaged. It is not tried again: bring it "
        "back from a backup first."
    ),
}
"""The same of a request that failed for good, where the word of its code tells of a
next try."""

FIELDS: Final = {
    "code": N_(
        "Write a code of a to z, digits and hyphens, up to 40, which begins with a"
        " letter or a digit."
    ),
    "cuil": N_("Write the 11 digits of a person's CUIL, such as 20-26756539-3."),
    "then": N_("Write CUILs of 11 digits, separated by commas, such as 20-26756539-3."),
    "email": N_("Write an e-mail address, such as ana@example.com."),
    "fontColor": N_("Write a colour: BLACK, BLUE, RED … or #RRGGBB."),
    "fontSize": N_("Write a size from 4 to 72."),
    "lugar": N_("Write a place of up to 60 characters."),
    "motivo": N_("Write a reason of up to 120 characters."),
    "url": N_(
        "Write a whole address, such as https://app.example/rubrica, of up to 2,048 "
        "characters, with neither a user's name nor a # in it."
    ),
    "fingerprint": N_("Write the fingerprint: 64 hex digits (SHA-256) or 40 (SHA-1)."),
    "label": N_("Write a label of up to 60 characters."),
    "locale": N_("Choose an option from the list."),
    "scopes": N_("Choose at least one permission."),
    "password": N_("Write a password of 12 characters or more."),
    "name": N_(
        "Write a name with letters, in one line, without emoji or invisible characters,"
        " of up to 64 characters (one with an accent counts as two). Do not mix Latin"
        " letters with Arabic or Hebrew ones."
    ),
    "event_prefix": N_(
        "Write a prefix that begins with a to z and goes on with a to z, digits and"
        " hyphens, up to 32."
    ),
}
"""What to write in a field whose value was refused, by the error's field."""

MISSING: Final = {
    "code": N_("The code is missing."),
    "cuil": N_("The CUIL is missing."),
    "email": N_("The e-mail address is missing."),
    "fingerprint": N_("The fingerprint is missing."),
    "label": N_("The label is missing."),
    "name": N_("The name is missing."),
    "password": N_("The new password is missing."),
    "url": N_("The address is missing."),
}
"""What is said of a field that was left empty, by the error's field."""

BARS: Final[dict[Bar, str]] = {
    Bar.INVITED: N_(
        "The signer has not enrolled yet. Their page says until when their link works, "
        "and makes a new one."
    ),
    Bar.DISABLED: N_(
        "The signer is disabled. Enable the person again, or cancel the request and "
        "ask somebody else."
    ),
    Bar.LOCKED: N_(
        "The signer's password is locked after too many wrong ones. Unlock it on their "
        "page once you are sure who is asking."
    ),
    Bar.REVOKED: N_(
        "The signer's certificate is revoked. Invite the person to enrol again, or "
        "cancel the request and ask somebody else."
    ),
    Bar.EXPIRED: N_(
        "The signer's certificate has expired. Renew it on their page, or import the "
        "chain that its CA issued."
    ),
    Bar.MISSING: N_(
        "The signer has no certificate in force. Their page says whether it is being "
        "made, and what to do if that failed."
    ),
}
"""Why a request cannot be signed, and what to do."""

REQUEST_STATES: Final[dict[RequestState, tuple[str, str]]] = {
    RequestState.WAITING: (N_("Waiting for another signer"), "quiet"),
    RequestState.PENDING: (N_("Pending"), "wait"),
    RequestState.IN_PROGRESS: (N_("Being signed"), "run"),
    RequestState.SIGNED: (N_("Signed"), "good"),
    RequestState.REJECTED: (N_("Rejected"), "bad"),
    RequestState.CANCELLED: (N_("Cancelled"), "quiet"),
    RequestState.EXPIRED: (N_("Expired"), "quiet"),
    RequestState.FAILED: (N_("Failed"), "bad"),
}
"""Word and tone of each state."""

BATCH_STATES: Final[dict[BatchState, tuple[str, str]]] = {
    BatchState.PREPARING: (N_("Being prepared"), "run"),
    BatchState.READY: (N_("Ready"), "good"),
    BatchState.REFUSED: (N_("Refused"), "bad"),
    BatchState.CANCELLED: (N_("Cancelled"), "quiet"),
}
"""Word and tone of each state."""

PERSON_STATES: Final[dict[PersonState, tuple[str, str]]] = {
    PersonState.INVITED: (N_("Invited"), "wait"),
    PersonState.ACTIVE: (N_("Active"), "good"),
    PersonState.DISABLED: (N_("Disabled"), "quiet"),
}

HELP_TOPICS: Final[dict[HelpTopic, str]] = {
    HelpTopic.PASSWORD: N_("forgot the signing password"),
    HelpTopic.PHONE: N_("does not have the phone"),
    HelpTopic.BOTH: N_("has neither the signing password nor the phone"),
    HelpTopic.LOCKED: N_("the signing password is locked"),
    HelpTopic.OTHER: N_("cannot sign for another reason"),
}
"""What keeps a person from signing, as they say."""

ADMINISTRATOR_STATES: Final = {
    True: (N_("Enabled"), "good"),
    False: (N_("Turned off"), "quiet"),
}
"""Whether an administrator may sign in."""

CREDENTIAL_STATES: Final[dict[CredentialState, tuple[str, str]]] = {
    CredentialState.ACTIVE: (N_("In use"), "good"),
    CredentialState.SUPERSEDED: (N_("Superseded"), "quiet"),
    CredentialState.REVOKING: (N_("Being revoked"), "bad"),
    CredentialState.REVOKED: (N_("No longer valid"), "bad"),
}

STATEMENT_FAULTS: Final[dict[StatementFault, str]] = {
    StatementFault.UNREADABLE: N_("The certificate cannot be read."),
    StatementFault.ISSUER: N_("The certificate is not of a CA that is trusted here."),
    StatementFault.KEY: N_("The certificate is of another key."),
    StatementFault.NAME: N_("The certificate has another name than the person."),
    StatementFault.CUIL: N_("The certificate has another CUIL than the person."),
    StatementFault.PURPOSE: N_("The certificate is not one for signing documents."),
    StatementFault.POLICY: N_(
        "The certificate does not say how the identity was checked."
    ),
    StatementFault.DATES: N_("The certificate was not valid at that time."),
    StatementFault.RESIDENT: N_("The key on the token is not this person's."),
}
"""Why signing workers refuse a key."""

KEY_STATES: Final[dict[str, tuple[str, str]]] = {
    "active": (N_("Active"), "good"),
    "ending": (N_("Being replaced"), "wait"),
    "ended": (N_("Replaced"), "quiet"),
    "expired": (N_("Expired"), "quiet"),
    "revoked": (N_("Revoked"), "bad"),
}

SCOPES: Final[dict[ApiKeyScope, tuple[str, str, str]]] = {
    ApiKeyScope.REQUESTS_READ: (
        N_("Signature requests"),
        N_("See their state and download the documents"),
        N_("Requests: see"),
    ),
    ApiKeyScope.REQUESTS_WRITE: (
        N_("Signature requests"),
        N_("Upload documents, request signatures and cancel requests"),
        N_("Requests: make"),
    ),
    ApiKeyScope.PEOPLE_READ: (
        N_("People"),
        N_("See whether somebody can sign"),
        N_("People: see"),
    ),
    ApiKeyScope.PEOPLE_WRITE: (
        N_("People"),
        N_("Vouch for people and invite them"),
        N_("People: invite"),
    ),
    ApiKeyScope.SESSIONS_WRITE: (
        N_("Sessions"),
        N_("Open sessions of the signing frame"),
        N_("Sessions: open"),
    ),
    ApiKeyScope.WEBHOOKS_READ: (
        N_("Webhooks"),
        N_("See webhooks and what was sent"),
        N_("Webhooks: see"),
    ),
    ApiKeyScope.WEBHOOKS_WRITE: (
        N_("Webhooks"),
        N_("Set up webhooks"),
        N_("Webhooks: set up"),
    ),
}
"""Subject, sentence and a short form of what an API key may be used for."""

VOUCHED: Final[dict[VouchedBy, str]] = {
    VouchedBy.VOUCHED: N_("an integrator"),
    VouchedBy.OFFICER: N_("a registration officer"),
    VouchedBy.EXTERNAL: N_("an identity provider"),
    VouchedBy.DEMO: N_("nobody (demonstration)"),
    VouchedBy.TEST: N_("nobody (test signer of an integrator)"),
}

REASONS: Final[dict[RevocationReason, str]] = {
    RevocationReason.KEY_COMPROMISE: N_("Someone else may be able to use the key"),
    RevocationReason.AFFILIATION_CHANGED: N_("The holder's details changed"),
    RevocationReason.SUPERSEDED: N_("Another one replaces it"),
    RevocationReason.CESSATION_OF_OPERATION: N_("The holder no longer signs"),
    RevocationReason.PRIVILEGE_WITHDRAWN: N_("It should not have been issued"),
    RevocationReason.UNSPECIFIED: N_("Not specified"),
}
"""Why a certificate is revoked; CRL and OCSP tell it to everybody."""

PURPOSES: Final[dict[AnchorPurpose, str]] = {
    AnchorPurpose.SIGNERS: N_("signers' certificates"),
    AnchorPurpose.TIMESTAMPS: N_("timestamps"),
}

ENDING: Final[dict[ExpiringKind, str]] = {
    ExpiringKind.SIGNER: N_("Signer"),
    ExpiringKind.ANCHOR: N_("Trusted root"),
    ExpiringKind.CA: N_("The internal CA"),
    ExpiringKind.OCSP: N_("OCSP responder"),
    ExpiringKind.TSA: N_("Timestamping authority"),
}

UPKEEP_REASONS: Final[dict[str, str]] = {
    "": N_("No worker has tried it: see below whether those that do it are alive."),
    ErrorCode.TSA_UNAVAILABLE.value: N_("No timestamp can be obtained."),
    ErrorCode.REVOCATION_UNAVAILABLE.value: N_(
        "Whether a certificate is revoked cannot be checked."
    ),
    ErrorCode.CERTIFICATE_NOT_USABLE.value: N_(
        "A certificate is revoked, or not trusted any more."
    ),
    ErrorCode.STORAGE_FULL.value: N_("The documents' disk is full."),
    ErrorCode.DOCUMENT_DAMAGED.value: N_("A stored document is missing or damaged."),
}
"""Why signed documents wait for their level, by the code of the last try."""

OWN_ROLES: Final[dict[str, str]] = {
    "operator": N_("Command line"),
    "root": N_("Root"),
    "issuing": N_("Issues certificates"),
    "ocsp": N_("Answers OCSP queries"),
    "tsa": N_("Issues timestamps"),
}

LEVELS: Final[dict[SignatureLevel, str]] = {
    SignatureLevel.B_B: N_(
        "The signature alone: verifiable while the certificate is valid."
    ),
    SignatureLevel.B_T: N_(
        "With a timestamp: proof that it was signed before that moment."
    ),
    SignatureLevel.B_LT: N_(
        "With a timestamp and everything needed to verify it without a network."
    ),
    SignatureLevel.B_LTA: N_(
        "As B-LT, with timestamps renewed in time: it can be verified many years later."
    ),
}
"""What each level is good for."""

POLICY_NAMES: Final[dict[TimestampPolicy, str]] = {
    TimestampPolicy.PREFERRED: N_("Do not wait"),
    TimestampPolicy.REQUIRED: N_("Wait"),
}

POLICIES: Final[dict[TimestampPolicy, str]] = {
    TimestampPolicy.PREFERRED: N_(
        "Delivered at the level it has, and raised automatically later."
    ),
    TimestampPolicy.REQUIRED: N_(
        "Delivered only at its level; if that takes too long, the request fails."
    ),
}

DIGESTS: Final[dict[DigestAlgorithm, str]] = {
    DigestAlgorithm.SHA256: "SHA-256",
    DigestAlgorithm.SHA384: "SHA-384",
    DigestAlgorithm.SHA512: "SHA-512",
}

KEY_MODES: Final = {
    "resident": N_("kept inside the HSM"),
    "wrapped": N_("kept encrypted, opened only inside the HSM"),
}

ORIGINS: Final = {
    "operador": N_("command line"),
    "consola": N_("console"),
    "sesion": N_("frame of an integrator"),
}

FLAGS: Final[dict[FlagReason, str]] = {
    FlagReason.URL: N_("It was sent in a URL: replace it."),
    FlagReason.BROWSER: N_("It came from a browser: replace it."),
}

PARTS: Final = {
    "database": N_("Database"),
    "documents": N_("Documents"),
    "sandbox": N_("Sandbox for documents"),
    "hsm": N_("HSM"),
    "clock": N_("Clock"),
}

HEALTH: Final = {
    "ok": N_("Working"),
    "NOT_MIGRATED": N_(
        "The database schema is of another version: run rubrica migrate."
    ),
    "TABLES_TOO_NEW": N_(
        "The database schema is of a newer version than this one may use: install that"
        " version."
    ),
    "NO_WORKER": N_("No signing worker is running."),
    "HSM_UNAVAILABLE": N_("No signing worker can use the HSM."),
    "HSM_TAKEN_OVER": N_(
        "The HSM serves another restore of this record: if this is the one that goes"
        " on, run rubrica hsm take-over."
    ),
    "HOST_NOT_ADMITTED": N_(
        "The machine of this console does not know the key of the signing host, so"
        " nobody can sign. Run rubrica hsm host-key on the signing host; then, as root"
        " on the machine of this console, the line that it shows."
    ),
    "DOCUMENTS_AWAY": N_(
        "The folder is not mounted or the bucket does not respond, or it belongs to "
        "another installation."
    ),
    "CLOCK_DRIFT": N_("It is more than 5 seconds off: mend the time synchronisation."),
    "STORE_UNAVAILABLE": N_("Not responding."),
    "SANDBOX_UNAVAILABLE": N_("Not responding."),
    "TIMEOUT": N_("Responding too slowly."),
}

WORKER_HSM: Final = {
    "ready": (N_("Ready"), "good"),
    "unavailable": (N_("Not available"), "bad"),
    "left": (N_("Serves another record"), "bad"),
    "pin": (N_("The PIN was refused"), "bad"),
    "none": (N_("Uses no HSM"), "quiet"),
}

HSM_UNKNOWN: Final = (N_("Not known"), "quiet")
"""Of a worker that is silent: what it said last holds no more."""

QUEUES: Final = {
    "activations": (
        N_("Documents to be signed"),
        N_("See below whether signing workers run and have their HSM."),
    ),
    "outside": (
        N_("Documents to be finished over the network"),
        N_("An outside TSA or CA does not answer the scheduled tasks: see their log."),
    ),
    "hsm_tasks": (
        N_("Keys, certificates and timestamps"),
        N_("See below whether signing workers run and have their HSM."),
    ),
    "batches": (
        N_("Batches to be prepared"),
        N_("See below whether the scheduled tasks run, and look at their log."),
    ),
}
"""What waits, and what to do when it is late."""

PUBLICATIONS: Final = {
    "issuing": N_("Revocation list of the CA that issues"),
    "root": N_("Revocation list of the root"),
    "ocsp": N_("OCSP answers (the first to end)"),
}

HSM_REMEDIES: Final = {
    "unavailable": N_("Bring the HSM or its network back: it reconnects by itself."),
    "left": N_("If this record is the one that goes on: rubrica hsm take-over."),
    "pin": N_("Correct its PIN and restart the worker: it does not try again."),
}
"""What to do about a worker's HSM, by its state."""

ROLES: Final = {
    "signing": N_("Signs"),
    "chores": N_("Runs scheduled tasks"),
    "api": N_("API and public pages"),
    "embed": N_("Signing frame"),
    "admin": N_("Console"),
}
"""What each process is there for; one of every kind belongs to an installation."""
_OPERATOR: Final = "operator"
"""Role of a command, which is no process of an installation."""


def role(recorded: str) -> str:
    """Say what a process is there for, as the record names it.

    Args:
        recorded: `api`, `operator`, `signing/HOST/2`.
    """
    name, *where = recorded.split("/")
    told = OWN_ROLES[_OPERATOR] if name == _OPERATOR else ROLES.get(name, name)
    return f"{say(told)} ({', '.join(where)})" if where else say(told)
