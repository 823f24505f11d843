"""What audit rows say: words for events, actors and members of a detail."""

from collections.abc import Mapping
from typing import Any, Final

from admin_ui import words
from admin_ui.words import N_, say
from appliance.domain.signing.activation import SIGNING_PASSWORD
from appliance.domain.vocab import (
    ActivationState,
    CertificateState,
    EventKind,
    Openings,
    TaskKind,
)
from appliance.web.document_warnings import DAMAGES, FINDINGS

EVENTS: Final[dict[EventKind, str]] = {
    EventKind.INTEGRATOR_CREATED: N_("Integrator created"),
    EventKind.INTEGRATOR_CHANGED: N_("Integrator changed"),
    EventKind.LOGO_CHANGED: N_("Logo of stamps changed"),
    EventKind.API_KEY_CREATED: N_("API key created"),
    EventKind.API_KEY_ROTATED: N_("API key rotated"),
    EventKind.API_KEY_REVOKED: N_("API key revoked"),
    EventKind.API_KEY_FLAGGED: N_("API key exposed"),
    EventKind.API_KEY_EXPIRING: N_("API key expiring soon"),
    EventKind.DOMAIN_ADDED: N_("Domain allowed"),
    EventKind.DOMAIN_REMOVED: N_("Domain removed"),
    EventKind.WEBHOOK_DISABLED: N_("Webhook turned off: it gets nothing any more"),
    EventKind.WEBHOOK_CREATED: N_("Webhook created"),
    EventKind.WEBHOOK_CHANGED: N_("Webhook changed"),
    EventKind.WEBHOOK_ROTATED: N_("Webhook's secret replaced"),
    EventKind.WEBHOOK_REMOVED: N_("Webhook removed"),
    EventKind.WEBHOOK_TESTED: N_("Webhook tried out"),
    EventKind.WEBHOOK_REPLAYED: N_("Webhook's messages sent again"),
    EventKind.SESSION_OPENED: N_("Session opened"),
    EventKind.SESSION_EXCHANGED: N_("Session opened in a frame"),
    EventKind.SESSION_INIT: N_("Session started by the page"),
    EventKind.SESSION_DOCUMENT: N_("Document loaded into a session"),
    EventKind.SESSION_IDENTIFIED: N_("Signer matched in a session"),
    EventKind.SESSION_OTP_RIGHT: N_("Correct code in a session"),
    EventKind.SESSION_OTP_WRONG: N_("Wrong code in a session"),
    EventKind.SESSION_REQUEST: N_("Request bound to a session"),
    EventKind.SESSION_COMPLETED: N_("Session completed"),
    EventKind.SESSION_ENDED: N_("Session ended"),
    EventKind.SESSION_EXPIRED: N_("Session expired"),
    EventKind.ORIGIN_BLOCKED: N_("Page of an unregistered origin blocked"),
    EventKind.SESSION_RENEWED: N_("Session renewed"),
    EventKind.SESSION_CANCELLED: N_("Session cancelled by the signer"),
    EventKind.LEGACY_CREDENTIALS: N_("A page sent an API key to the frame"),
    EventKind.CONSOLE_USER_CREATED: N_("Administrator created"),
    EventKind.CONSOLE_USER_DISABLED: N_("Administrator disabled"),
    EventKind.CONSOLE_USER_ENABLED: N_("Administrator enabled"),
    EventKind.CONSOLE_USER_TOTP_SET: N_("Administrator's authenticator app replaced"),
    EventKind.CONSOLE_USER_PASSWORD_SET: N_("Administrator's password replaced"),
    EventKind.CONSOLE_USER_SESSIONS_ENDED: N_("Administrator's sessions ended"),
    EventKind.CONSOLE_USER_TRIES_FORGOTTEN: N_(
        "Administrator's failed attempts forgotten"
    ),
    EventKind.CONSOLE_LOGIN_WRONG: N_("Failed sign-in to the console"),
    EventKind.CONSOLE_LOGIN_COMPLETED: N_("Sign-in to the console"),
    EventKind.CONSOLE_CODE_WRONG: N_("Wrong confirmation code in the console"),
    EventKind.CONSOLE_LOGOUT: N_("Sign-out of the console"),
    EventKind.PERSON_INVITED: N_("Person invited"),
    EventKind.PERSON_ENROLLED: N_("Person enrolled"),
    EventKind.PERSON_CREATED: N_("Person created"),
    EventKind.PERSON_UNLOCKED: N_("Signing password unlocked"),
    EventKind.PERSON_DISABLED: N_("Person disabled"),
    EventKind.PERSON_ENABLED: N_("Person enabled"),
    EventKind.PERSON_TOTP_SET: N_("Person's authenticator app replaced"),
    EventKind.PERSON_TRIES_FORGOTTEN: N_("Person's failed attempts forgotten"),
    EventKind.PERSON_REISSUED: N_("Key revoked for a new enrolment"),
    EventKind.HELP_ASKED: N_("Help asked for"),
    EventKind.HELP_UNMATCHED: N_("Help asked for with data of nobody"),
    EventKind.HELP_WITHDRAWN: N_("Request for help withdrawn by the link of the mail"),
    EventKind.HELP_CLOSED: N_("Request for help closed"),
    EventKind.CERTIFICATE_IMPORTED: N_("Certificate of an external CA imported"),
    EventKind.SAMPLE_INTENDED: N_("New key about to sign a sample"),
    EventKind.CSR_INTENDED: N_("Key about to sign a certificate request"),
    EventKind.CSR_MADE: N_("Certificate request created"),
    EventKind.CERTIFICATE_EXPIRING: N_("Certificate expiring soon"),
    EventKind.ANCHOR_ADDED: N_("Root added to the trust store"),
    EventKind.ANCHOR_REMOVED: N_("Root removed from the trust store"),
    EventKind.REVOCATION_PIN_SET: N_("Revocation PIN created"),
    EventKind.REVOCATION_PIN_WRONG: N_("Wrong revocation PIN"),
    EventKind.CREDENTIAL_ISSUED: N_("Certificate issued"),
    EventKind.KEY_ORPHAN_DESTROYED: N_("Leftover key destroyed"),
    EventKind.CERTIFICATE_ISSUED: N_("Certificate of the appliance itself issued"),
    EventKind.CERTIFICATE_RENEWED: N_("Certificate renewed"),
    EventKind.REVOCATION_ASKED: N_("Revocation requested"),
    EventKind.REVOCATION_PUBLISHED: N_("Revocation published"),
    EventKind.REVOCATION_FOUND: N_("Certificate revoked by its external CA"),
    EventKind.CRL_PUBLISHED: N_("CRL published"),
    EventKind.OCSP_PUBLISHED: N_("OCSP responses published"),
    EventKind.DOCUMENT_KEY_CREATED: N_("Integrator's document key created"),
    EventKind.DOCUMENT_KEY_DESTROYED: N_("Integrator's document key destroyed"),
    EventKind.DOCUMENT_REMOVED: N_("Unused document removed"),
    EventKind.DOCUMENT_UPLOADED: N_("Document uploaded by the integrator's backend"),
    EventKind.DOCUMENT_UPLOAD_REMOVED: N_("Uploaded document removed"),
    EventKind.REQUEST_CREATED: N_("Request created"),
    EventKind.REQUEST_TURN: N_("Signer's turn"),
    EventKind.REQUEST_VIEWED: N_("Document seen by the signer"),
    EventKind.REQUEST_CHANGED: N_("Request changed by its integrator"),
    EventKind.REQUEST_REMINDED: N_("Signer reminded"),
    EventKind.REQUEST_REJECTED: N_("Request rejected by the signer"),
    EventKind.REQUEST_CANCELLED: N_("Request cancelled"),
    EventKind.REQUEST_EXPIRED: N_("Request expired"),
    EventKind.REQUEST_RETURNED: N_("Request pending again"),
    EventKind.REQUEST_SIGNED: N_("Request signed"),
    EventKind.REQUEST_FAILED: N_("Request failed"),
    EventKind.REQUEST_COMPLETED: N_("Signed by all"),
    EventKind.BATCH_RECEIVED: N_("Batch received"),
    EventKind.BATCH_READY: N_("Batch ready"),
    EventKind.BATCH_REFUSED: N_("Batch refused"),
    EventKind.BATCH_CANCELLED: N_("Batch cancelled before it was ready"),
    EventKind.BATCH_ENDED: N_("Batch over"),
    EventKind.DOCUMENT_RAISED: N_("Signature level raised or renewed automatically"),
    EventKind.UPKEEP_FAILED: N_("Signature level not raised yet; it will be retried"),
    EventKind.LOGIN_PASSWORD_RIGHT: N_("Correct login password"),
    EventKind.LOGIN_PASSWORD_WRONG: N_("Wrong login password"),
    EventKind.LOGIN_OTP_WRONG: N_("Wrong code at sign-in"),
    EventKind.LOGIN_CEILING_REACHED: N_("Too many failed attempts on an account"),
    EventKind.LOGIN_COMPLETED: N_("Signed in"),
    EventKind.LOGIN_ELSEWHERE: N_("Sign-in from an address not known so far"),
    EventKind.SIGN_PASSWORD_WRONG: N_("Wrong signing password"),
    EventKind.SIGN_PASSWORD_CHANGED: N_("Signing password changed"),
    EventKind.SIGN_PASSWORD_REPLACED: N_("Signing password replaced"),
    EventKind.SIGN_PEPPER_RENEWED: N_("Signing password derived again"),
    EventKind.SIGN_LOCKED: N_("Signing password locked"),
    EventKind.ACTIVATION_CREATED: N_("Signature authorised"),
    EventKind.ACTIVATION_CLAIMED: N_("Signature taken by a worker"),
    EventKind.ACTIVATION_EXPIRED: N_("Authorisation expired"),
    EventKind.KEY_INTENDED: N_("Key about to be used"),
    EventKind.KEY_USED: N_("Key used"),
    EventKind.KEY_INTERRUPTED: N_("Use of the key interrupted"),
    EventKind.DOCUMENT_DOWNLOADED: N_("Document downloaded"),
    EventKind.TIMESTAMP_ISSUED: N_("Timestamp issued"),
    EventKind.TASK_CREATED: N_("HSM task created"),
    EventKind.TASK_FAILED: N_("HSM task failed"),
    EventKind.SECRET_ROTATED: N_("New version of a secret key in use"),
    EventKind.SECRET_APPLIED: N_("Records updated to the secret key's version"),
    EventKind.SECRET_RETIRED: N_("Version of a secret key retired"),
    EventKind.MEMBER_JOINING: N_("Token joining the logical HSM"),
    EventKind.MASTER_CREATED: N_("New version of the HSM's master key in use"),
    EventKind.MASTER_APPLIED: N_("Keys updated to the master key's version"),
    EventKind.MASTER_RETIRED: N_("Version of the HSM's master key destroyed"),
    EventKind.HSM_TAKEN_OVER: N_("HSM taken over by this record"),
    EventKind.TSA_CREATED: N_("New key of the internal TSA"),
    EventKind.TSA_RETIRED: N_("Old key of the internal TSA destroyed"),
    EventKind.LINK_CREATED: N_("Download link created"),
}


