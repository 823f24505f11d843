"""What the console says: English msgids, Spanish in `console.po`.

Templates say their own sentences; here are those for values of vocabularies,
and the functions by which both find the language of the present request.
"""

from typing import Final

from babel.numbers import format_decimal
from quart import g, request

from appliance.domain.errors import (
    ApplianceError,
    DomainInvalidError,
    FieldInvalidError,
)
from appliance.domain.integration import FlagReason
from appliance.domain.vocab import (
    CredentialState,
    EventKind,
    PersonState,
    RequestState,
    VouchedBy,
)
from appliance.web import language

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
        g.lang = chosen if chosen in language.LANGUAGES else language.requested()
    known: str = g.lang
    return known


def say(msgid: str, **values: object) -> str:
    """Say a sentence in the language of the present request.

    Args:
        msgid: the English sentence.
        values: for its `%(name)s` places.
    """
    told = language.translate(lang(), msgid, _FILE)
    return told % values if values else told


def say_many(one: str, many: str, number: int) -> str:
    """Say a sentence that depends on a number.

    Args:
        one: the English sentence for one.
        many: for any other; both may have `%(num)s`.
        number: how many.
    """
    return language.catalogue(lang(), _FILE).ngettext(one, many, number)


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
    if isinstance(exc, FieldInvalidError) and exc.field in FIELDS:
        return say(FIELDS[exc.field])
    told = exc.told(say(exc.sentence))
    if isinstance(exc, DomainInvalidError):
        return f"{told} {say(exc.reason)[:1].upper()}{say(exc.reason)[1:]}."
    return told


FIELDS: Final = {
    "code": N_("Write a code of a to z, digits and hyphens, up to 40."),
    "cuil": N_("Write a CUIL whose last digit is right, such as 20-26756539-3."),
    "email": N_("Write an e-mail address, such as ana@example.com."),
    "label": N_("Write a label of up to 60 characters."),
    "locale": N_("Choose one of the list."),
    "name": N_("Write a name, in letters that can be printed and not too long."),
}
"""What to write in a field whose value was refused, by the error's field."""

REQUEST_STATES: Final[dict[RequestState, tuple[str, str]]] = {
    RequestState.WAITING: (N_("Waiting for another signer"), "quiet"),
    RequestState.PENDING: (N_("Pending"), "wait"),
    RequestState.IN_PROGRESS: (N_("Being signed"), "run"),
    RequestState.SIGNED: (N_("Signed"), "good"),
    RequestState.REJECTED: (N_("Rejected"), "bad"),
    RequestState.CANCELLED: (N_("Cancelled"), "quiet"),
    RequestState.EXPIRED: (N_("Lapsed"), "quiet"),
    RequestState.FAILED: (N_("Failed"), "bad"),
}
"""Word and tone of each state."""

PERSON_STATES: Final[dict[PersonState, tuple[str, str]]] = {
    PersonState.INVITED: (N_("Invited"), "wait"),
    PersonState.ACTIVE: (N_("Active"), "good"),
    PersonState.DISABLED: (N_("Disabled"), "quiet"),
}

CREDENTIAL_STATES: Final[dict[CredentialState, tuple[str, str]]] = {
    CredentialState.ACTIVE: (N_("In use"), "good"),
    CredentialState.SUPERSEDED: (N_("Superseded"), "quiet"),
    CredentialState.REVOKED: (N_("No longer valid"), "bad"),
}

KEY_STATES: Final[dict[str, tuple[str, str]]] = {
    "active": (N_("Active"), "good"),
    "ending": (N_("Being replaced"), "wait"),
    "ended": (N_("Replaced"), "quiet"),
    "expired": (N_("Expired"), "quiet"),
    "revoked": (N_("Revoked"), "bad"),
}

