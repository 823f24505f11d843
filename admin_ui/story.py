"""What audit rows say: words for events, actors and members of a detail."""

from typing import Final

from admin_ui.words import N_, say
from appliance.domain.vocab import EventKind

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
    EventKind.KEY_ORPHAN_DESTROYED: N_("Leftover key destroyed"),
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
    EventKind.SIGN_PASSWORD_CHANGED: N_("Signing password changed"),
    EventKind.SIGN_PASSWORD_REPLACED: N_("Signing password replaced"),
    EventKind.SIGN_PEPPER_RENEWED: N_("Signing password derived anew"),
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