def event(kind: EventKind) -> str:
    """Say what happened.

    Args:
        kind: of an audit row.
    """
    return say(EVENTS.get(kind, kind.value))


def chain_name(writer: str) -> str:
    """Name one of the audit's chains in few characters.

    Args:
        writer: its id. Ids begin with the time at which they were made, so chains that
            began together differ in what stands last alone.
    """
    return writer[-8:]


ACTORS: Final = {
    "operator": N_("Operator at the command line"),
    "system": N_("The system"),
    "anonymous": N_("Someone not signed in"),
}

FACTS: Final = {
    "before": N_("before"),
    "after": N_("after"),
    "openings": N_("documents to open before signing"),
    "person": N_("person"),
    "request": N_("request"),
    "document": N_("document"),
    "task": N_("task"),
    "key": N_("key"),
    "origin": N_("origin"),
    "endpoint": N_("webhook"),
    "code": N_("code"),
    "reason": N_("reason"),
    "cause": N_("cause"),
    "fields": N_("fields"),
    "documentSha256": N_("SHA-256 of the document"),
    "originalSha256": N_("SHA-256 of the document as received"),
    "damage": N_("what was wrong"),
    "pages": N_("pages"),
    "findings": N_("warnings"),
    "successor": N_("successor"),
    "sessionsEnded": N_("sessions ended"),
    "vouchedBy": N_("identity vouched for by"),
    "digest": N_("hash"),
    "credential": N_("credential"),
    "left": N_("attempts left"),
    "items": N_("documents"),
    "paramsSha256": N_("hash of the parameters"),
    "sha256": N_("SHA-256"),
    "session": N_("session"),
    "predecessor": N_("request before"),
    "signatures": N_("signatures"),
    "state": N_("state"),
    "name": N_("name"),
    "label": N_("label"),
    "scopes": N_("permissions"),
    "disabled": N_("disabled"),
    "url": N_("address"),
    "events": N_("events"),
    "message": N_("message"),
    "count": N_("how many"),
    "networks": N_("from the addresses"),
    "hint": N_("hint"),
    "expires": N_("expires"),
    "ends": N_("works until"),
    "until": N_("until"),
    "revoked": N_("revoked"),
    "mayVouch": N_("may vouch for identities"),
    "deliveryLimitBytes": N_("delivered in the message up to (bytes)"),
    "user": N_("administrator"),
    "counted": N_("wrong passwords so far"),
    "locked": N_("locked"),
    "factors": N_("factors"),
    "fault": N_("what is to go wrong"),
    "kind": N_("kind"),
    "serial": N_("serial number"),
    "spkiSha256": N_("SHA-256 of the public key"),
    "serials": N_("serial numbers"),
    "issuer": N_("issuer"),
    "crlNumber": N_("CRL number"),
    "answers": N_("responses"),
    "tries": N_("failed attempts"),
    "knownAddress": N_("address let in"),
    "level": N_("level"),
    "page": N_("page"),
    "size": N_("size (bytes)"),
    "eventId": N_("event id"),
    "codeUsed": N_("right code, used before"),
    "topic": N_("about"),
    "delivery": N_("delivery"),
    "anchor": N_("root"),
    "purpose": N_("purpose"),
    "days": N_("days left"),
    "notAfter": N_("ends"),
    "witness": N_("second officer"),
    "credentials": N_("credentials"),
    "batch": N_("batch"),
    "faults": N_("errors"),
    "item": N_("position in the batch"),
    "was": N_("was"),
    "now": N_("is now"),
    "wanted": N_("target level"),
    "version": N_("version"),
    "bySigner": N_("by the signer"),
    "amr": N_("signed in with"),
    "ended": N_("HSM task that ended"),
    "generation": N_("generation"),
    "objects": N_("objects on the token"),
    "pepper": N_("version of the pepper"),
    "documents": N_("documents"),
    "timestampPolicy": N_("while there is no timestamp"),
    "tsa": N_("timestamping authority"),
    "layer": N_("where it failed"),
    "upload": N_("upload"),
}
"""Words for members of an event's detail; others are shown as they are."""