VOUCHED: Final[dict[VouchedBy, str]] = {
    VouchedBy.VOUCHED: N_("an integrator vouched"),
    VouchedBy.OFFICER: N_("a registration officer checked"),
    VouchedBy.EXTERNAL: N_("an identity provider asserted"),
    VouchedBy.DEMO: N_("nobody: demonstration"),
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
    FlagReason.URL: N_("It came in an address: replace it."),
    FlagReason.BROWSER: N_("It came from a browser: replace it."),
}

PARTS: Final = {
    "database": N_("Database"),
    "sandbox": N_("Sandbox for documents"),
    "hsm": N_("HSM"),
}

HEALTH: Final = {
    "ok": N_("Working"),
    "NOT_MIGRATED": N_("The tables are of another version: run rubrica migrate."),
    "NO_WORKER": N_("No signing worker is running."),
    "HSM_UNAVAILABLE": N_("No signing worker can use the HSM."),
    "STORE_UNAVAILABLE": N_("It does not answer."),
    "SANDBOX_UNAVAILABLE": N_("It does not answer."),
    "TIMEOUT": N_("It takes too long to answer."),
}

WORKER_HSM: Final = {
    "ready": (N_("Ready"), "good"),
    "unavailable": (N_("Not available"), "bad"),
    "pin": (N_("The PIN was refused"), "bad"),
    "none": (N_("Uses no HSM"), "quiet"),
}

EVENTS: Final[dict[EventKind, str]] = {
    EventKind.INTEGRATOR_CREATED: N_("Integrator created"),
    EventKind.INTEGRATOR_CHANGED: N_("Integrator changed"),
    EventKind.API_KEY_CREATED: N_("API key created"),
    EventKind.API_KEY_ROTATED: N_("API key rotated"),
    EventKind.API_KEY_REVOKED: N_("API key revoked"),
    EventKind.API_KEY_FLAGGED: N_("API key seen where it must not be"),
    EventKind.DOMAIN_ADDED: N_("Domain allowed"),
    EventKind.DOMAIN_REMOVED: N_("Domain removed"),
    EventKind.SESSION_OPENED: N_("Session opened"),
    EventKind.SESSION_EXCHANGED: N_("Session taken up by a frame"),
    EventKind.SESSION_INIT: N_("Session started by the page"),
    EventKind.SESSION_DOCUMENT: N_("Document loaded into a session"),
    EventKind.SESSION_IDENTIFIED: N_("Signer matched in a session"),
    EventKind.SESSION_OTP_RIGHT: N_("Right code in a session"),
    EventKind.SESSION_OTP_WRONG: N_("Wrong code in a session"),
    EventKind.SESSION_REQUEST: N_("Request bound to a session"),
    EventKind.SESSION_COMPLETED: N_("Session completed"),
    EventKind.SESSION_ENDED: N_("Session ended"),
    EventKind.SESSION_RENEWED: N_("Session renewed"),
    EventKind.SESSION_CANCELLED: N_("Session cancelled by the signer"),
    EventKind.LEGACY_CREDENTIALS: N_("A page sent an API key to the frame"),
    EventKind.CONSOLE_USER_CREATED: N_("Administrator created"),
    EventKind.CONSOLE_LOGIN_WRONG: N_("Wrong sign-in to the console"),
    EventKind.CONSOLE_LOGIN_COMPLETED: N_("Sign-in to the console"),
    EventKind.CONSOLE_CODE_WRONG: N_("Wrong confirmation code in the console"),
    EventKind.CONSOLE_LOGOUT: N_("Sign-out of the console"),
    EventKind.PERSON_INVITED: N_("Person invited"),
    EventKind.PERSON_ENROLLED: N_("Person enrolled"),
    EventKind.PERSON_CREATED: N_("Person created"),
    EventKind.PERSON_UNLOCKED: N_("Signing password unlocked"),
    EventKind.PERSON_DISABLED: N_("Person disabled"),
    EventKind.PERSON_ENABLED: N_("Person enabled"),
    EventKind.CREDENTIAL_ISSUED: N_("Certificate issued"),
    EventKind.REQUEST_CREATED: N_("Request created"),
    EventKind.REQUEST_VIEWED: N_("Document seen by the signer"),
    EventKind.REQUEST_REJECTED: N_("Request rejected by the signer"),
    EventKind.REQUEST_CANCELLED: N_("Request cancelled"),
    EventKind.REQUEST_EXPIRED: N_("Request lapsed"),
    EventKind.REQUEST_RETURNED: N_("Request pending again"),
    EventKind.REQUEST_SIGNED: N_("Request signed"),
    EventKind.REQUEST_FAILED: N_("Request failed"),
    EventKind.LOGIN_PASSWORD_RIGHT: N_("Right login password"),
    EventKind.LOGIN_PASSWORD_WRONG: N_("Wrong login password"),
    EventKind.LOGIN_OTP_WRONG: N_("Wrong code at sign-in"),
    EventKind.LOGIN_COMPLETED: N_("Signed in"),
    EventKind.SIGN_PASSWORD_WRONG: N_("Wrong signing password"),
    EventKind.SIGN_LOCKED: N_("Signing password locked"),
    EventKind.ACTIVATION_CREATED: N_("Signature authorised"),
    EventKind.ACTIVATION_CLAIMED: N_("Signature taken by a worker"),
    EventKind.ACTIVATION_EXPIRED: N_("Authorisation ran out"),
    EventKind.KEY_INTENDED: N_("Key about to be used"),
    EventKind.KEY_USED: N_("Key used"),
    EventKind.KEY_INTERRUPTED: N_("Use of the key interrupted"),
    EventKind.DOCUMENT_DOWNLOADED: N_("Signed document downloaded"),
    EventKind.TASK_CREATED: N_("HSM task created"),
    EventKind.TASK_FAILED: N_("HSM task failed"),
    EventKind.LINK_CREATED: N_("Download link created"),
}


