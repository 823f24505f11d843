"""The console's words for mails: what they tell, and how far they got."""

from typing import Final

from admin_ui.words import N_
from appliance.domain.mail.mails import MailKind, MailState

KINDS: Final[dict[MailKind, str]] = {
    MailKind.INVITATION: N_("Invitation"),
    MailKind.REQUEST: N_("Request to sign"),
    MailKind.REMINDER: N_("Reminder"),
    MailKind.SIGNED: N_("Signed document"),
    MailKind.CANCELLED: N_("Request cancelled"),
    MailKind.EXPIRED: N_("Request expired"),
    MailKind.ENROLLED: N_("Enrolment completed"),
    MailKind.CODES_SET: N_("New sign-in codes"),
    MailKind.PASSWORD_CHANGED: N_("Signing password changed"),
    MailKind.PASSWORD_LOCKED: N_("Signing password locked"),
    MailKind.SIGNED_IN_ELSEWHERE: N_("Sign-in from elsewhere"),
    MailKind.CERTIFIED: N_("New certificate"),
    MailKind.REVOKED: N_("Certificate revoked"),
    MailKind.HELP_ASKED: N_("Request for help"),
    MailKind.TEST: N_("Try of the mail server"),
}
STATES: Final[dict[MailState, tuple[str, str]]] = {
    MailState.PENDING: (N_("To be sent"), "wait"),
    MailState.SENT: (N_("Sent"), "good"),
    MailState.REFUSED: (N_("Refused by the server"), "bad"),
    MailState.GIVEN_UP: (N_("Could not be sent"), "bad"),
    MailState.CAUGHT: (N_("Kept, not sent: to a test signer"), "quiet"),
    MailState.WITHDRAWN: (N_("Not sent: no longer needed"), "quiet"),
}