LABELS: Final = {
    **FACTS,
    "formerRequest": N_("the session's earlier request"),
    "formerDocument": N_("the session's earlier document"),
    "formerPerson": N_("the session's earlier person"),
    "formerSession": N_("earlier session"),
}
"""The same, and for members that `shown` makes of those that are recorded."""

_FACTORS: Final = {
    "pwd": N_("login password"),
    "otp": N_("one-time code"),
    "mfa": N_("several factors"),
    "test": N_("test mode"),
    "hwk": N_("security key"),
    SIGNING_PASSWORD: N_("signing password"),
}
_ACTIVATIONS: Final[dict[str, str]] = {
    ActivationState.WAITING: N_("waiting for a worker"),
    ActivationState.KEYING: N_("being signed with the key"),
    ActivationState.FINISHING: N_("signed, being completed"),
    ActivationState.DONE: N_("done"),
    ActivationState.EXPIRED: N_("expired"),
    ActivationState.FAILED: N_("failed"),
}
_STATES: Final[dict[Any, str]] = {
    **_ACTIVATIONS,
    **{state: word for state, (word, _) in words.CREDENTIAL_STATES.items()},
    **{state: word for state, (word, _) in words.PERSON_STATES.items()},
    **{state: word for state, (word, _) in words.REQUEST_STATES.items()},
    CertificateState.VALID: N_("Valid"),
    CertificateState.REVOKING: N_("Being revoked"),
    CertificateState.REVOKED: N_("Revoked"),
}
_KINDS: Final[dict[Any, str]] = {
    **words.ENDING,
    TaskKind.ISSUE: N_("create a key and its certificate"),
    TaskKind.RENEW: N_("renew a certificate"),
    TaskKind.REVOKE: N_("revoke a certificate"),
    TaskKind.CSR: N_("create a certificate request"),
    TaskKind.PUBLISH: N_("sign the CA's CRLs and OCSP responses"),
    TaskKind.TIMESTAMP: N_("issue a timestamp"),
}
VALUES: Final[dict[str, Mapping[Any, str]]] = {
    "before": {"restored": N_("brought back from a backup")},
    "amr": _FACTORS,
    "openings": {
        Openings.ALL: N_("all"),
        Openings.SAMPLE: N_("a sample"),
        Openings.NONE: N_("none, the list is read"),
    },
    "factors": _FACTORS,
    "was": _ACTIVATIONS,
    "now": _ACTIVATIONS,
    "state": _STATES,
    "kind": _KINDS,
    "vouchedBy": words.VOUCHED,
    "purpose": words.PURPOSES,
    "topic": words.HELP_TOPICS,
    "scopes": {scope: short for scope, (_, _, short) in words.SCOPES.items()},
    "reason": words.REASONS,
    "layer": words.STATEMENT_FAULTS,
    "findings": FINDINGS,
    "damage": DAMAGES,
}
"""Words for values of vocabularies, by member; others are shown as they are."""