def event(kind: EventKind) -> str:
    """Say what happened.

    Args:
        kind: of an audit row.
    """
    return say(EVENTS.get(kind, kind.value))


ACTORS: Final = {
    "operator": N_("Operator at the command line"),
    "system": N_("The appliance"),
    "anonymous": N_("Somebody not signed in"),
}

FACTS: Final = {
    "before": N_("before"),
    "after": N_("after"),
    "person": N_("person"),
    "task": N_("task"),
    "key": N_("key"),
    "origin": N_("origin"),
    "code": N_("code"),
    "reason": N_("reason"),
    "documentSha256": N_("SHA-256 of the document"),
    "pages": N_("pages"),
    "findings": N_("findings"),
    "successor": N_("successor"),
    "sessionsEnded": N_("sessions ended"),
    "vouchedBy": N_("vouched by"),
    "digest": N_("digest"),
    "credential": N_("credential"),
    "left": N_("attempts left"),
    "items": N_("documents"),
    "paramsSha256": N_("fingerprint of the parameters"),
    "sha256": N_("SHA-256"),
    "session": N_("session"),
    "state": N_("state"),
    "name": N_("name"),
    "label": N_("label"),
    "hint": N_("hint"),
    "expires": N_("expires"),
    "ends": N_("works until"),
    "until": N_("until"),
    "revoked": N_("revoked"),
    "mayVouch": N_("may vouch for people"),
    "deliveryLimitBytes": N_("delivered inline up to (bytes)"),
    "user": N_("administrator"),
    "counted": N_("wrong passwords counted"),
    "locked": N_("locked"),
    "factors": N_("factors"),
    "kind": N_("kind"),
    "level": N_("level"),
    "page": N_("page"),
    "size": N_("size (bytes)"),
    "eventId": N_("event id"),
    "delivery": N_("delivery"),
    "item": N_("document number"),
}
"""Words for members of an event's detail; others are shown as they are."""