_CHANGED: Final = {
    EventKind.SESSION_DOCUMENT: ("document", "formerDocument"),
    EventKind.SESSION_IDENTIFIED: ("person", "formerPerson"),
    EventKind.SESSION_REQUEST: ("request", "formerRequest"),
    EventKind.SESSION_RENEWED: ("session", "formerSession"),
}
"""What changed in an event whose `before` and `after` are one value each, as members
by which both are told."""


def shown(detail: Mapping[str, Any], kind: EventKind) -> dict[str, Any]:
    """The members of an event's detail that tell something.

    An empty list tells nothing; positions are counted from 1, and the first one,
    which is also that of a document signed alone, is not worth a word.

    Args:
        detail: as it stands recorded.
        kind: of the event.
    """
    detail = _in_order(detail, kind)
    told = {key: one for key, one in detail.items() if one not in ([], {})}
    position = told.pop("item", 0)
    if position:
        told["item"] = position + 1
    return told


def _in_order(detail: Mapping[str, Any], kind: EventKind) -> Mapping[str, Any]:
    """What was before first; where it is one value, that and the next by what they are.

    A first value has none before it.
    """
    if "before" not in detail or "after" not in detail:
        return detail
    before, after = detail["before"], detail["after"]
    # The record keeps members by their names' order.
    rest = {k: v for k, v in detail.items() if k not in {"before", "after"}}
    if kind not in _CHANGED:
        return {**rest, "before": before, "after": after}
    name, former = _CHANGED[kind]
    told = {} if before is None else {former: before}
    return {**told, name: after, **rest}


def value(key: str, one: str, event: EventKind | None = None) -> str:
    """Say a value of a member of an event's detail; empty where it has no word.

    Args:
        key: of the member.
        one: as it stands recorded.
        event: whose detail it is.
    """
    word = VALUES.get(key, {}).get(one)
    if word is not None:
        return say(word)
    if not words.is_code(one):
        return ""
    return words.reason(one, is_final=event is EventKind.REQUEST_FAILED)
